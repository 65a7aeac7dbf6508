//! A short series of seeds in every test run, and a small exhaustive scope; `make soak` runs the long ones.

use std::sync::atomic::{AtomicU64, Ordering};

use sim::{Behind, Exhaustive, Series, Watch, Wish};

fn series(seeds: u64, wish: Wish, twice: bool) -> sim::Held {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Series { from: 1, seeds, wish, twice, threads }
        .run(&())
        .unwrap_or_else(|(seed, failure)| panic!("seed {seed}: {failure:?}; replay with: vsl-sim --seed {seed}"))
}

fn exhaustive(recovered: usize, from: u64, watch: &dyn Watch) -> sim::Scope {
    short_lives(Exhaustive { longest: 1, recovered, from, threads: 2, behind: Behind::Format }, watch)
}

fn short_lives(scope: Exhaustive, watch: &dyn Watch) -> sim::Scope {
    scope.run(watch).unwrap_or_else(|(sequence, failure)| panic!("{sequence}: {failure:?}"))
}

/// Ends a run when so many have begun.
struct After(u64, AtomicU64);

impl Watch for After {
    fn begins(&self, _: u64) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}

/// Every promise holds, and the series is worth something: it cuts, recovers, grooms, and damages beyond redundancy.
#[test]
fn every_seed_holds() {
    let sum = series(200, Wish::default(), false).sum;
    assert!(sum.cuts > 1000 && sum.recovery_cuts > 150 && sum.freed_lebs > 5000, "{sum:?}");
    assert!(sum.unreadable > 0 && sum.refused > 0 && sum.healed > 0 && sum.rebuilds > 0, "{sum:?}");
    assert!(sum.spoilt_labels > 250, "{sum:?}");
}

/// Dies fail at any time, and nothing is lost.
#[test]
fn dies_fail_at_any_time() {
    let sum = series(75, Wish { die_loss: true, ..Wish::default() }, false).sum;
    assert!(sum.die_losses > 75 && sum.rebuilds > 5, "{sum:?}");
}

/// A sector was overwritten while a slow read of it was under way. Its die was replaced meanwhile and rebuilt without it, and then the other one failed.
#[test]
fn what_is_being_read_is_rebuilt() {
    let wish = Wish { die_loss: true, ..Wish::default() };
    let held = Series { from: 100_361, seeds: 1, wish, twice: false, threads: 1 }.run(&());
    assert!(matches!(held, Ok(sim::Held { seeds: 1, .. })), "{held:?}");
}

/// Snapshots among power cuts, detaches and dies that fail: made, read, compared, rolled back to and deleted.
#[test]
fn snapshots_hold() {
    let sum = series(75, Wish { snapshots: true, ..Wish::default() }, false).sum;
    assert!(sum.snapshots > 500 && sum.roll_backs > 150 && sum.diffs > 500 && sum.recovery_cuts > 25, "{sum:?}");
    assert!(sum.clones > 125 && sum.promoted > 30, "{sum:?}");
    let sum = series(25, Wish { snapshots: true, die_loss: true, ..Wish::default() }, false).sum;
    assert!(sum.snapshots > 50 && sum.die_losses > 25, "{sum:?}");
}

#[test]
fn resizes_hold() {
    let sum = series(80, Wish { resizes: true, ..Wish::default() }, false).sum;
    assert!(sum.resizes > 1000 && sum.resize_cuts > 100 && sum.snapshots > 200, "{sum:?}");
    let sum = series(30, Wish { resizes: true, die_loss: true, ..Wish::default() }, false).sum;
    assert!(sum.resizes > 100 && sum.die_losses > 30, "{sum:?}");
}

/// Every operation behind a snapshot, with every state that a power cut can leave.
#[test]
fn every_short_life_with_a_snapshot_holds() {
    let scope =
        short_lives(Exhaustive { longest: 1, recovered: 0, from: 1, threads: 2, behind: Behind::Snapshot }, &());
    assert!(scope.sequences == sim::KINDS as u64 + 3 && scope.states > 5_000, "{scope:?}");
}

/// Every operation behind a clone, on it and on the device.
#[test]
fn every_short_life_with_a_clone_holds() {
    let scope = short_lives(Exhaustive { longest: 1, recovered: 0, from: 1, threads: 2, behind: Behind::Clone }, &());
    assert!(scope.sequences == sim::KINDS as u64 + 8 && scope.states > 5_000, "{scope:?}");
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
    let scope = exhaustive(1, 1, &());
    assert!(scope.sequences == sim::KINDS as u64 && scope.states > 5_000 && scope.in_recovery > 1_000, "{scope:?}");
}

/// What a watch ended goes on behind the last that was counted.
#[test]
fn a_long_run_goes_on_where_it_ended() {
    let wish = Wish::default();
    let held = Series { from: 7, seeds: 40, wish, twice: false, threads: 2 }.run(&After(3, AtomicU64::new(0)));
    assert!(matches!(held, Ok(sim::Held { seeds: 3..=4, .. })), "one may have begun meanwhile: {held:?}");
    let first = exhaustive(0, 1, &After(4, AtomicU64::new(0)));
    let second = exhaustive(0, 1 + first.sequences, &());
    assert!(first.sequences < 6, "{first:?}");
    assert_eq!(first.sequences + second.sequences, sim::KINDS as u64);
}

