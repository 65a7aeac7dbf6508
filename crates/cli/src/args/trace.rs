//! Arguments of `vsl trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use trace::{Format, OutputFormat, Wanted};

/// `vsl trace`.
#[derive(Debug, Subcommand)]
pub enum Trace {
    /// Say what a trace amounts to: mix, sizes, footprint, hot spots, bursts, sequences.
    Info(Info),
    /// Write a trace in another format.
    Convert(Convert),
    /// Write a made-up trace.
    #[command(subcommand)]
    Generate(Generate),
    /// Record what clients ask of an attached device, while they use it.
    Record(Record),
    /// List the formats that are read and written.
    ListFormats,
}

/// Which trace, and what of it.
#[derive(Debug, Args)]
pub struct Input {
    /// Its format, where it is not recognised by its content; `vsl trace list-formats` shows all.
    #[arg(long, value_name = "NAME", value_parser = parse_format)]
    pub format: Option<Format>,
    /// Only this volume: a number as in the trace, major,minor for Linux devices, for fio's files their number from 0.
    #[arg(long, value_name = "VOLUME", value_parser = trace::parse_volume)]
    pub volume: Option<u32>,
}

impl Input {
    /// What of the trace is read.
    pub fn wanted(&self) -> Wanted {
        Wanted { format: self.format, volume: self.volume }
    }
}

/// `vsl trace info`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The trace may be compressed with gzip, zstd, xz or bzip2. It is read once, in fixed memory. docs/traces.md \
explains every figure, and the JSON of --json field by field.

Examples:
  vsl trace info usr_0.csv.gz
  vsl trace info usr_0.csv.gz --html usr_0.html
  vsl trace info volumes.csv --volume 1063 --json | jq .footprint")]
pub struct Info {
    /// The trace.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    pub input: Input,
    /// Also write it as a page with charts: one file that needs no network and no scripts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// `vsl trace convert`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Times are counted from the first request. What the new format cannot say is told. A file that is there is not overwritten.

Examples:
  vsl trace convert usr_0.csv.gz usr_0.iolog
  vsl trace convert sda.blkparse sda.vscsi.zst --volume 8,0")]
pub struct Convert {
    /// The trace.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The new file. Ending in .gz, .zst, .xz or .bz2 it is compressed.
    #[arg(value_hint = ValueHint::FilePath)]
    pub to: PathBuf,
    #[command(flatten)]
    pub input: Input,
    /// The format of the new file. [default: by its ending: .iolog is fio3, .vscsi vscsi2, .csv msr]
    #[arg(long, value_name = "NAME", value_parser = parse_output)]
    pub to_format: Option<OutputFormat>,
    /// What fio's iolog calls the file or device, in place of the names in the trace.
    #[arg(long, value_name = "PATH")]
    pub file_name: Option<String>,
}

/// `vsl trace record`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Recording never holds the device up: requests that the file is too slow for are left out and counted. Without --to, \
--stop and --ended it says how the recording stands. Detaching the device ends its recording too.

Examples:
  vsl trace record fct0 --to fct0.vscsi.zst
  vsl trace record fct0 --stop
  vsl trace record fct0 --ended")]
pub struct Record {
    /// An attached device.
    pub device: String,
    /// Begin, into this new file. Ending in .gz, .zst, .xz or .bz2 it is compressed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,
    /// The format of the file. [default: by its ending: .iolog is fio3, .vscsi vscsi2, .csv msr]
    #[arg(long, value_name = "NAME", requires = "to", value_parser = parse_output)]
    pub to_format: Option<OutputFormat>,
    /// End it: everything is in the file then.
    #[arg(long, conflicts_with = "to")]
    pub stop: bool,
    /// List those that have ended, the newest first.
    #[arg(long, conflicts_with_all = ["to", "stop"])]
    pub ended: bool,
}

/// `vsl trace generate`.
#[derive(Debug, Subcommand)]
pub enum Generate {
    /// A mail server's traffic: 95 % reads, most requests small, few mailboxes popular. docs/traces.md says what is published and what is
    /// assumed.
    MailServer(MailServer),
}

/// `vsl trace generate mail-server`.
#[derive(Debug, Args)]
pub struct MailServer {
    /// The new file. Ending in .gz, .zst, .xz or .bz2 it is compressed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: PathBuf,
    /// Its format. [default: by its ending: .iolog is fio3, .vscsi vscsi2, .csv msr]
    #[arg(long, value_name = "NAME", value_parser = parse_output)]
    pub to_format: Option<OutputFormat>,
    /// Requests.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub records: u64,
    /// Seed of every choice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Size of the volume.
    #[arg(long, value_name = "SIZE", default_value = "32GiB", value_parser = super::values::size)]
    pub size: u64,
    /// Requests a second on average.
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    pub rate: f64,
}

/// A format that is read.
pub fn parse_format(text: &str) -> Result<Format, String> {
    text.parse()
}

fn parse_output(text: &str) -> Result<OutputFormat, String> {
    text.parse()
}
