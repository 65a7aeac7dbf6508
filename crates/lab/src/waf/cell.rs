//! One cell of the table: a policy under some traffic with so much space.

use std::sync::Arc;
use std::time::Instant as Clock;

use ftl::{DATA_STREAMS, Ftl, Policy, Request, Stats};
use serde::Serialize;

use super::Setup;
use super::ahead::Ahead;
use super::medium::{Instant, SEGMENT, Shape, Stuck};
use super::recorded::Recorded;
use super::theory::uniform_greedy;
use super::workload::Workload;

/// Requests between two looks at whether to stop.
const UNASKED: u64 = 4096;

/// What is written.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Made up, without end, onto a device that was filled first.
    Made(Workload),
    /// Recorded, with the name that it is to have, onto an empty device.
    Recorded(String, Arc<Recorded>),
}

impl Traffic {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Traffic::Made(workload) => workload.name(),
            Traffic::Recorded(name, _) => name,
        }
    }
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What is written.
    pub traffic: Traffic,
    /// Space beyond the sectors, as a share of theirs.
    pub over_provisioning: f64,
    /// Who decides.
    pub policy: Policy,
}

/// What came of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The traffic's name.
    pub workload: String,
    /// Space beyond the sectors, per cent.
    pub over_provisioning_percent: f64,
    /// The policy's name.
    pub policy: &'static str,
    /// Sectors written, by host and groomer, over those that the host wrote.
    pub write_amplification: f64,
    /// What theory says for greedy on uniform traffic with the slots that were in use.
    pub theory: Option<f64>,
    /// Slots in use for each sector, in the mean.
    pub slots_a_sector: f64,
    /// Write amplification of every drive write, or loop of the trace.
    pub over_time: Vec<f64>,
    /// After each of them, the share of the LEBs in use that each stream wrote.
    pub streams: Vec<[f64; DATA_STREAMS as usize]>,
    /// Bytes that the policy holds for each sector.
    pub policy_bytes_a_sector: f64,
    /// How the LEBs wore, where they wear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erases: Option<Erases>,
    /// Host sectors simulated a second, on one thread.
    pub sectors_a_second: f64,
}

/// How often LEBs were erased.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Erases {
    /// Fewest.
    pub least: u32,
    /// Most.
    pub most: u32,
    /// Mean.
    pub mean: f64,
    /// Sectors moved for the sake of wear, for each that the host wrote.
    pub moved_a_write: f64,
}

impl Erases {
    fn of(layer: &Ftl) -> Erases {
        let counts = || layer.lebs().iter().map(|(_, leb)| leb.erases);
        let sum: u64 = counts().map(u64::from).sum();
        Erases {
            least: counts().min().unwrap_or(0),
            most: counts().max().unwrap_or(0),
            mean: sum as f64 / f64::from(layer.lebs().len()),
            moved_a_write: layer.moved_for_wear() as f64 / layer.stats().host_written_sectors.max(1) as f64,
        }
    }

    /// How far the fewest and the most are from the mean, per cent of it.
    pub fn spread_percent(&self) -> (f64, f64) {
        let from_mean = |erases: u32| (f64::from(erases) / self.mean.max(1e-9) - 1.0) * 100.0;
        (from_mean(self.least), from_mean(self.most))
    }
}

/// A run under way.
struct Run {
    device: Instant,
    last: Stats,
    over_time: Vec<f64>,
    streams: Vec<[f64; DATA_STREAMS as usize]>,
    in_use: f64,
    looks: f64,
    asked: u64,
}

fn amplification(from: &Stats, to: &Stats) -> f64 {
    let written = to.host_written_sectors - from.host_written_sectors;
    1.0 + (to.groomed_sectors - from.groomed_sectors) as f64 / written.max(1) as f64
}

impl Run {
    /// False when it is to stop.
    fn submit(&mut self, request: Request, halt: &dyn Fn() -> bool) -> Result<bool, Stuck> {
        self.device.submit(request)?;
        self.asked += 1;
        if self.asked.is_multiple_of(UNASKED) {
            self.in_use += self.device.slots_in_use();
            self.looks += 1.0;
            return Ok(!halt());
        }
        Ok(true)
    }

    fn end_of_drive_write(&mut self) {
        let now = *self.device.ftl().stats();
        self.over_time.push(amplification(&self.last, &now));
        self.streams.push(self.device.streams());
        self.last = now;
    }
}

impl Cell {
    /// Measures it; `None` when it was stopped.
    ///
    /// # Errors
    /// The layer did not take a request.
    pub fn measure(&self, setup: &Setup, halt: &dyn Fn() -> bool) -> Result<Option<Measured>, Stuck> {
        let sectors = match &self.traffic {
            Traffic::Made(_) => setup.sectors,
            Traffic::Recorded(_, recorded) => recorded.sectors,
        };
        let shape = Shape { sectors, over_provisioning: self.over_provisioning, as_published: setup.as_published };
        let device = Instant::new(&shape, self.policy, setup.wear)?;
        let last = *device.ftl().stats();
        let begun = Clock::now();
        let mut run =
            Run { device, last, over_time: Vec::new(), streams: Vec::new(), in_use: 0.0, looks: 0.0, asked: 0 };
        let mut from = last;
        match &self.traffic {
            Traffic::Made(workload) => {
                let mut ahead = Ahead::new(workload.source(sectors, setup.seed));
                for lba in 0..sectors {
                    run.device.submit(Request::Write { lba, count: 1, fua: false })?;
                }
                run.last = *run.device.ftl().stats();
                for drive_write in 0..setup.drive_writes {
                    if drive_write == setup.drive_writes / 2 {
                        from = run.last;
                        (run.in_use, run.looks) = (0.0, 0.0);
                    }
                    let end = run.last.host_written_sectors + sectors;
                    while run.device.ftl().stats().host_written_sectors < end {
                        let request = ahead.take(run.device.ftl());
                        if !run.submit(request, halt)? {
                            return Ok(None);
                        }
                    }
                    run.end_of_drive_write();
                }
            }
            Traffic::Recorded(_, recorded) => {
                for _ in 0..setup.loops {
                    for request in recorded.requests() {
                        if !run.submit(*request, halt)? {
                            return Ok(None);
                        }
                    }
                    run.end_of_drive_write();
                }
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let slots_a_sector = run.in_use / run.looks.max(1.0) / sectors as f64;
        let uniform = matches!(self.traffic, Traffic::Made(Workload::Uniform));
        let layer = run.device.ftl();
        Ok(Some(Measured {
            workload: self.traffic.name().to_string(),
            over_provisioning_percent: (self.over_provisioning * 1e6).round() / 1e4,
            policy: self.policy.name(),
            write_amplification: amplification(&from, &run.last),
            theory: uniform.then(|| uniform_greedy(slots_a_sector, SEGMENT - 1)),
            slots_a_sector,
            over_time: run.over_time,
            streams: run.streams,
            policy_bytes_a_sector: layer.policy_memory() as f64 / sectors as f64,
            erases: setup.wear.map(|_| Erases::of(layer)),
            sectors_a_second: run.last.host_written_sectors as f64 / seconds.max(1e-9),
        }))
    }
}
