//! What the host says that belongs together lies together, and apart from everything else, until the groomer moves it.

use std::collections::BTreeMap;

use ftl::{Addressed, Admission, AtOnce, Engine, Policy, Request};
use random::SplitMix64;

use crate::common::instant;

const SLOTS: u32 = 64;
const SECTORS: u64 = 1600;

/// Writes a sector with those of this placement.
fn place(device: &mut Addressed<AtOnce>, placement: u8, lba: u64) {
    for _ in 0..1000 {
        let admission = device.ftl.submit_placed(placement, 0, Request::Write { lba, count: 1, fua: false });
        device.carry_out(());
        if admission == Admission::Done {
            return;
        }
    }
    panic!("a write was never taken");
}

/// The erase block that holds a sector.
fn leb_of(device: &Addressed<AtOnce>, lba: u64) -> u32 {
    device.ftl.map().get(lba) / (SLOTS + 1)
}

#[test]
fn each_placement_has_erase_blocks_of_its_own() {
    let mut device = instant(120, SLOTS, SECTORS, Policy::Placement);
    assert_eq!(device.ftl.placements(), 6);
    let placement_of = |lba: u64| (lba % 7) as u8;
    for lba in 0..SECTORS {
        place(&mut device, placement_of(lba), lba);
    }
    let mut of: BTreeMap<u32, u8> = BTreeMap::new();
    for lba in 0..SECTORS {
        // One that is not there counts as the last.
        let placement = placement_of(lba).min(5);
        let known = *of.entry(leb_of(&device, lba)).or_insert(placement);
        assert_eq!(known, placement, "sector {lba}");
    }
    device.verify().expect("sound");
}

#[test]
fn whoever_asks_hears_of_each_erase_block_that_was_groomed() {
    for policy in [Policy::Placement, Policy::PlacementInitial, Policy::Greedy] {
        let mut device = instant(45, SLOTS, SECTORS, policy);
        let mut random = SplitMix64::new(3);
        let mut told = Vec::new();
        for lba in (0..SECTORS).chain((0..20_000).map(|_| random.below(SECTORS))) {
            place(&mut device, (lba % 2) as u8, lba);
            told.extend(std::iter::from_fn(|| device.ftl.next_reclaimed()));
        }
        if policy == Policy::Greedy {
            assert_eq!(told, [], "nobody says what belongs together");
            continue;
        }
        // What is being groomed when the last write comes is not told of yet.
        let moved = told.iter().map(|leb| u64::from(leb.sectors)).sum::<u64>();
        let under_way = device.ftl.stats().groomed_sectors - moved;
        assert!(moved > 1_000 && under_way <= u64::from(SLOTS), "{moved} told of, {under_way} not");
        assert!(told.iter().all(|leb| leb.placement.is_none_or(|placement| u64::from(placement) == leb.lba % 2)));
        assert!(told.iter().any(|leb| leb.placement == Some(1)));
        assert!(told.iter().any(|leb| leb.placement.is_none()), "{policy:?}: the groomer filled some");
    }
}

#[test]
fn what_is_moved_lies_apart_where_it_is_isolated_only_initially() {
    assert_eq!(instant(120, SLOTS, SECTORS, Policy::PlacementInitial).ftl.placements(), 8);
    let mut device = instant(45, SLOTS, SECTORS, Policy::PlacementInitial);
    assert!(device.ftl.placements() > 1);
    let mut random = SplitMix64::new(3);
    for lba in (0..SECTORS).chain((0..20_000).map(|_| random.below(SECTORS))) {
        place(&mut device, (lba % 2) as u8, lba);
    }
    device.verify().expect("sound");
    assert!(device.ftl.stats().groomed_sectors > 1_000, "{:?}", device.ftl.stats());
    assert_eq!(std::iter::from_fn(|| device.ftl.next_reclaimed()).count(), 63, "as many as are kept");
    // Which of the two kinds lie in each erase block: what the host wrote is of one kind, what was moved of both.
    let mut kinds: BTreeMap<u32, [u32; 2]> = BTreeMap::new();
    (0..SECTORS).for_each(|lba| kinds.entry(leb_of(&device, lba)).or_default()[(lba % 2) as usize] += 1);
    let mixed = kinds.values().filter(|counts| counts[0] > 0 && counts[1] > 0).count();
    assert!(mixed > 0 && mixed < kinds.len(), "{mixed} of {} erase blocks hold both", kinds.len());
}

