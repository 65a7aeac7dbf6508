//! `vsl-directfs`: a file system whose files are ranges of a device, without a journal.

mod mount;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fuser::{Config, MountOption, Session, SessionACL};
use openvsl::Device;
use openvsl_files::Files;

use mount::DirectFs;

/// Threads that serve the kernel. A sync takes one of them until the media have answered.
const THREADS: usize = 8;

/// Mounts the files of a sparse device. No page of up to 1 MiB that is written to them at once is ever torn, and programs that ask
/// (MariaDB) are told so.
///
/// It runs until it is unmounted (`fusermount3 -u MOUNTPOINT`).
#[derive(Parser)]
#[command(name = "vsl-directfs", version)]
struct Arguments {
    /// The device: a file, which nobody else may have attached, or an address that `vsl status DEVICE --field nvme_uri` prints.
    device: String,
    /// Where to mount its files: a directory.
    mountpoint: PathBuf,
    /// Make an empty directory of files on a device that holds nothing, for so many files.
    #[arg(long, value_name = "FILES")]
    make: Option<u64>,
    /// Do not tell programs that pages are never torn. They are not all the same.
    #[arg(long)]
    silent: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("vsl-directfs: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let name = &arguments.device;
    let device = if name.contains("://") { Device::connect(name) } else { Device::open(Path::new(name)) };
    let device = device.map_err(|error| error.to_string())?;
    let files = match arguments.make {
        Some(files) => Files::create(device, files).map_err(|error| format!("{name}: {error}"))?,
        None => Files::open(device).map_err(|error| format!("{name}: {error}; --make makes a new directory"))?,
    };
    let files = Arc::new(files);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(name.clone()),
        MountOption::Subtype("directfs".into()),
        MountOption::DefaultPermissions,
    ];
    // Databases run as users of their own. Only root may mount it so.
    config.acl = if rustix::process::getuid().is_root() { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    let where_ = arguments.mountpoint.display();
    let session = Session::new(DirectFs::new(files.clone(), !arguments.silent), &arguments.mountpoint, &config)
        .map_err(|error| format!("{where_}: {error}; mounting takes /dev/fuse, and root or fusermount3"))?;
    session.run().map_err(|error| format!("{where_}: {error}"))?;
    files.sync_all().map_err(|error| format!("{name}: {error}"))?;
    let device = files.device().clone();
    drop(files);
    device.close().map_err(|error| format!("{name}: {error}"))
}
