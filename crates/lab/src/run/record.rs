//! What a run writes down: the lines of its journal.

use serde::{Deserialize, Serialize};

use crate::protocol::{Metric, Role};
use crate::results::{DeviceUse, Ops};
use crate::stats::Cell;
use crate::steady::Window;

/// The version of the run directory's form.
pub const VERSION: u32 = 1;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Line {
    /// The first line: everything that is to be done.
    Plan(PlanLine),
    /// A part has begun, on a device as it is described.
    Begin(Begin),
    /// A step is finished.
    Step(Box<Step>),
    /// A stage is finished: what the steady-state rule says of it.
    Verdict(Verdict),
    /// A part is finished. What was written of it before stands for good.
    End(End),
    /// A part broke off; a resumed run begins it anew.
    Broke(Broke),
    /// The run is finished.
    Finished {
        /// When, as RFC 3339.
        at: String,
    },
}

/// Everything that is to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanLine {
    /// The version of the directory's form.
    pub version: u32,
    /// Every part, in the order of reports.
    pub parts: Vec<PartPlan>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// One test on one device in one format and arrangement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartPlan {
    /// Its name: unique in a run, and the same in other runs of the protocol, so that they can be compared.
    pub part: String,
    /// The test's name.
    pub test: String,
    /// The test's heading.
    pub title: String,
    /// The data sheet, or the target's own name.
    pub device: String,
    /// The low-level format, where there is a choice.
    pub format: Option<String>,
    /// How modules are used, where there is a choice.
    pub array: Option<String>,
    /// The write cache, where the protocol says.
    pub write_cache: Option<bool>,
    /// The host's driver, where somebody named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The cache in front of the device, where there is one: such as `iodrive-320-mlc-2GiB-write-back`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// The point that it measures, where each has a part of its own.
    pub point: Option<String>,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Seed of every random choice in it.
    pub seed: u64,
    /// Steps that it will have, at most.
    pub steps: u32,
}

/// A part has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// Which.
    pub part: String,
    /// How often it was begun, from 1.
    pub attempt: u32,
    /// The device as it is.
    pub machine: Machine,
    /// What was done to empty it, or why that could not be done.
    pub purge: String,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a part is run on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// virtual, native, emulated, file or block-device.
    pub target: String,
    /// The data sheet, or the target's own name.
    pub device: String,
    /// What the device is called by its maker, or says that it is.
    pub product: String,
    /// The low-level format, where it has one.
    pub format: Option<String>,
    /// How modules are used.
    pub array: Option<String>,
    /// The host's driver, or fio's engine.
    pub driver: String,
    /// The groomer's policy, where it is not the data sheet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groomer: Option<String>,
    /// How many devices the host sees; threads are dealt out to them.
    pub devices: u32,
    /// Capacity of each, bytes.
    pub bytes: u64,
    /// Smallest unit of address and length, bytes.
    pub sector_bytes: u32,
    /// The real device is so many times larger.
    pub scaled_by: f64,
    /// What that changed, in words.
    pub scaled: Option<String>,
}

/// The settings of a step, as far as they are something that protocols vary or that readers ask for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Size of requests: such as `4KiB`; a mix as `512-64KiB mix`.
    pub size: String,
    /// The same in bytes, where there is one.
    pub size_bytes: Option<u64>,
    /// Share of requests that read, per cent.
    pub read_percent: f64,
    /// random, sequential, or how else.
    pub access: String,
    /// Threads.
    pub threads: u32,
    /// Requests that each thread keeps outstanding at most.
    pub depth: u32,
    /// The part of the device, where it is not all of it: such as `0%+10%`.
    pub region: Option<String>,
    /// Idle time before it, seconds.
    pub pause_seconds: Option<f64>,
    /// Requests a second that come, in an open loop.
    pub rate: Option<f64>,
    /// The trace that the requests come from. Then `read_percent` is the share that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl Point {
    /// Requests outstanding at most: threads times depth.
    pub fn outstanding(&self) -> u32 {
        self.threads.saturating_mul(self.depth)
    }
}

/// Whether requests wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopKind {
    /// A thread asks again as soon as it has an answer.
    Closed,
    /// Requests come at a rate; latency is counted from when each was due.
    Open,
    /// Requests come at a rate; latency is counted from when each was made, because the program that made them counts so.
    OpenFromSubmission,
    /// Nothing is asked.
    Idle,
}

/// A finished step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The part that it belongs to.
    pub part: String,
    /// That part's attempt.
    pub attempt: u32,
    /// Its number within the part, from 0.
    pub number: u32,
    /// Its name: unique within the part, and the same in other runs of the protocol.
    pub step: String,
    /// The stage.
    pub stage: String,
    /// What the stage is for.
    pub role: Role,
    /// The round, from 1, where the stage has rounds.
    pub round: Option<u32>,
    /// Its settings.
    pub point: Point,
    /// Whether requests wait for each other.
    #[serde(rename = "loop")]
    pub loop_kind: LoopKind,
    /// When it began to count, seconds since the part began, in the device's time.
    pub from_seconds: f64,
    /// How long it was counted, seconds.
    pub seconds: f64,
    /// Reads, writes and trims in short.
    pub total: Ops,
    /// Requests outstanding on average over time.
    pub outstanding: f64,
    /// Arrivals of an open loop that were due and could not be made.
    pub not_started: u64,
    /// What a virtual device did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_use: Option<DeviceUse>,
    /// Processor time of the host for each request, microseconds, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_io: Option<f64>,
    /// What is to be known of this step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Requests by what they do and their size, with histograms.
    pub cells: Vec<Cell>,
    /// The same over time.
    pub series: Vec<Interval>,
}

/// A span of time within a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it ended, seconds since the step began to count.
    pub end_seconds: f64,
    /// How long it was, seconds.
    pub seconds: f64,
    /// Requests by what they do and their size, with histograms.
    pub cells: Vec<Cell>,
    /// What a virtual device did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Activity>,
}

/// What a virtual device did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Bytes that the host wrote.
    pub host_written_bytes: u64,
    /// Bytes that were written to media.
    pub media_written_bytes: u64,
    /// Energy taken, joules.
    pub joules: f64,
    /// Temperature at the end, degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub celsius: Option<f64>,
}

/// What the steady-state rule says of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The part.
    pub part: String,
    /// That part's attempt.
    pub attempt: u32,
    /// The stage.
    pub stage: String,
    /// What was judged, in words: such as `requests of 4KiB, 0 % reads`.
    pub tracked: String,
    /// The figure that was judged.
    pub metric: Metric,
    /// Rounds that were done; 0 where the course of one step was judged.
    pub rounds: u32,
    /// The last window; `None` where there were too few rounds for one.
    pub window: Option<Window>,
    /// It is steady.
    pub steady: bool,
    /// By which rule, in words.
    pub rule: String,
}

/// A part is finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Which.
    pub part: String,
    /// That part's attempt.
    pub attempt: u32,
    /// How long it took to run, seconds of the clock on the wall.
    pub wall_seconds: f64,
}

/// A part broke off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Broke {
    /// Which.
    pub part: String,
    /// That part's attempt.
    pub attempt: u32,
    /// Why, in the words of what failed.
    pub reason: String,
}
