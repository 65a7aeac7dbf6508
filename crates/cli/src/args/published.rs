//! Arguments of `vsl published`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// `vsl published`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each row says what somebody measured on a real device; its model is run with the same load, after \
what the row's source is assumed to have done before. docs/published.md says what is assumed, and \
why some rows cannot come out.

Ctrl-C ends the run and prints the rows that were done until then (exit status 130).

Examples:
  vsl published
  vsl published --device iodrive-320-mlc --row file-copy
  vsl published --json | jq '.summaries'")]
pub struct Published {
    /// Only rows of this source; the beginning of its name is enough.
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only rows of this device of `vsl profiles`.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Only rows in which this text stands somewhere, such as a workload, a format or a metric. May be given more than once.
    #[arg(long, value_name = "TEXT")]
    pub row: Vec<String>,
    /// Rows of this file instead of those that come with the program.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rows: Option<PathBuf>,
    /// About how many times smaller flash is built.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub scale: u32,
    /// Rows that are run at once.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: u32,
    /// Seed of every random choice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
