//! The rules of the policy, one by one.

use super::*;
use crate::leb::{LebState, Lebs, Stream, Times};
use crate::policy::Old;
use crate::slots::UNNOTED;

const SLOTS: u32 = 10;
const PINNED_FROM: u64 = 1 << 20;
/// Of a LEB that a cache of [`SECTORS`] fills in an epoch.
const SECTORS: u64 = 800;

fn cache() -> Cache {
    Cache::new(&Shape { sectors: SECTORS, lebs: 100, slots_per_leb: SLOTS, streams: 3 }, PINNED_FROM)
}

/// LEBs that were closed one after another: each with its stream, its live sectors, and the note of all of them.
fn lebs(filled: &[(u8, u32, u8)]) -> Lebs {
    let mut lebs = Lebs::new(100, SLOTS);
    lebs.set_note_bits(u8::BITS);
    for (leb, (stream, live, note)) in (0..).zip(filled) {
        (lebs[leb].state, lebs[leb].stream, lebs[leb].closed) =
            (LebState::Closed, Stream::Data(*stream), u64::from(leb));
        (0..*live).for_each(|at| lebs.set_live(leb * SLOTS + at, *note));
    }
    lebs
}

fn visit(cache: &mut Cache, lebs: &mut Lebs, count: u32) {
    for leb in 0..count {
        let Stream::Data(stream) = lebs[leb].stream else { continue };
        cache.visit(leb, stream, &mut lebs.notes(leb));
    }
}

/// The LEB that is taken of those, all of which were looked through.
fn taken(cache: &mut Cache, filled: &[(u8, u32, u8)]) -> Option<LebId> {
    let mut lebs = lebs(filled);
    cache.bar = BAR_MAX;
    visit(cache, &mut lebs, filled.len() as u32);
    cache.choose(&Eligible::new(&lebs, SLOTS, 1000, 0, u64::MAX).where_it_evicts(true))
}

/// The host writes sectors of which nothing is cached; gives the stream and the note of the first.
fn write(cache: &mut Cache, lba: u64, count: usize) -> (u8, u8) {
    let olds = vec![None; count];
    let write = Write { lba, now: 0, placement: 0, olds: &olds };
    let stream = cache.place(&write);
    let mut notes = vec![UNNOTED; count];
    cache.wrote(&write, &mut notes);
    (stream, notes[0])
}

/// Whether a sector of a stream with this note is left behind.
fn leaves(cache: &Cache, stream: u8, note: u8) -> bool {
    cache.leaves_behind(&Moved { lba: 1, now: 0, note, leb: 0, times: &Times::default(), stream })
}

/// There is so much of what can be saved up.
fn with_saved(share: f64) -> Cache {
    let mut cache = cache();
    cache.credit = cache.most * share;
    cache
}

#[test]
fn the_leb_is_taken_whose_sectors_are_worth_least_however_old_it_is() {
    let (hot, cold) = (label(0, 5), label(0, 0));
    assert_eq!(taken(&mut cache(), &[(MAIN, 10, hot), (MAIN, 10, cold), (MAIN, 10, hot)]), Some(1));
    assert_eq!(taken(&mut cache(), &[(MAIN, 10, hot), (MAIN, 10, hot)]), Some(0), "of two alike the older");
    assert_eq!(taken(&mut cache(), &[(MAIN, 9, hot), (MAIN, 2, hot)]), Some(1), "what is dead is worth nothing");
    assert_eq!(taken(&mut cache(), &[(MAIN, 9, cold), (MAIN, 0, hot)]), Some(1), "nothing is lost with an empty one");
}

#[test]
fn a_sector_is_worth_more_the_more_and_the_later_it_was_used() {
    let mut cache = cache();
    cache.epoch = 20;
    cache.value_notes();
    let (often, late) = (label(12, 5), label(20, 1));
    assert_eq!(taken(&mut cache, &[(MAIN, 10, often), (MAIN, 10, label(12, 1))]), Some(1));
    assert_eq!(taken(&mut cache, &[(MAIN, 10, late), (MAIN, 10, label(12, 1))]), Some(1));
}

#[test]
fn what_would_be_moved_anyway_counts_for_no_more_than_the_bar() {
    let (mut cache, mut lebs) = (cache(), lebs(&[(MAIN, 10, label(0, 0)), (MAIN, 2, label(0, 7))]));
    cache.bar = 1.0;
    visit(&mut cache, &mut lebs, 2);
    assert_eq!(cache.worths[..2], [10.0, 2.0]);
}

#[test]
fn a_newcomer_counts_for_half() {
    let (less, more) = (label(0, 2), label(0, 3));
    assert_eq!(taken(&mut cache(), &[(MAIN, 10, less), (SMALL, 10, more)]), Some(1));
    assert_eq!(taken(&mut cache(), &[(MAIN, 10, label(0, 0)), (SMALL, 10, more)]), Some(0));
}

#[test]
fn the_small_queue_keeps_a_tenth() {
    let (hot, cold) = (label(0, 7), label(0, 0));
    let mut filled = vec![(MAIN, 10, hot); 8];
    filled.push((SMALL, 10, cold));
    assert_eq!(taken(&mut cache(), &filled), Some(8));
    filled[8].1 = 7;
    assert_eq!(taken(&mut cache(), &filled), Some(0));
}

