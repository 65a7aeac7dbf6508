//! What each capacity of a format would do to a workload: the virtual world, run once for each.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use card::{Built, Format, build, usable_bytes};
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

/// The card that stands for the layer of a device on files or disks. Its rates are not shown; its over-provisioning is the device's.
pub const STAND_IN: &str = "iodrive-320-mlc";

/// The device that a prediction is about.
#[derive(Clone, Debug)]
pub struct About {
    /// Its capacity by its stock format, bytes.
    pub advertised_bytes: u64,
    /// Its media in all, parity and reserve left out, bytes.
    pub raw_bytes: u64,
    /// Bytes in a sector.
    pub sector_bytes: u32,
    /// Its groomer's policy.
    pub groomer: String,
    /// It emulates the card: then rates and wear hold as well.
    pub emulated: bool,
}

impl About {
    /// Host capacity in a format, bytes. What is high performance an emulated card knows, as every card has its own.
    fn bytes(&self, format: Format, module: &profile::Module) -> u64 {
        let share = |percent: f64| (self.advertised_bytes as f64 * percent / 100.0) as u64;
        let of_card = module.high_performance_bytes.filter(|_| self.emulated);
        match format {
            Format::Stock => self.advertised_bytes,
            Format::HighPerformance => {
                share(of_card.map_or(80.0, |bytes| 100.0 * bytes as f64 / module.advertised_bytes as f64))
            }
            // As much as the raw capacity allows.
            Format::Maximum => share(110.0).min(self.raw_bytes / 100 * 96),
            Format::ImprovedWrite => share(70.0),
            Format::MaximumWrite => share(50.0),
            Format::Percent(percent) => share(percent),
            Format::Bytes(bytes) => bytes,
        }
    }
}

/// What is to be predicted.
pub struct Question {
    /// The card.
    pub profile: Profile,
    /// The device; nothing where the question is about the card as such.
    pub about: Option<About>,
    /// The workload's name, as it was asked for.
    pub named: String,
    /// A recording to play instead of a named workload.
    pub trace: Option<PathBuf>,
    /// The capacities to try, as `vsl format` names them.
    pub capacities: Vec<String>,
}

/// Those that the original's tools offer.
pub const CAPACITIES: [&str; 5] = ["maximum", "advertised", "high-performance", "improved-write", "maximum-write"];

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
        profile: (!question.is_native()).then(|| question.profile.name.clone()),
        lifetime_bytes_per_s: None,
        scale,
        source: "modelled".into(),
        choices: Vec::new(),
    };
    let next = AtomicUsize::new(0);
    let far = Mutex::new(vec![0.0; question.capacities.len()]);
    let choices = Mutex::new(BTreeMap::new());
    let writing = Mutex::new(Vec::new());
    // As many at once as there are processors.
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(capacity) = question.capacities.get(at) else { break };
            let choice = one(question, capacity, scale, &mut Watch { task, at, far: &far }).map(|predicted| {
                let (choice, written) = predicted?;
                writing.lock().unwrap_or_else(PoisonError::into_inner).push(written);
                Some(choice)
            });
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
    compare_lifetimes(&mut prediction, &writing.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(Some(JobResult::Prediction(prediction)))
}

/// Days of life at one rate of writing, so that a format that writes faster does not seem to live shorter.
fn compare_lifetimes(prediction: &mut Prediction, writing: &[f64]) {
    let Some(rate) = writing.iter().copied().filter(|rate| *rate > 0.0).reduce(f64::min) else { return };
    if prediction.choices.iter().any(|choice| choice.lifetime_written_bytes.is_some()) {
        prediction.lifetime_bytes_per_s = Some(rate);
    }
    for choice in &mut prediction.choices {
        choice.lifetime_days = choice.lifetime_written_bytes.map(|bytes| bytes / rate / DAY);
    }
}

impl Question {
    /// Whether it is about a device on files or disks.
    fn is_native(&self) -> bool {
        self.about.as_ref().is_some_and(|about| !about.emulated)
    }

