//! What is asked of a device: one description that a virtual device, a native one and fio can all be given.
//!
//! A workload is a list of phases, a phase a list of loads that run side by side. The text forms are TOML and JSON, and
//! `docs/workload.md` describes them field by field.

mod icf;
mod named;
mod placement;
pub(crate) mod prepare;
mod quantity;
mod read;
mod trace;
mod validate;

use serde::{Deserialize, Serialize};

pub use named::{Named, find, names};
pub use placement::{Choose, Placement, Several};
pub use prepare::Precondition;
pub(crate) use quantity::limited;
pub use quantity::{Bytes, Extent, Time};
pub(crate) use read::text_of;
pub use read::{ReadError, from_json, from_toml, read};
pub use trace::{DEPTH_OF_TRACES, Trace, UNSAID};
pub use validate::Invalid;

/// Phases, one after the other, on the same device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// What it stands for, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where every random choice comes from.
    #[serde(default = "one")]
    pub seed: u64,
    /// What is done, in order.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
}

fn one() -> u64 {
    1
}

/// A stretch of a workload. One without loads leaves the device idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// What it is called: fill, precondition, idle, measure …
    pub name: String,
    /// Whether its results count; the others only bring the device into a state.
    #[serde(default = "yes")]
    pub measured: bool,
    /// Time at the beginning that is not counted.
    #[serde(default, skip_serializing_if = "no_time")]
    pub ramp: Time,
    /// When it ends: at the first of these.
    #[serde(default, skip_serializing_if = "Stop::is_none")]
    pub stop: Stop,
    /// What runs side by side.
    #[serde(default, rename = "load", skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Load>,
}

fn yes() -> bool {
    true
}

fn no_time(time: &Time) -> bool {
    *time == Time::default()
}

/// When a phase ends. Without any of these it ends when every thread has moved its `thread_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// After so long, the ramp not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// When so many bytes were asked for, by all loads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// When so many times the capacity of the device was asked for, by all loads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacities: Option<f64>,
}

impl Stop {
    /// Nothing is said.
    pub fn is_none(&self) -> bool {
        *self == Stop::default()
    }
}

/// What some threads do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What it is called, where a phase has several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Share of requests that read, per cent.
    #[serde(default = "trace::unsaid", skip_serializing_if = "trace::is_unsaid")]
    pub read_percent: f64,
    /// Share of requests that trim, per cent; the rest writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trim_percent: f64,
    /// Sizes of requests.
    #[serde(default = "trace::unsaid_sizes", skip_serializing_if = "trace::are_unsaid")]
    pub size: Sizes,
    /// Sizes of writes and trims, where they differ from those of reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_size: Option<Sizes>,
    /// Where they go.
    #[serde(default)]
    pub access: Access,
    /// How the threads of a sequential load share the region.
    #[serde(default, skip_serializing_if = "is_shared")]
    pub streams: Streams,
    /// Requests come in whole objects of so many bytes: each begins at a multiple of that, chosen by `access`, and is asked for in order,
    /// piece by piece of `size`, before its thread begins the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Bytes>,
    /// What offsets are multiples of; without it each request is aligned to its own size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<Bytes>,
    /// The part of the device that is used.
    #[serde(default, skip_serializing_if = "Region::is_whole")]
    pub region: Region,
    /// What its writes belong together with, on a device that tells placements apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Threads; on several devices thread *t* uses device *t* modulo their number.
    #[serde(default = "one_thread")]
    pub threads: u32,
    /// Requests that a thread keeps outstanding at most; without it 1, and 256 in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Open loop: requests come at a rate, whether or not earlier ones are answered. Without it the loop is closed: a thread
    /// asks again as soon as it has an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A thread that has asked for so much stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_bytes: Option<Extent>,
    /// The requests of a recorded trace, in place of all that is said above but `name`, `placement` and `depth`. At its end the load ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

fn is_shared(streams: &Streams) -> bool {
    *streams == Streams::Shared
}

fn one_thread() -> u32 {
    1
}

/// Sizes of requests: one, or several by weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a size such as \"4KiB\", or a list of { size, weight }")]
pub enum Sizes {
    /// All of one size.
    One(Bytes),
    /// A mix.
    Mix(Vec<Weighted>),
}

/// A size and how often it comes, beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighted {
    /// The size.
    pub size: Bytes,
    /// Its share, in the unit of the others.
    pub weight: f64,
}

