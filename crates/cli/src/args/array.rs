//! The command line of `vsl array`.

use clap::{Args, Subcommand, ValueEnum};

use super::values;

/// `vsl array`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_long_help = "\
An array joins 2 to 8 attached devices to one, which is exported, listed and watched like a device. Its members stay attached, and nobody \
else uses them. The service remembers arrays and assembles them when it starts.

Examples:
  vsl array create fast --level raid0 --stripe 64K fct0 fct1
  vsl array create safe --level raid1 fct2 fct3
  vsl array create large --level concat fct4 fct5 fct6
  vsl array status safe
  vsl detach fct3 --force              # safe goes on, degraded
  vsl attach /data/fct3.vsl            # comes back, and gets what it missed
  vsl array replace safe fct3 --with fct7
  vsl array add fast fct8              # one more member, in use
  vsl array delete fast"
)]
pub struct Array {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// How members make one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Stripes in turn: the capacity and speed of all; the loss of one member is the loss of everything.
    Raid0,
    /// 2 or 3 copies: goes on as long as one has everything.
    Raid1,
    /// One behind the other.
    Concat,
}

impl Level {
    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Raid0 => "raid0",
            Level::Raid1 => "raid1",
            Level::Concat => "concat",
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Make an array of attached devices, and export it. What they hold is lost.
    Create {
        /// The array's name.
        name: String,
        /// How members make one device.
        #[arg(long)]
        level: Level,
        /// Bytes on one member before the next one's turn, a power of two; with raid0 only, 64 KiB by default.
        #[arg(long, value_name = "SIZE", value_parser = values::size)]
        stripe: Option<u64>,
        /// Destroy what the devices hold.
        #[arg(long)]
        force: bool,
        /// Attached devices, in order.
        #[arg(required = true, value_name = "MEMBER")]
        members: Vec<String>,
    },
    /// List arrays and their members.
    List,
    /// Show an array: its members, what is being copied, and how far that is.
    Status {
        /// An array.
        name: String,
    },
    /// Assemble an array that was stopped, or could not be assembled.
    Assemble {
        /// An array.
        name: String,
        /// Without members that are not attached, also where nothing says that they are gone. With raid1 only.
        #[arg(long)]
        degraded: bool,
        /// Take a copy that was not finished, where no other is attached.
        #[arg(long, requires = "degraded")]
        force: bool,
    },
    /// Add a device to an array as one more member, while the array is in use. What the device holds is lost. A mirror copies to it; RAID 0
    /// lays its stripes out over it, and a concatenation has it behind the others: both become larger.
    Add {
        /// An array.
        name: String,
        /// The attached device that becomes one more member.
        device: String,
        /// Destroy what that device holds.
        #[arg(long)]
        force: bool,
    },
    /// Give a mirror another device in the place of a member that is missing; it gets everything that is mapped.
    Replace {
        /// An array.
        name: String,
        /// The member that is missing.
        member: String,
        /// The attached device that takes its place.
        #[arg(long, value_name = "DEVICE")]
        with: String,
        /// Destroy what that device holds.
        #[arg(long)]
        force: bool,
    },
    /// Stop an array and forget it. Its members are devices of their own again; those of a mirror hold what it held.
    Delete {
        /// An array.
        name: String,
        /// Close the connections of its clients.
        #[arg(long)]
        force: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}
