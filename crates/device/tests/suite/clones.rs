//! Clones on a device: what they show and hold, what they cost, what is refused, and what is promoted.

use device::{
    BatchOp, CLONES_MAX, Capacity, CreateOptions, Device, FormatOptions, Io, IoError, Setting, SnapshotChange,
    SnapshotError, SnapshotId, inspect,
};

use crate::common::{ask_in, call};
use crate::made::{Made, SECTOR, read, write};

/// A device of 32 MiB.
fn made() -> Made {
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "t".into() };
    Made::new(&CreateOptions { advertised_bytes: 32 << 20, raw_bytes: 128 << 20, profile: None, parity: 0, format })
}

fn snapshot(device: &mut Device, name: &str) -> SnapshotId {
    device.change_snapshots(&SnapshotChange::Create { name: name.into(), created: 1 }).expect("made");
    device.snapshots().last().expect("it is there").id
}

fn clone_of(device: &mut Device, of: SnapshotId, name: &str) -> SnapshotId {
    device.change_snapshots(&SnapshotChange::Clone { of, name: name.into(), created: 1 }).expect("made");
    device.clone_named(name).expect("it is there").id
}

fn delete(device: &mut Device, id: SnapshotId) -> Result<(), SnapshotError> {
    device.change_snapshots(&SnapshotChange::DeleteClone(id))
}

/// A request to a clone, waited for.
fn ask(device: &mut Device, id: SnapshotId, io: Io<'_>) -> Result<(), IoError> {
    ask_in(device, Some(id), io).expect("the power is on").map(|_| ())
}

fn put(device: &mut Device, id: SnapshotId, lba: u64, byte: u8) {
    ask(device, id, Io::Write { lba, data: &[byte; SECTOR], fua: false }).expect("written");
}

fn seen(device: &mut Device, id: SnapshotId, lba: u64) -> Result<u8, IoError> {
    let read = call(device, Io::ReadSnapshot { id, lba, buf: vec![0xee; SECTOR] })?;
    Ok(read.expect("a buffer")[0])
}

/// Waits until no more than so many sectors are held for snapshots and clones.
fn settle(device: &mut Device, kept: u64) {
    while device.kept_sectors() > kept {
        device.idle();
        device.wait();
        let _ = device.poll();
    }
    assert_eq!(device.kept_sectors(), kept);
}

#[test]
fn each_is_written_by_itself_also_after_a_crash_and_a_detach() {
    let made = made();
    let mut device = made.attach();
    (1..=4).for_each(|lba| write(&mut device, lba, 1).expect("written"));
    let base = snapshot(&mut device, "base");
    assert_eq!(device.info().format_version, 7);
    let (one, two) = (clone_of(&mut device, base, "one"), clone_of(&mut device, base, "two"));
    assert_eq!(device.info().format_version, 9);
    assert_eq!(device.kept_sectors(), 0, "nothing is written yet");
    put(&mut device, one, 1, 11);
    put(&mut device, two, 1, 12);
    put(&mut device, two, 9, 12);
    ask(&mut device, one, Io::Trim { lba: 2, count: 1, fua: false }).expect("trimmed");
    let ops = [BatchOp::Write { lba: 3, count: 1 }, BatchOp::Trim { lba: 4, count: 1 }];
    ask(&mut device, two, Io::Batch { ops: &ops, data: &[13; SECTOR], fua: false }).expect("carried out");
    // The device and a snapshot of it know nothing of its clones, and they nothing of it.
    write(&mut device, 1, 2).expect("written");
    let later = snapshot(&mut device, "later");
    put(&mut device, one, 1, 14);
    let expected =
        [(base, [1, 1, 1, 1, 0]), (later, [2, 1, 1, 1, 0]), (one, [14, 0, 1, 1, 0]), (two, [12, 1, 13, 0, 12])];
    let check = |device: &mut Device| {
        for (id, shows) in expected {
            assert_eq!([1, 2, 3, 4, 9].map(|lba| seen(device, id, lba).expect("read")), shows);
        }
        assert_eq!([1, 2, 3, 4, 9].map(|lba| read(device, lba)), [2, 1, 1, 1, 0]);
        let own = [one, two].map(|id| device.own_sectors(device.find_clone(id).expect("it is there")));
        assert_eq!((own, device.kept_sectors()), ([1, 3], 1 + 3 + 1), "and what the base sees of the first sector");
        let extent = |lba| device.extent_in(Some(two), lba, 4).expect("it is there");
        assert_eq!(
            (extent(0).mapped, extent(3).mapped, extent(4).mapped, extent(9).mapped),
            (false, true, false, true)
        );
        device.verify().expect("sound books");
    };
    check(&mut device);
    call(&mut device, Io::Flush).expect("flushed");
    // As a process that dies: nothing is written any more.
    drop(device);
    let mut device = made.attach();
    check(&mut device);
    device.detach().expect("detached");
    assert_eq!(inspect(&made.path()).expect("inspected").format_version, 9);
    let mut device = made.attach();
    check(&mut device);
    delete(&mut device, one).expect("deleted");
    assert_eq!(seen(&mut device, one, 1), Err(IoError::NoSnapshot));
    let write = Io::Write { lba: 1, data: &[1; SECTOR], fua: false };
    assert_eq!(ask(&mut device, one, write), Err(IoError::NoSnapshot));
    settle(&mut device, 4);
    drop(device);
    let mut device = made.attach();
    assert_eq!(device.clones().len(), 1);
    assert_eq!(seen(&mut device, two, 1), Ok(12));
}

