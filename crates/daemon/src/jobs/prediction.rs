//! What each capacity of a format would do to a workload: the virtual world, run once for each.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use card::{Built, Format, build};
use lab::engine::{Position, Progress, virtual_time};
use lab::workload::{self, Load, Phase, Precondition, Trace, Workload};
use profile::{Device, Profile};

use super::Task;
use crate::Failure;
use crate::api::{JobResult, Prediction, PredictionChoice};

/// Host capacity that is simulated, about: large enough for hundreds of erase blocks, small enough for seconds.
const SIMULATED: u64 = 2 << 30;
/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// Seconds of a year.
const YEAR: f64 = 365.25 * DAY;

/// What is to be predicted.
pub struct Question {
    /// The card.
    pub profile: Profile,
    /// The workload's name, as it was asked for.
    pub named: String,
    /// A recording to play instead of a named workload.
    pub trace: Option<PathBuf>,
    /// The capacities to try, as `vsl format` names them.
    pub capacities: Vec<String>,
}

/// The four that the original's tools offer.
pub const CAPACITIES: [&str; 4] = ["maximum", "advertised", "improved-write", "maximum-write"];

/// A capacity as the model of a card has it.
///
/// # Errors
/// There is none of this name.
pub fn format_of(capacity: &str) -> Result<Format, Failure> {
    let wrong = |what| Failure::invalid(format!("capacities: '{}': {what}", capacity.escape_debug()));
    capacity.parse::<device::Capacity>().map(Format::from).map_err(wrong)
}

/// The workload that is asked for.
///
/// # Errors
/// There is none of this name, or the recording cannot be used.
pub fn workload_of(question: &Question) -> Result<Workload, Failure> {
    if let Some(file) = &question.trace {
        let trace = Trace {
            file: file.clone(),
            format: None,
            volume: None,
            map: trace::playback::Map::default(),
            pace: trace::playback::Pace::default(),
        };
        let loads = vec![Load::of_trace(trace, None)];
        let phase = Phase {
            name: "measure".into(),
            measured: true,
            ramp: workload::Time::default(),
            stop: workload::Stop::default(),
            loads,
        };
        let workload = Workload { name: "recorded".into(), description: String::new(), seed: 1, phases: vec![phase] };
        workload.validate().map_err(|invalid| Failure::invalid(invalid.to_string()))?;
        return Ok(workload);
    }
    let found = workload::find(&question.named).ok_or_else(|| {
        Failure::invalid(format!("workload: there is no '{}'", question.named.escape_debug()))
            .help("`GET /api/v1/lab/workloads` lists them; `recorded` takes what was recorded of the device")
    })?;
    found.map_err(|error| Failure::failed(error.to_string()))
}

/// Runs every choice.
///
/// # Errors
/// The workload does not fit the card.
pub fn predict(question: &Question, task: &Task) -> Result<Option<JobResult>, Failure> {
    let Device::Flash(flash) = &question.profile.device else {
        return Err(Failure::invalid(format!("{} is no flash card", question.profile.name))
            .help("`GET /api/v1/lab/profiles` says which are"));
    };
    let scale = u32::try_from((flash.module.advertised_bytes / SIMULATED).clamp(1, 65_536)).unwrap_or(1);
    let mut prediction = Prediction {
        workload: question.named.clone(),
        profile: question.profile.name.clone(),
        scale,
        source: "modelled".into(),
        choices: Vec::new(),
    };
    let next = AtomicUsize::new(0);
    let far = Mutex::new(vec![0.0; question.capacities.len()]);
    let choices = Mutex::new(BTreeMap::new());
    // As many at once as there are processors.
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(capacity) = question.capacities.get(at) else { break };
            let choice = one(question, capacity, scale, &mut Watch { task, at, far: &far });
            if !matches!(choice, Ok(Some(_))) {
                next.store(question.capacities.len(), Ordering::Relaxed);
            }
            choices.lock().unwrap_or_else(PoisonError::into_inner).insert(at, choice);
        }
    };
    let threads = available_parallelism().map_or(1, NonZero::get).min(question.capacities.len());
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    for choice in choices.into_inner().unwrap_or_else(PoisonError::into_inner).into_values() {
        let Some(choice) = choice? else { return Ok(None) };
        prediction.choices.push(choice);
    }
    Ok(Some(JobResult::Prediction(prediction)))
}

