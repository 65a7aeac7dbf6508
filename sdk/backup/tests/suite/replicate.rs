//! Replicas: equal to the source's snapshot after each pass, whatever was interrupted, changed on the replica or rolled back.

use std::path::{Path, PathBuf};

use device::{AttachOptions, SnapshotChange};
use openvsl::{CreateOptions, Device, OpenOptions};
use openvsl_backup::{BackupError, Base, replicate};
use random::SplitMix64;

const BYTES: u64 = 16 << 20;

/// A device in a file.
struct Side {
    path: PathBuf,
    sector: u32,
}

impl Side {
    fn new(directory: &Path, name: &str, bytes: u64, sector: u32) -> Side {
        let side = Side { path: directory.join(name), sector };
        let mut options = CreateOptions::default();
        options.sector_bytes = sector;
        openvsl::create(&side.path, bytes, &options).expect("created");
        side
    }

    fn open(&self, snapshot: Option<&str>) -> Device {
        let mut options = OpenOptions::default();
        options.snapshot = snapshot.map(Into::into);
        Device::open_with(&[&self.path], &options).expect("opened")
    }

    /// Changes the device's snapshots as the service does.
    fn change(&self, change: &SnapshotChange) {
        let ring = media::ring::Ring::new(64).expect("a ring");
        let mut device = device::Device::attach(&[&self.path], &AttachOptions::default(), &ring).expect("attached");
        device.change_snapshots(change).expect("changed");
        device.detach().expect("detached");
    }

    fn number(&self, name: &str) -> u64 {
        let device = self.open(Some(name));
        let number = device.capabilities().snapshot.expect("it shows one");
        device.close().expect("closed");
        number
    }

    fn take(&self, name: &str) -> u64 {
        self.change(&SnapshotChange::Create { name: name.into(), created: 0 });
        self.number(name)
    }

    /// Writes and trims at random.
    fn scribble(&self, random: &mut SplitMix64, changes: u64) {
        let device = self.open(None);
        let sectors = device.capabilities().sectors;
        for _ in 0..random.below(changes) {
            let count = 1 + random.below(60);
            let lba = random.below(sectors - count);
            match random.one_in(3) {
                true => device.trim(lba, count).expect("trimmed"),
                false => {
                    let byte = random.bits() as u8;
                    device.write(lba, &vec![byte; count as usize * self.sector as usize]).expect("written");
                }
            }
        }
        device.close().expect("closed");
    }
}

/// Everything on a device, which is closed.
fn content(device: Device) -> Vec<u8> {
    let (sectors, sector) = (device.capabilities().sectors, device.capabilities().sector_bytes);
    let most = u64::from(device.capabilities().max_write_bytes / sector);
    let parts = (0..sectors).step_by(most as usize);
    let content = parts.flat_map(|lba| device.read(lba, most.min(sectors - lba) as u32).expect("read")).collect();
    device.close().expect("closed");
    content
}

/// Copies, and stops after so many pieces.
fn copy(source: &Side, shown: &str, target: &Side, base: Option<Base>, pieces: u64) -> Result<u64, BackupError> {
    let (from, to) = (source.open(Some(shown)), target.open(None));
    let mut left = pieces;
    let result = replicate(&from, &to, base, |_| {
        left = left.saturating_sub(1);
        left > 0
    });
    from.close().expect("closed");
    to.close().expect("closed");
    result
}

/// Copies to the end, and compares.
fn pass(source: &Side, shown: &str, target: &Side, base: Option<Base>) {
    copy(source, shown, target, base, u64::MAX).expect("replicated");
    let (expected, mut found) = (content(source.open(Some(shown))), content(target.open(None)));
    assert!(found.split_off(expected.len()).iter().all(|byte| *byte == 0), "something stands behind its end");
    assert!(expected == found, "the replica differs");
}

#[test]
fn a_replica_equals_the_snapshot_after_each_pass() {
    for seed in 0..3 {
        // A failure shows it.
        println!("seed {seed}");
        let mut random = SplitMix64::new(seed);
        let directory = tempfile::tempdir().expect("a directory");
        let sectors = [(4096, 4096), (512, 4096), (4096, 512)][seed as usize % 3];
        let source = Side::new(directory.path(), "source", BYTES, sectors.0);
        let target = Side::new(directory.path(), "target", BYTES + (random.below(2) << 20), sectors.1);
        source.scribble(&mut random, 100);
        target.scribble(&mut random, 100);
        let mut base: Option<Base> = None;
        for round in 0..5 {
            let name = format!("s{round}");
            source.take(&name);
            while random.one_in(2) {
                let stopped = copy(&source, &name, &target, base, 1 + random.below(20));
                assert!(matches!(stopped, Ok(_) | Err(BackupError::Stopped)), "{stopped:?}");
            }
            if random.one_in(3) {
                // Somebody who thinks that the replica is his.
                target.scribble(&mut random, 10);
            }
            if let Some(base) = base.filter(|_| random.one_in(2)) {
                // Some of what was just copied never was.
                source.change(&SnapshotChange::RollBack { to: base.source, delete_newer: true });
                source.scribble(&mut random, 4);
                source.take(&name);
            }
            pass(&source, &name, &target, base);
            base = Some(Base { source: source.number(&name), target: target.take(&format!("r{round}")) });
            source.scribble(&mut random, 30);
        }
    }
}

#[test]
fn a_replica_follows_snapshots_of_a_device_that_fits_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = Side::new(directory.path(), "source", BYTES, 4096);
    let small = Side::new(directory.path(), "small", BYTES / 2, 4096);
    let first = source.take("first");
    assert!(matches!(copy(&source, "first", &small, None, 9), Err(BackupError::TooSmall { .. })));
    let late = Some(Base { source: first, target: 1 });
    assert!(matches!(copy(&source, "first", &small, late, 9), Err(BackupError::NotOlder { .. })));
    let (live, target) = (source.open(None), small.open(None));
    assert!(matches!(replicate(&live, &target, None, |_| true), Err(BackupError::NoSnapshot)));
}
