//! Volumes that share one cache: each gets what its share and its limit give it, and little is written for it.

use ftl::{Addressed, AtOnce, Policy, Quota, Request};
use random::SplitMix64;

use crate::common::{instant, write};

/// As many as it takes for the policy to write volumes apart.
const LEBS: u32 = 800;
const BLOCK: u32 = 64;
/// Sectors of each volume's store, far more than there are slots.
const BEHIND: u64 = 1 << 20;
const VOLUMES: u64 = 4;

/// A cache, and what each volume read and found.
struct Shared {
    device: Addressed<AtOnce>,
    random: SplitMix64,
    asked: [u64; VOLUMES as usize],
    hits: [u64; VOLUMES as usize],
}

/// Quotas of volumes with these shares and limits.
fn quotas(wanted: &[(u32, Option<u64>)]) -> Vec<Quota> {
    let starts = (0..).map(|at| at * BEHIND);
    starts
        .zip(wanted)
        .map(|(from, (share, limit))| Quota { sectors: from..from + BEHIND, share: *share, limit: *limit })
        .collect()
}

impl Shared {
    fn new(wanted: &[(u32, Option<u64>)]) -> Shared {
        Shared::of(LEBS, BLOCK, wanted)
    }

    fn of(lebs: u32, block: u32, wanted: &[(u32, Option<u64>)]) -> Shared {
        let mut device = instant(lebs, block, 2 * VOLUMES * BEHIND, Policy::default());
        device.ftl.set_evictable(VOLUMES * BEHIND);
        device.ftl.set_quotas(&quotas(wanted));
        Shared { device, random: SplitMix64::new(3), asked: [0; 4], hits: [0; 4] }
    }

    fn room(&self) -> u64 {
        self.device.ftl.config().room()
    }

    /// A volume reads a sector.
    fn read(&mut self, volume: u64, sector: u64) {
        let lba = volume * BEHIND + sector;
        let hit = self.device.ftl.map().mapped_in(lba, 1) == 1;
        match hit {
            true => _ = self.device.submit(Request::Read { lba, count: 1 }),
            false => write(&mut self.device, lba),
        }
        self.asked[volume as usize] += 1;
        self.hits[volume as usize] += u64::from(hit);
    }

