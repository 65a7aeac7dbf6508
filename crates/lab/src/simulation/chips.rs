//! Flash chips that fail while a simulation measures.

use card::{ChipChange, Nanos};
use serde::Serialize;

use super::{Ready, SimulateError};
use crate::engine::Progress;
use crate::engine::virtual_time::{Options, run};
use crate::results::{Ended, Results};
use crate::workload::Workload;

/// A chip of the first device that fails.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// Its number.
    pub chip: u32,
    /// How long after the first phase that is measured begins, nanoseconds.
    pub after: Nanos,
}

/// What became of a chip.
#[derive(Clone, Debug, Serialize)]
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

impl Ready {
    /// Runs what comes before measuring, then the rest with chips that fail in it.
    pub(super) fn run_with_kills(
        &mut self,
        options: Options,
        progress: &mut dyn Progress,
    ) -> Result<Results, SimulateError> {
        let (workload, devices) = (&self.workload, &mut self.built.devices);
        let before = workload.phases.iter().take_while(|phase| !phase.measured).count();
        let (first, rest) = workload.phases.split_at(before);
        let (mut earlier, mut begin) = (Vec::new(), options.now);
        if !first.is_empty() {
            let part = Workload { phases: first.to_vec(), ..workload.clone() };
            let (results, now) = run(&part, devices, &options, progress)?;
            if results.ended != Ended::Complete || rest.is_empty() {
                return Ok(results);
            }
            (earlier, begin) = (results.phases, now);
        }
        for &Kill { chip, after } in &self.kills {
            let device = devices.first_mut().ok_or(crate::engine::RunError::NoDevice)?;
            device.kill_chip(chip, begin + after).map_err(|why| SimulateError::Chip { chip, why })?;
        }
        let part = Workload { phases: rest.to_vec(), ..workload.clone() };
        let (mut results, _) = run(&part, devices, &Options { now: begin, ..options }, progress)?;
        results.phases.splice(0..0, earlier);
        results.workload = workload.clone();
        let events = devices.first().map(|device| device.report().chips).unwrap_or_default();
        self.setting.chips = events
            .into_iter()
            .map(|event| Happened { seconds: event.at.saturating_sub(begin) as f64 / 1e9, what: event.what })
            .collect();
        Ok(results)
    }
}
