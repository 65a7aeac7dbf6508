//! Snapshots on a device: what they show, what they refuse, and a device that is full of yesterday.

use device::{
    Capacity, CreateOptions, Device, FormatOptions, Io, IoError, Setting, SnapshotChange, SnapshotError, SnapshotId,
    inspect,
};

use crate::common::call;
use crate::made::{Made, SECTOR, read, write};

/// A device of 32 MiB, with so much raw capacity.
fn made(raw_bytes: u64) -> Made {
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "t".into() };
    Made::new(&CreateOptions { advertised_bytes: 32 << 20, raw_bytes, profile: None, parity: 0, format })
}

fn snapshot(device: &mut Device, name: &str) -> SnapshotId {
    device.change_snapshots(&SnapshotChange::Create { name: name.into(), created: 1 }).expect("made");
    device.snapshots().last().expect("it is there").id
}

fn seen(device: &mut Device, id: SnapshotId, lba: u64) -> Result<u8, IoError> {
    let read = call(device, Io::ReadSnapshot { id, lba, buf: vec![0xee; SECTOR] })?;
    Ok(read.expect("a buffer")[0])
}

#[test]
fn each_shows_its_moment_also_after_a_crash_and_a_detach() {
    let made = made(128 << 20);
    let mut device = made.attach();
    assert_eq!(device.info().format_version, 1);
    write(&mut device, 1, 1).expect("written");
    write(&mut device, 2, 1).expect("written");
    let first = snapshot(&mut device, "first");
    assert_eq!(device.info().format_version, 7);
    write(&mut device, 1, 2).expect("written");
    call(&mut device, Io::Trim { lba: 2, count: 1, fua: false }).expect("trimmed");
    write(&mut device, 3, 2).expect("written");
    let second = snapshot(&mut device, "second");
    write(&mut device, 1, 3).expect("written");
    let expected = [(first, [1, 1, 0]), (second, [2, 0, 2])];
    let check = |device: &mut Device| {
        for (id, shows) in expected {
            assert_eq!([1, 2, 3].map(|lba| seen(device, id, lba).expect("read")), shows);
        }
        let (changed, next) = device.diff(Some(first), Some(second), 0, 100).expect("both are there");
        let changed: Vec<_> = changed.iter().map(|run| (run.lba, run.count, run.mapped)).collect();
        assert_eq!((changed, next), (vec![(1, 1, true), (2, 1, false), (3, 1, true)], None));
        let (changed, next) = device.diff(Some(second), None, 0, 1).expect("it is there");
        assert_eq!((changed.len(), changed[0].lba, next), (1, 1, None));
        assert_eq!(
            device.count_held(0, 100).alone,
            [(first, 2), (second, 1)],
            "what was overwritten and what was trimmed, and what was written between"
        );
        device.verify().expect("sound books");
    };
    check(&mut device);
    call(&mut device, Io::Flush).expect("flushed");
    // As a process that dies: nothing is written any more.
    drop(device);
    let mut device = made.attach();
    check(&mut device);
    assert_eq!([1, 2, 3].map(|lba| read(&mut device, lba)), [3, 0, 2]);
    device.detach().expect("detached");
    assert_eq!(inspect(&made.path()).expect("inspected").format_version, 7);
    let mut device = made.attach();
    check(&mut device);
    let back = SnapshotChange::RollBack { to: first, delete_newer: false };
    device.change_snapshots(&back).expect("rolled back");
    assert_eq!([1, 2, 3].map(|lba| read(&mut device, lba)), [1, 1, 0]);
    drop(device);
    let mut device = made.attach();
    assert_eq!([1, 2, 3].map(|lba| read(&mut device, lba)), [1, 1, 0]);
    assert_eq!(device.diff(Some(first), None, 0, 100).expect("it is there").0, [], "what was brought back is the same");
    assert_eq!([1, 2, 3].map(|lba| seen(&mut device, second, lba).expect("read")), [2, 0, 2]);
    device.change_snapshots(&SnapshotChange::Delete(second)).expect("deleted");
    assert_eq!(seen(&mut device, second, 1), Err(IoError::NoSnapshot));
}

#[test]
fn what_cannot_be_done_says_so_and_changes_nothing() {
    let made = made(128 << 20);
    let mut device = made.attach();
    let create = |name: &str| SnapshotChange::Create { name: name.into(), created: 1 };
    for name in ["", "-x", ".x", "a b", "a/b", "a@b", "\u{e4}", &"n".repeat(64)] {
        assert_eq!(device.change_snapshots(&create(name)), Err(SnapshotError::Name(name.into())));
    }
    assert_eq!(device.info().format_version, 1, "nothing was made");
    let id = snapshot(&mut device, "a");
    assert_eq!(device.change_snapshots(&create("a")), Err(SnapshotError::Taken("a".into())));
    device.change_snapshots(&SnapshotChange::Hold(id, true)).expect("held");
    assert_eq!(device.change_snapshots(&SnapshotChange::Delete(id)), Err(SnapshotError::Held("a".into())));
    assert_eq!(device.change_snapshots(&SnapshotChange::Delete(77)), Err(SnapshotError::Unknown));
    device.change_snapshots(&SnapshotChange::Rename(id, "b".into())).expect("renamed");
    assert!(device.set(&[Setting::PageFile(true)]).is_err(), "its memory grows with what snapshots hold");
    device.detach().expect("detached");
    let device = made.attach();
    assert_eq!(device.snapshots().iter().map(|one| (one.name.as_str(), one.held)).collect::<Vec<_>>(), [("b", true)]);
}

/// What is written anew after a snapshot takes room of its own. Where there is none left, everything stays readable.
#[test]
fn a_device_full_of_yesterday_refuses_and_stays_readable() {
    let made = made(160 << 20);
    let mut device = made.attach();
    let sectors = device.info().sectors;
    for lba in 0..sectors {
        write(&mut device, lba, 1).expect("there is room");
    }
    let ids: Vec<SnapshotId> = (2..12)
        .map_while(|round| {
            let made = device.change_snapshots(&SnapshotChange::Create { name: format!("s{round}"), created: 1 });
            made.ok()?;
            let id = device.snapshots().last().expect("it is there").id;
            (0..sectors).all(|lba| write(&mut device, lba, round).is_ok()).then_some(id)
        })
        .collect();
    let last = device.snapshots().last().expect("there are some").id;
    assert!(!ids.is_empty() && ids.len() < 5, "{} rounds of 32 MiB beside 32 MiB on 160 MiB", ids.len());
    let full = (0..sectors).find(|lba| write(&mut device, *lba, 99) == Err(IoError::Full)).expect("it is full");
    assert!(device.status().health.contains("delete snapshots"), "{}", device.status().health);
    device.verify().expect("sound books");
    for (round, id) in (1..).zip(&ids) {
        assert!((0..sectors).step_by(7).all(|lba| seen(&mut device, *id, lba) == Ok(round)));
    }
    // What was written since the newest one may be written again.
    let again = (0..sectors).find(|lba| read(&mut device, *lba) == 99).expect("something was written");
    write(&mut device, again, 98).expect("it takes no more");
    drop(device);
    let mut device = made.attach();
    for id in ids.iter().chain([&last]).copied().collect::<std::collections::BTreeSet<_>>() {
        device.change_snapshots(&SnapshotChange::Delete(id)).expect("deleted");
    }
    while device.kept_sectors() > 0 {
        device.idle();
        device.wait();
        let _ = device.poll();
    }
    write(&mut device, full, 97).expect("there is room again");
    device.verify().expect("sound books");
}
