//! The `vsl` command.

mod args;
mod client;
mod command;
mod commands;
mod complete;
mod confirm;
mod freeze;
mod output;
mod progress;

use std::process::ExitCode;

use clap::FromArgMatches;
use clap_complete::CompleteEnv;
use daemon::Failure;

use crate::args::Cli;
use crate::output::Output;

fn main() -> ExitCode {
    give_memory_back();
    // A shell that completes a command line is answered, and nothing else is done.
    CompleteEnv::with_factory(command::command).var(complete::VARIABLE).complete();
    let cli = match command::command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    device::use_stores(bucket::open, bucket::look);
    let output = Output { json: cli.json };
    match commands::run(&cli.command, output) {
        Ok(code) => code,
        Err(failure) => output.failure(&failure),
    }
}

/// Memory of large buffers goes back to the system when they are dropped. By itself the C library raises the size from which on that is
/// so with each of them, and keeps what clients had under way long after they have gone.
#[cfg(target_env = "gnu")]
fn give_memory_back() {
    const LARGE: i32 = 256 << 10;
    const TOP: i32 = 4 << 20;
    for (parameter, bytes) in [(libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, TOP)] {
        // SAFETY: it changes numbers of the allocator, and nothing else runs yet. Where it fails, memory stays as it was.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

#[cfg(not(target_env = "gnu"))]
fn give_memory_back() {}

/// Help, version, or what is wrong with the command line: as JSON too, if that is what was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let (first, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
        let failure = Failure::invalid(first.trim_start_matches("error: ").trim()).help(rest.trim());
        return Output { json: true }.failure(&failure);
    }
    // A reader that went away needs no help.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
