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
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.seed.is_some() {
        // A replay tells what the device logs; a series would drown in the errors that power cuts cause.
        tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().init();
    }
    let (from, count) = arguments.seed.map_or((arguments.from, arguments.seeds), |seed| (seed, 1));
    let (mut requests, mut cuts, mut recovery_cuts, mut freed) = (0, 0, 0, 0);
    for seed in from..from.saturating_add(count) {
        let Ok(result) = std::panic::catch_unwind(|| sim::run(seed)) else {
            println!("seed {seed}: crash; replay with: vsl-sim --seed {seed}");
            return ExitCode::from(4);
        };
        match result {
            Ok(report) => {
                requests += report.requests;
                cuts += report.cuts;
                recovery_cuts += report.recovery_cuts;
                freed += report.freed_lebs;
            }
            Err(sim::Failure::Wrong(what)) => {
                println!("seed {seed}: {what}; replay with: vsl-sim --seed {seed}");
                return ExitCode::from(1);
            }
            Err(sim::Failure::Stuck(what)) => {
                println!("seed {seed}: {what}; replay with: vsl-sim --seed {seed}");
                return ExitCode::from(3);
            }
        }
    }
    println!(
        "{count} seeds held: {requests} requests, {cuts} power cuts ({recovery_cuts} during recovery), {freed} erase blocks freed"
    );
    ExitCode::SUCCESS
}
