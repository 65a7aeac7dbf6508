//! A load whose requests come from a recorded trace.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trace::playback::{Map, Pace};
use trace::{Format, Wanted};

use super::{Load, Sizes};

/// Share of reads of a load that says none: where requests come from a trace, the trace says which ones read.
pub const UNSAID: f64 = -1.0;

/// Requests that a trace has outstanding at most where it is played at its own times.
pub const DEPTH_OF_TRACES: u32 = 65_536;

/// Which trace, and how it is played. `docs/traces.md` describes formats and rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The file, from where the program runs.
    pub file: PathBuf,
    /// Its format, where it is not recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Only this volume: a number, or major,minor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// How its addresses become those of the device.
    #[serde(default)]
    pub map: Map,
    /// When its requests are made.
    #[serde(default)]
    pub pace: Pace,
}

impl Trace {
    /// What of the file is read.
    ///
    /// # Errors
    /// The volume is none.
    pub fn wanted(&self) -> Result<Wanted, String> {
        let volume = self.volume.as_deref().map(trace::parse_volume).transpose()?;
        Ok(Wanted { format: self.format, volume })
    }
}

impl Load {
    /// A load that plays a trace.
    pub fn of_trace(trace: Trace, depth: Option<u32>) -> Load {
        Load { depth, trace: Some(trace), ..Load::new(UNSAID, unsaid_sizes()) }
    }

    /// Requests are due at their times, whether or not earlier ones are answered.
    pub fn is_open(&self) -> bool {
        self.rate.is_some() || self.trace.as_ref().is_some_and(|trace| trace.pace.is_open())
    }

    /// What a trace decides must not be said beside it.
    pub(super) fn check_trace(&self) -> Result<(), String> {
        let Some(trace) = &self.trace else {
            return if self.read_percent == UNSAID {
                Err("read_percent is missing; expected 0 to 100".into())
            } else {
                Ok(())
            };
        };
        let plain = Load {
            threads: self.threads,
            placement: self.placement.clone(),
            ..Load::of_trace(trace.clone(), self.depth)
        };
        if *self != (Load { name: self.name.clone(), ..plain }) {
            return Err(
                "the requests come from a trace; beside `trace` only name, placement, threads and depth can be given"
                    .into(),
            );
        }
        if self.threads != 1 {
            return Err(format!(
                "threads = {}; a trace is played by 1, which keeps up to `depth` requests outstanding",
                self.threads
            ));
        }
        if self.depth == Some(0) {
            return Err("depth = 0; expected 1 or more".into());
        }
        trace.wanted().map(drop)
    }
}

pub(super) fn unsaid() -> f64 {
    UNSAID
}

pub(super) fn is_unsaid(share: &f64) -> bool {
    *share == UNSAID
}

pub(super) fn unsaid_sizes() -> Sizes {
    Sizes::Mix(Vec::new())
}

pub(super) fn are_unsaid(sizes: &Sizes) -> bool {
    matches!(sizes, Sizes::Mix(list) if list.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::{from_json, from_toml};
    use super::*;

    fn text(lines: &str) -> String {
        format!("name = \"w\"\n[[phase]]\nname = \"p\"\n[[phase.load]]\n{lines}\n")
    }

    #[test]
    fn a_trace_is_a_load_of_its_own_and_ends_its_phase() {
        let workload = from_toml(&text("trace = { file = \"a.csv.gz\" }")).expect("sound");
        let load = &workload.phases[0].loads[0];
        assert_eq!((load.depth(), load.is_open()), (DEPTH_OF_TRACES, true));
        let lines = "depth = 8\ntrace = { file = \"a\", format = \"msr\", volume = \"8,1\", map = \"compact\", pace = \"depth\" }";
        let workload = from_toml(&text(lines)).expect("sound");
        let load = &workload.phases[0].loads[0];
        assert_eq!((load.depth(), load.is_open()), (8, false));
        assert_eq!(load.trace.as_ref().expect("there").wanted().expect("sound").volume, Some(8 << 20 | 1));
        let toml = toml::to_string(&workload).expect("TOML");
        assert_eq!(from_toml(&toml).expect("written TOML"), workload, "{toml}");
        let json = serde_json::to_string(&workload).expect("JSON");
        assert_eq!(from_json(&json).expect("written JSON"), workload, "{json}");
    }

    #[test]
    fn what_a_trace_decides_is_not_said_beside_it() {
        for (lines, expected) in [
            ("read_percent = 50\ntrace = { file = \"a\" }", "only name, placement, threads and depth can be given"),
            (
                "rate = { per_second = 5 }\ntrace = { file = \"a\" }",
                "only name, placement, threads and depth can be given",
            ),
            ("threads = 2\ntrace = { file = \"a\" }", "a trace is played by 1"),
            ("depth = 0\ntrace = { file = \"a\" }", "depth = 0"),
            ("trace = { file = \"a\", pace = \"scaled:0\" }", "expected recorded, depth, or scaled:TIMES"),
            ("trace = { file = \"a\", map = \"fold\" }", "unknown variant `fold`"),
            ("trace = { file = \"a\", volume = \"x\" }", "'x' is no volume"),
            ("trace = { file = \"a\", format = \"x\" }", "'x' is no format of traces"),
            ("size = 4096\nthread_bytes = 4096", "read_percent is missing"),
        ] {
            let message = from_toml(&text(lines)).expect_err(lines).to_string();
            assert!(message.contains(expected), "{lines}: {message}");
        }
    }
}
