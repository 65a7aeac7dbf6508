//! The vendor's commands: batches, and where data stand.

use device::{Device, SnapshotChange};
use export::nvme::Options;
use nvme::Status;
use nvme::initiator::{Command, IoQueue, Namespace};
use nvme::vendor::{self, Mapped, Operation};
use std::os::unix::net::UnixStream;

use super::harness::*;

fn blocks(queue: &mut IoQueue<UnixStream>, namespace: &Namespace, first: u64, count: u32) -> Vec<u8> {
    let data = queue.read(namespace, first, count).expect("read");
    data.chunks(namespace.block_bytes as usize).map(|block| block[0]).collect()
}

fn of(namespace: &Namespace, bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| vec![*byte; namespace.block_bytes as usize]).collect()
}

#[test]
fn a_batch_writes_and_deallocates_blocks_of_every_size() {
    for (sector, block) in [(512, 512), (4096, 4096), (4096, 16384)] {
        let target = target_of(sector, block);
        for digests in [NONE, BOTH] {
            let Connected { mut queue, namespace, controller: _admin } = target.connect_with(digests);
            queue.write(&namespace, 0, of(&namespace, &[9; 10])).expect("written");
            let operations = [Operation::write(7, 2), Operation::deallocate(0, 3), Operation::write(4, 1)];
            queue.batch(&namespace, &operations, &of(&namespace, &[1, 2, 3])).expect("carried out");
            assert_eq!(blocks(&mut queue, &namespace, 0, 10), [0, 0, 0, 9, 3, 9, 9, 1, 2, 9]);
            let forced = Command::batch(&namespace, &[Operation::write(5, 1)], &of(&namespace, &[4])).with_fua();
            assert_eq!(queue.link().execute(forced).expect("an end").status, Status::SUCCESS);
            assert_eq!(blocks(&mut queue, &namespace, 4, 3), [3, 4, 9]);
        }
        let status = target.device.status().expect("the device is there");
        let counts = status.requests;
        assert_eq!((counts.batches, counts.writes), (4, 2), "each counts once");
    }
}

/// Larger than what a capsule takes: the controller asks for it.
#[test]
fn a_batch_of_one_mebibyte_at_256_places() {
    let target = target();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    let operations: Vec<Operation> = (0..256).map(|number| Operation::write(7 * number, 1)).collect();
    let data = pattern(3, MIB);
    queue.batch(&namespace, &operations, &data).expect("carried out");
    for (operation, block) in operations.iter().zip(data.chunks(4096)) {
        assert_eq!(queue.read(&namespace, operation.first, 1).expect("read"), block);
    }
    let mut too_many = operations.clone();
    too_many.push(Operation::deallocate(1, 1));
    assert_eq!(refused(queue.batch(&namespace, &too_many, &data)), Status::SIZE_LIMIT);
}

#[test]
fn a_batch_that_is_wrong_changes_nothing() {
    let target = target();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    queue.write(&namespace, 0, of(&namespace, &[9; 8])).expect("written");
    let end = namespace.blocks;
    let (one, two) = (of(&namespace, &[1]), of(&namespace, &[1, 2]));
    let write = Operation::write;
    let forget = Operation::deallocate;
    let cases: [(&[Operation], &[u8], Status); 8] = [
        (&[], &[], Status::INVALID_FIELD),
        (&[write(0, 1), forget(3, 0)], &one, Status::INVALID_FIELD),
        (&[write(0, 1), write(end - 1, 2)], &two, Status::LBA_RANGE),
        (&[write(0, 1), write(u64::MAX, 2)], &two, Status::LBA_RANGE),
        (&[write(0, 2), forget(1, 3)], &two, Status::BATCH_OVERLAP),
        (&[write(0, 1), write(0, 1)], &two, Status::BATCH_OVERLAP),
        (&[write(0, 2)], &one, Status::INVALID_FIELD),
        (&[write(0, 257)], &one, Status::SIZE_LIMIT),
    ];
    for (operations, data, status) in cases {
        assert_eq!(refused(queue.batch(&namespace, operations, data)), status, "{operations:?}");
    }
    let mut unknown = Command::batch(&namespace, &[write(0, 1)], &one);
    if let nvme::initiator::Payload::Out(bytes) = &mut unknown.payload {
        bytes[0] = 7;
    }
    assert_eq!(queue.link().execute(unknown).expect("an end").status, Status::INVALID_FIELD);
    let wide = Command::bare(nvme::Sqe::new(vendor::BATCH, 0, 1).with(10, u32::MAX).with(11, 1));
    assert_eq!(queue.link().execute(wide).expect("an end").status, Status::INVALID_FIELD);
    assert_eq!(blocks(&mut queue, &namespace, 0, 8), [9; 8]);
    assert_eq!(target.device.info().expect("the device is there").format_version, 1);
}

