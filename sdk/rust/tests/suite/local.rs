//! Devices that this process has to itself.

use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use openvsl::{Batch, CreateOptions, Device, Drill, Error, OpenError, OpenOptions, Unsynced};

use crate::common::drill_device;

const SECTOR: usize = 4096;
const MIB: u64 = 1 << 20;

fn sector(byte: u8) -> Vec<u8> {
    vec![byte; SECTOR]
}

fn only(range: Range<u64>) -> Vec<Range<u64>> {
    vec![range]
}

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An executor of one future: what a runtime does, and no more.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn what_was_written_is_read_after_the_device_was_closed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("d.vsl");
    openvsl::create(&path, 64 * MIB, &CreateOptions::default()).expect("created");
    let device = Device::open(&path).expect("opened");
    let again = Device::open(&path).expect_err("it is taken").to_string();
    assert!(again.contains("d.vsl"), "{again}");
    let other = device.clone();
    device.write(3, &[sector(1), sector(2)].concat()).expect("written");
    device.close().expect("closed");
    assert_eq!(other.read(3, 1), Err(Error::Gone), "it is closed for every handle");

    let device = Device::open(&path).expect("opened again, while a handle is left");
    assert_eq!(device.read(3, 2), Ok([sector(1), sector(2)].concat()));
    let mut buffer = sector(9);
    device.read_into(4, &mut buffer).expect("read");
    assert_eq!(buffer, sector(2));
    drop(device);
    let device = Device::open(&path).expect("the last handle that goes closes it");
    assert_eq!(device.ranges(..).collect::<Result<Vec<_>, _>>(), Ok(only(3..5)));
}

#[test]
fn what_cannot_be_is_refused_by_name_and_changes_nothing() {
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    let sectors = device.capabilities().sectors;
    device.write(0, &sector(1)).expect("written");
    let max = u64::from(device.capabilities().max_write_bytes);
    assert_eq!(device.write(0, &[0; 100]), Err(Error::Misaligned { bytes: 100, sector_bytes: 4096 }));
    let large = vec![0; max as usize + SECTOR];
    assert_eq!(device.write(0, &large), Err(Error::TooLarge { bytes: max + 4096, max }));
    assert_eq!(device.read(0, max as u32 / 4096 + 1), Err(Error::TooLarge { bytes: max + 4096, max }));
    let beyond = |lba, end| Error::OutOfRange { lba, end, sectors };
    assert_eq!(device.write(sectors, &sector(0)), Err(beyond(sectors, sectors + 1)));
    assert_eq!(device.trim(0, sectors + 1), Err(beyond(0, sectors + 1)));
    assert_eq!(device.read(u64::MAX, 2), Err(beyond(u64::MAX, u64::MAX)));
    assert_eq!(device.exists(sectors), Err(beyond(sectors, sectors + 1)));
    assert!(matches!(device.cut_power(), Err(Error::Drill(_))), "it is not marked for drills");
    assert_eq!(device.read(0, 1), Ok(sector(1)));
    assert_eq!(device.write(0, &[]), Ok(()));
    assert!(matches!(Device::open("/nowhere/d.vsl"), Err(OpenError::Attach(_))));
    assert!(matches!(Device::memory(1, 4096), Err(OpenError::Attach(_))));
}

#[test]
fn many_requests_are_under_way_at_a_time_from_many_threads() {
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let device = &device;
            scope.spawn(move || {
                let writes: Vec<_> =
                    (0..500).map(|n| device.begin_write(thread * 1000 + n, sector((thread * 50 + n) as u8))).collect();
                for write in writes {
                    assert_eq!(write.wait().expect("written").len(), SECTOR, "the buffer comes back");
                }
                let reads: Vec<_> = (0..500).map(|n| device.begin_read(thread * 1000 + n, 1)).collect();
                for (read, n) in reads.into_iter().zip(0..) {
                    assert_eq!(read.wait(), Ok(sector((thread * 50 + n) as u8)));
                }
            });
        }
    });
    let ranges: Result<Vec<_>, _> = device.ranges(..).collect();
    assert_eq!(ranges, Ok(vec![0..500, 1000..1500, 2000..2500, 3000..3500]));
}

