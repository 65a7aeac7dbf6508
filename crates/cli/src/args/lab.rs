//! Arguments of `vsl lab`.

pub mod waf;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// `vsl lab`.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// List the test protocols that come with the program.
    List,
    /// Show what a protocol does: its tests, stages and steps.
    Show(Show),
    /// Run a protocol on a device.
    Run(Box<Run>),
    /// Go on with a run that was interrupted.
    Resume(Resume),
    /// Print the results of a run, and write its report as a page.
    Report(Report),
    /// Set runs side by side, and say which differences exceed the noise.
    Compare(Compare),
    /// Measure the write amplification of the layer's policies under many workloads.
    Waf(Box<waf::Waf>),
    /// Answer the service's question on standard input: what each capacity would do to a workload.
    #[command(hide = true)]
    Predict,
}

/// Which protocol, and how much of it.
#[derive(Debug, Args)]
pub struct Choice {
    /// A protocol of `vsl lab list`, or a TOML file of one; docs/lab.md describes it.
    #[arg(value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub protocol: String,
    /// The whole protocol with its times and sizes as published, instead of the quick form.
    #[arg(long)]
    pub full: bool,
    /// What to test: a data sheet of `vsl profiles` (a virtual device), an attached device, an NBD address, or fio:PATH for a
    /// file or block device. May be given more than once for data sheets. [default: those of the protocol]
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<String>,
    /// Low-level format in place of the protocol's, such as stock, improved-write-performance or 80%. May be given more than once.
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<String>,
    /// How modules are used in place of the protocol's: single, both-modules, raid0, raid1, raid0-3 to raid0-8. May be given more than once.
    #[arg(long, value_name = "ARRAY")]
    pub array: Vec<String>,
    /// What the host's driver costs, by its name in the data sheet, such as linux or windows. Given more than once, everything is
    /// done with each. [default: as the protocol says]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub driver: Vec<String>,
    /// The groomer's policy in place of the data sheets', such as lifetime or greedy; docs/groomer.md explains them.
    #[arg(long, value_name = "POLICY", value_parser = lab::simulation::words::policy)]
    pub groomer: Option<card::Policy>,
    /// Only this test of the protocol. May be given more than once.
    #[arg(long, value_name = "TEST")]
    pub test: Vec<String>,
    /// Do everything so many times, each from another seed, for confidence intervals.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Seed of every random choice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Play this recorded trace in place of the one that the protocol would make up; docs/traces.md lists the formats.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Build virtual devices about so many times smaller, or `full`. [default: as the form says]
    #[arg(long, value_name = "N|full", value_parser = super::sim::parse_scale)]
    pub scale: Option<u32>,
    #[command(flatten)]
    pub cache: super::flash_cache::FlashCache,
}

/// `vsl lab show`.
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    pub choice: Choice,
    /// Print the protocol's own text, to begin one from.
    #[arg(long)]
    pub text: bool,
}

/// `vsl lab run`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A run is a directory: run.toml says what was asked of what, protocol.toml is the protocol as it was run, journal.jsonl gets a \
line for everything that is finished. Ctrl-C, a crash or a lost device leave it as it is; `vsl lab resume` goes on.

A test on a file or block device overwrites it. It is asked for first, with what is on it; what is mounted is refused.

Examples:
  vsl lab run storagereview-enterprise --device iodrive-duo-640-mlc
  vsl lab run snia-pts-iops --device iodrive-320-mlc --repeat 5 --out iops
  vsl lab run mail-server --device hitachi-15k600-raid5 --cache iodrive-320-mlc --cache-size 2GiB
  vsl lab run snia-pts-latency --device fio:/dev/nvme1n1 --full
  vsl lab run my-protocol.toml --device fct0")]
pub struct Run {
    #[command(flatten)]
    pub choice: Choice,
    /// The run's directory. [default: named after protocol, device and form, here]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub work: Work,
    /// Make the file of fio:PATH so large, if it is not there. [default: it must be there]
    #[arg(long, value_name = "SIZE", value_parser = super::values::size, help_heading = "With fio")]
    pub size: Option<u64>,
    /// fio's engine. [default: libaio]
    #[arg(long, value_name = "ENGINE", help_heading = "With fio")]
    pub engine: Option<String>,
    /// Go through the page cache: its speed is then part of what is measured.
    #[arg(long, help_heading = "With fio")]
    pub buffered: bool,
}

/// How a run is worked on.
#[derive(Debug, Args)]
pub struct Work {
    /// Tests of virtual devices that are run at once. [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: Option<u32>,
    /// Do not ask before a device is overwritten.
    #[arg(short, long)]
    pub yes: bool,
}

/// `vsl lab resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The run's directory.
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub run: PathBuf,
    #[command(flatten)]
    pub work: Work,
}

/// `vsl lab report`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The page is one HTML file that needs nothing else: no network, no scripts (with them charts can be zoomed), and it prints well.

Examples:
  vsl lab report RUN
  vsl lab report RUN --out review.html --csv figures
  vsl lab report RUN --png file-server-throughput-over-preconditioning
  vsl lab report RUN --json --charts | jq '.charts[].title'")]
pub struct Report {
    /// The run's directory.
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub run: PathBuf,
    /// Where to write the page, or the picture of --png or --svg. [default: report.html in the run's directory, or CHART.png here]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Also write the figures of every chart as CSV into this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub csv: Option<PathBuf>,
    /// Also write what was measured as IOBlazer writes its results: a CSV line for each step.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ioblazer: Option<PathBuf>,
    /// Write a chart as a picture instead of the page. Charts are called as in the page's addresses; a wrong name lists them.
    #[arg(long, value_name = "CHART")]
    pub png: Option<String>,
    /// The same as SVG, which follows the reader's choice of light or dark.
    #[arg(long, value_name = "CHART", conflicts_with = "png")]
    pub svg: Option<String>,
    /// The picture in light on dark.
    #[arg(long, requires = "png")]
    pub dark: bool,
    /// With --json: the figures of the charts, not those of the steps.
    #[arg(long)]
    pub charts: bool,
}

/// `vsl lab compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The runs' directories; the first is what the others are compared with.
    #[arg(value_name = "RUN", num_args = 2.., required = true, value_hint = ValueHint::DirPath)]
    pub runs: Vec<PathBuf>,
    /// Print every step, not only those that differ.
    #[arg(long)]
    pub all: bool,
    /// Also write the comparison as a page.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}
