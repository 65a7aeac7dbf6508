//! `vsl-fuzz`: feeds servers and parsers with hostile input, and replays what one stumbled over.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Feeds a server or parser of OpenVSL with hostile input.
///
/// Exit codes: 0 all held, 1 a finding (its input is kept in a file), 2 usage.
#[derive(Parser)]
#[command(name = "vsl-fuzz", version)]
struct Arguments {
    /// The target, or `all`; `list` names them.
    target: String,
    /// Inputs; for `all`, the sum over the targets, each of which has its share.
    #[arg(long, default_value_t = 100_000)]
    executions: u64,
    /// What the inputs follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Feed this file only.
    #[arg(long)]
    replay: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.target == "list" {
        fuzz::TARGETS.iter().for_each(|target| println!("{:<14} {}", target.name, target.about));
        return ExitCode::SUCCESS;
    }
    if arguments.target == "all" {
        return all(arguments.executions, arguments.seed);
    }
    let Some(target) = fuzz::find(&arguments.target) else {
        eprintln!("{}: no such target; `vsl-fuzz list` names them", arguments.target);
        return ExitCode::from(2);
    };
    let result = match &arguments.replay {
        Some(path) => match std::fs::read(path) {
            Ok(input) => fuzz::runner::execute(target, &input).map(|()| println!("{}: it held", target.name)),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::from(2);
            }
        },
        None => fuzz::runner::run(target, arguments.executions, arguments.seed)
            .map(|report| println!("{}: {report}", target.name)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(finding) => {
            eprintln!("{}: {finding}", target.name);
            ExitCode::FAILURE
        }
    }
}

/// Each target in a process of its own: one that ends its process does not hide the others, and memory is each one's own.
fn all(executions: u64, seed: u64) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("this program's own path: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = Vec::new();
    for target in fuzz::TARGETS {
        let share = target.share(executions);
        let arguments = [target.name, "--executions", &share.to_string(), "--seed", &seed.to_string()];
        let held = std::process::Command::new(&program).args(arguments).status().is_ok_and(|status| status.success());
        if !held {
            failed.push(target.name);
        }
    }
    let sum: u64 = fuzz::TARGETS.iter().map(|target| target.share(executions)).sum();
    if failed.is_empty() {
        println!("hostile input: {sum} executions on {} targets, 0 aborts", fuzz::TARGETS.len());
        return ExitCode::SUCCESS;
    }
    println!("hostile input: findings in {}", failed.join(", "));
    ExitCode::FAILURE
}
