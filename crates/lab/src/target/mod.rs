//! What a protocol is run on.

mod fio;
mod virtual_bench;

use std::ops::ControlFlow;

use crate::results::{DeviceUse, Ops};
use crate::run::{Interval, LoopKind, Machine, Part, StepPlan};
use crate::stats::Cell;

pub use fio::Fio;
pub use virtual_bench::Virtual;

/// Something that protocols can be run on.
pub trait Target: Sync {
    /// A device made ready for a part: empty, as far as that can be done.
    ///
    /// # Errors
    /// There is no such device, or it cannot be used.
    fn bench(&self, part: &Part) -> Result<Box<dyn Bench>, Problem>;

    /// How many parts can be run at once.
    fn at_once(&self) -> usize;

    /// Its time is simulated: it depends on nothing but the seed.
    fn is_virtual(&self) -> bool;

    /// The program that makes the requests, with its version, where it is another one.
    fn program(&self) -> Option<String>;

    /// What the device holds, bytes, where it is there already.
    fn holds(&self) -> Option<u64>;

    /// About what a device of it holds, bytes: for estimates.
    fn bytes(&self, part: &Part) -> u64;
}

/// A device made ready for one part.
pub trait Bench {
    /// What it is.
    fn machine(&self) -> &Machine;

    /// What was done to empty it, or why that could not be done.
    fn purge(&self) -> &str;

    /// What else is to be known of it.
    fn notes(&self) -> Vec<String>;

    /// Does a step; `seed` is that of its random choices.
    ///
    /// # Errors
    /// It was interrupted, or the device failed.
    fn run(&mut self, step: &StepPlan, seed: u64, watch: Watch<'_>) -> Result<Outcome, Problem>;
}

/// Hears now and then what share of a step is done, and may end it.
pub type Watch<'a> = &'a mut dyn FnMut(f64) -> ControlFlow<()>;

/// Why a step gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Whoever watches ended it.
    #[error("interrupted")]
    Interrupted,
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// What a step comes to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether requests wait for each other.
    pub loop_kind: LoopKind,
    /// When it began to count, seconds since the part began.
    pub from_seconds: f64,
    /// How long it was counted, seconds.
    pub seconds: f64,
    /// Reads, writes and trims in short.
    pub total: Ops,
    /// Requests outstanding on average.
    pub outstanding: f64,
    /// Arrivals of an open loop that could not be made.
    pub not_started: u64,
    /// What a virtual device did.
    pub device_use: Option<DeviceUse>,
    /// Processor time of the host for each request, microseconds.
    pub cpu_us_per_io: Option<f64>,
    /// What is to be known.
    pub notes: Vec<String>,
    /// Requests by what they do and their size.
    pub cells: Vec<Cell>,
    /// The same over time.
    pub series: Vec<Interval>,
}
