//! The command line of `vsl backup` and `vsl restore`.

use clap::{Args, Subcommand, ValueHint};

use super::Opener;

/// `vsl backup`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = "\
A backup is compressed, and every part of it is sealed together with all that stand before it. One that was interrupted has no end: it is \
never taken for whole, and --resume goes on with it. An encrypted device makes an encrypted backup, opened by the same passphrase or key \
file; of another device, naming one of the two encrypts the backup. What is written to the device meanwhile may be in it or not.

Examples:
  vsl backup data.vsl data.vslb
  vsl backup fct0 - | ssh vault 'cat > fct0.vslb'
  vsl backup data.vsl data.vslb --resume
  vsl backup verify data.vslb"
)]
pub struct Backup {
    /// An attached device, or the file of a detached one.
    #[arg(required = true)]
    pub device: Option<String>,
    /// Where the backup goes: a new file, or `-` for standard output.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub file: Option<String>,
    /// Go on with a backup that was interrupted, of the same device in the same state.
    #[arg(long)]
    pub resume: bool,
    /// Do not encrypt the backup of an encrypted device.
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
    /// Read backups to their ends: whether they are whole and sound.
    Verify {
        /// The backups; `-` for standard input.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<String>,
        #[command(flatten)]
        opener: Opener,
    },
}

/// `vsl restore`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The device must be at least as large as the one that was backed up; its sectors may be smaller or larger. A file is read to its end before \
anything is changed. What comes from standard input cannot be: where it turns out to be damaged or cut off, the command fails and the device \
holds a part.

Examples:
  vsl create new.vsl --size 100GB
  vsl restore data.vslb new.vsl
  ssh vault 'cat fct0.vslb' | vsl restore - new.vsl --yes")]
pub struct Restore {
    /// The backup; `-` for standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    /// An attached device, or the file of a detached one. What it holds is lost.
    pub device: String,
    /// Do not ask.
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub opener: Opener,
    /// File whose one line is the passphrase of the backup, where it is another one than the device's.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "backup_key_file")]
    pub backup_passphrase_file: Option<std::path::PathBuf>,
    /// File that is the key of the backup, where it is another one than the device's.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub backup_key_file: Option<std::path::PathBuf>,
}
