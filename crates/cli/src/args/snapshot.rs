//! The command line of `vsl snapshot`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// `vsl snapshot`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_long_help = "\
A snapshot shows what an attached device or array held when it was made. It takes space only for what is overwritten or trimmed since. Each is \
exported over NBD, to be read, as DEVICE@NAME.

Examples:
  vsl snapshot create db before-upgrade
  vsl snapshot create db before-upgrade --freeze /srv/database
  vsl snapshot create vm before-upgrade --freeze /run/qemu/vm.agent
  vsl snapshot list db
  nbdcopy 'nbd+unix:///db@before-upgrade?socket=/run/openvsl/nbd.sock' db.img
  vsl snapshot diff db before-upgrade
  vsl snapshot rollback db before-upgrade --yes
  vsl snapshot schedule db --hourly 24 --daily 7 --weekly 4"
)]
pub struct Snapshot {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// Which snapshot.
#[derive(Debug, Args)]
pub struct Named {
    /// An attached device.
    pub device: String,
    /// The snapshot.
    pub name: String,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Make a snapshot of what the device holds now: it is on the store when this returns.
    Create {
        /// Which.
        #[command(flatten)]
        which: Named,
        /// Freeze this file system meanwhile, so that it need not be repaired from the snapshot: the directory where it is mounted here, or the Unix
        /// socket of QEMU's agent in a guest, for all of the guest's. It is thawed again whatever happens, after ten seconds at the latest.
        #[arg(long, value_name = "MOUNTPOINT|AGENT", value_hint = ValueHint::AnyPath)]
        freeze: Option<PathBuf>,
    },
    /// Keep something frozen until the input ends: what `create --freeze` starts.
    #[command(hide = true)]
    Frozen {
        /// A mount point, or an agent's socket.
        target: PathBuf,
    },
    /// List the snapshots of a device, and what each of them alone holds.
    List {
        /// An attached device.
        device: String,
    },
    /// Delete a snapshot. What only it held becomes free space bit by bit.
    Delete(Named),
    /// Give a snapshot another name.
    Rename {
        /// Which.
        #[command(flatten)]
        which: Named,
        /// Its new name.
        new: String,
    },
    /// Keep a snapshot from being deleted.
    Hold(Named),
    /// Let a held snapshot be deleted again.
    Release(Named),
    /// List what differs between a snapshot and another one, or the device as it is: a line of offset, length and `data` or `zero` for each run, in bytes.
    Diff {
        /// Which.
        #[command(flatten)]
        which: Named,
        /// The snapshot to compare with; without one, the device as it is.
        other: Option<String>,
    },
    /// Have the device hold again what a snapshot shows. What was written since is lost, unless a newer snapshot shows it. No client may be connected.
    Rollback {
        /// Which.
        #[command(flatten)]
        which: Named,
        /// Delete the snapshots that are newer.
        #[arg(long)]
        delete_newer: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Have the service make snapshots of a device by itself, and keep the newest of them: the first at once. Without options it shows what is kept.
    /// Hours, days and weeks are those of UTC, and weeks begin on Mondays.
    Schedule {
        /// An attached device.
        device: String,
        /// Keep the first snapshot of each hour, for so many hours.
        #[arg(long, value_name = "COUNT")]
        hourly: Option<u32>,
        /// Keep the first snapshot of each day, for so many days.
        #[arg(long, value_name = "COUNT")]
        daily: Option<u32>,
        /// Keep the first snapshot of each week, for so many weeks.
        #[arg(long, value_name = "COUNT")]
        weekly: Option<u32>,
        /// Make and delete none any more; those that there are stay.
        #[arg(long, conflicts_with_all = ["hourly", "daily", "weekly"])]
        off: bool,
    },
}
