//! Encrypted devices on real files: what opens them, what does not, and what stands on the store.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use device::{
    AttachError, AttachOptions, Capacity, CreateOptions, Device, FormatOptions, Io, IoError, KeyError, Secret, add_key,
    change_key, create, create_encrypted, format, inspect, remove_key,
};
use media::ring::Ring;
use tempfile::TempDir;

use crate::common::call;

const SECTOR: usize = 4096;

fn options() -> CreateOptions {
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "test".into() };
    CreateOptions { advertised_bytes: 64 << 20, raw_bytes: 128 << 20, profile: None, parity: 0, format }
}

fn key(byte: u8) -> Secret {
    Secret::key(&[byte; 32])
}

fn made() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("fct0.vsl");
    create_encrypted(&[&path], &options(), &key(1)).expect("created");
    (dir, path)
}

fn attach(path: &Path, secret: Option<Secret>) -> Result<Device, AttachError> {
    let ring = Ring::new(64).expect("io_uring");
    Device::attach(&[path], &AttachOptions { secret, ..AttachOptions::default() }, &ring)
}

fn read(device: &mut Device, lba: u64) -> Result<Vec<u8>, IoError> {
    call(device, Io::Read { lba, buf: vec![0xee; SECTOR] }).map(|buf| buf.expect("a read gives its buffer"))
}

