//! `vsl lab predict`: what each capacity of a format would do to a workload. The service asks, on standard input; the virtual world is
//! run once for each capacity, in this process, so that it takes nothing of the service.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use card::{Built, Format, build, usable_bytes};
use lab::engine::{Position, Progress, virtual_time};
use lab::workload::{self, Load, Phase, Precondition, Trace, Workload};
use profile::{Device, Profile};

use daemon::Failure;
use daemon::api::{Prediction, PredictionChoice};
use daemon::prediction::{About, Line, Question};

use crate::output::raw;

/// Host capacity that is simulated, about: large enough for hundreds of erase blocks, small enough for seconds.
const SIMULATED: u64 = 2 << 30;
/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// Seconds of a year.
const YEAR: f64 = 365.25 * DAY;

/// Answers the question on standard input, a line of JSON each time that it gets further.
pub fn predict() -> Result<(), Failure> {
    let question: Question = serde_json::from_reader(std::io::stdin())
        .map_err(|error| Failure::invalid(format!("standard input is no question of the service: {error}")))?;
    let profile = profile::find(&question.profile).map_err(|error| Failure::invalid(error.to_string()))?;
    say(&Line::Done(of(Asked { question, profile })?))
}

fn say(line: &Line) -> Result<(), Failure> {
    let text = serde_json::to_string(line).map_err(|error| Failure::failed(error.to_string()))?;
    raw(format!("{text}\n").as_bytes())
}

/// A question, and the data sheet that it names.
struct Asked {
    question: Question,
    profile: Profile,
}

/// Host capacity of a device in a format, bytes. What is high performance an emulated card knows, as every card has its own.
fn bytes(about: &About, format: Format, module: &profile::Module) -> u64 {
    let share = |percent: f64| (about.advertised_bytes as f64 * percent / 100.0) as u64;
    let of_card = module.high_performance_bytes.filter(|_| about.emulated);
    match format {
        Format::Stock => about.advertised_bytes,
        Format::HighPerformance => {
            share(of_card.map_or(80.0, |bytes| 100.0 * bytes as f64 / module.advertised_bytes as f64))
        }
        // As much as the raw capacity allows.
        Format::Maximum => share(110.0).min(about.raw_bytes / 100 * 96),
        Format::ImprovedWrite => share(70.0),
        Format::MaximumWrite => share(50.0),
        Format::Percent(percent) => share(percent),
        Format::Bytes(bytes) => bytes,
    }
}

fn workload_of(question: &Question) -> Result<Workload, Failure> {
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
    let found = workload::find(&question.named)
        .ok_or_else(|| Failure::invalid(format!("workload: there is no '{}'", question.named.escape_debug())))?;
    found.map_err(|error| Failure::failed(error.to_string()))
}

