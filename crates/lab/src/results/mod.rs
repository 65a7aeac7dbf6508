//! What a run comes to.

mod device_use;
mod fio_json;
mod objects;
mod text;

use card::Op;
use profile::Driver;
use serde::{Deserialize, Serialize};

pub use device_use::{CacheUse, DeviceUse, WriteAmplification};
pub use fio_json::fio_json;
pub use objects::ObjectsUse;
pub use text::{clock, duration, table};

use crate::stats::{Cell, Latency, Pool, Samples};
use crate::workload::Workload;

/// What a run comes to. The same run gives the same results, byte for byte: nothing in here depends on the machine or the day.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The workload as it was run, its seed included.
    pub workload: Workload,
    /// What each request cost the host.
    pub driver: Driver,
    /// The devices.
    pub devices: Vec<Device>,
    /// Every phase that was begun.
    pub phases: Vec<Phase>,
    /// How it ended.
    pub ended: Ended,
}

/// A device of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Capacity, bytes.
    pub bytes: u64,
    /// Smallest unit of address and length, bytes.
    pub sector_bytes: u32,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All of it was done.
    Complete,
    /// It was interrupted; what was measured until then stands.
    Interrupted,
    /// A request failed; what was measured until then stands.
    Failed(String),
}

/// What a phase comes to.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// What it is called.
    pub name: String,
    /// Whether its results count.
    pub measured: bool,
    /// When what is counted began, in the device's world, seconds.
    pub from_seconds: f64,
    /// How long it was, seconds.
    pub seconds: f64,
    /// Requests that were submitted, counted or not.
    pub submitted: u64,
    /// Requests that were answered, counted or not.
    pub completed: u64,
    /// Arrivals of an open loop that were due and could not be made, because `depth` was outstanding. Their latency is missing below.
    pub not_started: u64,
    /// Requests outstanding, on average over time.
    pub outstanding: f64,
    /// Requests at the device, on average over time.
    pub outstanding_at_device: f64,
    /// Latency at the device alone, nanoseconds: without processor, lock and queue of the host.
    pub device_latency_ns: f64,
    /// All loads together.
    pub total: Ops,
    /// Each load.
    pub loads: Vec<LoadResult>,
    /// What the devices did meanwhile.
    pub device_use: DeviceUse,
    /// Requests by what they do and their size, with histograms; only where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// The same in short for each interval.
    pub series: Vec<Row>,
}

/// What a load comes to.
#[derive(Clone, Debug, Serialize)]
pub struct LoadResult {
    /// What it is called.
    pub name: String,
    /// Its requests.
    pub ops: Ops,
    /// Histograms of its requests.
    pub bins: [Vec<(u64, u64)>; 3],
}

/// Requests by what they do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ops {
    /// All.
    pub all: Flow,
    /// Reads.
    pub read: Flow,
    /// Writes.
    pub write: Flow,
    /// Trims.
    pub trim: Flow,
}

/// How many, how fast, how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Requests.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// How long they took.
    pub latency: Latency,
}

/// One interval.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// When it ended, seconds since what is counted began.
    pub end_seconds: f64,
    /// How long it was, seconds.
    pub seconds: f64,
    /// What was answered in it.
    pub ops: Ops,
    /// The same by size, with histograms; only where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// What the devices did in it.
    pub device_use: DeviceUse,
}

/// Operations in the order of [`Ops`].
pub(crate) const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Where an operation stands in [`OPS`].
#[inline]
pub(crate) fn index(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write | Op::Flush => 1,
        Op::Trim => 2,
    }
}

impl Flow {
    /// Samples of so many seconds.
    pub fn new(samples: &Samples, seconds: f64) -> Flow {
        let rate = |number: f64| if seconds > 0.0 { number / seconds } else { 0.0 };
        Flow {
            requests: samples.count(),
            bytes: samples.bytes(),
            iops: rate(samples.count() as f64),
            bytes_per_second: rate(samples.bytes() as f64),
            latency: samples.latency(),
        }
    }
}

impl Flow {
    /// Cells added up, of so many seconds.
    pub fn of_pool(pool: &Pool, seconds: f64) -> Flow {
        let rate = |number: u64| if seconds > 0.0 { number as f64 / seconds } else { 0.0 };
        Flow {
            requests: pool.requests(),
            bytes: pool.bytes(),
            iops: rate(pool.requests()),
            bytes_per_second: rate(pool.bytes()),
            latency: pool.latency(),
        }
    }
}

impl Ops {
    /// Samples of reads, writes and trims over so many seconds. `all` is room to add them up in.
    pub fn new(samples: &[Samples], seconds: f64, all: &mut Samples) -> Ops {
        all.clear();
        for part in samples {
            all.add(part);
        }
        let flow = |at: usize| samples.get(at).map_or_else(Flow::default, |samples| Flow::new(samples, seconds));
        Ops { all: Flow::new(all, seconds), read: flow(0), write: flow(1), trim: flow(2) }
    }

    /// Those that happened, by name.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &Flow)> {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim)]
            .into_iter()
            .filter(|(_, flow)| flow.requests > 0)
    }
}

impl Results {
    /// Phases whose results count.
    pub fn measured(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| phase.measured)
    }
}
