//! A cache without an index of its own: a hit is a mapped sector, and the groomer leaves behind what is hardly read. Beside LRU.

use std::collections::{BTreeMap, HashMap};

use ftl::{Addressed, Admission, AtOnce, Policy, Request};
use random::SplitMix64;

use crate::common::{instant, write};

const LEBS: u32 = 400;
const BLOCK: u32 = 256;
/// Sectors of the store behind the cache, far more than there are slots.
const BEHIND: u64 = 1 << 20;
/// From here on sectors are pinned.
const PINNED: u64 = BEHIND;

fn cache() -> Addressed<AtOnce> {
    cache_of(LEBS, BLOCK)
}

/// A cache of so many LEBs of so many sectors.
fn cache_of(lebs: u32, block: u32) -> Addressed<AtOnce> {
    let mut device = instant(lebs, block, 2 * BEHIND, Policy::default());
    device.ftl.set_evictable(PINNED);
    device
}

/// Reads a sector through the cache; whether it was there.
fn read(device: &mut Addressed<AtOnce>, lba: u64) -> bool {
    let hit = device.ftl.map().mapped_in(lba, 1) == 1;
    match hit {
        true => assert_ne!(device.submit(Request::Read { lba, count: 1 }), Admission::Busy),
        false => write(device, lba),
    }
    hit
}

/// What was read longest ago goes first.
#[derive(Default)]
struct Lru {
    size: u64,
    now: u64,
    read: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
}

impl Lru {
    fn read(&mut self, lba: u64) -> bool {
        self.now += 1;
        let before = self.read.insert(lba, self.now);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.now, lba);
        if self.order.len() as u64 > self.size {
            let (_, oldest) = self.order.pop_first().expect("it is over its size");
            self.read.remove(&oldest);
        }
        before.is_some()
    }
}

/// Sectors of a store, the popular ones scattered, as likely as one over their rank, with scans in between.
struct Load {
    random: SplitMix64,
    scan: u64,
}

impl Load {
    fn next(&mut self) -> u64 {
        if self.scan > 0 {
            self.scan -= 1;
            return (BEHIND / 2 + self.scan * 7 + self.random.below(3)) % BEHIND;
        }
        if self.random.one_in(20_000) {
            self.scan = 5_000;
        }
        let share = self.random.below(1 << 30) as f64 / f64::from(1 << 30);
        let rank = (BEHIND as f64).powf(share) as u64;
        rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % BEHIND
    }
}

#[test]
fn hits_are_no_rarer_than_with_lru_and_little_is_written_for_it() {
    compare_with_lru(cache(), 1_500_000);
}

/// Most of the LEBs are spare: what is cached has room in sixteen.
#[test]
fn the_same_holds_where_there_are_few_lebs() {
    let device = cache_of(34, 64);
    assert_eq!(device.ftl.config().room(), 16 * 64);
    compare_with_lru(device, 200_000);
}

/// Reads so often to fill the cache, and then as often to measure it.
fn compare_with_lru(mut device: Addressed<AtOnce>, reads: u64) {
    let mut lru = Lru { size: device.ftl.config().room(), ..Lru::default() };
    let mut load = Load { random: SplitMix64::new(7), scan: 0 };
    let (mut hits, mut of_lru, mut before) = (0u64, 0u64, *device.ftl.stats());
    for n in 0..2 * reads {
        if n == reads {
            before = *device.ftl.stats();
        }
        let lba = load.next();
        let (hit, lru_hit) = (read(&mut device, lba), lru.read(lba));
        if n >= reads {
            hits += u64::from(hit);
            of_lru += u64::from(lru_hit);
        }
    }
    device.verify().expect("the books agree");
    let after = device.ftl.stats();
    let moved = after.groomed_sectors - before.groomed_sectors;
    let metadata = after.metadata_slots - before.metadata_slots;
    let amplification =
        1.0 + (moved + metadata) as f64 / (after.host_written_sectors - before.host_written_sectors) as f64;
    println!(
        "hits {:.4}, LRU {:.4}, write amplification {amplification:.3}",
        hits as f64 / reads as f64,
        of_lru as f64 / reads as f64
    );
    assert!(device.ftl.evicted_sectors() > 0);
    assert!(hits >= of_lru, "{hits} hits, {of_lru} with LRU");
    assert!(amplification <= 1.1, "{amplification}");
    let (held, room) = (device.ftl.map().mapped(), device.ftl.config().room());
    assert!(held * 10 >= room * 9, "{held} sectors are cached, and there is room for {room}");
}

#[test]
fn what_is_pinned_stays() {
    let mut device = cache();
    let mut random = SplitMix64::new(1);
    let room = device.ftl.config().room();
    for lba in PINNED..PINNED + room / 2 {
        write(&mut device, lba);
    }
    for _ in 0..4 * room {
        write(&mut device, random.below(BEHIND));
    }
    device.verify().expect("the books agree");
    assert_eq!(device.ftl.map().mapped_in(PINNED, BEHIND), room / 2);
    assert!(device.ftl.map().mapped() > room / 10 * 9, "little is cached: {}", device.ftl.map().mapped());
    // What is pinned altogether leaves no room, which is said.
    let mut lba = PINNED + room / 2;
    while device.submit(Request::Write { lba, count: 1, fua: false }) == Admission::Done {
        lba += 1;
    }
    assert!(lba - PINNED > room * 9 / 10, "{lba}");
    assert_eq!(device.submit(Request::Write { lba, count: 1, fua: false }), Admission::Refused(ftl::Error::Full));
    // Nothing is lost without leave.
    device.ftl.set_evictable(0);
    device.verify().expect("the books agree");
}
