//! `vsl-sim`: runs seeds, prints the first that fails, and replays one.

use std::process::ExitCode;

use clap::Parser;

/// Runs the storage layer in a seeded simulator with power cuts.
///
/// Exit codes: 0 all held, 1 wrong data, 3 no progress, 4 crash, 2 usage.
#[derive(Parser)]
#[command(name = "vsl-sim", version)]
struct Arguments {
    /// Run this seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// First seed of a series.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Encrypt every format; otherwise about a third are.
    #[arg(long)]
    encrypted: bool,
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(seed) = arguments.seed {
        eprintln!("{:?}", sim::Plan::new(&mut ftl::SplitMix64::new(seed)));
        // A replay tells what the device logs; a series would drown in the errors that power cuts cause.
        tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().init();
    }
    let (from, count) = arguments.seed.map_or((arguments.from, arguments.seeds), |seed| (seed, 1));
    let how = if arguments.encrypted { " --encrypted" } else { "" };
    let run = if arguments.encrypted { sim::run_encrypted } else { sim::run };
    let mut sum = sim::Report::default();
    for seed in from..from.saturating_add(count) {
        let Ok(result) = std::panic::catch_unwind(|| run(seed)) else {
            println!("seed {seed}: crash; replay with: vsl-sim{how} --seed {seed}");
            return ExitCode::from(4);
        };
        match result {
            Ok(report) => sum += report,
            Err(sim::Failure::Wrong(what)) => {
                println!("seed {seed}: {what}; replay with: vsl-sim{how} --seed {seed}");
                return ExitCode::from(1);
            }
            Err(sim::Failure::Stuck(what)) => {
                println!("seed {seed}: {what}; replay with: vsl-sim{how} --seed {seed}");
                return ExitCode::from(3);
            }
        }
    }
    println!(
        "{count} seeds held: {} requests, {} power cuts ({} during recovery), {} erase blocks freed; {} faults of dies and \
         sectors, {} sectors healed, {} read without their die, {} dies replaced; {} sectors sealed over {} power cuts, 0 (key, nonce) \
         pairs repeated",
        sum.requests,
        sum.cuts,
        sum.recovery_cuts,
        sum.freed_lebs,
        sum.faults,
        sum.healed,
        sum.degraded_reads,
        sum.rebuilds,
        sum.sealed,
        sum.sealed_cuts,
    );
    ExitCode::SUCCESS
}
