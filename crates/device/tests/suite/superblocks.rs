//! One copy of the superblock goes bad, on one die or on all: nothing that was flushed is lost, and nothing old comes back.

use device::{AttachError, Device, Io, MediaFormat, SEALED_TRAILER_BYTES, Secret, max_sectors};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::flashback::media_geometry;
use media::sim::{Cut, Knobs, LabelFault, SimMedia, SimStore};
use media::{Command, Media, PageAddr};
use random::SplitMix64;
use uuid::Uuid;

use crate::common::call;

const SECTOR: usize = 4096;
const KEY: [u8; 32] = [5; 32];
/// Sectors that are written.
const WRITTEN: u64 = 60;

const FAULTS: [LabelFault; 4] = [
    LabelFault::Rot { byte: 8, mask: 2 },
    LabelFault::Rot { byte: 100, mask: 16 },
    LabelFault::Blank,
    LabelFault::Stale,
];

#[derive(Clone, Copy, Debug)]
struct Shape {
    dies: u32,
    parity: u32,
    encrypted: bool,
}

const SHAPES: [Shape; 5] = [
    Shape { dies: 1, parity: 0, encrypted: false },
    Shape { dies: 3, parity: 0, encrypted: false },
    Shape { dies: 3, parity: 1, encrypted: false },
    Shape { dies: 1, parity: 0, encrypted: true },
    Shape { dies: 3, parity: 1, encrypted: true },
];

impl Shape {
    fn store(self) -> SimStore {
        let geometry = Geometry {
            dies: self.dies,
            parity: self.parity,
            blocks: 60,
            pages_per_block: 2,
            slots_per_page: 4,
            sector_bytes: SECTOR as u32,
            trailer_bytes: if self.encrypted { SEALED_TRAILER_BYTES } else { TRAILER_BYTES },
            unit_bytes: 4096,
        };
        let store = SimStore::new(if self.parity > 0 { media_geometry(&geometry) } else { geometry });
        let format = MediaFormat {
            sectors: max_sectors(&geometry) / 2,
            max_request_bytes: 2 * SECTOR as u32,
            // Only attach and detach write a checkpoint.
            checkpoint_interval: 1 << 20,
            policy: Policy::Greedy,
            uuid: Uuid::from_u128(7),
            key: self.encrypted.then_some(KEY),
        };
        Device::format_media(&mut medium(&store), &format).expect("formatted");
        store
    }

    fn attach(self, store: &SimStore) -> Result<Device, AttachError> {
        let secret = self.encrypted.then(|| Secret::key(&KEY));
        Device::on_media_with(Box::new(medium(store)), false, secret.as_ref())
    }

    /// Which dies a fault meets.
    fn dies(self) -> Vec<std::ops::Range<u32>> {
        let all = 0..self.dies;
        all.clone().map(|die| die..die + 1).chain([all]).collect()
    }
}

fn medium(store: &SimStore) -> SimMedia {
    SimMedia::new(store, 1, Knobs { spread_polls: 0, must_erase: false, ..Knobs::default() })
}

