//! Devices on real files: what goes wrong there, and what must not.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use device::{
    AttachError, AttachOptions, Capacity, CreateError, CreateOptions, Device, EraseLevel, Erased, FORMAT_VERSION,
    FormatError, FormatOptions, Io, IoError, Setting, State, create, format, inspect, sure_erase,
};
use media::OpenError;
use media::ring::Ring;
use tempfile::TempDir;

use crate::common::call;

const SECTOR: usize = 4096;

fn options(bytes: u64) -> CreateOptions {
    CreateOptions {
        advertised_bytes: bytes,
        raw_bytes: bytes / 100 * 130,
        profile: None,
        parity: 0,
        format: FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "test".into() },
    }
}

fn made() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("fct0.vsl");
    create(&[&path], &options(256 << 20)).expect("created");
    (dir, path)
}

fn attach(path: &Path) -> Device {
    let ring = Ring::new(64).expect("io_uring");
    Device::attach(&[path], &AttachOptions::default(), &ring).expect("attached")
}

fn refused(path: &Path) -> AttachError {
    let ring = Ring::new(64).expect("io_uring");
    match Device::attach(&[path], &AttachOptions::default(), &ring) {
        Ok(_) => panic!("attached"),
        Err(error) => error,
    }
}

fn write(device: &mut Device, lba: u64, byte: u8) {
    call(device, Io::Write { lba, data: &[byte; SECTOR], fua: false }).expect("written");
}

fn read(device: &mut Device, lba: u64) -> Result<Vec<u8>, IoError> {
    call(device, Io::Read { lba, buf: vec![0xee; SECTOR] }).map(|buf| buf.expect("a read gives its buffer"))
}

#[test]
fn what_is_written_is_there_after_a_clean_detach_and_after_a_crash() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    for lba in 0..500 {
        write(&mut device, lba * 7, lba as u8);
    }
    call(&mut device, Io::Trim { lba: 7, count: 1, fua: false }).expect("trimmed");
    assert_eq!(read(&mut device, 0).expect("read"), vec![0; SECTOR]);
    assert_eq!(read(&mut device, 21).expect("read"), vec![3; SECTOR]);
    device.detach().expect("detached");
    assert!(inspect(&path).expect("inspected").clean);

    let mut device = attach(&path);
    assert!(!inspect(&path).expect("inspected").clean);
    assert_eq!((device.info().attaches, device.info().unsafe_shutdowns), (2, 0));
    assert_eq!(read(&mut device, 7).expect("read"), vec![0; SECTOR]);
    assert_eq!(read(&mut device, 499 * 7).expect("read"), vec![499usize as u8; SECTOR]);
    write(&mut device, 3, 77);
    call(&mut device, Io::Flush).expect("flushed");
    write(&mut device, 4, 78);
    drop(device);

    let mut device = attach(&path);
    assert_eq!((device.info().attaches, device.info().unsafe_shutdowns), (3, 1));
    assert_eq!(read(&mut device, 3).expect("read"), vec![77; SECTOR]);
    assert!([vec![78; SECTOR], vec![0; SECTOR]].contains(&read(&mut device, 4).expect("read")));
    assert_eq!(read(&mut device, 21).expect("read"), vec![3; SECTOR]);
    device.verify().expect("the books agree");
    device.detach().expect("detached");
    assert_eq!(attach(&path).info().unsafe_shutdowns, 1, "a detach is none");
}

#[test]
fn a_second_attach_is_refused_by_name() {
    let (_dir, path) = made();
    let _device = attach(&path);
    let error = refused(&path);
    assert!(matches!(error, AttachError::Open(OpenError::Locked { .. })), "{error}");
    assert!(error.to_string().contains("fct0.vsl"), "{error}");
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    let format_error = format(&[&path], &options(256 << 20).format, None).expect_err("attached");
    assert!(format_error.to_string().contains("in use by"), "{format_error}");
}

/// Gives both copies of a superblock another version, as whoever wrote them would have: the checksum is right. Returns the old one.
fn set_version(file: &File, version: u32) -> u32 {
    let mut old = 0;
    for at in [0, 64 << 10] {
        let mut copy = vec![0; 4096];
        file.read_exact_at(&mut copy, at).expect("read");
        let number = |at: usize| u32::from_le_bytes(copy[at..at + 4].try_into().expect("four bytes"));
        let end = number(12) as usize - 4;
        old = number(8);
        copy[8..12].copy_from_slice(&version.to_le_bytes());
        let sum = crc_fast::crc32_iscsi(&copy[..end]);
        copy[end..end + 4].copy_from_slice(&sum.to_le_bytes());
        file.write_all_at(&copy, at).expect("written");
    }
    old
}

