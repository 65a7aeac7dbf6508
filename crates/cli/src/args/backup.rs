//! The command line of `vsl backup` and `vsl restore`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Opener;
use super::manage::parse_span;

/// `vsl backup`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = "\
A backup is compressed, and each part is sealed together with all parts before it. An interrupted backup has no end mark: `verify` and \
`restore` refuse it, and --resume continues it. The backup of an encrypted device is encrypted, and the same passphrase or key file opens \
it. For any other device, --passphrase-file or --key-file encrypts the backup. Data that clients write during the backup of a device may or \
may not be in it; the backup of a snapshot shows one moment.

With --to the device is replicated: the command makes a snapshot of it, copies what changed since the last replication, and makes a snapshot \
of the replica. So the replica's newest snapshot is always one whole moment, also while the next one is copied.

Examples:
  vsl backup data.vsl data.vslb
  vsl backup db@sunday sunday.vslb
  vsl backup db@monday monday.vslb --since sunday
  vsl backup db@monday s3://backups/db/monday --since sunday
  vsl backup fct0 - | ssh vault 'cat > fct0.vslb'
  vsl backup data.vsl data.vslb --resume
  vsl backup verify data.vslb
  vsl backup db --to vault/db-copy --every 1m"
)]
pub struct Backup {
    /// An attached device, or the file of a detached one; or a snapshot of it, as DEVICE@SNAPSHOT.
    #[arg(required = true)]
    pub device: Option<String>,
    /// Where the backup goes: a new file, an object store (s3://BUCKET/PREFIX, gs://, az:// or file:///DIRECTORY), or `-` for standard output.
    #[arg(required = true, value_hint = ValueHint::FilePath, conflicts_with = "to")]
    pub file: Option<String>,
    /// Replicate: have another device hold what this one does. DEVICE for one that is attached here, HOST/DEVICE for one of a host of
    /// `vsl hosts`, HOST for the one of the same name there.
    #[arg(long, value_name = "TARGET", conflicts_with_all = ["since", "resume"])]
    pub to: Option<String>,
    /// Do so again and again, this long after the last time: 60s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "to")]
    pub every: Option<u64>,
    /// How many past moments the replica keeps, as snapshots.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "to")]
    pub keep: usize,
    /// The name by which the other host's service knows this one (`--nvme-hosts` there).
    #[arg(long, value_name = "NQN", requires = "to")]
    pub host_nqn: Option<String>,
    /// File whose one line is the secret that goes with that name.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "host_nqn")]
    pub secret_file: Option<PathBuf>,
    /// Do not ask before the first replication, which replaces everything on the replica.
    #[arg(short, long, requires = "to")]
    pub yes: bool,
    /// Back up only what changed since this older snapshot. `vsl restore` takes such a backup behind those that it builds on.
    #[arg(long, value_name = "SNAPSHOT")]
    pub since: Option<String>,
    /// The object store's endpoint, where it is not the one that the address implies.
    #[arg(long, value_name = "URL", conflicts_with = "to")]
    pub endpoint: Option<String>,
    /// Continue a backup that was interrupted. Unless it is of a snapshot, the device must not have changed since.
    #[arg(long)]
    pub resume: bool,
    /// Do not encrypt the backup of an encrypted device, or have a replica of it that is not.
    #[arg(long)]
    pub plain: bool,
    #[command(flatten)]
    pub opener: Opener,
    /// What to do instead.
    #[command(subcommand)]
    pub what: Option<BackupCommand>,
}

/// What to do with backups that are there.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Verify that backups are complete and undamaged, and say what they hold.
    Verify {
        /// The backups: files, addresses of object stores, or `-` for standard input.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<String>,
        /// The object store's endpoint, where it is not the one that the address implies.
        #[arg(long, value_name = "URL")]
        endpoint: Option<String>,
        #[command(flatten)]
        opener: Opener,
    },
}

/// `vsl restore`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The device must be at least as large as the one that was backed up. Its sectors may be smaller or larger. Backups made with --since follow \
the whole one, from the oldest to the newest, none left out. Backups in files and object stores are verified before the device is changed. A backup from standard input cannot be: if it is damaged or cut off, the command fails, and the device holds \
a part of the backup.

Examples:
  vsl create new.vsl --size 100GB
  vsl restore data.vslb new.vsl
  vsl restore sunday.vslb monday.vslb tuesday.vslb new.vsl
  vsl restore s3://backups/db/sunday s3://backups/db/monday new.vsl
  ssh vault 'cat fct0.vslb' | vsl restore - new.vsl --yes")]
pub struct Restore {
    /// The backup, and those that build on it, in order: files or addresses of object stores; `-` for a whole one from standard input.
    #[arg(required = true, num_args = 1.., value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// An attached device, or the file of a detached one. What it holds is lost.
    #[arg(required = true)]
    pub device: String,
    /// Do not ask.
    #[arg(short, long)]
    pub yes: bool,
    /// The object store's endpoint, where it is not the one that the address implies.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    #[command(flatten)]
    pub opener: Opener,
    /// File whose one line is the passphrase of the backup, where it is another one than the device's.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "backup_key_file")]
    pub backup_passphrase_file: Option<PathBuf>,
    /// File that is the key of the backup, where it is another one than the device's.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub backup_key_file: Option<PathBuf>,
}
