//! Every I/O command, on blocks of every size.

use device::{Device, Drill, Unsynced};
use export::nvme::Options;
use nvme::Status;
use nvme::command::nvm;
use nvme::initiator::{Command, IoQueue, Namespace, Range};
use nvme::vendor::Operation;
use std::os::unix::net::UnixStream;

use super::harness::*;

/// What is read at each block: its first byte, if all its bytes are the same.
fn blocks(queue: &mut IoQueue<UnixStream>, namespace: &Namespace, first: u64, count: u32) -> Vec<u8> {
    let data = queue.read(namespace, first, count).expect("read");
    data.chunks_exact(namespace.block_bytes as usize)
        .map(|block| {
            assert!(block.iter().all(|byte| *byte == block[0]), "torn");
            block[0]
        })
        .collect()
}

#[test]
fn every_command_on_blocks_of_every_size() {
    for (sector, block) in [(512, 512), (4096, 4096), (4096, 8192), (4096, 16384), (4096, 65536)] {
        let target = target_of(sector, block);
        for digests in [NONE, BOTH] {
            let Connected { mut queue, namespace, controller } = target.connect_with(digests);
            assert_eq!((namespace.block_bytes, namespace.blocks), (block, SIZE / u64::from(block)));
            let of = |byte: u8, count: u32| vec![byte; (count * block) as usize];
            queue.write(&namespace, 0, of(9, 10)).expect("written");
            queue.write(&namespace, 10, of(1, 4)).expect("written");
            queue.write(&namespace, 12, of(2, 1)).expect("written");
            assert_eq!(blocks(&mut queue, &namespace, 9, 5), [9, 1, 1, 2, 1]);
            queue.flush(&namespace).expect("flushed");
            queue.compare(&namespace, 12, of(2, 1)).expect("the same");
            assert_eq!(refused(queue.compare(&namespace, 12, of(1, 1))), Status::COMPARE_FAILED);
            queue.compare_and_write(&namespace, 12, of(2, 1), of(3, 1)).expect("the same");
            assert_eq!(blocks(&mut queue, &namespace, 11, 3), [1, 3, 1]);
            queue
                .copy(&namespace, 20, &[Range { first: 12, blocks: 1 }, Range { first: 9, blocks: 2 }])
                .expect("copied");
            assert_eq!(blocks(&mut queue, &namespace, 20, 3), [3, 9, 1]);
            queue.verify(&namespace, 0, 23).expect("sound");
            for deallocate in [false, true] {
                queue.write_zeroes(&namespace, 10 + u64::from(deallocate), 1, deallocate).expect("zeroed");
            }
            queue.deallocate(&namespace, &[Range { first: 13, blocks: 1 }]).expect("deallocated");
            assert_eq!(blocks(&mut queue, &namespace, 9, 5), [9, 0, 0, 3, 0]);
            let durable = Command::write(&namespace, 30, of(5, 1)).with_fua();
            let done = queue.link().execute(durable).expect("an end");
            assert_eq!(done.status, Status::SUCCESS);
            let last = namespace.blocks - 1;
            queue.write(&namespace, last, of(6, 1)).expect("written");
            assert_eq!(blocks(&mut queue, &namespace, last, 1), [6]);
            controller.disconnect().expect("shut down");
            target.wait_for_queues(0);
        }
    }
}

#[test]
fn one_mebibyte_in_one_command() {
    let target = target();
    for digests in [NONE, BOTH] {
        let Connected { mut queue, namespace, controller: _admin } = target.connect_with(digests);
        let data = pattern(7, MIB);
        queue.write(&namespace, 3, data.clone()).expect("written");
        assert!(queue.read(&namespace, 3, 256).expect("read") == data, "{digests:?}");
        assert_eq!(refused(queue.write(&namespace, 3, pattern(8, MIB + 4096))), Status::INVALID_FIELD);
        assert_eq!(refused(queue.read(&namespace, 3, 257)), Status::INVALID_FIELD);
    }
}

