//! Running rows, several at a time.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use card::{Built, build};
use profile::Profile;
use serde::Serialize;

use super::experiment::{Experiment, Reading, Unfit, experiment};
use super::row::Row;
use super::source::Source;
use crate::engine::virtual_time::{self, run};
use crate::engine::{Position, Progress};
use crate::results::{Ended, Results};
use crate::workload::{Extent, Time, Workload};

/// How rows are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// About how many times smaller flash is built.
    pub scale: u32,
    /// Seed of everything that varies.
    pub seed: u64,
    /// Rows that are run at once.
    pub at_once: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { scale: 64, seed: 1, at_once: 2 }
    }
}

/// A row and what its model gives.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The row.
    pub row: Row,
    /// What the model gives, in the row's unit.
    pub value: Option<f64>,
    /// How far from the published value, per cent of it: positive where the model gives more.
    pub error_percent: Option<f64>,
    /// Write amplification meanwhile, where flash was written.
    pub write_amplification: Option<f64>,
    /// Why there is no value.
    pub problem: Option<String>,
    /// How many times smaller than the real device the model was.
    pub scaled_by: f64,
}

/// Is told after every experiment how many of how many are done; `Break` ends the run.
pub type Watch<'a> = &'a (dyn Fn(usize, usize) -> ControlFlow<()> + Sync);

/// Runs every row. Rows that need the same experiment share one. The same rows and settings give the same values, in whatever
/// order the threads happen to work. `profile_of` gives the data sheet of a device.
pub fn measure(
    rows: &[Row],
    sources: &[Source],
    settings: &Settings,
    profile_of: &(dyn Fn(&str) -> Result<Profile, String> + Sync),
    watch: Watch<'_>,
) -> Vec<Measured> {
    let mut experiments: Vec<(Experiment, Profile)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let planned: Vec<Result<(usize, Reading), Unfit>> = rows
        .iter()
        .map(|row| {
            let profile = profile_of(&row.device).map_err(Unfit)?;
            let source = sources
                .iter()
                .find(|source| source.name == row.source)
                .ok_or_else(|| Unfit(format!("source '{}' has no entry in sources.toml", row.source)))?;
            let (experiment, reading) = experiment(row, source, &profile, settings)?;
            let at = *known.entry(format!("{experiment:?}")).or_insert_with(|| {
                experiments.push((experiment, profile));
                experiments.len() - 1
            });
            Ok((at, reading))
        })
        .collect();
    let outcomes = run_all(&experiments, settings, watch);
    rows.iter()
        .zip(planned)
        .map(|(row, plan)| {
            let outcome = plan.and_then(|(at, reading)| {
                let (results, scaled_by) =
                    outcomes[at].as_ref().ok_or_else(|| Unfit("not run".into()))?.as_ref().map_err(Clone::clone)?;
                let last = results.measured().last();
                let amplification = last.and_then(|phase| phase.device_use.write_amplification).map(|it| it.total);
                Ok((read(results, reading), amplification, *scaled_by))
            });
            let (value, write_amplification, scaled_by, problem) = match outcome {
                Ok((value, amplification, scaled_by)) => (Some(value), amplification, scaled_by, None),
                Err(Unfit(problem)) => (None, None, 1.0, Some(problem)),
            };
            let error_percent = value.map(|value| (value / row.value - 1.0) * 100.0);
            Measured { row: row.clone(), value, error_percent, write_amplification, problem, scaled_by }
        })
        .collect()
}

type Outcome = Result<(Results, f64), Unfit>;

