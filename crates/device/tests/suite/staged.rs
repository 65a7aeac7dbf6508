//! What a killed process leaves: every write and trim that was answered, and nothing that is wrong, whatever stands in its place.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use device::{
    AttachError, AttachOptions, Capacity, CreateOptions, Device, FormatOptions, Io, Keeper, MediaFormat, Secret,
    Staging, create, create_encrypted, max_sectors, staging_file,
};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::ring::Ring;
use media::sim::{Knobs, SimMedia, SimStore};
use media::staged::Left;
use random::SplitMix64;
use tempfile::TempDir;
use uuid::Uuid;

use crate::common::call;

const SECTOR: usize = 4096;
const KEY: [u8; 32] = [3; 32];
/// Sectors that are written.
const SPAN: u64 = 200;

/// A device on files, and a directory in memory.
struct Files {
    dir: TempDir,
    memory: TempDir,
    paths: Vec<PathBuf>,
    secret: Option<Secret>,
}

impl Files {
    fn new(files: usize, parity: u32, encrypted: bool) -> Files {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let memory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        let paths: Vec<PathBuf> = (0..files).map(|number| dir.path().join(format!("d{number}.vsl"))).collect();
        let options = CreateOptions {
            advertised_bytes: 128 << 20,
            raw_bytes: 256 << 20,
            profile: None,
            parity,
            format: FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "t".into() },
        };
        let secret = encrypted.then(|| Secret::key(&KEY));
        match &secret {
            Some(secret) => create_encrypted(&paths, &options, secret),
            None => create(&paths, &options),
        }
        .expect("created");
        Files { dir, memory, paths, secret }
    }

    fn try_attach(&self, read_only: bool) -> Result<Device, AttachError> {
        let staging = Some(self.memory.path().to_path_buf());
        let options = AttachOptions { read_only, staging, secret: self.secret.clone(), ..AttachOptions::default() };
        Device::attach(&self.paths, &options, &Ring::new(64).expect("io_uring"))
    }

    fn attach(&self) -> Device {
        self.try_attach(false).expect("attached")
    }

    fn stage(&self) -> PathBuf {
        staging_file(self.memory.path(), &device::inspect(&self.paths[0]).expect("a device").uuid)
    }
}

fn read(device: &mut Device, lba: u64) -> u8 {
    let bytes =
        call(device, Io::Read { lba, buf: vec![0xee; SECTOR] }).expect("read").expect("a read gives its buffer");
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "sector {lba} is torn");
    bytes[0]
}

fn write(device: &mut Device, lba: u64, byte: u8) {
    call(device, Io::Write { lba, data: &[byte; SECTOR], fua: false }).expect("written");
}

/// Writes, trims and zeroings without a flush, and a process that leaves without a detach, round after round.
fn nothing_answered_is_lost(files: &Files) {
    let mut held = [0u8; SPAN as usize];
    let mut random = SplitMix64::new(5);
    for round in 0..8 {
        let mut device = files.attach();
        for (lba, byte) in (0..).zip(held) {
            assert_eq!(read(&mut device, lba), byte, "round {round}, sector {lba}");
        }
        for _ in 0..random.below(400) {
            let lba = random.below(SPAN);
            let byte = match random.below(4) {
                0 => {
                    call(&mut device, Io::Trim { lba, count: 1, fua: false }).expect("trimmed");
                    0
                }
                1 => {
                    let io = Io::WriteZeroes { lba, count: 1, fua: false, allocate: random.one_in(2) };
                    call(&mut device, io).expect("zeroed");
                    0
                }
                _ => {
                    let byte = 1 + random.below(255) as u8;
                    write(&mut device, lba, byte);
                    byte
                }
            };
            held[lba as usize] = byte;
        }
        if random.one_in(3) {
            call(&mut device, Io::Flush).expect("flushed");
        }
    }
}

#[test]
fn what_was_answered_survives_the_process() {
    nothing_answered_is_lost(&Files::new(1, 0, false));
}

#[test]
fn what_was_answered_survives_the_process_encrypted() {
    nothing_answered_is_lost(&Files::new(1, 0, true));
}

#[test]
fn what_was_answered_survives_the_process_with_parity() {
    nothing_answered_is_lost(&Files::new(4, 1, false));
    nothing_answered_is_lost(&Files::new(4, 2, true));
}

/// The stage is its owner's alone, counts as memory of the device, and goes with a clean detach.
#[test]
fn a_stage_is_private_and_goes_with_a_detach() {
    let files = Files::new(1, 0, false);
    let mut device = files.attach();
    let before = device.status().memory_bytes;
    (0..SPAN).for_each(|lba| write(&mut device, lba, 1));
    let stage = fs::metadata(files.stage()).expect("there");
    assert_eq!(stage.mode() & 0o777, 0o600);
    let memory = device.status().memory_bytes;
    assert!(
        memory > before && memory >= stage.blocks() * 512,
        "{memory} bytes are said, {} are taken",
        stage.blocks() * 512
    );
    device.detach().expect("detached");
    assert!(!files.stage().exists());
}

/// Whoever may not write back must not show what is old.
#[test]
fn a_killed_device_is_not_read_before_it_is_written_back() {
    let files = Files::new(1, 0, false);
    write(&mut files.attach(), 7, 9);
    assert!(matches!(files.try_attach(true), Err(AttachError::Left { .. })));
    files.attach().detach().expect("detached");
    let mut device = files.try_attach(true).expect("attached to be read only");
    assert_eq!(read(&mut device, 7), 9);
}