#[test]
fn dataset_management_takes_256_ranges_and_forgets_each() {
    let target = target();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    queue.write(&namespace, 0, vec![7; 200 * 4096]).expect("written");
    queue.write(&namespace, 200, vec![7; 200 * 4096]).expect("written");
    queue.write(&namespace, 400, vec![7; 200 * 4096]).expect("written");
    // Every second block, and one range that forgets nothing.
    let mut ranges: Vec<Range> = (0..255).map(|number| Range { first: 2 * number, blocks: 1 }).collect();
    ranges.insert(100, Range { first: 599, blocks: 0 });
    assert_eq!(ranges.len(), 256);
    queue.deallocate(&namespace, &ranges).expect("deallocated");
    for first in [0, 200, 400] {
        for (number, byte) in (first..).zip(blocks(&mut queue, &namespace, first, 200)) {
            let gone = number % 2 == 0 && number < 510;
            assert_eq!(byte, if gone { 0 } else { 7 }, "block {number}");
        }
    }
    // One bad range: none is forgotten.
    let bad = [Range { first: 1, blocks: 1 }, Range { first: namespace.blocks, blocks: 1 }];
    assert_eq!(refused(queue.deallocate(&namespace, &bad)), Status::LBA_RANGE);
    assert_eq!(blocks(&mut queue, &namespace, 1, 1), [7]);
}

#[test]
fn blocks_beyond_the_end_are_refused_however_the_numbers_wrap() {
    let target = target();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    let end = namespace.blocks;
    queue.write(&namespace, end - 2, vec![4; 8192]).expect("written");
    queue.write(&namespace, 0, vec![3; 8192]).expect("written");
    let two = || vec![9; 8192];
    for first in [end, end - 1, u64::MAX, u64::MAX - 1, u64::MAX / 4096, 1 << 52, 1 << 63, u64::from(u32::MAX)] {
        assert_eq!(refused(queue.write(&namespace, first, two())), Status::LBA_RANGE, "{first:#x}");
        assert_eq!(refused(queue.write(&namespace, first, vec![9; 65536])), Status::LBA_RANGE, "{first:#x}");
        assert_eq!(refused(queue.read(&namespace, first, 2)), Status::LBA_RANGE, "{first:#x}");
        assert_eq!(refused(queue.compare(&namespace, first, two())), Status::LBA_RANGE, "{first:#x}");
        assert_eq!(refused(queue.verify(&namespace, first, 2)), Status::LBA_RANGE, "{first:#x}");
        assert_eq!(refused(queue.write_zeroes(&namespace, first, 2, true)), Status::LBA_RANGE, "{first:#x}");
        let range = [Range { first, blocks: 2 }];
        assert_eq!(refused(queue.deallocate(&namespace, &range)), Status::LBA_RANGE, "{first:#x}");
        let range = [Range { first, blocks: u32::MAX }];
        assert_eq!(refused(queue.deallocate(&namespace, &range)), Status::LBA_RANGE, "{first:#x}");
        assert_eq!(refused(queue.copy(&namespace, 0, &[Range { first, blocks: 2 }])), Status::LBA_RANGE, "{first:#x}");
        assert_eq!(
            refused(queue.copy(&namespace, first, &[Range { first: 0, blocks: 2 }])),
            Status::LBA_RANGE,
            "{first:#x}"
        );
    }
    assert_eq!(blocks(&mut queue, &namespace, end - 2, 2), [4, 4]);
    assert_eq!(blocks(&mut queue, &namespace, 0, 2), [3, 3]);
}

#[test]
fn a_read_only_device_is_read_and_nothing_else() {
    let read_only = serve(Options::default(), true, |_| Ok(Device::memory(SIZE, 4096).expect("good sizes")));
    let Connected { mut queue, namespace, controller: _admin } = read_only.connect();
    assert_eq!(blocks(&mut queue, &namespace, 0, 1), [0]);
    queue.compare(&namespace, 0, vec![0; 4096]).expect("the same");
    queue.verify(&namespace, 0, 1).expect("sound");
    let one = [Range { first: 0, blocks: 1 }];
    let no = Status::WRITE_PROTECTED;
    assert_eq!(refused(queue.write(&namespace, 0, vec![1; 4096])), no);
    assert_eq!(refused(queue.write(&namespace, 0, vec![1; 65536])), no);
    assert_eq!(refused(queue.write_zeroes(&namespace, 0, 1, false)), no);
    assert_eq!(refused(queue.deallocate(&namespace, &one)), no);
    assert_eq!(refused(queue.copy(&namespace, 4, &one)), no);
    assert_eq!(blocks(&mut queue, &namespace, 0, 1), [0]);
}

