//! One stage of a test.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::chart::Metric;
use super::played::Played;
use crate::workload::{Access, Bytes, Load, Rate, Region, Sizes, Streams, Time};

/// What a stage is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Brings the device into a state that does not depend on the workload.
    Fill,
    /// Brings it into the state in which the workload keeps it.
    Precondition,
    /// Its results are what the test is about.
    Measure,
    /// Nothing is asked of the device.
    Idle,
}

/// One stage of a test. What it does not say is as the test's load has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// What it is called.
    pub name: Spanned<String>,
    /// What it is for.
    pub role: Role,
    /// A named workload in place of the test's.
    #[serde(default)]
    pub workload: Option<Spanned<String>>,
    /// A load in place of the test's.
    #[serde(default)]
    pub load: Option<Load>,
    /// A trace in place of a load; beside it only `depth` of a load's settings can be given.
    #[serde(default)]
    pub trace: Option<Played>,
    /// A load that only reads becomes one that only writes.
    #[serde(default)]
    pub mirror: bool,
    /// Threads.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Requests that each thread keeps outstanding.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Sizes of requests.
    #[serde(default)]
    pub size: Option<Sizes>,
    /// Share of requests that read, per cent.
    #[serde(default)]
    pub read_percent: Option<f64>,
    /// Where requests go.
    #[serde(default)]
    pub access: Option<Access>,
    /// How threads share a sequence.
    #[serde(default)]
    pub streams: Option<Streams>,
    /// The part of the device that is used.
    #[serde(default)]
    pub region: Option<Region>,
    /// Requests come at a rate: an open loop.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// What is varied: every combination is a step.
    #[serde(default)]
    pub vary: Vary,
    /// How long each step lasts.
    #[serde(default)]
    pub duration: Option<Time>,
    /// Each step ends when so many times the capacity of the device was written.
    #[serde(default)]
    pub written: Option<f64>,
    /// Time before each step is counted.
    #[serde(default)]
    pub ramp: Time,
    /// Idle time before each step.
    #[serde(default)]
    pub pause: Time,
    /// How often all of it is done; with `steady` the most.
    #[serde(default)]
    pub rounds: Option<u32>,
    /// Rounds end when all of these are steady.
    #[serde(default)]
    pub steady: Vec<Tracked>,
    /// Whether that ends the rounds; otherwise it is only judged at their end.
    #[serde(default = "yes")]
    pub until_steady: bool,
    /// Rounds end when so many times the capacity of the device was written in this stage.
    #[serde(default)]
    pub until_written: Option<f64>,
    /// Whether published figures of the test stand beside the steps of this stage.
    #[serde(default = "yes")]
    pub published: bool,
    /// Intervals of a step's results over time, about. 60 where nothing is said.
    #[serde(default)]
    pub intervals: Option<u32>,
    /// What is different in the quick form, beside its times.
    #[serde(default)]
    pub quick: Option<Quick>,
}

fn yes() -> bool {
    true
}

/// What is different of a stage in the quick form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// In place of the stage's; not shortened any more.
    #[serde(default)]
    pub duration: Option<Time>,
    /// In place of the stage's duration or amount.
    #[serde(default)]
    pub written: Option<f64>,
    /// In place of the stage's.
    #[serde(default)]
    pub rounds: Option<u32>,
    /// In place of the stage's; not shortened any more.
    #[serde(default)]
    pub pause: Option<Time>,
    /// In place of the stage's.
    #[serde(default)]
    pub until_written: Option<f64>,
    /// Requests of a made trace in place of the stage's.
    #[serde(default)]
    pub requests: Option<u64>,
    /// In place of all that the stage varies.
    #[serde(default)]
    pub vary: Option<Vary>,
}

/// What is varied, the outermost first: every combination is a step.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// Idle time before a step.
    #[serde(default)]
    pub pause: Vec<Time>,
    /// Parts of the device.
    #[serde(default)]
    pub region: Vec<Region>,
    /// Where requests go.
    #[serde(default)]
    pub access: Vec<Access>,
    /// Share of requests that read, per cent.
    #[serde(default)]
    pub read_percent: Vec<f64>,
    /// Size of requests.
    #[serde(default)]
    pub size: Vec<Bytes>,
    /// Threads.
    #[serde(default)]
    pub threads: Vec<u32>,
    /// Requests that each thread keeps outstanding.
    #[serde(default)]
    pub depth: Vec<u32>,
}

/// What must be steady: one figure of the steps with this size and mix.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracked {
    /// Which figure.
    pub metric: Metric,
    /// Of steps with requests of this size.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// Of steps with this share of reads.
    #[serde(default)]
    pub read_percent: Option<f64>,
}

impl Tracked {
    /// What it is, in words.
    pub fn text(&self) -> String {
        let mut text = self.metric.label().0.to_string();
        if let Some(size) = self.size {
            text.push_str(&format!(" of {}", size::exact(size.0)));
        }
        if let Some(percent) = self.read_percent {
            text.push_str(&format!(", {percent} % read"));
        }
        text
    }
}

impl Stage {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }
}