fn run_all(experiments: &[(Experiment, Profile)], settings: &Settings, watch: Watch<'_>) -> Vec<Option<Outcome>> {
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(experiments.iter().map(|_| None).collect());
    let (next, done, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..settings.at_once.clamp(1, experiments.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((experiment, profile)) = experiments.get(at) else { return };
                    let outcome = run_one(experiment, profile, &stopped);
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    outcomes.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[at] = Some(outcome);
                    if watch(done, experiments.len()).is_break() {
                        stopped.store(true, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct Stopped<'a>(&'a AtomicBool);

impl Progress for Stopped<'_> {
    fn at(&mut self, _: &Position<'_>) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn run_one(experiment: &Experiment, profile: &Profile, stopped: &AtomicBool) -> Outcome {
    let Built { mut devices, scaling } =
        build(profile, &experiment.options).map_err(|error| Unfit(error.to_string()))?;
    let by = scaling.map_or(1.0, |scaling| scaling.by);
    let capacity = devices.iter().map(|device| device.bytes()).min().unwrap_or(0);
    let workload = scaled(&experiment.workload, by, capacity);
    let shortest = workload.phases.iter().filter(|phase| phase.measured).map(|phase| phase.ramp.nanos()).min();
    let options = virtual_time::Options {
        driver: experiment.options.driver,
        interval: shortest.unwrap_or(0).max(40_000_000) / 4,
        scaled_by: by,
        ..virtual_time::Options::default()
    };
    let (results, _) =
        run(&workload, &mut devices, &options, &mut Stopped(stopped)).map_err(|error| Unfit(error.to_string()))?;
    match results.ended {
        Ended::Failed(problem) => Err(Unfit(problem)),
        Ended::Complete | Ended::Interrupted => Ok((results, by)),
    }
}

/// The shortest that is measured, and the shortest ramp.
const LEAST: Duration = Duration::from_millis(50);

/// A pause so long is one in which data grow old.
const DAY: Duration = Duration::from_secs(86_400);

/// The same workload on a device that is so many times smaller: bytes and times shrink with it, and no region exceeds the device.
fn scaled(workload: &Workload, by: f64, capacity: u64) -> Workload {
    let mut workload = fitted(workload, by, capacity);
    // Flash that is so much smaller is written through in so much less time. Below the least there would be too few samples.
    let shorter = |time: Time| Time(time.0.div_f64(by).max(LEAST.min(time.0)));
    for phase in &mut workload.phases {
        phase.ramp = shorter(phase.ramp);
        // Idle for days is about the age of data, which does not shrink with the device.
        let ages = |time: &Time| phase.loads.is_empty() && time.0 >= DAY;
        phase.stop.duration = phase.stop.duration.map(|time| if ages(&time) { time } else { shorter(time) });
    }
    workload
}

/// The same workload on a device that is so many times smaller: bytes shrink with it, times stay; no region exceeds the device, and
/// what is to be written so many times is the region rather than the device.
pub(crate) fn fitted(workload: &Workload, by: f64, capacity: u64) -> Workload {
    let mut workload = workload.clone().scaled(by);
    for phase in &mut workload.phases {
        for load in &mut phase.loads {
            let Some(Extent::Bytes(size)) = load.region.size else { continue };
            if size >= capacity {
                load.region.size = None;
            } else if let Some(capacities) = &mut phase.stop.capacities {
                // Times over its region, not over the device.
                *capacities *= size as f64 / capacity as f64;
            }
        }
    }
    workload
}

/// One figure of the measured phases.
fn read(results: &Results, reading: Reading) -> f64 {
    let each = results.measured().map(|phase| {
        let all = &phase.total.all;
        let ms = |ns: f64| ns / 1e6;
        match reading {
            Reading::Iops => all.iops,
            Reading::MegabytesPerSecond => all.bytes_per_second / 1e6,
            Reading::Least => ms(all.latency.min_ns as f64),
            Reading::Mean => ms(all.latency.mean_ns),
            Reading::Most => ms(all.latency.max_ns as f64),
            Reading::Deviation => ms(all.latency.stddev_ns),
            Reading::Reads => ms(phase.total.read.latency.mean_ns),
            Reading::SlowReads => ms(phase.total.read.latency.percentile(99.0).unwrap_or(0) as f64),
            Reading::Amplification => phase.device_use.write_amplification.map_or(0.0, |written| written.total),
        }
    });
    match reading {
        Reading::Least => each.fold(f64::INFINITY, f64::min),
        _ => each.fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{rows, sources};

    fn some(settings: &Settings) -> Vec<Measured> {
        let rows: Vec<Row> =
            rows().expect("the built-in rows").into_iter().filter(|row| row.device == "sata-ssd-64").collect();
        let sources = sources().expect("the built-in sources");
        let profile_of = |name: &str| profile::find(name).map_err(|error| error.to_string());
        measure(&rows, &sources, settings, &profile_of, &|_, _| ControlFlow::Continue(()))
    }

    #[test]
    fn rows_give_the_same_values_however_many_run_at_once() {
        let settings = Settings { scale: 1_000, ..Settings::default() };
        let values = |at_once| {
            some(&Settings { at_once, ..settings.clone() }).into_iter().map(|row| row.value).collect::<Vec<_>>()
        };
        let alone = values(1);
        assert!(alone.iter().all(|value| value.is_some_and(|value| value > 0.0)), "{alone:?}");
        assert_eq!(alone, values(3));
    }

    #[test]
    fn data_have_grown_old_after_a_pause_of_months_on_a_smaller_device_too() {
        let mut rows = rows().expect("the built-in rows");
        rows.retain(|row| row.device == "samsung-840-evo-120");
        let sources = sources().expect("the built-in sources");
        let profile_of = |name: &str| profile::find(name).map_err(|error| error.to_string());
        let measured = measure(&rows, &sources, &Settings::default(), &profile_of, &|_, _| ControlFlow::Continue(()));
        let values: Vec<f64> = measured.iter().map(|row| row.value.expect("run")).collect();
        // MB/s; published are about 500, and 50 to 100 after some months.
        assert!(values[0] > 450.0 && (50.0..100.0).contains(&values[1]), "{values:?}");
    }

    #[test]
    fn a_row_that_cannot_be_run_says_why_and_the_others_run() {
        let mut rows = rows().expect("the built-in rows");
        rows.retain(|row| row.device == "sata-ssd-64" && row.workload == "seq-read-1k");
        rows.push(Row { device: "card-of-the-future".into(), ..rows[0].clone() });
        rows.push(Row { format: "high-performance".into(), ..rows[0].clone() });
        let sources = sources().expect("the built-in sources");
        let profile_of = |name: &str| profile::find(name).map_err(|error| error.to_string());
        let settings = Settings { scale: 1_000, ..Settings::default() };
        let measured = measure(&rows, &sources, &settings, &profile_of, &|_, _| ControlFlow::Continue(()));
        assert!(measured[0].value.is_some());
        assert!(measured[1].problem.as_deref().is_some_and(|problem| problem.contains("card-of-the-future")));
        assert!(measured[2].problem.as_deref().is_some_and(|problem| problem.contains("no low-level format")));
    }

    #[test]
    fn breaking_off_leaves_the_rest_not_run() {
        let mut rows = rows().expect("the built-in rows");
        rows.retain(|row| row.device == "sata-ssd-64");
        let sources = sources().expect("the built-in sources");
        let profile_of = |name: &str| profile::find(name).map_err(|error| error.to_string());
        let settings = Settings { scale: 1_000, at_once: 1, ..Settings::default() };
        let measured = measure(&rows, &sources, &settings, &profile_of, &|_, _| ControlFlow::Break(()));
        assert_eq!(measured.iter().filter(|row| row.value.is_some()).count(), 1);
        assert!(measured.iter().filter(|row| row.value.is_none()).all(|row| row.problem.as_deref() == Some("not run")));
    }
}