impl Sizes {
    /// Every size with its weight.
    pub fn list(&self) -> Vec<Weighted> {
        match self {
            Sizes::One(size) => vec![Weighted { size: *size, weight: 1.0 }],
            Sizes::Mix(list) => list.clone(),
        }
    }
}

/// Where requests go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Access {
    /// Anywhere in the region, all places alike.
    #[default]
    Random,
    /// Every place of the region once before any comes again, in an order that is new each time. Each thread goes through all of them.
    Shuffled,
    /// One behind the other; at the end of the region it begins again.
    Sequential,
    /// So many per cent of requests go anywhere, the others behind the one before of the same thread.
    Mixed(f64),
    /// The *k*-th most popular place is asked for in proportion to 1 / *k*^theta; popular places are scattered.
    Zipf(f64),
    /// A share of requests goes to a share of the region, the rest to the rest; the hot part comes first.
    HotCold(HotCold),
    /// Parts of the region, in order, each with its share of requests.
    Zones(Vec<Zone>),
}

/// How the threads of a sequential load go about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Streams {
    /// All threads of a device work on one sequence together: each takes the next piece.
    #[default]
    Shared,
    /// Each thread has its own sequence over the whole region, from its beginning.
    Same,
    /// Each thread has its own sequence; they begin evenly spread over the region.
    Apart,
}

/// See [`Access::HotCold`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotCold {
    /// Share of requests that go to the hot part, per cent.
    pub accesses: f64,
    /// Share of the region that is hot, per cent.
    pub space: f64,
}

/// See [`Access::Zones`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Its share of requests, per cent.
    pub accesses: f64,
    /// Its share of the region, per cent.
    pub space: f64,
}

/// A part of the device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Where it begins.
    #[serde(default = "beginning")]
    pub offset: Extent,
    /// How large it is; without it, it reaches to the end of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Extent>,
}

fn beginning() -> Extent {
    Extent::Bytes(0)
}

impl Default for Region {
    fn default() -> Region {
        Region { offset: beginning(), size: None }
    }
}

impl Region {
    /// The whole device.
    pub fn is_whole(&self) -> bool {
        *self == Region::default()
    }
}

/// Arrivals of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Requests a second, by all threads of the load together.
    pub per_second: f64,
    /// How they are spaced.
    #[serde(default)]
    pub arrivals: Arrivals,
}

/// How the arrivals of an open loop are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Independently of each other: exponential gaps.
    #[default]
    Poisson,
    /// Evenly.
    Fixed,
}

impl Workload {
    /// The same where no load names a placement.
    pub fn unplaced(mut self) -> Workload {
        self.phases.iter_mut().flat_map(|phase| &mut phase.loads).for_each(|load| load.placement = None);
        self
    }
}

impl Load {
    /// A load that reads so much, at random places all over the device, with one request outstanding.
    pub fn new(read_percent: f64, size: Sizes) -> Load {
        Load {
            name: String::new(),
            read_percent,
            trim_percent: 0.0,
            size,
            write_size: None,
            access: Access::default(),
            streams: Streams::default(),
            object: None,
            align: None,
            region: Region::default(),
            placement: None,
            threads: 1,
            depth: None,
            rate: None,
            thread_bytes: None,
            trace: None,
        }
    }

    /// What messages call it, where it is number `at` of its phase, from 0 on.
    pub(crate) fn called(&self, at: usize) -> String {
        if self.name.is_empty() { format!("load {}", at + 1) } else { format!("load '{}'", self.name) }
    }

    /// Share of requests that write, per cent.
    pub fn write_percent(&self) -> f64 {
        100.0 - self.read_percent - self.trim_percent
    }

    /// Requests that a thread keeps outstanding at most.
    pub fn depth(&self) -> u32 {
        self.depth.unwrap_or(match &self.trace {
            Some(trace) if trace.pace.is_open() => DEPTH_OF_TRACES,
            _ if self.rate.is_some() => 256,
            _ => 1,
        })
    }

    /// Sizes of reads, then of writes and trims.
    pub fn sizes(&self) -> (Vec<Weighted>, Vec<Weighted>) {
        (self.size.list(), self.write_size.as_ref().unwrap_or(&self.size).list())
    }

    /// Whether every request is a multiple of so many bytes.
    pub fn is_multiple_of(&self, bytes: u32) -> bool {
        let (reads, writes) = self.sizes();
        let sizes = reads.iter().chain(&writes).map(|entry| entry.size.0);
        sizes
            .chain([self.align, self.object].into_iter().flatten().map(|bytes| bytes.0))
            .all(|size| size.is_multiple_of(u64::from(bytes)))
    }
}
