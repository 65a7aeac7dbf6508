//! Another size of a device in a file: it grows and shrinks in use, tells nothing beyond its end, and has the size after the next attach.

use device::{
    Capacity, CreateOptions, Device, Extent, FormatOptions, Io, IoError, Resize, ResizeError, SnapshotChange,
    SnapshotError, inspect,
};

use crate::common::call;
use crate::made::{Made, SECTOR, read, write};

/// Sectors of a MiB.
const MIB: u64 = (1 << 20) / SECTOR as u64;

fn made() -> Made {
    Made::new(&CreateOptions {
        advertised_bytes: 64 << 20,
        raw_bytes: 128 << 20,
        profile: None,
        parity: 0,
        format: FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "t".into() },
    })
}

fn resize(device: &mut Device, mebibytes: u64) -> Result<(), ResizeError> {
    let plan = device.plan_resize(&Resize { bytes: Some(mebibytes << 20), raw_bytes: None })?;
    plan.extend()?;
    device.begin_resize(&plan)?;
    while !device.resized()? {
        if device.poll().is_none() {
            device.wait();
        }
    }
    Ok(())
}

#[test]
fn a_device_grows_and_shrinks_in_use() {
    let made = made();
    let mut device = made.attach();
    (0..64 * MIB).for_each(|lba| write(&mut device, lba, lba as u8 | 1).expect("room"));
    let (raw, length) = (device.info().raw_bytes, made.path().metadata().expect("a file").len());
    resize(&mut device, 192).expect("grown");
    assert_eq!(device.info().sectors, 192 * MIB);
    assert!(device.info().raw_bytes >= 3 * raw && made.path().metadata().expect("a file").len() > length);
    assert_eq!(read(&mut device, 192 * MIB - 1), 0);
    (64 * MIB..192 * MIB).for_each(|lba| write(&mut device, lba, lba as u8 | 1).expect("room"));
    device.verify().expect("its books agree");
    assert!(matches!(resize(&mut device, 100), Err(ResizeError::Mapped { byte, .. }) if byte == 100 << 20));
    call(&mut device, Io::Trim { lba: 100 * MIB, count: 92 * MIB, fua: false }).expect("trimmed");
    resize(&mut device, 100).expect("shrunk");
    let beyond = call(&mut device, Io::Read { lba: 100 * MIB, buf: vec![0; SECTOR] });
    assert_eq!(beyond.map(drop), Err(IoError::OutOfRange));
    assert_eq!(device.extent(150 * MIB, 7), Extent { count: 7, mapped: false }, "for whoever does not know yet");
    // Without a detach: as after a kill.
    drop(device);
    assert_eq!(inspect(&made.path()).expect("a device").sectors, 100 * MIB);
    let mut device = made.attach();
    assert!((0..100 * MIB).step_by(97).all(|lba| read(&mut device, lba) == lba as u8 | 1));
    resize(&mut device, 192).expect("grown again");
    assert!((100 * MIB..192 * MIB).step_by(97).all(|lba| read(&mut device, lba) == 0), "what was trimmed came back");
    device.detach().expect("detached");
    assert_eq!(inspect(&made.path()).expect("a device").sectors, 192 * MIB);
}

#[test]
fn what_a_snapshot_keeps_is_not_cut_off() {
    let made = made();
    let mut device = made.attach();
    write(&mut device, 60 * MIB, 7).expect("room");
    device.change_snapshots(&SnapshotChange::Create { name: "s".into(), created: 0 }).expect("made");
    call(&mut device, Io::Trim { lba: 60 * MIB, count: 1, fua: false }).expect("trimmed");
    assert!(matches!(resize(&mut device, 50), Err(ResizeError::Kept { name, .. }) if name == "s"));
    resize(&mut device, 128).expect("grown");
    let id = device.snapshots()[0].id;
    let mut seen = |lba| {
        let buf = call(&mut device, Io::ReadSnapshot { id, lba, buf: vec![0xee; SECTOR] }).expect("read");
        buf.expect("a buffer")[0]
    };
    assert_eq!((seen(60 * MIB), seen(100 * MIB)), (7, 0));
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let made = made();
    let mut device = made.attach();
    for (bytes, raw_bytes) in [
        (Some(0), None),
        (Some(4 << 40), None),
        (Some(u64::MAX), Some(u64::MAX)),
        (None, Some(64 << 20)),
        (Some(120 << 20), Some(128 << 20)),
    ] {
        let refused = device.plan_resize(&Resize { bytes, raw_bytes });
        assert!(matches!(refused, Err(ResizeError::Invalid { .. })), "{bytes:?} {raw_bytes:?}: {refused:?}");
    }
    assert_eq!(device.info().sectors, 64 * MIB);
}

#[test]
fn clones_keep_their_device_at_its_size() {
    let made = made();
    let mut device = made.attach();
    device.change_snapshots(&SnapshotChange::Create { name: "s".into(), created: 0 }).expect("made");
    let of = device.snapshots()[0].id;
    let clone = SnapshotChange::Clone { of, name: "c".into(), created: 0 };
    // Either waits for the other.
    write(&mut device, 0, 1).expect("room");
    let plan = device.plan_resize(&Resize { bytes: Some(50 << 20), raw_bytes: None }).expect("without clones");
    device.begin_resize(&plan).expect("begun");
    assert!(!device.resized().expect("begun"), "a checkpoint takes its time");
    assert!(matches!(device.change_snapshots(&clone), Err(SnapshotError::Unclonable(_))));
    while !device.resized().expect("shrunk") {
        if device.poll().is_none() {
            device.wait();
        }
    }
    device.change_snapshots(&clone).expect("made");
    for mebibytes in [40, 64] {
        assert!(matches!(resize(&mut device, mebibytes), Err(ResizeError::Unsupported { .. })), "to {mebibytes} MiB");
    }
    let id = device.clones()[0].id;
    device.change_snapshots(&SnapshotChange::DeleteClone(id)).expect("deleted");
    resize(&mut device, 64).expect("grown");
}