/// The version field is like any other: a bit that flips in it, in either copy, costs nothing.
#[test]
fn a_rotten_version_is_no_newer_program() {
    let (_dir, path) = made();
    attach(&path).detach().expect("detached");
    let file = File::options().read(true).write(true).open(&path).expect("opened");
    for at in [0, 64 << 10] {
        for bit in 0..32 {
            let mut version = [0; 4];
            file.read_exact_at(&mut version, at + 8).expect("read");
            let rotten = u32::from_le_bytes(version) ^ 1 << bit;
            file.write_all_at(&rotten.to_le_bytes(), at + 8).expect("written");
            inspect(&path).unwrap_or_else(|error| panic!("bit {bit} of the copy at {at}: {error}"));
            file.write_all_at(&version, at + 8).expect("written");
        }
        file.write_all_at(&9u32.to_le_bytes(), at + 8).expect("written");
        attach(&path).detach().expect("attached and detached with the other copy");
    }
}

#[test]
fn foreign_truncated_and_newer_files_are_told_apart() {
    let (dir, path) = made();
    let foreign = dir.path().join("notes.txt");
    std::fs::write(&foreign, "not a device").expect("written");
    assert!(matches!(refused(&foreign), AttachError::Foreign { .. }));
    let empty = dir.path().join("empty");
    File::create(&empty).expect("made").set_len(300 << 20).expect("grown");
    assert!(refused(&empty).to_string().contains("it is blank"));
    let missing = dir.path().join("missing");
    assert!(refused(&missing).to_string().contains("No such file"));

    let file = File::options().read(true).write(true).open(&path).expect("opened");
    let length = file.metadata().expect("looked at").len();
    file.set_len(length - 1).expect("cut");
    assert!(matches!(refused(&path), AttachError::Open(OpenError::Truncated { .. })), "{}", refused(&path));
    file.set_len(length).expect("grown");
    drop(attach(&path));

    // Both copies from a newer program, with the rest of them unknown to us.
    set_version(&file, FORMAT_VERSION + 1);
    assert!(
        matches!(refused(&path), AttachError::Version { found, known: FORMAT_VERSION, .. } if found == FORMAT_VERSION + 1)
    );
    assert!(matches!(inspect(&path), Err(AttachError::Version { .. })));
    assert!(format(&[&path], &options(256 << 20).format, None).is_err(), "an older program must not format it");
}

/// One damaged superblock is survived, two are an error, and neither is a panic.
#[test]
fn a_damaged_superblock() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    write(&mut device, 1, 1);
    device.detach().expect("detached");
    let file = File::options().write(true).open(&path).expect("opened");
    file.write_all_at(&[0xff; 64], 200).expect("written");
    if let Ok(info) = inspect(&path) {
        // The other copy is older or newer; whichever counts, the device attaches.
        assert_eq!(info.label, "test");
        drop(attach(&path));
    }
    file.write_all_at(&[0xff; 64], 200).expect("written");
    file.write_all_at(&[0xff; 64], (64 << 10) + 200).expect("written");
    assert!(matches!(refused(&path), AttachError::Damaged { .. }), "{}", refused(&path));
}

/// Every sector that rots on media is an error, never wrong data.
#[test]
fn a_rotten_sector_is_an_error() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    for lba in 0..64 {
        write(&mut device, lba, lba as u8 + 1);
    }
    device.detach().expect("detached");
    // Flip one bit in every 4 KiB of the first LEB that holds them, wherever it lies.
    let file = File::options().read(true).write(true).open(&path).expect("opened");
    let mut page = vec![0; 4096];
    let mut damaged = 0;
    let length = file.metadata().expect("looked at").len();
    for at in ((1 << 20)..length).step_by(4096) {
        file.read_exact_at(&mut page, at).expect("read");
        let is_data = page[2048..2056].iter().all(|byte| *byte == page[2048]) && (1..=64).contains(&page[2048]);
        if is_data {
            page[2048] ^= 1;
            file.write_all_at(&page, at).expect("written");
            damaged += 1;
        }
    }
    assert!(damaged >= 60, "{damaged} sectors found on media");
    let mut device = attach(&path);
    let mut errors = 0;
    for lba in 0..64 {
        match read(&mut device, lba) {
            Ok(data) => assert_eq!(data, vec![lba as u8 + 1; SECTOR]),
            Err(error) => {
                assert_eq!(error, IoError::Media);
                errors += 1;
            }
        }
    }
    assert!(errors >= 60, "{errors} errors");
    assert_eq!(device.status().layer.read_errors, errors);
    // Overwritten, a sector is well again.
    write(&mut device, 5, 99);
    assert_eq!(read(&mut device, 5).expect("read"), vec![99; SECTOR]);
}

