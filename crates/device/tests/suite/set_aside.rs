//! Files of a device with parity that cannot be used: the device goes on without one, and leaves it as it is.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use device::{AttachError, AttachOptions, Capacity, CreateOptions, Device, FormatOptions, Io, create};
use media::ring::Ring;
use tempfile::TempDir;

use crate::common::call;

const SECTOR: usize = 4096;

fn made(parity: u32, name: &str, dir: &TempDir) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = (0..4).map(|die| dir.path().join(format!("{name}{die}"))).collect();
    let options = CreateOptions {
        advertised_bytes: 64 << 20,
        raw_bytes: 256 << 20,
        profile: None,
        parity,
        format: FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: name.into() },
    };
    create(&paths, &options).expect("created");
    let mut device = attach(&paths).expect("attached");
    for lba in 0..256 {
        call(&mut device, Io::Write { lba, data: &[lba as u8; SECTOR], fua: false }).expect("written");
    }
    device.detach().expect("detached");
    paths
}

fn attach(paths: &[PathBuf]) -> Result<Device, AttachError> {
    let ring = Ring::new(64).expect("io_uring");
    Device::attach(paths, &AttachOptions::default(), &ring)
}

/// Spoils file 1 of a device, and what is said of it.
fn goes_on_without(degraded: bool, spoil: impl Fn(&TempDir, &[PathBuf]), says: &str) {
    for parity in [0, 1] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let paths = made(parity, "d", &dir);
        spoil(&dir, &paths);
        let before = std::fs::read(&paths[1]).expect("read");
        let ring = Ring::new(64).expect("io_uring");
        let options = AttachOptions { degraded, ..AttachOptions::default() };
        let attached = Device::attach(&paths, &options, &ring);
        if parity == 0 {
            assert!(attached.is_err(), "nothing makes up for {says}");
            continue;
        }
        let mut device = attached.expect("attached without it");
        let status = device.status();
        assert_eq!(status.lost_dies, [1]);
        let [why] = status.set_aside.as_slice() else { panic!("{:?}", status.set_aside) };
        assert!(why.contains(says) && why.starts_with(&format!("die 1: {}", paths[1].display())), "{why}");
        for lba in 0..256 {
            let data = call(&mut device, Io::Read { lba, buf: vec![0xee; SECTOR] }).expect("read");
            assert_eq!(data.expect("a buffer"), [lba as u8; SECTOR], "sector {lba}");
        }
        call(&mut device, Io::Write { lba: 300, data: &[7; SECTOR], fua: true }).expect("written");
        device.detach().expect("detached");
        assert!(before == std::fs::read(&paths[1]).expect("read"), "{says}: the file changed");
        let mut device = Device::attach(&paths, &options, &ring).expect("attached again");
        let spare = dir.path().join("spare");
        device.rebuild(1, Some(&spare)).expect("rebuilt");
        assert_eq!(device.status().set_aside, [""; 0]);
    }
}

#[test]
fn a_truncated_file_is_set_aside() {
    let cut = |_: &TempDir, paths: &[PathBuf]| {
        File::options().write(true).open(&paths[1]).and_then(|file| file.set_len(1 << 20)).expect("cut");
    };
    goes_on_without(false, cut, "truncated");
}

#[test]
fn a_copy_of_another_member_is_set_aside() {
    let double = |_: &TempDir, paths: &[PathBuf]| {
        std::fs::copy(&paths[2], &paths[1]).expect("copied");
    };
    goes_on_without(false, double, "a copy of file 2");
}

/// It would serve what was true then, and count as the redundancy that it is not.
#[test]
fn an_old_copy_of_a_member_is_set_aside() {
    let old = |dir: &TempDir, paths: &[PathBuf]| {
        let copy = dir.path().join("copy");
        std::fs::copy(&paths[1], &copy).expect("copied");
        let mut device = attach(paths).expect("attached");
        for lba in 0..256 {
            call(&mut device, Io::Write { lba, data: &[lba as u8; SECTOR], fua: false }).expect("written");
        }
        device.detach().expect("detached");
        std::fs::rename(&copy, &paths[1]).expect("put back");
    };
    goes_on_without(false, old, "an old copy");
}