/// What stands in the stage's place may be anything: what was flushed is there, and the rest old or new.
#[test]
fn a_stage_that_is_damaged_does_no_harm() {
    let files = Files::new(1, 0, false);
    let mut device = files.attach();
    (0..SPAN).for_each(|lba| write(&mut device, lba, 1));
    call(&mut device, Io::Flush).expect("flushed");
    (0..SPAN / 2).for_each(|lba| write(&mut device, lba, 2));
    call(&mut device, Io::Trim { lba: SPAN - 1, count: 1, fua: false }).expect("trimmed");
    drop(device);
    let stage = fs::read(files.stage()).expect("left");
    let copy = files.dir.path().join("copy");
    fs::copy(&files.paths[0], &copy).expect("copied");
    let mut random = SplitMix64::new(3);
    // Of the head and the table every field, and pages here and there.
    for round in 0..40 {
        fs::copy(&copy, &files.paths[0]).expect("put back");
        let mut bytes = stage.clone();
        match round {
            0 => bytes.clear(),
            1 => bytes.truncate(100),
            2 => bytes.truncate(4096),
            3 => bytes.truncate(stage.len() / 2),
            4 => bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8),
            5 => bytes[12_288..16_384].fill(0xff),
            _ => {
                let place = if round % 2 == 0 { random.below(13_000) } else { random.below(stage.len() as u64) };
                let flipped = if place < 48 { 0 } else { 1 << random.below(8) };
                bytes[place as usize] ^= flipped;
                let entry = 12_288 + random.below(64) as usize * 4;
                bytes[entry] ^= random.bits() as u8;
            }
        }
        fs::write(files.stage(), &bytes).expect("written");
        let mut device = files.attach();
        for lba in 0..SPAN {
            let found = read(&mut device, lba);
            let new = if lba < SPAN / 2 { 2 } else { 0 };
            let may_be_new = lba < SPAN / 2 || lba == SPAN - 1;
            assert!(found == 1 || (may_be_new && found == new), "round {round}: sector {lba} holds {found}");
        }
    }
}

/// A file that others may open, or a link to one, is not used; the device serves without it.
#[test]
fn a_place_that_will_not_do_is_gone_without() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let files = Files::new(1, 0, false);
    let stage = files.stage();
    fs::write(&stage, b"").expect("written");
    fs::set_permissions(&stage, fs::Permissions::from_mode(0o644)).expect("opened to all");
    serves_without(&files, &stage);
    fs::remove_file(&stage).expect("removed");
    symlink(files.dir.path().join("elsewhere"), &stage).expect("linked");
    serves_without(&files, &stage);
    assert!(!files.dir.path().join("elsewhere").exists());
    let in_memory = |path| media::staged::is_in_memory(fs::File::open(path).expect("opened")).expect("asked");
    assert_eq!((in_memory("/dev/shm"), in_memory("/proc")), (true, false));
}

fn serves_without(files: &Files, stage: &Path) {
    let mut device = files.attach();
    write(&mut device, 1, 5);
    assert_eq!(fs::metadata(stage).map_or(0, |file| file.len()), 0);
    device.detach().expect("detached");
}

/// A module in memory.
fn module() -> (SimStore, u64) {
    let geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: 40,
        pages_per_block: 2,
        slots_per_page: 4,
        sector_bytes: SECTOR as u32,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: 4096,
    };
    let store = SimStore::new(geometry);
    let sectors = max_sectors(&geometry) / 2;
    let format = MediaFormat {
        sectors,
        max_request_bytes: 2 * SECTOR as u32,
        checkpoint_interval: 32,
        policy: Policy::Greedy,
        uuid: Uuid::from_u128(7),
        key: None,
    };
    Device::format_media(&mut medium(&store), &format).expect("formatted");
    (store, sectors)
}

fn medium(store: &SimStore) -> SimMedia {
    SimMedia::new(store, 1, Knobs { must_erase: false, spread_polls: 0, ..Knobs::default() })
}

fn attach(store: &SimStore, left: Option<Left>, keeper: &Keeper) -> Device {
    let staging = Staging::in_memory(left, keeper.clone());
    Device::on_media_staged(Box::new(medium(store)), false, None, Some(staging)).expect("attached")
}

/// What was left at one moment is put in the place of what was left at another, again and again while blocks are written, groomed and
/// written again: what was flushed stays, whatever the older pages say.
#[test]
fn nothing_is_written_over_what_is_newer() {
    let (store, sectors) = module();
    let keeper = Keeper::default();
    let mut device = attach(&store, None, &keeper);
    let mut random = SplitMix64::new(1);
    let mut held = vec![0u8; sectors as usize];
    let mut older: Vec<Left> = Vec::new();
    for round in 0..1500u32 {
        let (lba, byte) = (random.below(sectors), 1 + random.below(255) as u8);
        write(&mut device, lba, byte);
        held[lba as usize] = byte;
        if round % 50 == 7 {
            older.push(keeper.borrow().as_ref().expect("a stage").left().expect("readable"));
        }
        if round % 250 != 249 {
            continue;
        }
        call(&mut device, Io::Flush).expect("flushed");
        for left in &older {
            let store = store.fork();
            store.settle();
            let mut device = attach(&store, Some(left.clone()), &Keeper::default());
            for (lba, byte) in (0..).zip(&held) {
                assert_eq!(read(&mut device, lba), *byte, "round {round}, sector {lba}");
            }
        }
    }
}
