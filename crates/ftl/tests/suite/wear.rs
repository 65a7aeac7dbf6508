//! Wear levelling: erase counts stay together over hundreds of drive writes, at little cost.

use ftl::Policy;
use random::SplitMix64;

use crate::common::{instant, write};

/// Slots of a LEB that hold host sectors.
const BLOCK: u32 = 32;
/// Sectors of the device, and LEBs with 15 % more room beside what the layer keeps free.
const SECTORS: u64 = 6144;
const LEBS: u32 = 230;

/// What came of some traffic.
#[derive(Debug)]
struct Worn {
    /// Fewest and most erases, over the mean.
    least: f64,
    most: f64,
    amplification: f64,
}

/// Fills the device, then writes it so many times over: four writes in five go to the first fifth, the others to what
/// follows it up to `warm`; the rest is never written again.
fn wear(policy: Policy, drive_writes: u64, warm: u64, levelled: bool, seed: u64) -> Worn {
    let mut device = instant(LEBS, BLOCK, SECTORS, policy);
    device.ftl.level_wear(levelled);
    let mut random = SplitMix64::new(seed);
    (0..SECTORS).for_each(|lba| write(&mut device, lba));
    let hot = SECTORS / 5;
    for _ in 0..drive_writes * SECTORS {
        let lba = if random.below(5) < 4 { random.below(hot) } else { hot + random.below(warm - hot) };
        write(&mut device, lba);
    }
    device.verify().expect("the books agree");
    let counts = || device.ftl.lebs().iter().map(|(_, leb)| f64::from(leb.erases));
    let mean = counts().sum::<f64>() / f64::from(LEBS);
    let stats = device.ftl.stats();
    Worn {
        least: counts().fold(f64::MAX, f64::min) / mean,
        most: counts().fold(0.0, f64::max) / mean,
        amplification: 1.0 + stats.groomed_sectors as f64 / stats.host_written_sectors as f64,
    }
}

#[test]
fn after_500_drive_writes_of_80_20_all_blocks_are_worn_alike() {
    let worn = wear(Policy::Lifetime, 500, SECTORS, true, 11);
    println!("{worn:?}");
    assert!(worn.least >= 0.95 && worn.most <= 1.05, "{worn:?}");
}

#[test]
fn what_is_never_overwritten_moves_to_worn_blocks_for_little() {
    // Half of the device is not written again after it was filled.
    for seed in 11..16 {
        let [levelled, alone] = [true, false].map(|levelled| wear(Policy::Lifetime, 120, SECTORS / 2, levelled, seed));
        println!("{levelled:?} {alone:?}");
        assert!(alone.least < 0.5, "the test is worth nothing: {alone:?}");
        assert!(levelled.least > 0.85 && levelled.most < 1.15, "{levelled:?}");
        assert!(levelled.amplification < alone.amplification * 1.02, "{levelled:?} {alone:?}");
    }
}

#[test]
fn levelling_costs_next_to_nothing_under_80_20() {
    for policy in [Policy::Lifetime, Policy::Greedy] {
        let [levelled, alone] = [true, false].map(|levelled| wear(policy, 60, SECTORS, levelled, 11));
        println!("{policy:?} {levelled:?} {alone:?}");
        assert!(levelled.amplification < alone.amplification * 1.02, "{policy:?}: {levelled:?} {alone:?}");
        assert!(levelled.most - levelled.least < alone.most - alone.least, "{policy:?}: {levelled:?} {alone:?}");
    }
}