#[test]
fn a_future_is_completed_by_the_device() {
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    let result = block_on(async {
        let first = device.begin_write_durable(0, sector(1));
        let second = device.begin_write(1, sector(2));
        let mut data = first.await?;
        data.fill(3);
        second.await?;
        device.begin_write(2, data).await?;
        device.begin_flush().await?;
        device.begin_trim(1, 1).await?;
        device.begin_read(0, 3).await
    });
    assert_eq!(result, Ok([sector(1), sector(0), sector(3)].concat()));
    assert!(block_on(device.begin_read(u64::MAX, 1)).is_err());
}

#[test]
fn ranges_are_whole_however_the_device_finds_them() {
    let device = Device::memory(64 * MIB, 512).expect("a device");
    let sectors = device.capabilities().sectors;
    assert_eq!(device.ranges(..).next(), None);
    // Longer than one look of the device, and more of them than it gives at once.
    for lba in (0..100_000).step_by(1000) {
        device.write(lba, &vec![1; 512 * 1000]).expect("written");
    }
    let alone: Vec<u64> = (100_001..102_001).step_by(2).collect();
    alone.iter().for_each(|lba| device.write(*lba, &[1; 512]).expect("written"));
    let ranges: Vec<_> = device.ranges(..).collect::<Result<_, _>>().expect("found");
    assert_eq!((ranges[0].clone(), ranges.len()), (0..100_000, 1 + alone.len()));
    assert!(ranges[1..].iter().zip(&alone).all(|(range, lba)| *range == (*lba..lba + 1)));
    assert_eq!(device.ranges(5..=5).collect::<Result<Vec<_>, _>>(), Ok(only(5..6)));
    assert_eq!(device.ranges(sectors..).next(), None);
    device.trim(0, 100_000).expect("trimmed");
    assert_eq!((device.exists(0), device.exists(100_001)), (Ok(false), Ok(true)));
    assert_eq!(device.ranges(..).next(), Some(Ok(100_001..100_002)));
}

#[test]
fn what_was_durable_survives_a_power_cut_and_the_rest_is_whole() {
    let (_directory, device) = drill_device();
    for round in 1..20u8 {
        device.write_durable(0, &sector(round)).expect("written");
        device.write(1, &sector(round)).expect("written");
        device.flush().expect("flushed");
        let drill = Drill::PowerCut { at_write: Some(2), at_program: None, unsynced: Unsynced::Random, seed: None };
        device.drill(drill).expect("armed");
        device.write(2, &[sector(round), sector(round)].concat()).expect("the first");
        assert_eq!(device.write(5, &sector(round)), Err(Error::PowerOff), "never answered with success");
        assert_eq!(device.flush(), Err(Error::PowerOff));
        device.power_on().expect("it comes back");
        assert_eq!(device.read(0, 2), Ok([sector(round), sector(round)].concat()));
        let last = device.read(2, 2).expect("read");
        assert!(last.iter().all(|byte| *byte == last[0]), "a write is torn");
        device.power_on().expect("nothing to do");
    }
}

#[test]
fn a_batch_is_there_as_a_whole_after_any_cut() {
    let (_directory, device) = drill_device();
    let place = |round: u64| [round * 10, 5000 + round, 9000 - 3 * round];
    for round in 1..40u64 {
        let [one, other, third] = place(round);
        let before = place(round - 1);
        let drill = Drill::PowerCut {
            at_write: None,
            at_program: Some(1 + round % 7),
            unsynced: Unsynced::ALL[(round % 4) as usize],
            seed: Some(round),
        };
        device.drill(drill).expect("armed");
        let batch = |durable: bool| {
            let batch =
                Batch::new().write(one, &sector(1)).write(other, &sector(2)).trim(before[0], 1).trim(before[1], 1);
            let batch = batch.write(third, &[sector(3), sector(3)].concat()).trim(before[2], 2);
            if durable { batch.durable() } else { batch }
        };
        let made = device.batch(batch(true));
        if made == Err(Error::PowerOff) {
            device.power_on().expect("it comes back");
        } else {
            assert_eq!(made, Ok(()));
            device.undo_drill("power-cut").expect("it did not go");
        }
        let there = place(round).map(|lba| device.exists(lba).expect("asked"));
        let gone = before.map(|lba| device.exists(lba).expect("asked"));
        assert!(there == [there[0]; 3], "round {round}: a part is there: {there:?}");
        assert!(round == 1 || gone == [!there[0]; 3], "round {round}: a part is gone: {gone:?}");
        assert!(there[0] || made.is_err(), "round {round}: it was durable");
        if !there[0] {
            device.batch(batch(false)).expect("again");
        }
    }
}

