//! Adaptive Flashback: a card that goes on without a chip, rebuilds what it held and is protected again.

use std::path::{Path, PathBuf};

use device::{
    AttachOptions, Capacity, CarriedDrills, Device, Drill, EmulateOptions, Emulation, FormatOptions, Io, IoError,
    Unsynced, create_emulated, format, inspect, mark_for_drills,
};
use media::ring::Ring;
use random::SplitMix64;
use tempfile::TempDir;

use super::common::*;

/// Sectors of a request.
const PIECE: u64 = 64;
/// Requests that fill two LEBs and some.
const PIECES: u64 = 420;

fn options(capacity: Capacity) -> FormatOptions {
    FormatOptions { sector_bytes: SECTOR as u32, capacity, label: "t".into() }
}

fn made(seed: u64) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let path = dir.path().join("fct0.vsl");
    let emulation = Emulation { scale: 64, seed };
    let format = options(Capacity::Advertised);
    create_emulated(&path, &EmulateOptions { profile: "iodrive2-1200-mlc".into(), emulation, format })
        .expect("created");
    mark_for_drills(std::slice::from_ref(&path), true).expect("marked");
    (dir, path)
}

fn attach(path: &Path, drills: CarriedDrills) -> Device {
    let ring = Ring::new(64).expect("io_uring");
    Device::attach(&[path], &AttachOptions { drills, ..AttachOptions::default() }, &ring).expect("attached")
}

/// What stands in a piece: its number and how often it was written.
fn content(piece: u64, version: u8) -> Vec<u8> {
    let mut random = SplitMix64::new(piece << 8 | u64::from(version));
    let mut bytes = vec![0; PIECE as usize * SECTOR];
    bytes.chunks_exact_mut(SECTOR).for_each(|sector| sector[..8].copy_from_slice(&random.bits().to_le_bytes()));
    bytes
}

fn write_piece(device: &mut Device, piece: u64, version: u8) -> Result<(), IoError> {
    call(device, Io::Write { lba: piece * PIECE, data: &content(piece, version), fua: true }).map(drop)
}

fn read_piece(device: &mut Device, piece: u64) -> Result<Vec<u8>, IoError> {
    let buf = vec![0; PIECE as usize * SECTOR];
    call(device, Io::Read { lba: piece * PIECE, buf }).map(|bytes| bytes.expect("a read gives its buffer"))
}

fn all_there(device: &mut Device, versions: &[u8], when: &str) {
    for (piece, version) in (0..).zip(versions) {
        let bytes = read_piece(device, piece).unwrap_or_else(|error| panic!("piece {piece} {when}: {error}"));
        assert!(bytes == content(piece, *version), "piece {piece} {when} is another");
    }
}

fn kill(device: &mut Device, chip: u32) -> String {
    device.drill(Drill::KillChip { chip }).expect("killed")
}

/// Waits until the card is protected. Gives how far the rebuild was each time that it had got on.
fn protected(device: &mut Device) -> Vec<f64> {
    let mut steps = Vec::new();
    for _ in 0..1_000_000 {
        let status = device.status();
        if status.lost_dies.is_empty() {
            assert!(status.chips.is_some_and(|chips| chips.rebuilt_percent.is_none()));
            return steps;
        }
        assert!(status.health.contains("is being rebuilt over the others"), "{}", status.health);
        let percent = status.chips.and_then(|chips| chips.rebuilt_percent).expect("it says how far it is");
        if steps.last() != Some(&percent) {
            steps.push(percent);
        }
        device.wait();
        assert!(device.poll().is_none());
    }
    panic!("a rebuild never ends: {}", device.status().health);
}

#[test]
fn the_layout_shrinks_by_each_chip_until_there_is_no_room() {
    let (_dir, path) = made(3);
    let mut device = attach(&path, CarriedDrills::default());
    let mut versions = vec![1; PIECES as usize];
    (0..PIECES).for_each(|piece| write_piece(&mut device, piece, 1).expect("written"));
    assert_eq!((device.info().parity_chips.as_deref(), device.info().format_version), (Some("24 + 1"), 2));
    for (nth, chip) in (1..).zip([5u32, 0]) {
        let said = kill(&mut device, chip);
        let left = 25 - nth;
        assert_eq!(
            said,
            format!(
                "chip {chip} answers nothing any more, nor do its 8 dies; what it held is rebuilt over the {left} that are left"
            )
        );
        let status = device.status();
        assert!(
            status.health.starts_with(&format!("degraded: chip {chip} of 25 out of service; what it held")),
            "{}",
            status.health
        );
        assert_eq!((status.lost_dies.len(), status.given_up_chips.len()), (8, nth));
        // What is read and written meanwhile is right.
        for piece in (0..PIECES).step_by(97) {
            assert!(read_piece(&mut device, piece).expect("read") == content(piece, versions[piece as usize]));
            versions[piece as usize] += 1;
            write_piece(&mut device, piece, versions[piece as usize]).expect("written");
        }
        let steps = protected(&mut device);
        assert!(steps.is_sorted(), "{steps:?}");
        assert_eq!(device.info().parity_chips.as_deref(), Some(format!("{} + 1", left - 1).as_str()));
        let before = device.status().degraded_reads;
        all_there(&mut device, &versions, "after the rebuild");
        assert_eq!(device.status().degraded_reads, before, "everything lies on chips that answer");
        device.verify().expect("the books agree");
    }
    // It is on record, whatever becomes of the drill.
    device.undo_drill("all").expect("undone");
    assert_eq!(device.status().given_up_chips, [5, 0]);
    device.detach().expect("detached");
    assert_eq!(inspect(&path).expect("a device").parity_chips.as_deref(), Some("22 + 1"));
    let mut device = attach(&path, CarriedDrills::default());
    assert_eq!((device.status().health.as_str(), device.status().given_up_chips), ("healthy", vec![5, 0]));
    all_there(&mut device, &versions, "after an attach");
    // With the next ones there is no room for 1.2 TB any more; one of them may be lost all the same.
    let refused = (6..25).find(|chip| {
        let said = kill(&mut device, *chip);
        if !said.ends_with("so it stays degraded") {
            protected(&mut device);
            return false;
        }
        true
    });
    let chip = refused.expect("24 chips are needed for 1.2 TB, or a few less");
    assert_eq!(device.status().health, format!("degraded: chip {chip} of 25 out of service"));
    all_there(&mut device, &versions, "on the last chips that it can do with");
    device.detach().expect("detached");
    format(&[&path], &options(Capacity::Advertised), None).expect("formatted");
    let info = inspect(&path).expect("a device");
    assert_eq!(
        (info.parity_chips.as_deref(), info.format_version),
        (Some("24 + 1"), 2),
        "a format begins with all chips"
    );
}