fn opens(path: &Path, secret: Secret) -> bool {
    match attach(path, Some(secret)) {
        Ok(device) => {
            device.detach().expect("detached");
            true
        }
        Err(AttachError::WrongKey { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// After a clean detach and after a crash everything is there, and nothing of it stands on the store: no data, and no header of an
/// erase block either.
#[test]
fn what_is_written_comes_back_and_stands_nowhere() {
    let (_dir, path) = made();
    let marker: Vec<u8> = (0..SECTOR).map(|i| (i % 251) as u8 ^ 0x5a).collect();
    let mut device = attach(&path, Some(key(1))).expect("attached");
    for lba in 0..600 {
        call(&mut device, Io::Write { lba: lba * 5, data: &marker, fua: false }).expect("written");
    }
    assert_eq!(read(&mut device, 5).expect("read"), marker, "from the page buffer or media");
    call(&mut device, Io::Trim { lba: 10, count: 1, fua: false }).expect("trimmed");
    device.detach().expect("detached");
    let mut device = attach(&path, Some(key(1))).expect("attached");
    call(&mut device, Io::Write { lba: 3, data: &marker, fua: true }).expect("written");
    drop(device);
    let mut device = attach(&path, Some(key(1))).expect("attached");
    for lba in [0, 3, 5, 599 * 5] {
        assert_eq!(read(&mut device, lba).expect("read"), marker);
    }
    assert_eq!(read(&mut device, 10).expect("read"), vec![0; SECTOR]);
    device.verify().expect("the books agree");
    drop(device);
    let bytes = std::fs::read(&path).expect("read");
    assert!(!bytes.windows(16).any(|window| window == &marker[..16]), "plain data on media");
    // A LEB's header, a checkpoint's table and an empty sector's end are long runs of zeros in the plain.
    let (first, slot) = (1 << 20, SECTOR + 52);
    let run = |at: usize| bytes[first + at * slot..][..SECTOR].windows(32).any(|window| window == [0; 32]);
    assert!(!(0..60).any(run), "plain metadata on media");
}

#[test]
fn only_a_key_of_its_own_opens_it() {
    let (dir, path) = made();
    assert!(matches!(attach(&path, None), Err(AttachError::NeedsKey { .. })));
    assert!(matches!(attach(&path, Some(key(2))), Err(AttachError::WrongKey { kind: "key file", .. })));
    let passphrase = Secret::passphrase("no such".into()).expect("a passphrase");
    assert!(matches!(attach(&path, Some(passphrase)), Err(AttachError::WrongKey { kind: "passphrase", .. })));
    assert_eq!(inspect(&path).expect("inspected").attaches, 0, "none of them changed anything");
    let info = inspect(&path).expect("inspected");
    assert_eq!((info.encryption.as_deref(), info.format_version), (Some("aes-256-gcm"), 4));
    assert_eq!(info.key_slots, Some(vec!["0: key file".to_string()]));
    let plain = dir.path().join("plain.vsl");
    create(&[&plain], &options()).expect("created");
    assert!(matches!(attach(&plain, Some(key(1))), Err(AttachError::NotEncrypted { .. })));
}

#[test]
fn keys_come_and_go() {
    let (_dir, path) = made();
    let paths = std::slice::from_ref(&path);
    let passphrase = || Secret::passphrase("correct horse".into()).expect("a passphrase");
    assert_eq!(add_key(paths, &key(1), &key(2)).expect("added").1, 1);
    assert_eq!(add_key(paths, &key(2), &passphrase()).expect("added").1, 2);
    assert!(opens(&path, key(1)) && opens(&path, key(2)) && opens(&path, passphrase()));
    assert_eq!(change_key(paths, &key(1), &key(3)).expect("changed").1, 0);
    assert!(!opens(&path, key(1)) && opens(&path, key(3)));
    assert_eq!(add_key(paths, &key(3), &key(4)).expect("added").1, 3);
    assert!(matches!(add_key(paths, &key(3), &key(5)), Err(KeyError::Full { .. })));
    assert!(add_key(paths, &key(1), &key(5)).expect_err("a wrong key").to_string().contains("opens none"));
    assert_eq!(remove_key(paths, &key(3), Some(1)).expect("removed").1, 1);
    assert!(!opens(&path, key(2)));
    assert!(matches!(remove_key(paths, &key(3), Some(1)), Err(KeyError::Empty { .. })));
    assert!(matches!(remove_key(paths, &key(3), Some(9)), Err(KeyError::Empty { .. })));
    remove_key(paths, &key(3), Some(2)).expect("removed");
    remove_key(paths, &key(3), None).expect("removed");
    assert!(matches!(remove_key(paths, &key(4), None), Err(KeyError::Last { .. })));
    assert!(opens(&path, key(4)));
}

/// A slot that was removed is nowhere in either copy of any label, also not behind its end.
#[test]
fn a_removed_key_leaves_nothing() {
    let (_dir, path) = made();
    let paths = std::slice::from_ref(&path);
    let labels = || std::fs::read(&path).expect("read")[..128 << 10].to_vec();
    // The slot begins behind the lists of an empty device, the flags, the cipher and the number of slots; its salt is random.
    let slot = labels()[372 + 12 + 16..][..32].to_vec();
    let holds = |bytes: &[u8]| bytes.windows(32).any(|window| window == slot);
    assert!(holds(&labels()));
    attach(&path, Some(key(1))).expect("attached").detach().expect("detached");
    assert!(holds(&labels()));
    add_key(paths, &key(1), &key(2)).expect("added");
    remove_key(paths, &key(2), Some(0)).expect("removed");
    assert!(!holds(&labels()));
}

/// One changed bit anywhere on media is an error or makes no difference: never other data.
#[test]
fn a_changed_sector_is_an_error() {
    let (_dir, path) = made();
    let mut device = attach(&path, Some(key(1))).expect("attached");
    call(&mut device, Io::Write { lba: 7, data: &[9; SECTOR], fua: true }).expect("written");
    device.detach().expect("detached");
    let file = File::options().read(true).write(true).open(&path).expect("opened");
    // The device's first LEB: its header in slot 0, the sector in slot 1.
    let mut found = 0;
    for leb in 0..64u64 {
        let at = (1 << 20) + leb * 8 * 266_240 + 4148 + 4096;
        let mut trailer = [0; 16];
        file.read_exact_at(&mut trailer, at).expect("read");
        if trailer[8] == 7 && trailer[14] == 1 {
            let mut sealed = [0];
            file.read_exact_at(&mut sealed, at - 100).expect("read");
            file.write_all_at(&[!sealed[0]], at - 100).expect("written");
            found += 1;
        }
    }
    assert_eq!(found, 1, "the sector was found on media");
    let mut device = attach(&path, Some(key(1))).expect("attached");
    assert_eq!(read(&mut device, 7), Err(IoError::Media));
    assert_eq!(read(&mut device, 8), Ok(vec![0; SECTOR]));
}

#[test]
fn a_format_is_encrypted_only_with_a_key_for_it() {
    let (_dir, path) = made();
    let info = format(&[&path], &options().format, Some(&key(8))).expect("formatted");
    assert!(info.encryption.is_some());
    assert!(opens(&path, key(8)) && !opens(&path, key(1)));
    let info = format(&[&path], &options().format, None).expect("formatted");
    assert_eq!((info.encryption, info.format_version), (None, 1));
    attach(&path, None).expect("attached").detach().expect("detached");
}