#[test]
fn what_is_pinned_is_taken_where_most_of_it_was_trimmed() {
    let cold = label(0, 0);
    assert_eq!(taken(&mut cache(), &[(PINNED, 3, cold), (MAIN, 10, cold)]), Some(1));
    assert_eq!(taken(&mut cache(), &[(PINNED, 2, cold), (MAIN, 10, cold)]), Some(0));
    assert_eq!(taken(&mut cache(), &[(PINNED, 10, cold)]), Some(0), "there is nothing else");
    assert_eq!(write(&mut cache(), PINNED_FROM, 1).0, PINNED);
}

#[test]
fn what_comes_back_soon_goes_to_the_main_queue_with_the_uses_that_it_had() {
    let mut cache = cache();
    assert_eq!(write(&mut cache, 7, 1), (SMALL, label(0, 0)));
    cache.left_behind(7, label(0, 1));
    assert_eq!(write(&mut cache, 7, 1), (MAIN, label(0, 2)));
    cache.left_behind(8, label(0, 7));
    assert_eq!(write(&mut cache, 8, 1), (MAIN, label(0, RETURN_USES)));
    assert_eq!(write(&mut cache, 8, 1).0, SMALL, "it is a ghost no more");
    let cached = [Some(Old { written: 0, moved: 0, note: label(0, 3) })];
    assert_eq!(cache.place(&Write { lba: 9, now: 0, placement: 0, olds: &cached }), MAIN, "the host writes it anew");
}

#[test]
fn of_the_small_queue_goes_what_was_not_used_and_more_of_it_the_less_is_saved() {
    let uses = |share| (0..=7).find(|uses| !leaves(&with_saved(share), SMALL, label(0, *uses)));
    assert_eq!([1.0, 0.6, 0.4, 0.2].map(uses), [Some(1), Some(1), Some(2), Some(3)]);
}

#[test]
fn of_the_main_queue_goes_what_is_worth_no_more_than_the_bar() {
    let mut cache = with_saved(1.0);
    cache.bar = cache.values[usize::from(MAIN)][usize::from(label(0, 3))];
    assert!(leaves(&cache, MAIN, label(0, 3)));
    assert!(!leaves(&cache, MAIN, label(0, 4)));
}

#[test]
fn nothing_is_moved_that_cannot_be_paid() {
    let mut cache = with_saved(0.5);
    assert!(!leaves(&cache, SMALL, label(0, 7)) && !leaves(&cache, MAIN, label(0, 7)));
    cache.credit = 0.9;
    assert!(leaves(&cache, SMALL, label(0, 7)) && leaves(&cache, MAIN, label(0, 7)));
}

#[test]
fn the_bar_rises_while_what_is_saved_runs_out_and_falls_to_the_mean_of_the_victim() {
    let bar_after = |share: f64, worth: f32| {
        let mut cache = with_saved(share);
        let lebs = lebs(&[(MAIN, 10, label(0, 1))]);
        cache.worths[0] = worth;
        for _ in 0..200 {
            cache.credit = cache.most * share;
            let eligible = Eligible::new(&lebs, SLOTS, 1000, 0, u64::MAX).where_it_evicts(true);
            cache.took(&eligible.get(0).expect("it may be taken"));
        }
        cache.bar
    };
    assert_eq!(bar_after(0.1, 5.0), BAR_MAX);
    assert_eq!(bar_after(0.9, 5.0), 0.5);
    assert_eq!(bar_after(0.9, f32::MAX), 1.0, "nobody looked through it");
}

#[test]
fn writes_pay_for_moves_headers_and_records() {
    let mut cache = cache();
    cache.fills_up = false;
    cache.credit = 0.0;
    write(&mut cache, 0, 100);
    assert!((cache.credit - 9.5).abs() < 1e-9, "{}", cache.credit);
    cache.opened(3, MAIN);
    let lebs = lebs(&[(SMALL, 10, label(0, 1))]);
    cache.took(&Eligible::new(&lebs, SLOTS, 0, 0, u64::MAX).where_it_evicts(true).get(0).expect("it may be taken"));
    cache.place_moved(&Moved { lba: 1, now: 0, note: label(0, 1), leb: 0, times: &Times::default(), stream: SMALL });
    assert!((cache.credit - 6.5).abs() < 1e-9, "{}", cache.credit);
    (0..100).for_each(|lba| cache.left_behind(lba, label(0, 0)));
    assert!((cache.credit - 6.5 + 100.0 * RECORD).abs() < 1e-9, "{}", cache.credit);
}

#[test]
fn nothing_is_saved_up_while_the_cache_fills_for_the_first_time() {
    let mut cache = cache();
    (0..20).for_each(|n| _ = write(&mut cache, n * 1000, 1000));
    assert_eq!(cache.credit, f64::from(SLOTS));
    cache.left_behind(1, label(0, 0));
    (0..20).for_each(|n| _ = write(&mut cache, n * 1000, 1000));
    assert_eq!(cache.credit, cache.most);
}

#[test]
fn time_goes_on_with_what_the_host_writes() {
    let mut cache = cache();
    assert_eq!(write(&mut cache, 0, 99).1, label(0, 0));
    assert_eq!(write(&mut cache, 1000, 1).1, label(1, 0));
    assert_eq!(cache.read(label(0, 0)), label(1, 1));
    assert_eq!(cache.read(label(1, 1)), label(1, 1));
}

#[test]
fn every_leb_is_looked_through_in_turn() {
    let mut cache = cache();
    let mut seen = vec![0; 100];
    for _ in 0..100_u32.div_ceil(VISITS) {
        cache.to_visit(100).for_each(|leb| seen[leb as usize] += 1);
    }
    assert_eq!(seen, vec![1; 100]);
    assert_eq!(cache.to_visit(100).start, 0);
}
