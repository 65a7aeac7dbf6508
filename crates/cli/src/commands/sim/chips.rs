//! Flash chips that fail while `vsl sim` measures.

use card::{ChipChange, VirtualDevice};
use daemon::Failure;
use lab::engine::Progress;
use lab::engine::virtual_time::{Options, run as run_all};
use lab::results::{Ended, Results};
use lab::workload::Workload;
use serde::Serialize;

use crate::args::sim::Kill;

/// What became of a chip.
#[derive(Debug, Serialize)]
pub struct Happened {
    /// Since measuring began.
    seconds: f64,
    #[serde(flatten)]
    what: ChipChange,
}

impl std::fmt::Display for Happened {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "{:9.3} s  {}", self.seconds, self.what)
    }
}

/// Runs a workload, with chips of the first device that fail so long after the first phase that is measured begins.
pub fn run(
    workload: &Workload,
    devices: &mut [Box<dyn VirtualDevice>],
    options: &Options,
    kills: &[Kill],
    progress: &mut dyn Progress,
) -> Result<(Results, Vec<Happened>), Failure> {
    let invalid = |error: lab::engine::RunError| Failure::invalid(error.to_string());
    if kills.is_empty() {
        return run_all(workload, devices, options, progress)
            .map(|(results, _)| (results, Vec::new()))
            .map_err(invalid);
    }
    let before = workload.phases.iter().take_while(|phase| !phase.measured).count();
    let (first, rest) = workload.phases.split_at(before);
    let (mut earlier, mut begin) = (Vec::new(), options.now);
    if !first.is_empty() {
        let part = Workload { phases: first.to_vec(), ..workload.clone() };
        let (results, now) = run_all(&part, devices, options, progress).map_err(invalid)?;
        if results.ended != Ended::Complete || rest.is_empty() {
            return Ok((results, Vec::new()));
        }
        (earlier, begin) = (results.phases, now);
    }
    let device = devices.first_mut().ok_or_else(|| Failure::failed("no device was built"))?;
    for kill in kills {
        let killed = device.kill_chip(kill.chip, begin + kill.after.nanos());
        killed.map_err(|why| Failure::invalid(format!("--kill-chip {}: {why}", kill.chip)))?;
    }
    let part = Workload { phases: rest.to_vec(), ..workload.clone() };
    let (mut results, _) = run_all(&part, devices, &Options { now: begin, ..*options }, progress).map_err(invalid)?;
    results.phases.splice(0..0, earlier);
    let events = devices.first().map(|device| device.report().chips).unwrap_or_default();
    let happened = events
        .into_iter()
        .map(|event| Happened { seconds: event.at.saturating_sub(begin) as f64 / 1e9, what: event.what });
    Ok((results, happened.collect()))
}