#[test]
fn a_batch_that_is_none_is_refused_and_changes_nothing() {
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    device.write(1, &sector(1)).expect("written");
    let refused = |batch: Batch| device.batch(batch).expect_err("it is none").to_string();
    assert!(refused(Batch::new()).contains("no operations"));
    assert!(refused(Batch::new().write(1, &sector(2)).trim(0, 2)).contains("operations 0 and 1 of the batch overlap"));
    assert!(refused(Batch::new().write(1, &sector(2)).write(16384, &sector(2))).contains("operation 1"));
    assert!(refused(Batch::new().write(1, &sector(2)).trim(9, 0)).contains("no sectors"));
    assert!(refused(Batch::new().write(1, &sector(2)).write(4, &[0; 5])).contains("5 bytes are no whole sectors"));
    let large = vec![3; 1 << 19];
    assert!(refused(Batch::new().write(1, &large).write(1000, &large).trim(500, 1)).contains("at most 256"));
    assert_eq!(device.batch(Batch::new().write(1000, &large).write(2000, &large)), Ok(()));
    assert_eq!(device.read(1, 1), Ok(sector(1)));
    assert_eq!(device.ranges(..1000).collect::<Result<Vec<_>, _>>(), Ok(only(1..2)));
}

#[test]
fn a_request_outlives_whoever_waits_for_it() {
    let (_directory, device) = drill_device();
    let (sender, receiver) = sync_channel(1);
    let worker = device.clone();
    std::thread::spawn(move || {
        drop(worker.begin_write(7, sector(7)));
        sender.send(()).expect("somebody waits");
    });
    receiver.recv().expect("it began");
    device.flush().expect("flushed");
    assert_eq!(device.read(7, 1), Ok(sector(7)));
}

#[test]
fn a_snapshot_of_a_device_in_a_file_is_opened_by_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("d.vsl");
    openvsl::create(&path, 64 << 20, &CreateOptions::default()).expect("created");
    Device::open(&path).expect("opened").write(3, &[1; 8192]).expect("written");
    {
        let ring = media::ring::Ring::new(8).expect("a ring");
        let mut device = device::Device::attach(&[&path], &device::AttachOptions::default(), &ring).expect("attached");
        let create = device::SnapshotChange::Create { name: "old".into(), created: 0 };
        device.change_snapshots(&create).expect("made");
        device.detach().expect("detached");
    }
    let mut options = OpenOptions::default();
    options.snapshot = Some("old".into());
    let old = Device::open_with(&[&path], &options).expect("opened");
    let number = old.capabilities().snapshot.expect("it shows one");
    old.close().expect("closed");
    let device = Device::open(&path).expect("opened");
    device.trim(3, 1).expect("trimmed");
    device.write(4, &[2; 4096]).expect("written");
    let changed = vec![(3..4, false), (4..5, true)];
    assert_eq!(device.changes(number, ..).collect::<Result<Vec<_>, _>>(), Ok(changed));
    assert_eq!(device.changes(number, 4..).count(), 1);
    device.close().expect("closed");

    let old = Device::open_with(&[&path], &options).expect("opened");
    assert_eq!(old.read(3, 2), Ok(vec![1; 8192]));
    assert_eq!(old.ranges(..).next(), Some(Ok(3..5)));
    assert_eq!(old.write(3, &[3; 4096]), Err(Error::ReadOnly));
    old.close().expect("closed");
    options.snapshot = Some("neither".into());
    assert!(matches!(Device::open_with(&[&path], &options), Err(OpenError::NoSnapshot { .. })));
}
