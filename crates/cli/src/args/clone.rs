//! The command line of `vsl clone`.

use clap::{Args, Subcommand};

/// `vsl clone`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_long_help = "\
A clone is a device of its own that begins as what a snapshot shows. It costs nothing until it is written, and shares everything else with \
the snapshot. Each is exported over NBD as DEVICE@NAME, to be read and written.

Examples:
  vsl snapshot create db golden
  vsl clone create db golden test-1
  nbdcopy 'nbd+unix:///db@test-1?socket=/run/openvsl/nbd.sock' -
  vsl clone list db
  vsl clone delete db test-1
  vsl clone promote db test-2 --yes"
)]
pub struct Clone {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// Which clone.
#[derive(Debug, Args)]
pub struct Named {
    /// An attached device.
    pub device: String,
    /// The clone.
    pub name: String,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Make a clone of a snapshot: it is on the store when this returns.
    Create {
        /// An attached device.
        device: String,
        /// The snapshot that it begins as. It cannot be deleted while the clone is there.
        snapshot: String,
        /// The clone's name, which no snapshot has.
        name: String,
    },
    /// List the clones of a device, and what each of them wrote.
    List {
        /// An attached device.
        device: String,
    },
    /// Delete a clone. What it wrote becomes free space bit by bit.
    Delete(Named),
    /// Have the device hold what a clone does; the clone is none any more. What the device holds is lost, unless a snapshot shows it. No client may be
    /// connected.
    Promote {
        /// Which.
        #[command(flatten)]
        which: Named,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}
