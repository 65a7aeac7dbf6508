//! Workloads on devices in virtual time.
//!
//! The host is a few timelines (a processor for each thread, a lock for each device, see [`crate::host::Costs`]) and one queue of events.
//! The device is whatever implements [`VirtualDevice`]. Nothing is allocated for a request.

mod events;
mod flights;
mod lane;
mod phase;
mod sizes;
mod threads;
mod window;

use card::{Nanos, Schedule, VirtualDevice};
use profile::Driver;

use self::phase::{Outcome, PhaseRun};
use super::{Progress, RunError};
use crate::generate::Shape;
use crate::host::Costs;
use crate::results::{Device, Ended, LoadResult, OPS, Ops, Phase, Results};
use crate::stats::Samples;
use crate::workload::Workload;

/// How a workload is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What each request costs the host.
    pub driver: Driver,
    /// Length of an interval of the series.
    pub interval: Nanos,
    /// Time at the devices when the run begins: never earlier than any moment they have been told.
    pub now: Nanos,
    /// The real device is so many times larger than this one. Only the years to wear-out, which grow with it, take it into account.
    pub scaled_by: f64,
    /// Keep the histograms of every interval, by what requests do and their size.
    pub cells: bool,
    /// Have the devices make snapshots, from the first measured phase on.
    pub snapshots: Option<Schedule>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            driver: Driver::default(),
            interval: 1_000_000_000,
            now: 0,
            scaled_by: 1.0,
            cells: false,
            snapshots: None,
        }
    }
}

/// Runs a workload on devices side by side; thread *t* uses device *t* modulo their number. Afterwards the devices are as the workload
/// left them and can be given to another run. Also gives the time at which it ended.
///
/// # Errors
/// The workload does not fit, or the model of a device breaks its promises.
pub fn run(
    workload: &Workload,
    devices: &mut [Box<dyn VirtualDevice>],
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<(Results, Nanos), RunError> {
    workload.validate()?;
    if devices.is_empty() {
        return Err(RunError::NoDevice);
    }
    let costs = Costs::new(&options.driver);
    let shapes: Vec<Shape> = devices.iter().map(|device| Shape::of(device.as_ref())).collect();
    // What does not fit is found before hours are spent on the phases in front of it.
    let plans: Vec<_> = workload.phases.iter().map(|phase| phase::plans(phase, &shapes)).collect::<Result<_, _>>()?;
    let mut results = Results {
        workload: workload.clone(),
        driver: options.driver,
        devices: shapes.iter().map(|shape| Device { bytes: shape.bytes, sector_bytes: shape.sector_bytes }).collect(),
        phases: Vec::new(),
        ended: Ended::Complete,
    };
    let mut now = options.now;
    let mut snapshots = options.snapshots;
    for ((at, phase), plans) in workload.phases.iter().enumerate().zip(plans) {
        if phase.measured
            && let Some(schedule) = snapshots.take()
            && !devices.iter_mut().all(|device| device.keep_snapshots(now, schedule))
        {
            return Err(RunError::NoSnapshots);
        }
        let mut run = PhaseRun::new(workload, at, devices, &shapes, plans, costs, options, now)?;
        let ended = run.run(progress)?;
        now = run.now();
        results.phases.push(summary(phase, run.outcome(), options.scaled_by));
        if let Some(ended) = ended {
            results.ended = ended;
            break;
        }
    }
    Ok((results, now))
}

fn summary(phase: &crate::workload::Phase, outcome: Outcome, scaled_by: f64) -> Phase {
    let mut counted = outcome.counted;
    for used in counted.rows.iter_mut().map(|row| &mut row.device_use).chain([&mut counted.device_use]) {
        used.years_to_wear_out = used.years_to_wear_out.map(|years| years * scaled_by);
    }
    let seconds = counted.nanos as f64 / 1e9;
    let mut all = Samples::new();
    let mut merged: Vec<Samples> = OPS.iter().map(|_| Samples::new()).collect();
    for load in &counted.loads {
        for (sum, samples) in merged.iter_mut().zip(load) {
            sum.add(samples);
        }
    }
    let total = Ops::new(&merged, seconds, &mut all);
    let loads = phase.loads.iter().zip(&counted.loads).enumerate().map(|(at, (load, samples))| LoadResult {
        name: if load.name.is_empty() && phase.loads.len() > 1 {
            format!("load {}", at + 1)
        } else {
            load.name.clone()
        },
        ops: Ops::new(samples, seconds, &mut all),
        bins: std::array::from_fn(|op| samples[op].bins()),
    });
    Phase {
        name: phase.name.clone(),
        measured: phase.measured,
        from_seconds: outcome.from as f64 / 1e9,
        seconds,
        submitted: outcome.submitted,
        completed: outcome.completed,
        not_started: outcome.not_started,
        outstanding: counted.outstanding,
        outstanding_at_device: outcome.outstanding_at_device,
        device_latency_ns: counted.device_latency_ns,
        loads: loads.collect(),
        total,
        device_use: counted.device_use,
        cells: counted.cells,
        series: counted.rows,
    }
}
