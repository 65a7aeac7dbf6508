//! What snapshots cost: the same run with and without them.

use card::{Every, Schedule, SnapshotUse};
use lab::results::{Phase, Results, duration};
use lab::stats::PERCENTILES;
use serde_json::{Value, json};

/// Two runs of one workload on one device.
pub struct Costs<'a> {
    /// Which snapshots the second made.
    pub schedule: Schedule,
    /// The run without any.
    pub without: &'a Results,
    /// The run with them.
    pub with: &'a Results,
}

/// What is compared: a name, and its value in a phase, if there is one.
type Figure = (&'static str, fn(&Phase) -> Option<f64>, fn(f64) -> String);

/// What is compared of each measured phase.
const FIGURES: [Figure; 7] = [
    ("write_amplification", amplification, |value| format!("{value:.3}")),
    ("writes_per_s", |phase| wrote(phase).then_some(phase.total.write.iops), |value| format!("{value:.0}")),
    ("write_mean_ns", |phase| wrote(phase).then_some(phase.total.write.latency.mean_ns), duration),
    ("write_p99_9_ns", |phase| percentile(phase, 99.9), duration),
    ("write_max_ns", |phase| wrote(phase).then_some(phase.total.write.latency.max_ns as f64), duration),
    ("reads_per_s", |phase| read(phase).then_some(phase.total.read.iops), |value| format!("{value:.0}")),
    ("read_mean_ns", |phase| read(phase).then_some(phase.total.read.latency.mean_ns), duration),
];

fn amplification(phase: &Phase) -> Option<f64> {
    phase.device_use.write_amplification.map(|amplification| amplification.total)
}

fn wrote(phase: &Phase) -> bool {
    phase.total.write.requests > 0
}

fn read(phase: &Phase) -> bool {
    phase.total.read.requests > 0
}

fn percentile(phase: &Phase, percent: f64) -> Option<f64> {
    debug_assert!(PERCENTILES.contains(&percent));
    let found = phase.total.write.latency.percentiles.iter().find(|entry| entry.percent == percent);
    found.map(|entry| entry.ns as f64)
}

impl Costs<'_> {
    fn phases(&self) -> impl Iterator<Item = (&Phase, &Phase)> {
        self.without.measured().zip(self.with.measured())
    }

    /// What the snapshots came to by the end.
    fn made(&self) -> SnapshotUse {
        self.with.measured().last().and_then(|phase| phase.device_use.snapshots).unwrap_or_default()
    }

    /// For people, below the results.
    pub fn text(&self) -> String {
        let SnapshotUse { made, kept, held_bytes, .. } = self.made();
        let every = match self.schedule.every {
            Every::Time(nanos) => lab::results::clock(nanos),
            Every::Bytes(bytes) => format!("{} written", size::exact(bytes)),
        };
        let mut text = format!(
            "snapshots: one each {every}, the newest {} kept: {made} made, {kept} there; they hold {} at most, {:.1} % of the room are used at most\n",
            self.schedule.keep,
            size::show(held_bytes),
            self.made().room_percent()
        );
        for (without, with) in self.phases() {
            text.push_str(&format!("  {:<20} {:>12} {:>12}\n", with.name, "without", "with"));
            for (name, value, show) in FIGURES {
                if let (Some(without), Some(with)) = (value(without), value(with)) {
                    text.push_str(&format!("    {name:<18} {:>12} {:>12}\n", show(without), show(with)));
                }
            }
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let figures = |phase: &Phase| {
            let values = FIGURES.iter().filter_map(|(name, value, _)| Some(((*name).to_owned(), json!(value(phase)?))));
            Value::Object(values.collect())
        };
        let phases = self
            .phases()
            .map(|(without, with)| json!({ "name": with.name, "without": figures(without), "with": figures(with) }));
        let made = self.made();
        json!({
            "schedule": self.schedule,
            "made": made.made,
            "kept": made.kept,
            "held_bytes": made.held_bytes,
            "room_percent": made.room_percent(),
            "phases": phases.collect::<Vec<_>>(),
        })
    }
}
