//! Arguments of `vsl lab waf`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use lab::waf::{Policy, Workload};

use crate::args::values;

/// `vsl lab waf`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The layer itself runs over a medium that takes no time; nothing but sectors is counted. Each cell of the table is the mean over the later half of the \
drive writes; of a trace all loops count, from an empty device on. docs/groomer.md explains the policies and has the figures.

Ctrl-C prints the cells that are finished.

Examples:
  vsl lab waf
  vsl lab waf --policy lifetime --policy sepbit --workload zipf-1.0 --over-provisioning 7
  vsl lab waf --as-published --out waf
  vsl lab waf --wear --policy lifetime --workload hot-cold-80-20 --sectors 65536
  vsl lab waf --trace vm.vscsi --json")]
pub struct Waf {
    /// Only this policy. May be given more than once. [default: all]
    #[arg(long, value_name = "POLICY", value_parser = lab::simulation::words::policy)]
    pub policy: Vec<Policy>,
    /// Only this workload. May be given more than once. [default: all, or the trace]
    #[arg(long, value_name = "WORKLOAD", value_parser = parse_workload)]
    pub workload: Vec<Workload>,
    /// Also, or instead of all workloads, the writes and trims of this trace, its sectors numbered one after the other.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Its format, where it is not recognised.
    #[arg(long, value_name = "NAME", requires = "trace", value_parser = crate::args::trace::parse_format)]
    pub trace_format: Option<trace::Format>,
    /// Space beyond the sectors, per cent of theirs. May be given more than once. [default: 7, 15 and 28]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub over_provisioning: Vec<f64>,
    /// Sectors of the device.
    #[arg(long, value_name = "N", default_value_t = 262_144, value_parser = clap::value_parser!(u64).range(16_384..=1 << 28))]
    pub sectors: u64,
    /// Drive writes after the device was filled. [default: 24, with --wear 500]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub drive_writes: Option<u32>,
    /// So often the trace is repeated.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub loops: u32,
    /// Give policies of several streams less space, as the simulators behind the published figures do: a free segment for each stream.
    #[arg(long)]
    pub as_published: bool,
    /// Measure wear: every cell on a medium that must be erased, with wear levelling and without.
    #[arg(long)]
    pub wear: bool,
    /// Seed of the traffic.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Also write the figures (waf.json) and charts (SVG) into this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Cells that are measured at once. [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: Option<u32>,
}

fn parse_workload(text: &str) -> Result<Workload, String> {
    let names: Vec<&str> = Workload::ALL.iter().map(|workload| workload.name()).collect();
    Workload::from_name(text).ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = values::percent(text).ok().filter(|percent| (3.0..=400.0).contains(percent));
    percent.ok_or_else(|| "expected per cent of the sectors, 3 to 400".into())
}