/// Runs every choice.
fn of(mut asked: Asked) -> Result<Prediction, Failure> {
    let Device::Flash(flash) = &asked.profile.device else {
        return Err(Failure::invalid(format!("{} is no flash card", asked.profile.name))
            .help("`GET /api/v1/lab/profiles` says which are"));
    };
    if asked.question.capacities.len() > 1 {
        // Some cards have no high-performance format.
        asked
            .question
            .capacities
            .retain(|name| format_of(name).map_or(true, |format| format.bytes(&flash.module).is_some()));
    }
    let (asked, question) = (&asked, &asked.question);
    let scale = u32::try_from((flash.module.advertised_bytes / SIMULATED).clamp(1, 65_536)).unwrap_or(1);
    let mut prediction = Prediction {
        workload: question.named.clone(),
        profile: (!asked.is_native()).then(|| asked.profile.name.clone()),
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
            let choice = one(asked, capacity, scale, &mut Watch { at, far: &far }).map(|(choice, written)| {
                writing.lock().unwrap_or_else(PoisonError::into_inner).push(written);
                choice
            });
            if choice.is_err() {
                next.store(question.capacities.len(), Ordering::Relaxed);
            }
            choices.lock().unwrap_or_else(PoisonError::into_inner).insert(at, choice);
        }
    };
    let threads = available_parallelism().map_or(1, NonZero::get).min(question.capacities.len());
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    for choice in choices.into_inner().unwrap_or_else(PoisonError::into_inner).into_values() {
        prediction.choices.push(choice?);
    }
    compare_lifetimes(&mut prediction, &writing.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(prediction)
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

impl Asked {
    /// Whether it is about a device on files or disks.
    fn is_native(&self) -> bool {
        self.question.about.as_ref().is_some_and(|about| !about.emulated)
    }

    /// Capacity of the device that a choice makes, for the host and in all without parity and reserve, bytes.
    fn sizes(&self, format: Format, module: &profile::Module) -> (u64, u64) {
        match &self.question.about {
            Some(about) => (bytes(about, format, module), about.raw_bytes),
            None => (format.bytes(module).unwrap_or(module.advertised_bytes), usable_bytes(module, largest(module))),
        }
    }
}

/// A card whose over-provisioning is that of a device on files or disks in this format, with its groomer and sectors.
fn stand_in(about: &About, format: Format, options: &mut card::Options, module: &profile::Module) {
    let share = bytes(about, format, module) as f64 / (about.raw_bytes as f64).max(1.0);
    options.format = Format::Bytes((usable_bytes(module, about.sector_bytes) as f64 * share) as u64);
    options.sector_bytes = Some(about.sector_bytes);
    options.policy = card::Policy::from_name(&about.groomer);
}

/// The largest sector of a module's formats, bytes.
fn largest(module: &profile::Module) -> u32 {
    module.format.sector_bytes.iter().copied().max().unwrap_or(4096)
}

/// A capacity as the model of a card has it.
fn format_of(capacity: &str) -> Result<Format, Failure> {
    capacity.parse::<device::Capacity>().map(Format::from).map_err(Failure::invalid)
}

/// One choice, and what the host wrote a second.
fn one(asked: &Asked, capacity: &str, scale: u32, watch: &mut Watch<'_>) -> Result<(PredictionChoice, f64), Failure> {
    let (question, profile) = (&asked.question, &asked.profile);
    let workload = workload_of(question)?;
    let driver = profile.drivers.get("linux").or_else(|| profile.drivers.values().next()).copied().unwrap_or_default();
    let format = format_of(capacity)?;
    let Device::Flash(flash) = &profile.device else { return Err(Failure::failed("no flash card")) };
    let mut options = card::Options { format, scale, driver, ..card::Options::default() };
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
    let (results, _) = run.map_err(|error| Failure::invalid(error.to_string()))?;
    let phase = results.measured().last().ok_or_else(|| Failure::invalid("the workload measures nothing"))?;
    let (all, used) = (&phase.total.all, &phase.device_use);
    let us = |quantile: f64| all.latency.percentile(quantile).map(|ns| ns as f64 / 1000.0);
    let seconds = phase.series.iter().filter_map(|row| row.ops.all.latency.percentile(99.0));
    let spread: Vec<f64> = seconds.map(|ns| ns as f64 / 1000.0).chain(us(99.0)).collect();
    let per_second = used.host_written_bytes as f64 / phase.seconds.max(1e-9);
    // What the groomer still does after the card was filled says nothing of a load that writes nothing.
    let years = used.years_to_wear_out.filter(|_| used.host_written_bytes > 0);
    let native = asked.is_native();
    let of_card = |figure: Option<f64>| figure.filter(|_| !native);
    let (bytes, raw) = asked.sizes(format, &flash.module);
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
    Ok((choice, per_second))
}

struct Watch<'a> {
    /// Which of all capacities it is, and how far each is.
    at: usize,
    far: &'a Mutex<Vec<f64>>,
}

impl Progress for Watch<'_> {
    fn at(&mut self, position: &Position<'_>) -> ControlFlow<()> {
        let phases = position.phases.max(1) as f64;
        let done = (position.phase as f64 + position.done.clamp(0.0, 1.0)) / phases;
        let mut far = self.far.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut far[self.at], done);
        // A hundred lines a capacity: nobody can read more. Once the service reads no more, nobody waits for the rest.
        let further = (done * 100.0).floor() > (before * 100.0).floor();
        match !further || say(&Line::At(far.iter().sum::<f64>() / far.len() as f64, far.len())).is_ok() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}
