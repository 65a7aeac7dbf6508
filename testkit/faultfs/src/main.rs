//! `faultfs`: mounts the file system and serves it until it is unmounted.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use faultfs::{FaultFs, control};
use fuser::{MountOption, Session};

/// Mounts a directory of files that loses what was not synced when its power is cut, and fails on command.
///
/// It runs until it is unmounted (`fusermount3 -u MOUNTPOINT`).
#[derive(Parser)]
#[command(name = "faultfs", version)]
struct Arguments {
    /// Where to mount it: an empty directory.
    mountpoint: PathBuf,
    /// Directory for what is durable; files that are there already are served.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// Unix socket to take commands on.
    #[arg(long, value_name = "SOCKET")]
    control: PathBuf,
    /// Refuse direct I/O, as some file systems do.
    #[arg(long)]
    no_direct: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("faultfs: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments { mountpoint, store, control, no_direct } = arguments;
    let files = FaultFs::open(store, *no_direct).map_err(|error| format!("{}: {error}", store.display()))?;
    let mut config = fuser::Config::default();
    config.mount_options = vec![MountOption::FSName("faultfs".into()), MountOption::NoAtime];
    let session = Session::new(files.clone(), mountpoint, &config).map_err(|error| {
        let where_ = mountpoint.display();
        format!("{where_}: cannot be mounted: {error}; it takes an empty directory, /dev/fuse, and root or fusermount3")
    })?;
    let listener = UnixListener::bind(control).map_err(|error| format!("{}: {error}", control.display()))?;
    thread::spawn(move || control::serve(&listener, &files));
    let result = session.run().map_err(|error| format!("{}: {error}", mountpoint.display()));
    // Nobody answers there any more.
    let _ = std::fs::remove_file(control);
    result
}