fn content(lba: u64, version: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(lba << 8 | version);
    (0..SECTOR / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

fn write(device: &mut Device, sectors: std::ops::Range<u64>, version: u64) {
    for lba in sectors {
        call(device, Io::Write { lba, data: &content(lba, version), fua: lba % 4 == 3 }).expect("written");
    }
    call(device, Io::Flush).expect("flushed");
}

/// The process ends without a word, and the power with it.
fn kill(device: Device, store: &SimStore) {
    drop(device);
    store.switch_off();
    store.power_cut_as(&mut SplitMix64::new(3), &Cut::LOSE_ALL);
}

/// Every sector holds what `version` says.
fn check(device: &mut Device, what: &str, version: impl Fn(u64) -> u64) {
    for lba in 0..WRITTEN {
        let read = call(device, Io::Read { lba, buf: vec![0; SECTOR] });
        let read = read.unwrap_or_else(|error| panic!("{what}: sector {lba}: {error}")).expect("a buffer");
        assert!(read == content(lba, version(lba)), "{what}: sector {lba} is old");
    }
    device.verify().unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
}

/// Both copies on every die.
fn labels(store: &SimStore) -> Vec<[Vec<u8>; 2]> {
    let mut medium = medium(store);
    (0..store.geometry().dies).map(|die| [0, 1].map(|copy| medium.read_label(die, copy).expect("read"))).collect()
}

fn put(store: &SimStore, labels: &[[Vec<u8>; 2]]) {
    for copy in 0..2 {
        let bytes = labels.iter().map(|copies| copies[usize::from(copy)].clone()).collect();
        let mut medium = medium(store);
        assert!(medium.submit(0, Command::WriteLabel { copy, bytes }).is_none(), "it takes a while");
        while medium.poll().is_none() {
            medium.wait();
        }
    }
}

/// A device written once and detached; then a quarter of it was written anew and flushed, and the service killed. And the labels
/// of the detached one.
fn killed_after_a_clean_detach(shape: Shape) -> (SimStore, Vec<[Vec<u8>; 2]>) {
    let store = shape.store();
    let mut device = shape.attach(&store).expect("attached");
    write(&mut device, 0..WRITTEN, 1);
    device.detach().expect("detached");
    let clean = labels(&store);
    let mut device = shape.attach(&store).expect("attached");
    write(&mut device, 0..WRITTEN / 4, 2);
    kill(device, &store);
    (store, clean)
}

/// What [`killed_after_a_clean_detach`] leaves to be read.
fn after_kill(lba: u64) -> u64 {
    if lba < WRITTEN / 4 { 2 } else { 1 }
}

/// Either copy, in every way, on each die and on all; then once more after the recovery and after a detach.
#[test]
fn one_copy_says_it_all() {
    for shape in SHAPES {
        let (store, _) = killed_after_a_clean_detach(shape);
        for fault in FAULTS {
            for copy in 0..2 {
                for dies in shape.dies() {
                    let what = format!("{shape:?}: copy {copy} of dies {dies:?}: {fault:?}");
                    let store = store.fork();
                    store.spoil_label(dies.clone(), copy, fault);
                    let mut device = shape.attach(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(device.info().attaches, 3, "{what}: an epoch comes once");
                    check(&mut device, &what, after_kill);
                    write(&mut device, 0..WRITTEN / 2, 3);
                    kill(device, &store);
                    let after_recovery = |lba| if lba < WRITTEN / 2 { 3 } else { 1 };
                    store.spoil_label(dies.clone(), copy, fault);
                    let mut device = shape.attach(&store).unwrap_or_else(|error| panic!("{what}, again: {error}"));
                    check(&mut device, &what, after_recovery);
                    device.detach().expect("detached");
                    store.spoil_label(dies.clone(), copy, fault);
                    let mut device = shape.attach(&store).unwrap_or_else(|error| panic!("{what}, clean: {error}"));
                    check(&mut device, &what, after_recovery);
                }
            }
        }
    }
}

/// Until November 2026 an attach wrote one copy only: a device that was killed then, and lost that copy, has the clean one and no
/// other. The log says that it is not the last word.
#[test]
fn a_lone_clean_copy_is_held_against_the_log() {
    for shape in SHAPES {
        let (store, clean) = killed_after_a_clean_detach(shape);
        put(&store, &clean);
        let newer = u8::from(is_newer(&clean[0][1], &clean[0][0]));
        store.spoil_label(0..shape.dies, 1 - newer, LabelFault::Blank);
        let mut device = shape.attach(&store).unwrap_or_else(|error| panic!("{shape:?}: {error}"));
        assert_eq!(device.info().attaches, 3, "{shape:?}: an epoch comes once");
        check(&mut device, &format!("{shape:?}"), after_kill);
        device.detach().expect("detached");
        let mut device = shape.attach(&store).expect("attached");
        check(&mut device, "then on", after_kill);
    }
}

/// Copies that are more than one attach old say too little to go on from.
#[test]
fn copies_far_behind_the_log_are_refused() {
    for shape in SHAPES {
        let (store, clean) = killed_after_a_clean_detach(shape);
        let mut device = shape.attach(&store).expect("attached");
        write(&mut device, WRITTEN / 4..WRITTEN / 2, 3);
        device.detach().expect("detached");
        let mut device = shape.attach(&store).expect("attached");
        write(&mut device, 0..WRITTEN, 4);
        kill(device, &store);
        put(&store, &clean);
        store.spoil_label(0..shape.dies, u8::from(!is_newer(&clean[0][1], &clean[0][0])), LabelFault::Blank);
        let refused = shape.attach(&store).map(drop).expect_err("the log is newer").to_string();
        assert!(refused.contains("knows of none behind attach 1"), "{shape:?}: {refused}");
    }
}

/// The first slot of the newest LEB rots. What stands behind it was flushed: it is found, or missed and named, but never forgotten.
#[test]
fn a_leb_without_its_header_is_not_forgotten() {
    let shape = SHAPES[0];
    let (store, _) = killed_after_a_clean_detach(shape);
    let mut refused = 0;
    for block in 0..store.geometry().blocks {
        let store = store.fork();
        store.rot(PageAddr { die: 0, block, page: 0 }, 77, 4);
        match shape.attach(&store) {
            Ok(mut device) => check(&mut device, &format!("LEB {block}"), after_kill),
            Err(error) => {
                assert!(error.to_string().contains("flushed entries are missing from the log"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "the log has LEBs");
}

fn is_newer(copy: &[u8], other: &[u8]) -> bool {
    let generation = |copy: &[u8]| u64::from_le_bytes(copy[16..24].try_into().expect("eight bytes"));
    generation(copy) > generation(other)
}
