//! The command line of `vsl migrate`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// `vsl migrate`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
TO is a path at which the service makes a device of the same size, or the name of an attached device of that size that nobody uses and \
that holds nothing. Clients keep their connections; once everything is on the new device, it takes the old one's name, UUID, settings and \
clients. The old device is detached then, and marked: it is attached again only with `vsl attach --new-identity`.

The service does the work. Ctrl-C ends this command and not the move, which goes on, also when the service is restarted or killed: then \
from the beginning. `vsl migrate DEVICE` shows how far it is, and --cancel leaves the device where it is.

Snapshots are not moved: a device that has some is refused.

Examples:
  vsl migrate db /new/db.vsl
  vsl migrate db /dev/nvme1n1
  vsl create /new/a.vsl /new/b.vsl /new/c.vsl --size 100GiB && vsl attach /new/a.vsl --name wide
  vsl migrate db wide
  vsl migrate db --cancel")]
pub struct Migrate {
    /// An attached device.
    pub device: String,
    /// Where it goes: a new file or blank block device, or an attached device.
    #[arg(value_name = "TO", value_hint = ValueHint::FilePath)]
    pub to: Option<String>,
    /// Cancel the move that is under way.
    #[arg(long, conflicts_with_all = ["to", "force", "plain", "key_file", "no_wait"])]
    pub cancel: bool,
    /// Destroy what the attached device TO holds.
    #[arg(long, requires = "to")]
    pub force: bool,
    /// Encrypt the new device at the path TO, with this key file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "to", conflicts_with = "plain")]
    pub key_file: Option<PathBuf>,
    /// Move an encrypted device to one that stores what comes as it is.
    #[arg(long, requires = "to")]
    pub plain: bool,
    /// Do not wait for the end of the move.
    #[arg(long)]
    pub no_wait: bool,
}