#[test]
fn read_only_takes_no_writes_and_changes_no_byte() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    write(&mut device, 9, 9);
    call(&mut device, Io::Flush).expect("flushed");
    drop(device); // a crash: the log must be replayed, in memory only
    let before = std::fs::read(&path).expect("read");
    let ring = Ring::new(64).expect("io_uring");
    let mut device = Device::attach(&[&path], &AttachOptions { read_only: true, ..AttachOptions::default() }, &ring)
        .expect("attached");
    assert_eq!(device.status().state, State::AttachedReadOnly);
    assert_eq!(read(&mut device, 9).expect("read"), vec![9; SECTOR]);
    let refused = call(&mut device, Io::Write { lba: 9, data: &[1; SECTOR], fua: false });
    assert_eq!(refused, Err(IoError::ReadOnly));
    assert_eq!(call(&mut device, Io::Trim { lba: 9, count: 1, fua: false }), Err(IoError::ReadOnly));
    assert!(device.set(&[Setting::Beacon(true)]).is_err());
    assert!(device.scrub(true).is_err() && device.scrub(false).is_err());
    assert!(device.rebuild(0, None).is_err());
    device.detach().expect("detached");
    assert!(before == std::fs::read(&path).expect("read"), "the file changed");
}

/// Without parity there is no going on without a file, whatever is asked for.
#[test]
fn a_device_on_two_files_needs_both() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    create(&paths, &options(256 << 20)).expect("created");
    let ring = Ring::new(64).expect("io_uring");
    for degraded in [false, true] {
        let options = AttachOptions { degraded, ..AttachOptions::default() };
        for path in &paths {
            let refused = Device::attach(&[path], &options, &ring).err();
            assert!(matches!(refused, Some(AttachError::NotAll { files: 2, .. })), "{path:?}: {refused:?}");
        }
        std::fs::rename(&paths[1], dir.path().join("c")).expect("renamed");
        let refused = Device::attach(&paths, &options, &ring).err();
        assert!(matches!(refused, Some(AttachError::Open(_))), "{refused:?}");
        std::fs::rename(dir.path().join("c"), &paths[1]).expect("renamed");
        Device::attach(&paths, &options, &ring).expect("attached").detach().expect("detached");
    }
}

/// A file that a newer program wrote, or something that was named by mistake, is no lost die: nothing is put on record.
#[test]
fn what_can_be_put_right_is_not_taken_for_lost() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let paths = ["a", "b", "c"].map(|name| dir.path().join(name));
    create(&paths, &CreateOptions { parity: 1, ..options(256 << 20) }).expect("created");
    let ring = Ring::new(64).expect("io_uring");
    let refused = |paths: &[&Path], degraded| {
        let options = AttachOptions { degraded, ..AttachOptions::default() };
        Device::attach(paths, &options, &ring).err()
    };
    let [a, b, c] = [&paths[0], &paths[1], &paths[2]].map(PathBuf::as_path);
    let mistaken = refused(&[a, b, dir.path()], false);
    assert!(matches!(mistaken, Some(AttachError::Open(OpenError::Kind { .. }))), "{mistaken:?}");
    let file = File::options().read(true).write(true).open(c).expect("opened");
    let version = set_version(&file, FORMAT_VERSION + 1);
    for degraded in [false, true] {
        let newer = refused(&[a, b, c], degraded);
        assert!(matches!(newer, Some(AttachError::Version { found, .. }) if found == FORMAT_VERSION + 1), "{newer:?}");
    }
    set_version(&file, version);
    let device = Device::attach(&paths, &AttachOptions::default(), &ring).expect("attached");
    assert_eq!(device.status().lost_dies, [] as [u32; 0]);
    device.detach().expect("detached");
    // Gone is gone.
    std::fs::remove_file(c).expect("removed");
    let device = Device::attach(&paths, &AttachOptions::default(), &ring).expect("attached without it");
    assert_eq!(device.status().lost_dies.len(), 1);
}

