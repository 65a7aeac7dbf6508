//! `vsl-sim`: runs seeds, prints the first that fails, and replays one.

mod watcher;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use sim::{Behind, Exhaustive, Failure, Held, Plan, Series, Wish};

use crate::watcher::Watcher;

/// Runs the storage layer in a seeded simulator with power cuts.
///
/// Exit codes: 0 all held, 1 wrong data, 3 no progress, 4 crash, 2 usage, 130 interrupted.
#[derive(Parser)]
#[command(name = "vsl-sim", version)]
struct Arguments {
    /// Run this seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// First seed of a series; with --exhaustive, the first sequence.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Encrypt every format; otherwise about a third are.
    #[arg(long)]
    encrypted: bool,
    /// Parity everywhere, and dies that fail as a whole at any time.
    #[arg(long)]
    die_loss: bool,
    /// Kill the process in every seed in which that may be; otherwise only in those that also cut the power.
    #[arg(long)]
    kills: bool,
    /// Batches of writes and trims in every seed; otherwise in about a fifth.
    #[arg(long)]
    batches: bool,
    /// A sparse address space in every seed that has room for one; otherwise in about a seventh.
    #[arg(long)]
    sparse: bool,
    /// Snapshots in every seed in which they can be; otherwise in none. With --exhaustive, sequences begin with one.
    #[arg(long)]
    snapshots: bool,
    /// Other sizes in every seed, among snapshots in every other; otherwise in none.
    #[arg(long)]
    resizes: bool,
    /// Devices on objects: hosts that lose their power, are lost, or take over from each other, on a store that misbehaves.
    #[arg(long)]
    objects: bool,
    /// Such devices have a lease: owners sleep, clocks run at different speeds, and a host that stands by takes over.
    #[arg(long, requires = "objects")]
    leases: bool,
    /// Arrays of several devices: RAID 0, RAID 1 and concatenation.
    #[arg(long)]
    arrays: bool,
    /// Cached volumes: a device in front of another one.
    #[arg(long)]
    caches: bool,
    /// Moves of a device to another one, to and fro.
    #[arg(long)]
    moves: bool,
    /// Devices of zones: written in order, reset as a whole.
    #[arg(long)]
    zones: bool,
    /// With --exhaustive, sequences begin with a snapshot and a clone of it. With seeds, --snapshots has clones, too.
    #[arg(long, requires = "exhaustive")]
    clones: bool,
    /// Run each seed twice: all answers and what stands on the medium at the end must be the same.
    #[arg(long)]
    twice: bool,
    /// How many seeds at the same time; otherwise as many as there are processors.
    #[arg(long)]
    threads: Option<usize>,
    /// Begin no further seed or sequence after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Instead of seeds, try every sequence of up to so many operations on a tiny module, every moment at which the power can fail
    /// in them, and every state that it can leave.
    #[arg(long, value_name = "OPERATIONS")]
    exhaustive: Option<usize>,
    /// With --exhaustive, cut the recoveries after sequences of up to so many operations too.
    #[arg(long, value_name = "OPERATIONS", default_value_t = 1)]
    recovered: usize,
}

