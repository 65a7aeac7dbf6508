//! The command line of `vsl cache`.

use clap::{Args, Subcommand, ValueEnum};

use super::values;

/// A limit in bytes; 0 is none.
fn limit(text: &str) -> Result<u64, String> {
    if text == "none" { Ok(0) } else { values::size(text) }
}

/// `vsl cache`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_long_help = "\
A cached volume is slower storage with an attached device in front of it: what is read stays on the device until its groomer needs the room \
for something that is read more often. The volume is exported, listed and watched like a device; what stands behind keeps its content and \
its place. Several volumes may share a cache device.

Examples:
  vsl create /ssd/cache.vsl --size 100GiB --address-space 1PiB
  vsl attach /ssd/cache.vsl --name fast
  vsl cache create disk --cache fast --behind /dev/sdb
  vsl cache create vm --cache fast --behind /nfs/vm.img --mode write-back
  vsl cache create far --cache fast --behind nbd://store:10809/far
  vsl cache set vm --share 300 --limit 40GiB
  vsl cache status vm
  vsl cache flush vm                   # everything is behind now
  vsl cache open vm --mode write-through
  vsl cache delete vm"
)]
pub struct Cache {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// What becomes of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// They go behind, and out of the cache.
    #[value(name = "write-around")]
    Around,
    /// They go behind and into the cache.
    #[value(name = "write-through")]
    Through,
    /// They are answered when the cache has them, and go behind later.
    #[value(name = "write-back")]
    Back,
}

impl Mode {
    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Around => "write-around",
            Mode::Through => "write-through",
            Mode::Back => "write-back",
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Put an attached device in front of slower storage, and export the volume. What stands behind stays as it is.
    Create {
        /// The volume's name.
        name: String,
        /// An attached device with a sparse address space, empty or with other volumes.
        #[arg(long, value_name = "DEVICE")]
        cache: String,
        /// What stands behind: an attached device, the path of a file or block device, or the address of an NBD export or NVMe namespace.
        #[arg(long, value_name = "DEVICE|PATH|ADDRESS")]
        behind: String,
        /// What becomes of writes.
        #[arg(long, default_value = "write-through")]
        mode: Mode,
        /// Its weight among the volumes of the cache device that want more room than they have.
        #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1000))]
        share: u32,
        /// What it may hold on the cache device at most.
        #[arg(long, value_name = "SIZE", value_parser = values::size)]
        limit: Option<u64>,
    },
    /// Give a cached volume another share of its cache device, or another limit.
    Set {
        /// A cached volume.
        name: String,
        /// Its weight among the volumes of the cache device that want more room than they have.
        #[arg(long, value_name = "N", required_unless_present = "limit", value_parser = clap::value_parser!(u32).range(1..=1000))]
        share: Option<u32>,
        /// What it may hold on the cache device at most; `none` lifts the limit.
        #[arg(long, value_name = "SIZE|none", value_parser = limit)]
        limit: Option<u64>,
    },
    /// List cached volumes.
    List,
    /// Show a cached volume: hits, misses, and what is not behind yet.
    Status {
        /// A cached volume.
        name: String,
    },
    /// Open a cached volume that was stopped or could not be opened, or have its writes go another way.
    Open {
        /// A cached volume.
        name: String,
        /// What becomes of writes from now on.
        #[arg(long)]
        mode: Option<Mode>,
        /// What stands behind is as it was left, whatever it looks like.
        #[arg(long)]
        unchanged: bool,
    },
    /// Write behind what is not there yet, and wait until it is.
    Flush {
        /// A cached volume.
        name: String,
    },
    /// Write everything behind, stop a cached volume and forget it.
    Delete {
        /// A cached volume.
        name: String,
        /// Close the connections of its clients.
        #[arg(long)]
        force: bool,
        /// Lose what is not behind yet.
        #[arg(long)]
        discard: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}