#[test]
fn what_cannot_be_done_says_so_and_changes_nothing() {
    let made = made();
    let mut device = made.attach();
    let of = |of, name: &str| SnapshotChange::Clone { of, name: name.into(), created: 1 };
    assert_eq!(device.change_snapshots(&of(7, "a")), Err(SnapshotError::Unknown));
    let base = snapshot(&mut device, "base");
    let newer = snapshot(&mut device, "newer");
    for name in ["", "-x", "a b", "a/b", "a@b"] {
        assert_eq!(device.change_snapshots(&of(base, name)), Err(SnapshotError::Name(name.into())));
    }
    assert_eq!(device.info().format_version, 7, "nothing was made");
    assert_eq!(device.change_snapshots(&of(base, "base")), Err(SnapshotError::Taken("base".into())));
    let id = clone_of(&mut device, newer, "a");
    assert_eq!(device.change_snapshots(&of(base, "a")), Err(SnapshotError::Taken("a".into())));
    let named = SnapshotChange::Create { name: "a".into(), created: 1 };
    assert_eq!(device.change_snapshots(&named), Err(SnapshotError::Taken("a".into())));
    let stands = SnapshotError::Cloned("newer".into(), "a".into());
    assert_eq!(device.change_snapshots(&SnapshotChange::Delete(newer)), Err(stands.clone()));
    let back = SnapshotChange::RollBack { to: base, delete_newer: true };
    assert_eq!(device.change_snapshots(&back), Err(stands));
    assert_eq!(delete(&mut device, base), Err(SnapshotError::UnknownClone));
    let sectors = device.info().sectors;
    for lba in [sectors, 1 << 38, u64::MAX] {
        let write = Io::Write { lba, data: &[1; SECTOR], fua: false };
        assert_eq!(ask(&mut device, id, write), Err(IoError::OutOfRange), "no clone reaches another one");
    }
    let write = Io::Write { lba: 0, data: &[1; SECTOR], fua: false };
    assert_eq!(ask(&mut device, base, write), Err(IoError::ReadOnly), "a snapshot is not written");
    assert!(device.set(&[Setting::Groomer("sepbit".into())]).is_err(), "it keeps something of each sector");
    device.change_snapshots(&SnapshotChange::Rename(id, "b".into())).expect("renamed");
    delete(&mut device, id).expect("deleted");
    device.change_snapshots(&SnapshotChange::Delete(newer)).expect("nothing stands on it");
    device.set(&[Setting::Groomer("sepbit".into())]).expect("set");
    assert!(matches!(device.change_snapshots(&of(base, "c")), Err(SnapshotError::Unclonable(_))));
}