#[test]
fn commands_and_namespaces_that_there_are_not_are_refused() {
    let target = target();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    for opcode in [0x03, 0x0d, 0x11, 0x7d, 0x80, 0xff] {
        let odd = nvme::Sqe::new(opcode, 0, 1);
        let done = queue.link().execute(Command::bare(odd)).expect("an end");
        assert_eq!(done.status, Status::INVALID_OPCODE, "{opcode:#x}");
    }
    for nsid in [0, 2, u32::MAX] {
        let other = Namespace { nsid, ..namespace };
        assert_eq!(refused(queue.read(&other, 0, 1)), Status::INVALID_NAMESPACE, "{nsid}");
        assert_eq!(refused(queue.write(&other, 0, vec![1; 4096])), Status::INVALID_NAMESPACE, "{nsid}");
    }
    // A flush of all namespaces is one of ours.
    queue.flush(&Namespace { nsid: u32::MAX, ..namespace }).expect("flushed");
    let none = nvme::Sqe::new(nvm::DATASET_MANAGEMENT, 0, 1).with(10, 3);
    let hint = queue.link().execute(Command::sending(none, vec![0; 64])).expect("an end");
    assert_eq!(hint.status, Status::SUCCESS, "what is no deallocation is a hint");
}

#[test]
fn what_was_flushed_is_there_after_a_power_cut() {
    let files = Drilled::new();
    let target = files.serve();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    queue.write(&namespace, 0, vec![1; 4096]).expect("written");
    // The sync of a flush takes its time; the power goes as soon as the flush is answered.
    target.drill(Drill::StallDie { die: 0, ms: 200 });
    queue.flush(&namespace).expect("flushed");
    cut(&target);
    let target = files.serve();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    assert_eq!(blocks(&mut queue, &namespace, 0, 1), [1]);
}

#[test]
fn without_the_write_cache_and_with_fua_a_write_is_there_when_it_is_answered() {
    let files = Drilled::new();
    let target = files.serve();
    let Connected { mut queue, namespace, mut controller } = target.connect();
    target.drill(Drill::StallDie { die: 0, ms: 100 });
    let durable = Command::write(&namespace, 0, vec![1; 4096]).with_fua();
    assert!(queue.link().execute(durable).expect("an end").status.is_success());
    controller.set_feature(6, 0).expect("the cache is off");
    queue.write(&namespace, 1, vec![2; 4096]).expect("written");
    queue.write(&namespace, 2, vec![3; 65536]).expect("written, after an R2T");
    cut(&target);
    let target = files.serve();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    assert_eq!(blocks(&mut queue, &namespace, 0, 4), [1, 2, 3, 3]);
}

/// Nothing is written behind the batch that would take it along.
#[test]
fn without_the_write_cache_or_with_fua_a_batch_is_there_when_it_is_answered() {
    for with_fua in [false, true] {
        let files = Drilled::new();
        let target = files.serve();
        let Connected { mut queue, namespace, mut controller } = target.connect();
        if !with_fua {
            controller.set_feature(6, 0).expect("the cache is off");
        }
        target.drill(Drill::StallDie { die: 0, ms: 100 });
        let operations = [Operation::write(9, 1), Operation::write(0, 1)];
        let batch = Command::batch(&namespace, &operations, &[vec![1; 4096], vec![2; 4096]].concat());
        let batch = if with_fua { batch.with_fua() } else { batch };
        assert!(queue.link().execute(batch).expect("an end").status.is_success());
        cut(&target);
        let target = files.serve();
        let Connected { mut queue, namespace, controller: _admin } = target.connect();
        assert_eq!(blocks(&mut queue, &namespace, 0, 1), [2], "with FUA: {with_fua}");
        assert_eq!(blocks(&mut queue, &namespace, 9, 1), [1], "with FUA: {with_fua}");
    }
}

/// Cuts the power, and waits until the device is gone.
fn cut(target: &Target) {
    target.drill(Drill::PowerCut { at_write: None, at_program: None, unsynced: Unsynced::Drop, seed: Some(1) });
    target.device.wait_until_gone();
}
