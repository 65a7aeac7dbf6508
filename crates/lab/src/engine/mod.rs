//! Engines that run a workload.

pub mod virtual_time;

use std::ops::ControlFlow;

use card::Nanos;

use crate::workload::Invalid;

/// Why a run gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload makes no sense, or does not fit the devices.
    #[error("{0}")]
    Invalid(#[from] Invalid),
    /// There is nothing to run it on.
    #[error("a run needs at least one device")]
    NoDevice,
    /// Only flash makes snapshots of itself.
    #[error("snapshots: the device makes none; expected flash modules, alone or side by side")]
    NoSnapshots,
    /// A device does not answer: its fault, never the workload's.
    #[error(
        "{count} of {submitted} requests were never answered (the first: {first}); the model of the device is at fault"
    )]
    Lost {
        /// How many.
        count: u64,
        /// Of how many.
        submitted: u64,
        /// One of them.
        first: String,
    },
    /// A device answered what it was not asked, or twice.
    #[error("the device answered tag {tag}, which no outstanding request has; the model of the device is at fault")]
    Unasked {
        /// The tag.
        tag: u32,
    },
    /// Nothing takes any time.
    #[error(
        "{0} requests at one moment: neither device nor driver takes any time, so a phase that ends after a duration never does"
    )]
    TimeStandsStill(u64),
}

/// Where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// Number of the phase, from 0.
    pub phase: usize,
    /// How many phases there are.
    pub phases: usize,
    /// Its name.
    pub name: &'a str,
    /// How much of it is done, 0 to 1.
    pub done: f64,
    /// The time in the device's world.
    pub now: Nanos,
}

/// Is told now and then where a run stands, and may end it: what was measured so far is then the result.
pub trait Progress {
    /// Where it stands. `Break` ends the run.
    fn at(&mut self, position: &Position<'_>) -> ControlFlow<()>;
}

/// Nobody listens.
impl Progress for () {
    fn at(&mut self, _: &Position<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
