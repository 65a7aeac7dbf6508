//! What each source did before and while it measured.

use serde::{Deserialize, Serialize};

use crate::workload::{Bytes, Extent, Time};

/// The sources that come with the program.
const SOURCES: &str = include_str!("../../data/sources.toml");

/// One source: its protocol as far as it is known, and the one assumption about what is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// As rows name it.
    pub name: String,
    /// What is assumed of the state of the device, in words.
    pub assumption: String,
    /// The driver where a row does not name another.
    pub driver: String,
    /// Threads that share the outstanding requests; without it as many as requests for each, as in 16 threads x 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The most outstanding requests of its tests: what `max` stands for.
    pub deepest: u32,
    /// Tests stay within a file of this size at the beginning of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Bytes>,
    /// What each device holds when the test begins, written in one go: bytes, or a share of it; without it, all that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Extent>,
    /// How often that is then overwritten at random, in 4 KiB pieces: a volume in use is fragmented.
    #[serde(default)]
    pub overwrite_held: f64,
    /// How often the file is then overwritten at random, in 4 KiB pieces.
    #[serde(default)]
    pub overwrite_file: f64,
    /// How many times the capacity is then written with the same workload.
    #[serde(default)]
    pub precondition_capacities: f64,
    /// How long is measured, at full scale.
    pub measured: Time,
    /// How long nobody asks anything before a row whose note says that there was a pause, at full scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Time>,
    /// What is different for some workloads.
    #[serde(default, rename = "group", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
}

/// Workloads of a source whose protocol differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Beginnings of their names.
    pub workloads: Vec<String>,
    /// They are run right after the fill.
    #[serde(default)]
    pub fresh: bool,
    /// So much of the device is filled instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Extent>,
    /// Another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Time>,
    /// Another driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Another number of threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    source: Vec<Source>,
}

/// Every source.
///
/// # Errors
/// The built-in file is damaged; the tests of this crate rule that out.
pub fn sources() -> Result<Vec<Source>, toml::de::Error> {
    sources_from(SOURCES)
}

/// Sources from a text like `data/sources.toml`.
///
/// # Errors
/// The text is none.
pub fn sources_from(text: &str) -> Result<Vec<Source>, toml::de::Error> {
    Ok(toml::from_str::<File>(text)?.source)
}

impl Source {
    /// What applies to a workload: this source with its groups laid over it.
    pub fn for_workload(&self, workload: &str) -> Source {
        let mut source = self.clone();
        for group in &self.groups {
            if !group.workloads.iter().any(|beginning| workload.starts_with(beginning)) {
                continue;
            }
            if group.fresh {
                source.precondition_capacities = 0.0;
                source.overwrite_held = 0.0;
                source.overwrite_file = 0.0;
            }
            if let Some(driver) = &group.driver {
                source.driver.clone_from(driver);
            }
            source.measured = group.measured.unwrap_or(source.measured);
            source.threads = group.threads.or(source.threads);
            source.held = group.held.or(source.held);
        }
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_source_and_every_source_says_what_it_assumes() {
        let sources = sources().expect("the built-in sources");
        for row in crate::published::rows().expect("the built-in rows") {
            assert!(sources.iter().any(|source| source.name == row.source), "{}", row.source);
        }
        assert!(sources.iter().all(|source| source.assumption.len() > 20));
    }

    #[test]
    fn groups_are_laid_over_their_source() {
        let sources = sources().expect("the built-in sources");
        let review = sources.iter().find(|source| source.name.starts_with("storagereview")).expect("a source");
        let burst = review.for_workload("iometer-4k-random-low");
        assert_eq!((burst.driver.as_str(), burst.threads, burst.precondition_capacities), ("windows", Some(4), 0.0));
        assert_eq!(review.for_workload("4k-steady").precondition_capacities, review.precondition_capacities);
    }
}
