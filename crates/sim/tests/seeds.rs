//! A short series of seeds in every test run, and a small exhaustive scope; `make soak` runs the long ones.

use sim::{Series, Wish};

fn series(seeds: u64, wish: Wish, twice: bool) -> sim::Held {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Series { from: 1, seeds, wish, twice, threads, at_most: None }
        .run()
        .unwrap_or_else(|(seed, failure)| panic!("seed {seed}: {failure:?}; replay with: vsl-sim --seed {seed}"))
}

/// Every promise holds, and the series is worth something: it cuts, recovers, grooms, and damages beyond redundancy.
#[test]
fn every_seed_holds() {
    let sum = series(400, Wish::default(), false).sum;
    assert!(sum.cuts > 2000 && sum.recovery_cuts > 300 && sum.freed_lebs > 10_000, "{sum:?}");
    assert!(sum.unreadable > 0 && sum.refused > 0 && sum.healed > 0 && sum.rebuilds > 0, "{sum:?}");
}

/// Dies fail at any time, and nothing is lost.
#[test]
fn dies_fail_at_any_time() {
    let sum = series(150, Wish { die_loss: true, ..Wish::default() }, false).sum;
    assert!(sum.die_losses > 150 && sum.rebuilds > 10, "{sum:?}");
}

/// The same seed gives the same run, and leaves the same bytes.
#[test]
fn a_seed_replays() {
    let held = series(20, Wish { digest: true, ..Wish::default() }, true);
    assert!(held.seeds == 20 && held.sum.state != 0);
}

/// Every operation on the tiny module, with every state that a power cut can leave, in the recovery behind it too.
#[test]
fn every_short_life_holds() {
    let scope = sim::exhaust(1, 1, 2).unwrap_or_else(|(sequence, failure)| panic!("{sequence}: {failure:?}"));
    assert!(scope.sequences == 11 && scope.states > 5_000 && scope.in_recovery > 1_000, "{scope:?}");
}