/// Without parity nothing makes up for it, and it can be read only by whoever asks for that.
#[test]
fn an_old_copy_of_a_member_can_be_read_only() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let paths = made(0, "d", &dir);
    let old = std::fs::read(&paths[1]).expect("read");
    attach(&paths).expect("attached").detach().expect("detached");
    std::fs::write(&paths[1], old).expect("put back");
    let refused = attach(&paths).err().expect("refused").to_string();
    assert!(refused.contains("its files 1,") && refused.contains("--read-only"), "{refused}");
    let ring = Ring::new(64).expect("io_uring");
    let options = AttachOptions { read_only: true, ..AttachOptions::default() };
    Device::attach(&paths, &options, &ring).expect("attached to be read");
}

/// More than parity makes up for: the device is refused, and its files are left as they are.
#[test]
fn old_copies_of_most_members_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let paths = made(1, "d", &dir);
    let old: Vec<_> = paths[..2].iter().map(|path| std::fs::read(path).expect("read")).collect();
    attach(&paths).expect("attached").detach().expect("detached");
    for (path, old) in paths.iter().zip(&old) {
        std::fs::write(path, old).expect("written");
    }
    let refused = attach(&paths).err().expect("refused").to_string();
    assert!(refused.contains("its files 0, 1,"), "{refused}");
    for (path, old) in paths.iter().zip(&old) {
        assert!(*old == std::fs::read(path).expect("read"), "{} changed", path.display());
    }
}

#[test]
fn a_file_of_another_device_is_set_aside_however_new_it_is() {
    let foreign = |dir: &TempDir, paths: &[PathBuf]| {
        let others = made(1, "other", dir);
        for _ in 0..3 {
            attach(&others).expect("attached").detach().expect("detached");
        }
        std::fs::copy(&others[1], &paths[1]).expect("copied");
    };
    goes_on_without(true, foreign, "belongs to device");
}

#[test]
fn a_damaged_file_is_set_aside() {
    let damaged = |_: &TempDir, paths: &[PathBuf]| {
        let file = File::options().write(true).open(&paths[1]).expect("opened");
        file.write_all_at(&[0x55; 128], 100).expect("written");
        file.write_all_at(&[0x55; 128], 100 + (64 << 10)).expect("written");
    };
    goes_on_without(false, damaged, "damaged");
}

/// Of two files of one die the newer one stays, in whatever order they are named.
#[test]
fn the_newer_of_two_files_of_one_die_stays() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let paths = made(1, "d", &dir);
        let old = std::fs::read(&paths[2]).expect("read");
        attach(&paths).expect("attached").detach().expect("detached");
        std::fs::write(&paths[1], &old).expect("written");
        let named = order.map(|at| paths[at].clone());
        let device = attach(&named).expect("attached without the older one");
        assert_eq!(device.status().lost_dies, [1]);
        assert_eq!(device.info().paths, paths, "the older one stands for the die that is missing");
        drop(device);
        assert!(old == std::fs::read(&paths[1]).expect("read"), "the file changed");
    }
}

/// A lost die of which no file was named is rebuilt onto one that is named.
#[test]
fn a_die_without_a_file_asks_for_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let paths = made(1, "d", &dir);
    let ring = Ring::new(64).expect("io_uring");
    let options = AttachOptions { degraded: true, ..AttachOptions::default() };
    let mut device = Device::attach(&paths[1..], &options, &ring).expect("attached without one");
    let refused = device.rebuild(0, None).expect_err("nothing to rebuild onto").to_string();
    assert!(refused.contains("--onto"), "{refused}");
}
