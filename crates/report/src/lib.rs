//! Reports of runs: from what a run measured to a page that one can decide by.
//!
//! What a protocol asks to be charted is charted for each of its tests, and beside that what one always wants to see: latency
//! over time with its percentiles, every latency as a field, how many requests take longer, write amplification. Published
//! figures stand beside the measured ones wherever there are some. Each section says on what, prepared how and whether steady.
//!
//! **Where to start.** [`page`] makes the report of a run, [`compare_page`] sets runs side by side, [`trace_page`] says what a trace amounts to.

mod charts;
mod compare;
mod context;
mod export;
mod figure;
mod glance;
mod ioblazer;
mod metric;
mod page;
mod published;
mod trace;
mod view;
mod waf;

pub use self::trace::trace_page;
pub use compare::compare_page;
pub use export::{json, write_csv};
pub use ioblazer::ioblazer_csv;
pub use page::page;
pub use waf::waf_charts;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A histogram of the journal cannot be read.
    #[error("{part}, step {step}: {problem}")]
    Damaged {
        /// Of which part.
        part: String,
        /// Of which step.
        step: String,
        /// What is wrong with it.
        problem: lab::stats::Damaged,
    },
    /// The published figures cannot be read.
    #[error("the published figures: {0}")]
    Published(String),
    /// A file cannot be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// Which file.
        path: std::path::PathBuf,
        /// Why.
        error: std::io::Error,
    },
}