    /// Capacity of the device that a choice makes, for the host and in all without parity and reserve, bytes.
    fn sizes(&self, format: Format, module: &profile::Module) -> (u64, u64) {
        match &self.about {
            Some(about) => (about.bytes(format, module), about.raw_bytes),
            None => (format.bytes(module).unwrap_or(module.advertised_bytes), usable_bytes(module, largest(module))),
        }
    }
}

/// The largest sector of a module's formats, bytes.
fn largest(module: &profile::Module) -> u32 {
    module.format.sector_bytes.iter().copied().max().unwrap_or(4096)
}

/// A card whose over-provisioning is that of a device on files or disks in this format, with its groomer and sectors.
fn stand_in(about: &About, format: Format, options: &mut card::Options, module: &profile::Module) {
    let share = about.bytes(format, module) as f64 / (about.raw_bytes as f64).max(1.0);
    options.format = Format::Bytes((usable_bytes(module, about.sector_bytes) as f64 * share) as u64);
    options.sector_bytes = Some(about.sector_bytes);
    options.policy = card::Policy::from_name(&about.groomer);
}

/// One choice, and what the host wrote a second; nothing where somebody cancelled it.
fn one(
    question: &Question,
    capacity: &str,
    scale: u32,
    watch: &mut Watch<'_>,
) -> Result<Option<(PredictionChoice, f64)>, Failure> {
    let profile = &question.profile;
    let workload = workload_of(question)?;
    let driver = profile.drivers.get("linux").or_else(|| profile.drivers.values().next()).copied().unwrap_or_default();
    let format = format_of(capacity)?;
    let mut options = card::Options { format, scale, interrupts: driver.interrupts, ..card::Options::default() };
    let Device::Flash(flash) = &profile.device else { return Err(Failure::failed("no flash card")) };
    if let Some(about) = question.about.as_ref().filter(|about| !about.emulated) {
        stand_in(about, format, &mut options, &flash.module);
    }
    let Built { mut devices, scaling } =
        build(profile, &options).map_err(|error| Failure::invalid(error.to_string()))?;
    let by = scaling.map_or(1.0, |scaling| scaling.by);
    let first = devices.first().ok_or_else(|| Failure::failed(format!("{}: nothing was built", profile.name)))?;
    let (built, sector) = (first.bytes(), first.sector_bytes());
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
    let us = |quantile: f64| all.latency.percentile(quantile).map(|ns| ns as f64 / 1000.0);
    let seconds = phase.series.iter().filter_map(|row| row.ops.all.latency.percentile(99.0));
    let spread: Vec<f64> = seconds.map(|ns| ns as f64 / 1000.0).chain(us(99.0)).collect();
    let per_second = used.host_written_bytes as f64 / phase.seconds.max(1e-9);
    // What the groomer still does after the card was filled says nothing of a load that writes nothing.
    let years = used.years_to_wear_out.filter(|_| used.host_written_bytes > 0);
    let native = question.is_native();
    let of_card = |figure: Option<f64>| figure.filter(|_| !native);
    let (bytes, raw) = question.sizes(format, &flash.module);
    // An emulated card may be smaller than the card of its data sheet, and wears out sooner by as much.
    let size = bytes as f64 / (built as f64 * by).max(1.0);
    let choice = PredictionChoice {
        capacity: capacity.into(),
        bytes,
        over_provisioning_percent: 100.0 * (raw as f64 / (bytes as f64).max(1.0) - 1.0),
        iops: of_card(Some(all.iops)),
        bytes_per_s: of_card(Some(all.bytes_per_second)),
        p50_us: of_card(us(50.0)),
        p99_us: of_card(us(99.0)),
        p99_least_us: of_card(spread.iter().copied().reduce(f64::min)),
        p99_most_us: of_card(spread.iter().copied().reduce(f64::max)),
        p999_us: of_card(us(99.9)),
        // Parity of a device on several files stands below its layer.
        write_amplification: used
            .write_amplification
            .as_ref()
            .map(|amplification| amplification.total - if native { amplification.parity } else { 0.0 }),
        lifetime_written_bytes: of_card(years.map(|years| years * YEAR * per_second * size)),
        lifetime_days: None,
    };
    Ok(Some((choice, per_second)))
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