/// Arrays among power cuts, deaths of the service, members that fail, leave, return, are replaced and are added: nothing flushed is lost, no
/// write is torn, copies are the same again, what is told to be a hole is one, and what an array grows by holds nothing.
#[test]
fn arrays_hold() {
    let sum = series(300, Wish { arrays: true, ..Wish::default() }, false).sum;
    assert!(sum.cuts > 1000 && sum.recovery_cuts > 100 && sum.replayed > 10, "{sum:?}");
    assert!(sum.losses > 100 && sum.returns > 100 && sum.faults > 5 && sum.compared > 50, "{sum:?}");
    assert!(sum.unreadable > 100 && sum.healed > 25 && sum.holes > 500, "{sum:?}");
    assert!(sum.grown > 50 && sum.not_grown > 25 && sum.resizes > 25 && sum.resize_cuts > 50, "{sum:?}");
    assert!(sum.kills > 150, "{sum:?}");
}

/// Snapshots of arrays among all that: one is there on every member that the array had at that moment and shows what was answered by then, or it
/// is not there.
#[test]
fn snapshots_of_arrays_hold() {
    let sum = series(100, Wish { arrays: true, snapshots: true, ..Wish::default() }, false).sum;
    assert!(sum.snapshots > 300 && sum.diffs > 750 && sum.cuts > 650 && sum.returns > 25 && sum.grown > 15, "{sum:?}");
}

#[test]
fn cached_volumes_hold() {
    let sum = series(150, Wish { caches: true, ..Wish::default() }, false).sum;
    assert!(sum.cuts > 1500 && sum.recovery_cuts > 150 && sum.losses > 150 && sum.kills > 50, "{sum:?}");
    assert!(sum.hits > 50_000 && sum.fills > 50_000 && sum.evicted > 50_000 && sum.written_back > 5000, "{sum:?}");
    assert!(sum.dropped > 500 && sum.compared > 125, "{sum:?}");
}

#[test]
fn cached_volumes_are_repeatable() {
    series(20, Wish { caches: true, ..Wish::default() }, true);
}

/// The same seed gives the same array.
#[test]
fn arrays_are_repeatable() {
    series(30, Wish { arrays: true, ..Wish::default() }, true);
    series(15, Wish { arrays: true, snapshots: true, ..Wish::default() }, true);
}

/// Devices that are moved to and fro among power cuts, new devices that fail and old ones that refuse something: nothing flushed is lost, and
/// both hold the same when a move is handed over.
#[test]
fn moves_hold() {
    let sum = series(200, Wish { moves: true, ..Wish::default() }, false).sum;
    assert!(sum.moved > 750 && sum.compared > 1000 && sum.cuts > 750 && sum.recovery_cuts > 100, "{sum:?}");
    assert!(sum.losses > 100 && sum.faults > 100 && sum.batches > 2500, "{sum:?}");
}

#[test]
fn zones_hold() {
    let sum = series(400, Wish { zones: true, ..Wish::default() }, false).sum;
    assert!(sum.cuts > 1000 && sum.kills > 250 && sum.recovery_cuts > 250 && sum.freed_lebs > 3000, "{sum:?}");
    assert!(sum.compared > 1000, "{sum:?}");
}

/// The same seed gives the same zones.
#[test]
fn zones_are_repeatable() {
    series(50, Wish { zones: true, ..Wish::default() }, true);
}

/// The same seed gives the same moves.
#[test]
fn moves_are_repeatable() {
    series(30, Wish { moves: true, ..Wish::default() }, true);
}

/// Devices on objects among power cuts, lost hosts and take-overs, on a store that misbehaves: nothing below a mark is lost, and hosts that lost
/// the device are fenced.
#[test]
fn objects_hold() {
    let sum = series(200, Wish { objects: true, ..Wish::default() }, false).sum;
    assert!(sum.cuts > 250 && sum.recovery_cuts > 25 && sum.take_overs > 150 && sum.moves > 100, "{sum:?}");
    assert!(sum.fenced > 100 && sum.object_commits > 2500 && sum.objects_deleted > 1000, "{sum:?}");
}

/// The same with leases, clocks that run at different speeds and owners that sleep: whoever was taken over from answers nothing any more.
#[test]
fn leases_hold() {
    let sum = series(150, Wish { objects: true, leases: true, ..Wish::default() }, false).sum;
    assert!(sum.lapses > 150 && sum.sleeps > 250 && sum.fenced > 150, "{sum:?}");
}

/// The groomer needed a LEB to finish its victim, and the checkpoint under way, which had the last ones in reserve, waited for host writes.
#[test]
fn a_groomer_without_a_leb_is_not_left_waiting() {
    let wish = Wish { objects: true, ..Wish::default() };
    let held = Series { from: 19_950, seeds: 1, wish, twice: false, threads: 1 }.run(&());
    assert!(matches!(held, Ok(sim::Held { seeds: 1, .. })), "{held:?}");
}