#[test]
fn one_that_is_renewed_goes_on_in_another_erase_block() {
    let mut device = instant(120, SLOTS, SECTORS, Policy::Placement);
    assert_eq!(device.ftl.left_in_placement(3), SLOTS, "none is open");
    for lba in 0..10 {
        place(&mut device, 3, lba);
    }
    assert_eq!(device.ftl.left_in_placement(3), SLOTS - 10);
    for renewed in [0, 3, 3, 6, u8::MAX] {
        device.ftl.renew_placement(renewed);
        device.carry_out(());
    }
    assert_eq!(device.ftl.left_in_placement(3), SLOTS);
    place(&mut device, 3, 10);
    assert_ne!(leb_of(&device, 9), leb_of(&device, 10));
    device.verify().expect("sound");
}

#[test]
fn under_other_policies_it_counts_for_nothing() {
    let mut device = instant(120, SLOTS, SECTORS, Policy::Greedy);
    assert_eq!(device.ftl.placements(), 1);
    assert_eq!((device.ftl.left_in_placement(0), device.ftl.left_in_placement(u8::MAX)), (SLOTS, 0));
    (0..SLOTS.into()).for_each(|lba| place(&mut device, (lba % 5) as u8, lba));
    assert!((1..SLOTS.into()).all(|lba| leb_of(&device, lba) == leb_of(&device, 0)));
}

/// Write amplification of placements with so many sectors each; `writes` gives the next write: to which of them, and to which of its sectors.
fn amplification<const N: usize>(
    policy: Policy,
    sizes: [u64; N],
    mut writes: impl FnMut(&mut SplitMix64) -> (usize, u64),
) -> f64 {
    let starts: [u64; N] = std::array::from_fn(|placement| sizes[..placement].iter().sum());
    let mut device = instant(200, SLOTS, sizes.iter().sum(), policy);
    for (placement, size) in sizes.into_iter().enumerate() {
        (0..size).for_each(|at| place(&mut device, placement as u8, starts[placement] + at));
    }
    let mut random = SplitMix64::new(1);
    let mut before = *device.ftl.stats();
    for step in 0..100_000 {
        let (placement, at) = writes(&mut random);
        place(&mut device, placement as u8, starts[placement] + at);
        if step == 50_000 {
            before = *device.ftl.stats();
        }
    }
    device.verify().expect("sound");
    let after = device.ftl.stats();
    let written = (after.host_written_sectors - before.host_written_sectors) as f64;
    1.0 + (after.groomed_sectors - before.groomed_sectors) as f64 / written
}

/// Data of two lives: nine in ten writes go to one sector in seven, at random.
fn of_two_lives(policy: Policy) -> f64 {
    let sizes = [1_500, 9_000];
    amplification(policy, sizes, |random| {
        let placement = usize::from(random.below(10) == 0);
        (placement, random.below(sizes[placement]))
    })
}

/// A cache: four writes in ten go on with a log that wraps round, the others to random sectors, mostly to the fewer ones.
fn of_a_cache(policy: Policy) -> f64 {
    let sizes = [2_100, 5_250, 3_150];
    let mut log = 0;
    amplification(policy, sizes, |random| match random.below(10) {
        0..5 => (0, random.below(sizes[0])),
        5 => (1, random.below(sizes[1])),
        _ => {
            log = (log + 1) % sizes[2];
            (2, log)
        }
    })
}

#[test]
fn who_says_what_lives_long_has_less_moved() {
    assert!(instant(200, SLOTS, 10_500, Policy::Placement).ftl.placements() > 2);
    let (told, untold) = (of_two_lives(Policy::Placement), of_two_lives(Policy::Greedy));
    assert!(told < 0.6 * untold, "{told} with placements, {untold} without");
}

#[test]
fn a_log_is_waited_for_and_what_is_moved_is_not_mixed_with_what_comes() {
    let told = of_a_cache(Policy::Placement);
    assert!(told < 0.9 * of_a_cache(Policy::PlacementInitial), "{told}: a drive's own way is as good");
    assert!(told < 0.7 * of_a_cache(Policy::Greedy), "{told}");
}