impl Arguments {
    /// The options that a replay needs.
    fn how(&self) -> String {
        let flags = [
            (self.encrypted, " --encrypted"),
            (self.die_loss, " --die-loss"),
            (self.kills, " --kills"),
            (self.batches, " --batches"),
            (self.sparse, " --sparse"),
            (self.snapshots, " --snapshots"),
            (self.resizes, " --resizes"),
            (self.objects, " --objects"),
            (self.leases, " --leases"),
            (self.arrays, " --arrays"),
            (self.caches, " --caches"),
            (self.moves, " --moves"),
            (self.zones, " --zones"),
            (self.twice, " --twice"),
        ];
        flags.iter().filter(|(on, _)| *on).map(|(_, flag)| *flag).collect()
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(processors);
    let watcher = match Watcher::new(arguments.seconds.map(Duration::from_secs)) {
        Ok(watcher) => watcher,
        Err(error) => {
            eprintln!("vsl-sim: signals cannot be listened to: {error}");
            return ExitCode::from(2);
        }
    };
    if let Some(longest) = arguments.exhaustive {
        std::panic::set_hook(Box::new(|_| {}));
        let Arguments { recovered, from, snapshots, clones, .. } = arguments;
        let behind = match (snapshots, clones) {
            (_, true) => Behind::Clone,
            (true, false) => Behind::Snapshot,
            (false, false) => Behind::Format,
        };
        let scope = Exhaustive { longest, recovered, from, threads, behind };
        return exhaustive(&scope, &watcher);
    }
    let Arguments {
        encrypted,
        die_loss,
        kills,
        batches,
        sparse,
        snapshots,
        resizes,
        objects,
        leases,
        arrays,
        caches,
        moves,
        zones,
        twice,
        ..
    } = arguments;
    let wish = Wish {
        encrypted,
        die_loss,
        kills,
        batches,
        sparse,
        snapshots,
        resizes,
        objects,
        leases,
        arrays,
        caches,
        moves,
        zones,
        digest: twice,
    };
    if let Some(seed) = arguments.seed {
        let plan = || format!("{:?}", Plan::new(&mut random::SplitMix64::new(seed), &wish));
        eprintln!("{}", if objects { sim::describe_objects(seed) } else { plan() });
        // A replay tells what the device logs; a series would drown in the errors that power cuts cause.
        tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().init();
    } else {
        // What a crash was about is told with the seed.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let (from, seeds) = arguments.seed.map_or((arguments.from, arguments.seeds), |seed| (seed, 1));
    let series = Series { from, seeds, wish, twice: arguments.twice, threads };
    watcher.expect("seed", from, from.saturating_add(seeds) - 1);
    match series.run(&watcher) {
        Ok(held) => {
            if objects {
                tell_objects(&held)
            } else if wish.arrays {
                tell_arrays(&held)
            } else if wish.caches {
                tell_caches(&held)
            } else if wish.moves {
                tell_moves(&held)
            } else if zones {
                tell_zones(&held)
            } else {
                tell(&held, arguments.twice)
            }
            watcher.end(from + held.seeds, held.seeds == seeds)
        }
        Err((seed, failure)) => {
            let (what, code) = words(failure);
            println!("seed {seed}: {what}; replay with: vsl-sim{} --seed {seed}", arguments.how());
            code
        }
    }
}

/// A failure in words, and its exit code.
fn words(failure: Failure) -> (String, ExitCode) {
    match failure {
        Failure::Wrong(what) => (what, ExitCode::from(1)),
        Failure::Stuck(what) => (what, ExitCode::from(3)),
        Failure::Crash(what) => (format!("crash: {what}"), ExitCode::from(4)),
    }
}

fn exhaustive(scope: &Exhaustive, watcher: &Watcher) -> ExitCode {
    let all = scope.all();
    if scope.from > all {
        eprintln!("vsl-sim: --from {}: there are {all} sequences of up to {} operations", scope.from, scope.longest);
        return ExitCode::from(2);
    }
    watcher.expect("sequence", scope.from, all);
    match scope.run(watcher) {
        Ok(tried) => {
            let last = scope.from - 1 + tried.sequences;
            let part = if scope.from == 1 && last == all {
                "100 % of the".to_owned()
            } else {
                format!("{} to {last} of the {all}", scope.from)
            };
            println!(
                "{part} sequences of up to {} of {} operations held, on 2 dies x 4 blocks x 4 pages: {} sequences, each plain \
                 and with parity, waiting after each operation and not; {} moments of a power cut, {} states ({} of them of a power cut \
                 during a recovery) and {} of a death of the process, {} of them distinct",
                scope.longest,
                sim::KINDS,
                tried.sequences,
                tried.moments,
                tried.states,
                tried.in_recovery,
                tried.killed,
                tried.distinct,
            );
            watcher.end(last + 1, last >= all)
        }
        Err((sequence, failure)) => {
            let (what, code) = words(failure);
            println!("{sequence}: {what}");
            code
        }
    }
}

fn tell_objects(Held { seeds, sum }: &Held) {
    println!(
        "{seeds} seeds held: {} requests, {} power cuts with the journal kept ({} during recovery), {} take-overs by another host, {} hosts fenced, \
         {} releases, {} anchors, {} objects deleted, {} take-overs of lapsed leases ({} too late), {} sleeping owners, {} LEBs collected by price",
        sum.requests,
        sum.cuts,
        sum.recovery_cuts,
        sum.take_overs,
        sum.fenced,
        sum.moves,
        sum.object_commits,
        sum.objects_deleted,
        sum.lapses,
        sum.renewed,
        sum.sleeps,
        sum.collected,
    );
}

fn tell_arrays(held: &Held) {
    let Held { seeds, sum } = held;
    println!(
        "{seeds} seeds of arrays held: {} requests ({} batches), {} power cuts of all members ({} while they were assembled), {} \
         members lost by themselves, {} requests to members failed, {} members came back or were replaced, {} records of \
         intent logs carried out, {} sectors of copies unreadable and {} repaired, {} told to be holes; {} members added and {} not, {} arrays \
         larger ({} assemblies while stripes were laid out), {} deaths of the service, {} snapshots made and {} looked at after a crash, \
         {} changes refused because members were full; the copies of {} mirrors were the same at the end",
        sum.requests,
        sum.batches,
        sum.cuts,
        sum.recovery_cuts,
        sum.losses,
        sum.faults,
        sum.returns,
        sum.replayed,
        sum.unreadable,
        sum.healed,
        sum.holes,
        sum.grown,
        sum.not_grown,
        sum.resizes,
        sum.resize_cuts,
        sum.kills,
        sum.snapshots,
        sum.diffs,
        sum.full,
        sum.compared,
    );
}

fn tell_caches(held: &Held) {
    let Held { seeds, sum } = held;
    println!(
        "{seeds} seeds of cached volumes held: {} requests, {} power cuts ({} attempts to open a volume cut), {} members lost by themselves, \
         {} stores behind that came back to a volume in use, {} deaths of the service, {} sectors read from the cache, {} copied into it and {} left behind by its groomer, {} written behind, the copies of \
         {} regions dropped; {} times all of it stood behind at the end",
        sum.requests,
        sum.cuts,
        sum.recovery_cuts,
        sum.losses,
        sum.returns,
        sum.kills,
        sum.hits,
        sum.fills,
        sum.evicted,
        sum.written_back,
        sum.dropped,
        sum.compared,
    );
}

fn tell_moves(held: &Held) {
    let Held { seeds, sum } = held;
    println!(
        "{seeds} seeds of moves held: {} requests ({} batches), {} devices moved, {} times both held the same when it was to be handed \
         over, {} power cuts ({} while devices were attached), {} new devices lost, {} changes refused by the old one",
        sum.requests, sum.batches, sum.moved, sum.compared, sum.cuts, sum.recovery_cuts, sum.losses, sum.faults,
    );
}

fn tell_zones(held: &Held) {
    let Held { seeds, sum } = held;
    println!(
        "{seeds} seeds of zones held: {} requests that were waited for, {} writes refused, {} zones reset, {} power cuts and {} deaths of the \
         process ({} cuts while the device was attached); {} times all zones were what was written in order",
        sum.requests, sum.refused, sum.freed_lebs, sum.cuts, sum.kills, sum.recovery_cuts, sum.compared,
    );
}

fn tell(held: &Held, twice: bool) {
    let Held { seeds, sum } = held;
    println!(
        "{seeds} seeds held{}: {} requests ({} batches, {} refused because the raw space was full), {} snapshots ({} rolled back to, {} compared), {} clones of them ({} promoted), {} resizes ({} attaches in the middle of one), {} power cuts ({} during recovery), {} kills of the process ({} during recovery) with {} pages written back, {} erase blocks freed, {} syncs overlapping; {} faults of dies and \
         sectors ({} dies failed), {} sectors healed, {} read without their die, {} dies replaced, {} superblock copies spoilt, 0 sectors lost; beyond redundancy {} \
         reads and {} attaches refused; {} sectors sealed over {} power cuts, 0 (key, nonce) pairs repeated",
        if twice { " twice with identical hashes" } else { "" },
        sum.requests,
        sum.batches,
        sum.full,
        sum.snapshots,
        sum.roll_backs,
        sum.diffs,
        sum.clones,
        sum.promoted,
        sum.resizes,
        sum.resize_cuts,
        sum.cuts,
        sum.recovery_cuts,
        sum.kills,
        sum.recovery_kills,
        sum.left_pages,
        sum.freed_lebs,
        sum.overlapping_syncs,
        sum.faults,
        sum.die_losses,
        sum.healed,
        sum.degraded_reads,
        sum.rebuilds,
        sum.spoilt_labels,
        sum.unreadable,
        sum.refused,
        sum.sealed,
        sum.sealed_cuts,
    );
}