/// A format of several files is cut between two of them.
#[test]
fn a_format_that_was_cut_is_run_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let paths = ["a", "b", "c"].map(|name| dir.path().join(name));
    let others = ["d", "e", "f"].map(|name| dir.path().join(name));
    let roomy = CreateOptions { raw_bytes: 512 << 20, ..options(256 << 20) };
    create(&paths, &roomy).expect("created");
    create(&others, &roomy).expect("created");
    let ring = Ring::new(64).expect("io_uring");
    let open = |paths: &[PathBuf]| Device::attach(paths, &AttachOptions::default(), &ring);
    for paths in [&paths, &others] {
        let mut device = open(paths).expect("attached");
        write(&mut device, 7, 7);
        device.detach().expect("detached");
    }
    let labels = |path: &Path| {
        let mut bytes = vec![0; 128 << 10];
        File::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0)).expect("read");
        bytes
    };
    let new = |label: &str| FormatOptions { sector_bytes: 512, capacity: Capacity::Advertised, label: label.into() };
    let old = labels(&paths[2]);
    format(&paths, &new("first"), None).expect("formatted");
    let file = File::options().write(true).open(&paths[2]).expect("opened");
    file.write_all_at(&old, 0).expect("written");
    assert!(matches!(open(&paths).err(), Some(AttachError::Stranger { .. })));
    let [a, b, c] = &paths;
    for mixed in [[a, b, &others[2]], [&others[0], &others[1], c]] {
        let mixed = format(&mixed, &new("mixed"), None).expect_err("of two devices").to_string();
        assert!(mixed.contains("a part of the device"), "{mixed}");
    }
    let info = format(&paths, &new("second"), None).expect("run again");
    assert_eq!((info.label.as_str(), info.sector_bytes), ("second", 512));
    let mut device = open(&paths).expect("attached");
    let buf = call(&mut device, Io::Read { lba: 7 * 8, buf: vec![0xee; 512] }).expect("read");
    assert_eq!(buf, Some(vec![0; 512]));
}

#[test]
fn create_format_and_erase() {
    let (_dir, path) = made();
    assert!(matches!(create(&[&path], &options(256 << 20)), Err(CreateError::Exists { .. })));
    let old = inspect(&path).expect("inspected");
    for (sector_bytes, capacity, part) in [
        (512, Capacity::HighPerformance, 0.8),
        (512, Capacity::ImprovedWrite, 0.7),
        (1024, Capacity::MaximumWrite, 0.5),
        (2048, Capacity::Percent(90.0), 0.9),
        (4096, Capacity::Bytes(100 << 20), 100.0 / 256.0),
        (4096, Capacity::Maximum, 1.1),
    ] {
        let new = format(&[&path], &FormatOptions { sector_bytes, capacity, label: "again".into() }, None)
            .expect("formatted");
        assert_ne!(new.uuid, old.uuid);
        assert_eq!((new.sector_bytes, new.label.as_str()), (sector_bytes, "again"));
        let share = new.bytes() as f64 / old.advertised_bytes as f64;
        assert!((share - part).abs() < 0.01, "{capacity:?} gives {share}");
        let mut device = attach(&path);
        let buf = vec![0xee; sector_bytes as usize];
        let zeros = call(&mut device, Io::Read { lba: 0, buf }).expect("read").expect("a buffer");
        assert!(zeros.iter().all(|byte| *byte == 0));
        let data = vec![0xd5; sector_bytes as usize];
        call(&mut device, Io::Write { lba: 0, data: &data, fua: true }).expect("written");
        device.detach().expect("detached");
    }
    let bytes = std::fs::read(&path).expect("read");
    assert!(bytes.windows(64).any(|window| window == [0xd5; 64]), "the data is on media");
    let (mut last, mut calls) = (0, 0);
    let watch = &mut |erased: Erased| {
        assert!(erased.done <= erased.total);
        if erased.step == "overwrite" {
            assert!(erased.done >= last);
            (last, calls) = (erased.done, calls + 1);
        }
        true
    };
    let (info, _) = sure_erase(std::slice::from_ref(&path), EraseLevel::Clear, None, watch).expect("erased");
    assert!(calls > 0);
    assert_eq!(info.label, "again");
    let bytes = std::fs::read(&path).expect("read");
    assert!(bytes[1 << 20..].iter().all(|byte| *byte == 0), "something is left");
    let mut device = attach(&path);
    assert_eq!(read(&mut device, 0).expect("read"), vec![0; SECTOR]);
}

