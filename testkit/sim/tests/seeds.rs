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
    let sum = series(400, Wish::default(), false).sum;
    assert!(sum.cuts > 2000 && sum.recovery_cuts > 300 && sum.freed_lebs > 10_000, "{sum:?}");
    assert!(sum.unreadable > 0 && sum.refused > 0 && sum.healed > 0 && sum.rebuilds > 0, "{sum:?}");
    assert!(sum.spoilt_labels > 500, "{sum:?}");
}

/// Dies fail at any time, and nothing is lost.
#[test]
fn dies_fail_at_any_time() {
    let sum = series(150, Wish { die_loss: true, ..Wish::default() }, false).sum;
    assert!(sum.die_losses > 150 && sum.rebuilds > 10, "{sum:?}");
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
    let sum = series(150, Wish { snapshots: true, ..Wish::default() }, false).sum;
    assert!(sum.snapshots > 1000 && sum.roll_backs > 300 && sum.diffs > 1000 && sum.recovery_cuts > 50, "{sum:?}");
    assert!(sum.clones > 250 && sum.promoted > 60, "{sum:?}");
    let sum = series(50, Wish { snapshots: true, die_loss: true, ..Wish::default() }, false).sum;
    assert!(sum.snapshots > 100 && sum.die_losses > 50, "{sum:?}");
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
    let sum = series(600, Wish { arrays: true, ..Wish::default() }, false).sum;
    assert!(sum.cuts > 2000 && sum.recovery_cuts > 200 && sum.replayed > 20, "{sum:?}");
    assert!(sum.losses > 200 && sum.returns > 200 && sum.faults > 10 && sum.compared > 100, "{sum:?}");
    assert!(sum.unreadable > 200 && sum.healed > 50 && sum.holes > 1000, "{sum:?}");
    assert!(sum.grown > 100 && sum.not_grown > 50 && sum.resizes > 50 && sum.resize_cuts > 100, "{sum:?}");
    assert!(sum.kills > 300, "{sum:?}");
}

/// Snapshots of arrays among all that: one is there on every member that the array had at that moment and shows what was answered by then, or it
/// is not there.
#[test]
fn snapshots_of_arrays_hold() {
    let sum = series(200, Wish { arrays: true, snapshots: true, ..Wish::default() }, false).sum;
    assert!(
        sum.snapshots > 600 && sum.diffs > 1500 && sum.cuts > 1300 && sum.returns > 50 && sum.grown > 30,
        "{sum:?}"
    );
}

#[test]
fn cached_volumes_hold() {
    let sum = series(300, Wish { caches: true, ..Wish::default() }, false).sum;
    assert!(sum.cuts > 3000 && sum.recovery_cuts > 300 && sum.losses > 300 && sum.kills > 100, "{sum:?}");
    assert!(sum.hits > 100_000 && sum.fills > 100_000 && sum.evicted > 100_000 && sum.written_back > 10_000, "{sum:?}");
    assert!(sum.dropped > 1000 && sum.compared > 250, "{sum:?}");
}

#[test]
fn cached_volumes_are_repeatable() {
    series(40, Wish { caches: true, ..Wish::default() }, true);
}

/// The same seed gives the same array.
#[test]
fn arrays_are_repeatable() {
    series(60, Wish { arrays: true, ..Wish::default() }, true);
    series(30, Wish { arrays: true, snapshots: true, ..Wish::default() }, true);
}

/// Devices that are moved to and fro among power cuts, new devices that fail and old ones that refuse something: nothing flushed is lost, and
/// both hold the same when a move is handed over.
#[test]
fn moves_hold() {
    let sum = series(400, Wish { moves: true, ..Wish::default() }, false).sum;
    assert!(sum.moved > 1500 && sum.compared > 2000 && sum.cuts > 1500 && sum.recovery_cuts > 200, "{sum:?}");
    assert!(sum.losses > 200 && sum.faults > 200 && sum.batches > 5000, "{sum:?}");
}

/// The same seed gives the same moves.
#[test]
fn moves_are_repeatable() {
    series(60, Wish { moves: true, ..Wish::default() }, true);
}

/// Devices on objects among power cuts, lost hosts and take-overs, on a store that misbehaves: nothing below a mark is lost, and hosts that lost
/// the device are fenced.
#[test]
fn objects_hold() {
    let sum = series(400, Wish { objects: true, ..Wish::default() }, false).sum;
    assert!(sum.cuts > 500 && sum.recovery_cuts > 50 && sum.take_overs > 300 && sum.moves > 200, "{sum:?}");
    assert!(sum.fenced > 200 && sum.object_commits > 5000 && sum.objects_deleted > 2000, "{sum:?}");
}

/// The same with leases, clocks that run at different speeds and owners that sleep: whoever was taken over from answers nothing any more.
#[test]
fn leases_hold() {
    let sum = series(300, Wish { objects: true, leases: true, ..Wish::default() }, false).sum;
    assert!(sum.lapses > 300 && sum.sleeps > 500 && sum.fenced > 300, "{sum:?}");
}

/// The groomer needed a LEB to finish its victim, and the checkpoint under way, which had the last ones in reserve, waited for host writes.
#[test]
fn a_groomer_without_a_leb_is_not_left_waiting() {
    let wish = Wish { objects: true, ..Wish::default() };
    let held = Series { from: 19_950, seeds: 1, wish, twice: false, threads: 1 }.run(&());
    assert!(matches!(held, Ok(sim::Held { seeds: 1, .. })), "{held:?}");
}