/// Whatever cuts a rebuild short, it goes on, and once the card says that it is protected, another chip may go.
#[test]
fn a_rebuild_survives_cuts_and_what_is_protected_then_survives_another_chip() {
    for seed in 0..5 {
        let (_dir, path) = made(seed);
        let mut random = SplitMix64::new(seed);
        let mut device = attach(&path, CarriedDrills::default());
        let mut versions = vec![1; PIECES as usize];
        (0..PIECES).for_each(|piece| write_piece(&mut device, piece, 1).expect("written"));
        for chip in [random.below(12) as u32, 12 + random.below(13) as u32] {
            kill(&mut device, chip);
            assert_ne!(device.status().health, "healthy", "seed {seed}");
            for _ in 0..random.below(4) {
                if random.below(3) == 0 {
                    // As kill -9 does it: nothing is told to anybody, and the drill is over.
                    (0..random.below(300)).for_each(|_| device.wait_a_little());
                    drop(device);
                    device = attach(&path, CarriedDrills::default());
                } else {
                    let at_program = Some(1 + random.below(2000));
                    let unsynced = Unsynced::ALL[random.below(4) as usize];
                    device
                        .drill(Drill::PowerCut { at_write: None, at_program, unsynced, seed: Some(seed) })
                        .expect("armed");
                    while device.power_cut().is_none() && device.status().health != "healthy" {
                        device.wait_a_little();
                    }
                    let carried = device.power_cut().map(|cut| cut.drills.clone()).unwrap_or_default();
                    drop(device);
                    device = attach(&path, carried);
                }
                assert!(device.status().given_up_chips.contains(&chip), "seed {seed}: chip {chip} is on record");
                let piece = random.below(PIECES);
                versions[piece as usize] += 1;
                write_piece(&mut device, piece, versions[piece as usize]).expect("written");
            }
            protected(&mut device);
            assert_eq!(device.status().health, "healthy", "seed {seed}");
            device.verify().expect("the books agree");
        }
        // The moment it says so: a third one.
        let third = if device.status().given_up_chips.contains(&24) { 23 } else { 24 };
        kill(&mut device, third);
        all_there(&mut device, &versions, &format!("with a third chip gone, seed {seed}"));
        device.detach().expect("detached");
    }
}

trait Wait {
    /// Lets something happen that nobody asked for.
    fn wait_a_little(&mut self);
}

impl Wait for Device {
    fn wait_a_little(&mut self) {
        self.wait();
        assert!(self.poll().is_none(), "nobody asked anything");
    }
}

#[test]
fn two_chips_at_once_are_one_too_many() {
    let (_dir, path) = made(9);
    let mut device = attach(&path, CarriedDrills::default());
    let versions = vec![1; PIECES as usize];
    (0..PIECES).for_each(|piece| write_piece(&mut device, piece, 1).expect("written"));
    kill(&mut device, 3);
    let said = kill(&mut device, 4);
    assert!(said.ends_with("what another lost chip held is not rebuilt yet, so both are missed"), "{said}");
    assert_eq!(device.status().health, "failed: 2 of 25 chips out of service, more than its parity makes up for");
    assert_eq!(device.status().given_up_chips, [3]);
    let unread = (0..PIECES).filter(|piece| read_piece(&mut device, *piece).is_err()).count();
    assert!(unread > 0, "pieces of which two chips are missed");
    // The second one answers again, and the rebuild comes to its end.
    device.undo_drill("kill-chip").expect("undone");
    protected(&mut device);
    all_there(&mut device, &versions, "with the second chip back");
    assert_eq!(device.status().health, "healthy");
    device.detach().expect("detached");
}