#[test]
fn bad_formats_say_what_was_expected() {
    let (dir, path) = made();
    let bad = |sector_bytes, capacity, label: &str| {
        let options = FormatOptions { sector_bytes, capacity, label: label.into() };
        match format(&[&path], &options, None).expect_err("refused") {
            FormatError::Invalid { name, expected, .. } => format!("{name}: {expected}"),
            other => panic!("{other}"),
        }
    };
    assert!(bad(513, Capacity::Advertised, "x").contains("512, 1024, 2048 or 4096"));
    assert!(bad(4096, Capacity::Bytes(0), "x").starts_with("capacity"));
    assert!(bad(4096, Capacity::Percent(200.0), "x").starts_with("capacity"));
    assert!(bad(4096, Capacity::Percent(f64::NAN), "x").starts_with("capacity"));
    assert!(bad(4096, Capacity::Advertised, &"x".repeat(64)).starts_with("label"));
    assert!(bad(4096, Capacity::Advertised, "a\nb").starts_with("label"));
    let huge = create(&[dir.path().join("huge")], &options(100 << 40));
    assert!(matches!(huge, Err(CreateError::Format(FormatError::Invalid { name: "raw size", .. }))));
    assert!(!dir.path().join("huge").exists());
}

#[test]
fn a_sparse_giant_attaches_in_little_memory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("giant.vsl");
    create(&[&path], &options(10 << 40)).expect("created");
    let mut device = attach(&path);
    let status = device.status();
    assert!(status.memory_bytes < 12 << 20, "{} bytes", status.memory_bytes);
    assert_eq!(device.info().bytes(), 10 << 40);
    let last = device.info().sectors - 1;
    write(&mut device, last, 1);
    call(&mut device, Io::Flush).expect("flushed");
    drop(device);
    let mut device = attach(&path);
    assert_eq!(read(&mut device, last).expect("read"), vec![1; SECTOR]);
    assert!(device.status().allocated_bytes.expect("a file") < 4 << 30);
}

#[test]
fn settings_are_kept() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    device.set(&[Setting::Label("moon".into())]).expect("set");
    device.set(&[Setting::Beacon(true)]).expect("set");
    device.set(&[Setting::Trim(false)]).expect("set");
    device.set(&[Setting::Groomer("greedy".into())]).expect("set");
    assert!(device.set(&[Setting::Groomer("best".into())]).is_err());
    assert!(device.set(&[Setting::CheckpointInterval(5)]).is_err());
    let good_and_bad = [Setting::Label("sun".into()), Setting::Groomer("fifo".into()), Setting::CheckpointInterval(5)];
    let before = device.settings();
    assert!(device.set(&good_and_bad).is_err());
    assert_eq!(device.settings(), before, "some of the changes were made");
    write(&mut device, 1, 1);
    call(&mut device, Io::Trim { lba: 1, count: 1, fua: false }).expect("ignored");
    assert_eq!(read(&mut device, 1).expect("read"), vec![1; SECTOR], "trim is off");
    call(&mut device, Io::WriteZeroes { lba: 1, count: 1, fua: false, allocate: false }).expect("zeroed");
    assert_eq!(read(&mut device, 1).expect("read"), vec![0; SECTOR]);
    device.detach().expect("detached");
    let device = attach(&path);
    let settings = device.settings();
    assert_eq!(
        (settings.label.as_str(), settings.beacon, settings.trim, settings.groomer.as_str()),
        ("moon", true, false, "greedy")
    );
}

#[test]
fn requests_out_of_range_are_refused() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    let sectors = device.info().sectors;
    let too_large = vec![0; device.info().max_request_bytes as usize + SECTOR];
    for (io, error) in [
        (Io::Read { lba: sectors, buf: vec![0; SECTOR] }, IoError::OutOfRange),
        (Io::Read { lba: u64::MAX, buf: vec![0; SECTOR] }, IoError::OutOfRange),
        (Io::Read { lba: 0, buf: vec![0; 100] }, IoError::OutOfRange),
        (Io::Write { lba: sectors - 1, data: &[0; 2 * SECTOR], fua: false }, IoError::OutOfRange),
        (Io::Write { lba: 0, data: &too_large, fua: false }, IoError::TooLarge),
        (Io::Trim { lba: 1, count: u64::MAX, fua: false }, IoError::OutOfRange),
        (Io::WriteZeroes { lba: 0, count: 1 << 20, fua: false, allocate: true }, IoError::OutOfRange),
        (Io::WriteZeroes { lba: 0, count: 1 << 10, fua: false, allocate: true }, IoError::TooLarge),
    ] {
        assert_eq!(call(&mut device, io), Err(error));
    }
    for io in [Io::Read { lba: sectors, buf: vec![] }, Io::Trim { lba: 0, count: 0, fua: true }] {
        assert!(call(&mut device, io).is_ok(), "nothing to do");
    }
}