/// One choice; nothing where somebody cancelled it.
fn one(
    question: &Question,
    capacity: &str,
    scale: u32,
    watch: &mut Watch<'_>,
) -> Result<Option<PredictionChoice>, Failure> {
    let profile = &question.profile;
    let workload = workload_of(question)?;
    let driver = profile.drivers.get("linux").or_else(|| profile.drivers.values().next()).copied().unwrap_or_default();
    let options = card::Options {
        format: format_of(capacity)?,
        scale,
        interrupts: driver.interrupts,
        ..card::Options::default()
    };
    let Built { mut devices, scaling } =
        build(profile, &options).map_err(|error| Failure::invalid(error.to_string()))?;
    let by = scaling.map_or(1.0, |scaling| scaling.by);
    let first = devices.first().ok_or_else(|| Failure::failed(format!("{}: nothing was built", profile.name)))?;
    let (bytes, sector, raw) = (first.bytes(), first.sector_bytes(), first.report().raw_bytes);
    // A recording says nothing of what came before it: the card has been written all over twice.
    let how = if question.trace.is_some() { Precondition::Random } else { Precondition::Workload };
    let workload = workload.scaled(by).preconditioned(how, devices.len() as u32, sector);
    let options = virtual_time::Options { driver, scaled_by: by, ..virtual_time::Options::default() };
    let run = virtual_time::run(&workload, &mut devices, &options, watch);
    if watch.task.is_cancelled() {
        return Ok(None);
    }
    let (results, _) = run.map_err(|error| Failure::invalid(error.to_string()))?;
    let phase = results.measured().last().ok_or_else(|| Failure::invalid("the workload measures nothing"))?;
    let (all, used) = (&phase.total.all, &phase.device_use);
    let us = |quantile: f64| {
        all.latency.percentiles.iter().find(|one| one.percent == quantile).map(|one| one.ns as f64 / 1000.0)
    };
    let per_second = used.host_written_bytes as f64 / phase.seconds.max(1e-9);
    // What the groomer still does after the card was filled says nothing of a load that writes nothing.
    let years = used.years_to_wear_out.filter(|_| used.host_written_bytes > 0);
    Ok(Some(PredictionChoice {
        capacity: capacity.into(),
        bytes: (bytes as f64 * by) as u64,
        over_provisioning_percent: 100.0 * (raw as f64 / (bytes as f64).max(1.0) - 1.0),
        iops: all.iops,
        bytes_per_s: all.bytes_per_second,
        p50_us: us(50.0),
        p99_us: us(99.0),
        p999_us: us(99.9),
        write_amplification: used.write_amplification.as_ref().map(|amplification| amplification.total),
        lifetime_written_bytes: years.map(|years| years * YEAR * per_second),
        lifetime_days: years.map(|years| years * YEAR / DAY),
    }))
}

struct Watch<'a> {
    task: &'a Task,
    /// Which of all capacities it is, and how far each is.
    at: usize,
    far: &'a Mutex<Vec<f64>>,
}

impl Progress for Watch<'_> {
    fn at(&mut self, position: &Position<'_>) -> ControlFlow<()> {
        let phases = position.phases.max(1) as f64;
        let done = (position.phase as f64 + position.done.clamp(0.0, 1.0)) / phases;
        let mut far = self.far.lock().unwrap_or_else(PoisonError::into_inner);
        far[self.at] = done;
        self.task.at(far.iter().sum::<f64>() / far.len() as f64, &format!("{} capacities", far.len()));
        if self.task.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
