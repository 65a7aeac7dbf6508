//! A witness kept elsewhere: what the device alone cannot know is refused.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use device::{AttachError, AttachOptions, Capacity, CreateOptions, Device, FormatOptions, Io, create};
use media::ring::{Ring, SharedRing};

use crate::common::call;

const SECTOR: usize = 4096;
/// Both copies of the superblock.
const LABELS: usize = 128 << 10;

struct Bench {
    dir: tempfile::TempDir,
    ring: SharedRing,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench { dir: tempfile::tempdir().expect("a directory"), ring: Ring::new(64).expect("io_uring") };
        let format = FormatOptions { sector_bytes: 4096, capacity: Capacity::Advertised, label: String::new() };
        let options =
            CreateOptions { advertised_bytes: 32 << 20, raw_bytes: 96 << 20, profile: None, parity: 0, format };
        create(&[bench.path()], &options).expect("created");
        bench
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("device")
    }

    fn witness(&self) -> PathBuf {
        self.dir.path().join("witness")
    }

    fn attach(&self, witness: bool) -> Result<Device, AttachError> {
        let options = AttachOptions { witness: witness.then(|| self.witness()), ..AttachOptions::default() };
        Device::attach(&[self.path()], &options, &self.ring)
    }

    fn file(&self) -> File {
        File::options().read(true).write(true).open(self.path()).expect("opened")
    }
}

fn content(lba: u64, version: u8) -> Vec<u8> {
    let text = format!("sector {lba}, version {version}. ");
    text.bytes().cycle().take(SECTOR).collect()
}

fn write(device: &mut Device, lba: u64, version: u8) {
    call(device, Io::Write { lba, data: &content(lba, version), fua: false }).expect("written");
    call(device, Io::Flush).expect("flushed");
}

fn read(device: &mut Device, lba: u64) -> Vec<u8> {
    call(device, Io::Read { lba, buf: vec![0; SECTOR] }).expect("read").expect("a buffer")
}

/// Where a sector's newest version stands in the file.
fn find(file: &Path, bytes: &[u8]) -> u64 {
    let image = std::fs::read(file).expect("read");
    let at = image.windows(bytes.len()).position(|window| window == bytes);
    at.expect("it stands in the file as it was written") as u64
}

#[test]
fn a_sound_device_satisfies_it() {
    let bench = Bench::new();
    for round in 0..8 {
        let mut device = bench.attach(true).unwrap_or_else(|error| panic!("round {round}: {error}"));
        for lba in 0..round {
            assert_eq!(read(&mut device, lba), content(lba, 1), "round {round}");
        }
        write(&mut device, round, 1);
        match round % 3 {
            0 => device.detach().expect("detached"),
            _ => drop(device),
        }
    }
    // Not every attach must have it, and one that only reads changes nothing of it.
    drop(bench.attach(false).expect("attached"));
    let before = std::fs::read(bench.witness()).expect("read");
    let options = AttachOptions { read_only: true, witness: Some(bench.witness()), ..AttachOptions::default() };
    drop(Device::attach(&[bench.path()], &options, &bench.ring).expect("attached"));
    assert_eq!(std::fs::read(bench.witness()).expect("read"), before);
    bench.attach(true).expect("attached").detach().expect("detached");
}

/// Both copies of the superblock are put back to what they were two attaches ago: the device cannot know, its witness does.
#[test]
fn superblocks_of_the_past_are_refused() {
    for crash in [false, true] {
        let bench = Bench::new();
        let mut device = bench.attach(true).expect("attached");
        write(&mut device, 3, 1);
        device.detach().expect("detached");
        let mut past = vec![0; LABELS];
        bench.file().read_exact_at(&mut past, 0).expect("read");
        let mut device = bench.attach(true).expect("attached");
        write(&mut device, 3, 2);
        match crash {
            true => drop(device),
            false => device.detach().expect("detached"),
        }
        bench.file().write_all_at(&past, 0).expect("written");
        let error = bench.attach(true).err().expect("it is older than its witness").to_string();
        assert!(error.contains("older than its witness") && error.contains("of attach 2"), "{error}");
        let mut device = bench.attach(false).expect("nothing else can tell");
        assert_eq!(read(&mut device, 3), content(3, 1));
    }
}

/// The last thing that was flushed rots before anything newer says that it was.
#[test]
fn a_lost_end_of_the_log_is_refused() {
    let bench = Bench::new();
    let mut device = bench.attach(true).expect("attached");
    write(&mut device, 3, 1);
    write(&mut device, 3, 2);
    drop(device);
    let at = find(&bench.path(), &content(3, 2));
    bench.file().write_all_at(b"rot", at).expect("written");
    let error = bench.attach(true).err().expect("something that was flushed is missing").to_string();
    assert!(error.contains("flushed entries are missing"), "{error}");
    let mut device = bench.attach(false).expect("nothing else can tell");
    assert_eq!(read(&mut device, 3), content(3, 1));
}

#[test]
fn a_witness_of_something_else_is_named() {
    let bench = Bench::new();
    bench.attach(true).expect("attached").detach().expect("detached");
    let other = Bench::new();
    std::fs::copy(bench.witness(), other.witness()).expect("copied");
    let mut device = bench.attach(true).expect("attached");
    write(&mut device, 0, 1);
    drop(device);
    std::fs::copy(bench.witness(), other.witness()).expect("copied");
    let error = other.attach(true).err().expect("another device's").to_string();
    assert!(error.contains("witness of another device"), "{error}");
    std::fs::write(other.witness(), "a shopping list").expect("written");
    let error = other.attach(true).err().expect("no witness").to_string();
    assert!(error.contains("something else than a witness"), "{error}");
}
