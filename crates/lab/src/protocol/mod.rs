//! Test protocols as data: what is purged, how a device is preconditioned, what is then measured in which order, when that counts
//! as steady, and what is charted.
//!
//! A protocol is a TOML file; `docs/lab.md` describes it field by field. [`plan`](crate::run::Plan) makes parts and steps of it.

mod chart;
mod check;
mod played;
mod read;
mod shipped;
mod stage;

use serde::Deserialize;
use toml::Spanned;

pub use chart::{Chart, ChartKind, Metric};
pub use played::{Made, Played, Recipe};
pub use read::{ProtocolError, from_toml, read};
pub use shipped::{Shipped, find, named, shipped};
pub use stage::{Quick, Role, Stage, Tracked, Vary};

use crate::steady::Rule;
use crate::workload::{Load, Time};

/// A test protocol.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// What it is called.
    pub name: Spanned<String>,
    /// The same for a heading.
    pub title: String,
    /// What it asks, in a few sentences.
    pub description: String,
    /// Who published it, where, when.
    pub follows: String,
    /// What its source leaves open, and what is done about it here.
    #[serde(default)]
    pub assumes: String,
    /// The source in the published measurements whose figures stand beside those of this protocol.
    #[serde(default)]
    pub published: Option<Spanned<String>>,
    /// Data sheets that it was published for; what a run names stands in their place.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Low-level formats, each tested by itself.
    #[serde(default = "stock")]
    pub formats: Spanned<Vec<String>>,
    /// How modules are used, each way tested by itself.
    #[serde(default = "single")]
    pub arrays: Spanned<Vec<String>>,
    /// Write caches of disks, each setting tested by itself; without it as the data sheet says.
    #[serde(default)]
    pub write_caches: Vec<bool>,
    /// The host's driver, for virtual devices.
    #[serde(default)]
    pub driver: Option<String>,
    /// Several of them, each tested by itself.
    #[serde(default)]
    pub drivers: Vec<String>,
    /// When something is steady.
    #[serde(default)]
    pub steady: Rule,
    /// How the full form is run.
    #[serde(default)]
    pub full: Form,
    /// How the quick form is run.
    #[serde(default = "quick")]
    pub quick: Form,
    /// What is tested, each from a purged device on.
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
    /// What is charted.
    #[serde(default, rename = "chart")]
    pub charts: Vec<Chart>,
}

fn stock() -> Spanned<Vec<String>> {
    Spanned::new(0..0, vec!["stock".into()])
}

fn single() -> Spanned<Vec<String>> {
    Spanned::new(0..0, vec!["single".into()])
}

/// How a form of a protocol is run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Virtual devices are built about so many times smaller.
    #[serde(default = "one")]
    pub scale: u32,
    /// Times are so many times shorter.
    #[serde(default = "once")]
    pub times: f64,
    /// The same for disks, which are not built smaller and so are not filled sooner; where nothing is said, like all others.
    #[serde(default)]
    pub disk_times: Option<f64>,
    /// But none that is measured is shorter than this.
    #[serde(default = "second")]
    pub least: Time,
    /// Formats instead of the protocol's.
    #[serde(default)]
    pub formats: Option<Vec<String>>,
    /// Arrangements instead of the protocol's.
    #[serde(default)]
    pub arrays: Option<Vec<String>>,
}

fn one() -> u32 {
    1
}

fn once() -> f64 {
    1.0
}

fn second() -> Time {
    Time(std::time::Duration::from_secs(1))
}

fn quick() -> Form {
    Form { scale: 64, times: 60.0, ..Form::default() }
}

impl Default for Form {
    fn default() -> Form {
        Form { scale: 1, times: 1.0, disk_times: None, least: second(), formats: None, arrays: None }
    }
}

/// Something that is tested, from a purged device on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// What it is called.
    pub name: Spanned<String>,
    /// The same for a heading.
    pub title: String,
    /// The named workload whose first measured load its stages begin from.
    #[serde(default)]
    pub workload: Option<Spanned<String>>,
    /// The load that its stages begin from, in place of a named workload.
    #[serde(default)]
    pub load: Option<Load>,
    /// Beginning of the workload's name in the published rows that stand beside this test.
    #[serde(default)]
    pub published: Option<String>,
    /// Prepare the device as the published measurements of this source are assumed to have done, and stay within its file.
    #[serde(default)]
    pub prepared_as: Option<Spanned<String>>,
    /// Each point of what is measured gets a purged and prepared device of its own, instead of one after the other on the same.
    #[serde(default)]
    pub each_anew: bool,
    /// What is done, in order.
    #[serde(rename = "stage")]
    pub stages: Vec<Stage>,
}

impl Test {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }
}

impl Protocol {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }

    /// How a form of it is run.
    pub fn form(&self, quick: bool) -> &Form {
        if quick { &self.quick } else { &self.full }
    }
}