    /// A sector of so many, as likely as one over its rank.
    fn popular(&mut self, sectors: u64) -> u64 {
        let share = self.random.below(1 << 30) as f64 / f64::from(1 << 30);
        ((sectors as f64).powf(share) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % BEHIND
    }

    /// Volumes read for so many rounds, each volume so often in each.
    fn rounds(&mut self, count: u64, often: &[u64]) {
        for _ in 0..count {
            for (volume, often) in (0..).zip(often) {
                for _ in 0..*often {
                    let sector = self.popular(BEHIND);
                    self.read(volume, sector);
                }
            }
        }
    }

    fn held(&self, volume: u64) -> u64 {
        self.device.ftl.map().mapped_in(volume * BEHIND, BEHIND)
    }

    /// The part of what all hold that a volume holds.
    fn part(&self, volume: u64) -> f64 {
        let all: u64 = (0..VOLUMES).map(|volume| self.held(volume)).sum();
        self.held(volume) as f64 / all as f64
    }

    /// Slots written for each sector that volumes wrote, while this is done.
    fn amplification(&mut self, work: impl FnOnce(&mut Shared)) -> f64 {
        let before = *self.device.ftl.stats();
        work(self);
        let after = self.device.ftl.stats();
        let more = after.groomed_sectors - before.groomed_sectors + after.metadata_slots - before.metadata_slots;
        1.0 + more as f64 / (after.host_written_sectors - before.host_written_sectors) as f64
    }
}

#[test]
fn volumes_that_want_the_same_hold_what_their_shares_are() {
    let mut shared = Shared::new(&[(100, None), (300, None)]);
    let rounds = 10 * shared.room();
    shared.rounds(rounds, &[1, 1]);
    let mut parts = Vec::new();
    let amplification = shared.amplification(|shared| {
        for _ in 0..10 {
            let rounds = shared.room() / 2;
            shared.rounds(rounds, &[1, 1]);
            parts.push(shared.part(0));
        }
    });
    println!("parts {parts:.3?}, write amplification {amplification:.3}, hits {:?} of {:?}", shared.hits, shared.asked);
    assert!(parts.iter().all(|part| (0.2..0.3).contains(part)), "{parts:?}");
    assert!(amplification <= 1.2, "{amplification}");
    shared.device.verify().expect("the books agree");
}

#[test]
fn what_one_does_not_use_the_other_has() {
    let mut shared = Shared::new(&[(100, None), (300, None)]);
    let rounds = 6 * shared.room();
    shared.rounds(rounds, &[1, 1]);
    let before = shared.part(1);
    let rounds = 8 * shared.room();
    let amplification = shared.amplification(|shared| shared.rounds(rounds, &[1, 0]));
    println!("parts {before:.3} and {:.3}, write amplification {amplification:.3}", shared.part(1));
    assert!(before > 0.6 && shared.part(1) < 0.03, "{before} and {}", shared.part(1));
    assert!(amplification <= 1.2, "{amplification}");
    // It gets it back.
    let rounds = 8 * shared.room();
    shared.rounds(rounds, &[1, 1]);
    println!("back {:.3}", shared.part(1));
    assert!(shared.part(1) > 0.6, "{}", shared.part(1));
}

#[test]
fn a_busy_volume_does_not_push_out_a_slow_one() {
    let run = |wanted: &[(u32, Option<u64>)]| {
        let mut shared = Shared::new(wanted);
        let rounds = 3 * shared.room();
        shared.rounds(rounds, &[20, 1]);
        (shared.asked, shared.hits) = ([0; 4], [0; 4]);
        let amplification = shared.amplification(|shared| shared.rounds(rounds / 2, &[20, 1]));
        (
            shared.part(1),
            shared.hits[1] as f64 / shared.asked[1] as f64,
            shared.hits[0] as f64 / shared.asked[0] as f64,
            amplification,
        )
    };
    let (alone, shared) = (run(&[]), run(&[(100, None), (100, None)]));
    println!("without shares {alone:.3?}, with {shared:.3?}");
    assert!(alone.0 < 0.2, "{alone:?}");
    assert!((0.4..0.6).contains(&shared.0), "{shared:?}");
    assert!(shared.1 > alone.1 + 0.05, "it finds more: {shared:?}, {alone:?}");
    assert!(shared.3 <= 1.2, "{shared:?}");
}

#[test]
fn a_volume_holds_no_more_than_its_limit_also_where_there_is_room() {
    let limit = 40 * u64::from(BLOCK);
    let mut shared = Shared::new(&[(100, Some(limit)), (100, None)]);
    let mut most = 0;
    let amplification = shared.amplification(|shared| {
        for _ in 0..shared.room() * 4 {
            shared.rounds(1, &[1, 1]);
            most = most.max(shared.held(0));
        }
    });
    println!("at most {most} of {limit}, now {}, write amplification {amplification:.3}", shared.held(0));
    assert!(most <= limit + u64::from(BLOCK), "{most}");
    assert!(shared.held(0) >= limit - 3 * u64::from(BLOCK), "{}", shared.held(0));
    assert!(amplification <= 1.2, "{amplification}");
    assert!(shared.part(1) > 0.9, "the other has the rest");
    // The same for one that has the cache for itself.
    let mut alone = Shared::new(&[(100, Some(limit))]);
    let rounds = alone.room();
    let amplification = alone.amplification(|alone| alone.rounds(rounds, &[1]));
    println!("alone {}, write amplification {amplification:.3}", alone.held(0));
    assert!((limit - 3 * u64::from(BLOCK)..=limit + u64::from(BLOCK)).contains(&alone.held(0)), "{}", alone.held(0));
    assert!(amplification <= 1.2, "{amplification}");
    alone.device.verify().expect("the books agree");
}

#[test]
fn a_limit_that_is_set_later_takes_what_is_too_much() {
    let mut shared = Shared::new(&[(100, None), (100, None)]);
    let rounds = 4 * shared.room();
    shared.rounds(rounds, &[1, 1]);
    let limit = shared.room() / 10;
    let before = shared.held(1);
    shared.device.ftl.set_quotas(&quotas(&[(100, Some(limit)), (100, None)]));
    shared.rounds(1000, &[1, 1]);
    println!("{} of {limit}; the other {} after {before}", shared.held(0), shared.held(1));
    assert!(shared.held(0) <= limit + u64::from(BLOCK), "{} of {limit}", shared.held(0));
    assert!(shared.held(1) + 500 >= before, "the other lost {} sectors", before - shared.held(1));
    shared.device.ftl.set_quotas(&[]);
    shared.rounds(rounds, &[1, 1]);
    shared.device.verify().expect("the books agree");
    assert!(shared.part(0) > 0.4, "nothing is limited any more");
}

#[test]
fn one_volume_without_a_limit_has_the_cache_as_if_there_were_no_shares() {
    let run = |wanted: &[(u32, Option<u64>)]| {
        let mut shared = Shared::new(wanted);
        let rounds = 3 * shared.room();
        shared.rounds(rounds, &[1]);
        (shared.hits, *shared.device.ftl.stats())
    };
    assert_eq!(run(&[]), run(&[(7, None)]));
    let twice = || run(&[(100, Some(20_000)), (300, None)]);
    assert_eq!(twice(), twice(), "the same comes of the same");
}

/// A cache of few LEBs has no streams to spare, so volumes are not written apart.
#[test]
fn shares_hold_where_there_are_few_lebs() {
    let mut shared = Shared::of(60, 256, &[(100, None), (300, None), (100, None)]);
    let rounds = 20 * shared.room();
    shared.rounds(rounds, &[1, 1, 1]);
    let amplification = shared.amplification(|shared| shared.rounds(rounds / 2, &[1, 1, 1]));
    let parts = [0, 1, 2].map(|volume| shared.part(volume));
    println!("parts {parts:.3?}, write amplification {amplification:.3}");
    assert!((0.5..0.7).contains(&parts[1]) && parts[0] > 0.12 && parts[2] > 0.12, "{parts:?}");
    assert!(amplification <= 1.2, "{amplification}");
}

/// Nothing is read again before it is gone, and nothing is worth a move: what stays longer stays because it is written apart.
#[test]
fn shares_hold_where_everything_is_read_once() {
    let mut shared = Shared::new(&[(400, None), (100, None)]);
    let scan = |shared: &mut Shared, from: u64| {
        for sector in from..from + 10 * shared.room() {
            (0..2).for_each(|volume| shared.read(volume, sector % BEHIND));
        }
    };
    scan(&mut shared, 0);
    let amplification = shared.amplification(|shared| scan(shared, 10 * shared.room()));
    println!("part {:.3}, write amplification {amplification:.3}", shared.part(0));
    assert!((0.7..0.9).contains(&shared.part(0)), "{}", shared.part(0));
    assert!(amplification <= 1.2, "{amplification}");
}