/// As many clones as there may be, each with something of its own.
#[test]
fn a_thousand_clones_of_one_base() {
    let made = made();
    let mut device = made.attach();
    (0..64).for_each(|lba| write(&mut device, lba, 1).expect("written"));
    let base = snapshot(&mut device, "base");
    let clones: Vec<SnapshotId> = (0..CLONES_MAX).map(|i| clone_of(&mut device, base, &format!("c{i}"))).collect();
    let more = SnapshotChange::Clone { of: base, name: "more".into(), created: 1 };
    assert_eq!(device.change_snapshots(&more), Err(SnapshotError::TooManyClones));
    assert_eq!(device.kept_sectors(), 0, "nothing is written yet");
    for (i, id) in clones.iter().enumerate() {
        put(&mut device, *id, i as u64 % 64, (i % 200) as u8 + 2);
    }
    call(&mut device, Io::Flush).expect("flushed");
    drop(device);
    let mut device = made.attach();
    for (i, id) in clones.iter().enumerate() {
        let lba = i as u64 % 64;
        assert_eq!(seen(&mut device, *id, lba), Ok((i % 200) as u8 + 2));
        assert_eq!(seen(&mut device, *id, (lba + 1) % 64), Ok(1));
    }
    assert_eq!((device.kept_sectors(), read(&mut device, 5)), (CLONES_MAX as u64, 1));
    for id in &clones[1..] {
        delete(&mut device, *id).expect("deleted");
    }
    settle(&mut device, 1);
    device.verify().expect("sound books");
    // Windows are given again.
    (0..CLONES_MAX - 1).for_each(|i| _ = clone_of(&mut device, base, &format!("d{i}")));
    let last = device.clones().last().expect("it is there").id;
    assert_eq!(seen(&mut device, last, 7), Ok(1), "nothing of what had its window shows");
}

/// What is trimmed does not show through again, and what the base does not hold needs no mark.
#[test]
fn a_clone_that_is_trimmed_shows_zeros() {
    let made = made();
    let mut device = made.attach();
    let sectors = device.info().sectors;
    [3, 64, 65, 200, sectors - 1].into_iter().for_each(|lba| write(&mut device, lba, 1).expect("written"));
    let base = snapshot(&mut device, "base");
    let id = clone_of(&mut device, base, "c");
    put(&mut device, id, 65, 2);
    ask(&mut device, id, Io::Trim { lba: 0, count: sectors, fua: true }).expect("trimmed");
    let check = |device: &mut Device| {
        for lba in [3, 64, 65, 200, sectors - 1] {
            assert_eq!((seen(device, id, lba), seen(device, base, lba)), (Ok(0), Ok(1)));
        }
    };
    check(&mut device);
    drop(device);
    let mut device = made.attach();
    check(&mut device);
    put(&mut device, id, 64, 3);
    assert_eq!([63, 64, 65].map(|lba| seen(&mut device, id, lba)), [Ok(0), Ok(3), Ok(0)]);
}

#[test]
fn a_clone_takes_the_place_of_its_device() {
    let made = made();
    let mut device = made.attach();
    (1..=4).for_each(|lba| write(&mut device, lba, 1).expect("written"));
    let base = snapshot(&mut device, "base");
    let (id, other) = (clone_of(&mut device, base, "c"), clone_of(&mut device, base, "other"));
    put(&mut device, id, 1, 2);
    put(&mut device, other, 2, 9);
    ask(&mut device, id, Io::Trim { lba: 2, count: 1, fua: false }).expect("trimmed");
    write(&mut device, 3, 7).expect("written");
    write(&mut device, 8, 7).expect("written");
    let later = snapshot(&mut device, "later");
    device.change_snapshots(&SnapshotChange::Promote(id)).expect("promoted");
    assert_eq!(device.change_snapshots(&SnapshotChange::Promote(id)), Err(SnapshotError::UnknownClone));
    let check = |device: &mut Device| {
        assert_eq!([1, 2, 3, 4, 8].map(|lba| read(device, lba)), [2, 0, 1, 1, 0]);
        assert_eq!([1, 2, 3, 4, 8].map(|lba| seen(device, later, lba).expect("read")), [1, 1, 7, 1, 7]);
        assert_eq!([1, 2, 3, 4, 8].map(|lba| seen(device, base, lba).expect("read")), [1, 1, 1, 1, 0]);
        assert_eq!([1, 2, 3].map(|lba| seen(device, other, lba).expect("read")), [1, 9, 1]);
        assert_eq!(device.clones().len(), 1);
        device.verify().expect("sound books");
    };
    check(&mut device);
    // As a process that dies: what was promoted is durable.
    drop(device);
    let mut device = made.attach();
    check(&mut device);
    device.detach().expect("detached");
    let mut device = made.attach();
    check(&mut device);
    write(&mut device, 1, 5).expect("written");
    assert_eq!((read(&mut device, 1), seen(&mut device, later, 1)), (5, Ok(1)));
}