#[test]
fn a_read_only_namespace_takes_no_batch_and_tells_where_data_stand() {
    let target = serve(Options::default(), true, |_| Ok(Device::memory(SIZE, 4096).expect("good sizes")));
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    let batch = queue.batch(&namespace, &[Operation::deallocate(0, 1)], &[]);
    assert_eq!(refused(batch), Status::WRITE_PROTECTED);
    let mapped = queue.mapped_ranges(&namespace, 0, 0, 9).expect("told");
    assert_eq!(mapped, Mapped { ranges: Vec::new(), next: namespace.blocks });
}

#[test]
fn mapped_ranges_say_where_data_stand() {
    for (sector, block) in [(4096, 4096), (512, 4096)] {
        let target = target_of(sector, block);
        let Connected { mut queue, namespace, controller: _admin } = target.connect();
        for (first, count) in [(3, 2), (9, 1), (namespace.blocks - 1, 1)] {
            queue.write(&namespace, first, of(&namespace, &vec![5; count])).expect("written");
        }
        let all = vec![(3, 2, true), (9, 1, true), (namespace.blocks - 1, 1, true)];
        let mut told = |first, blocks, most| queue.mapped_ranges(&namespace, first, blocks, most).expect("told");
        assert_eq!(told(0, 0, 9), Mapped { ranges: all.clone(), next: namespace.blocks });
        assert_eq!(told(0, 7, 9), Mapped { ranges: vec![(3, 2, true)], next: 7 });
        assert_eq!(told(4, 1, 9).ranges, [(4, 1, true)], "one block is there");
        assert_eq!(told(5, 1, 9).ranges, [], "another is not");
        assert_eq!(told(0, 0, 1), Mapped { ranges: vec![(3, 2, true)], next: 9 }, "to go on from there");
        let mut found = Vec::new();
        let mut at = 0;
        while at < namespace.blocks {
            let part = told(at, 0, 1);
            assert!(part.next > at, "it goes on");
            found.extend(part.ranges);
            at = part.next;
        }
        assert_eq!(found, all);
        let beyond = queue.mapped_ranges(&namespace, namespace.blocks, 1, 1);
        assert_eq!(refused(beyond), Status::LBA_RANGE);
        let none = Command::bare(nvme::Sqe::new(vendor::MAPPED_RANGES, 0, 1));
        assert_eq!(queue.link().execute(none).expect("an end").status, Status::INVALID_FIELD);

        let change = |change: SnapshotChange| {
            let done = target.device.with_device(move |device| {
                device.change_snapshots(&change).map(|()| device.snapshots().last().map(|snapshot| snapshot.id))
            });
            done.expect("attached").expect("changed")
        };
        let since = change(SnapshotChange::Create { name: "s".into(), created: 0 }).expect("a snapshot");
        queue.write(&namespace, 4, of(&namespace, &[6; 2])).expect("written");
        // Half a block, where blocks are larger than sectors.
        let trim = target.device.with_device(move |device| match sector {
            512 => device.submit(u64::MAX, device::Io::Trim { lba: 9 * 8, count: 4, fua: false }),
            _ => device.submit(u64::MAX, device::Io::Trim { lba: 9, count: 1, fua: false }),
        });
        assert!(matches!(trim, Ok(device::Submitted::Done(Ok(None)))), "{trim:?}");
        let mut changed = |since: u64, first, most| {
            let command = Command::mapped_ranges(&namespace, first, 0, most).since(since);
            queue.link().execute(command).expect("an end")
        };
        let ranges = vec![(4, 2, true), (9, 1, sector == 512)];
        assert_eq!(
            Mapped::decode(&changed(since, 0, 9).data),
            Mapped { ranges: ranges.clone(), next: namespace.blocks }
        );
        assert_eq!(Mapped::decode(&changed(since, 0, 1).data), Mapped { ranges: ranges[..1].to_vec(), next: 9 });
        assert_eq!(Mapped::decode(&changed(since, 9, 1).data).ranges, ranges[1..]);
        assert_eq!(changed(since + 1, 0, 9).status, Status::INVALID_NAMESPACE, "no snapshot has that number");
        change(SnapshotChange::Delete(since));
        assert_eq!(changed(since, 0, 9).status, Status::INVALID_NAMESPACE, "it is gone");
    }
}
