//! From a protocol and a target to parts and steps.

use std::path::PathBuf;

use card::Arrangement;
use toml::Spanned;

use super::combine::{Combination, combinations, point};
use super::record::{PartPlan, PlanLine, Point, VERSION};
use crate::cached::CachePlan;
use crate::protocol::{Form, Made, Played, Protocol, Role, Stage, Test, Tracked};
use crate::published::{is_disk, preparation, sources};
use crate::steady::Rule;
use crate::workload::{Extent, Load, Phase, Stop, Time};

/// What is asked of a protocol.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The quick form.
    pub quick: bool,
    /// Devices: data sheets, or the one name of a real target.
    pub devices: Vec<String>,
    /// Whether they are data sheets: then formats, arrangements and caches are a choice.
    pub is_virtual: bool,
    /// Formats in place of the protocol's.
    pub formats: Option<Vec<String>>,
    /// Arrangements in place of the protocol's.
    pub arrays: Option<Vec<String>>,
    /// The host's drivers in place of the protocol's.
    pub drivers: Option<Vec<String>>,
    /// Only these tests.
    pub tests: Vec<String>,
    /// How often everything is done, each time from another seed.
    pub repeat: u32,
    /// The first seed.
    pub seed: u64,
    /// A recorded trace in place of those that the protocol's stages play.
    pub trace: Option<PathBuf>,
    /// Virtual devices are built about so many times smaller, and the volumes of made traces with them.
    pub scale: u32,
    /// What a real device holds, bytes: a made trace is of no larger volume.
    pub holds: Option<u64>,
    /// The run's directory, where traces are made.
    pub directory: PathBuf,
    /// A cache in front of virtual disks: each is run without it, then with it.
    pub cache: Option<CachePlan>,
}

/// Why nothing can be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoPlan(pub String);

/// Everything that is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its parts.
    pub parts: Vec<Part>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// One test on one device in one format and arrangement.
#[derive(Clone, Debug)]
pub struct Part {
    /// What of it is written down.
    pub plan: PartPlan,
    /// What is done, in order.
    pub stages: Vec<StagePlan>,
    /// The host's driver, where the test's source has one.
    pub driver: Option<String>,
    /// Traces that are made before it begins.
    pub made: Vec<Made>,
}

/// One stage.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Steps of a round, in order.
    pub steps: Vec<StepPlan>,
    /// Rounds; 0 leaves it to the rule of the steady state, see [`StagePlan::most_rounds`].
    pub rounds: u32,
    /// Rounds end when all of these are steady.
    pub tracked: Vec<Tracked>,
    /// Whether that ends the rounds.
    pub until_steady: bool,
    /// Rounds end when so many times the capacity was written.
    pub until_written: Option<f64>,
    /// The trace that it plays.
    pub played: Option<Played>,
}

impl StagePlan {
    /// Rounds that are done at most, under this rule of the steady state.
    pub fn most_rounds(&self, rule: &Rule) -> u32 {
        if self.rounds == 0 { rule.at_most } else { self.rounds }
    }
}

/// One step.
#[derive(Clone, Debug)]
pub struct StepPlan {
    /// What distinguishes it within its round.
    pub label: String,
    /// Its settings, for readers.
    pub point: Point,
    /// What is asked, for how long; idle without loads.
    pub phase: Phase,
    /// Idle time before it.
    pub pause: Time,
    /// Intervals of its results over time, about.
    pub intervals: u32,
}

/// Intervals of a step where the protocol does not say.
const INTERVALS: u32 = 60;
/// The shortest that anything becomes in a shortened form.
const SHORTEST: std::time::Duration = std::time::Duration::from_millis(10);

impl Plan {
    /// Of a protocol.
    ///
    /// # Errors
    /// What is wanted of it does not exist.
    pub fn new(protocol: &Protocol, wanted: &Wanted) -> Result<Plan, NoPlan> {
        let form = protocol.form(wanted.quick);
        let mut left_out = Vec::new();
        for name in &wanted.tests {
            if !protocol.tests.iter().any(|test| test.name() == name) {
                let known: Vec<&str> = protocol.tests.iter().map(Test::name).collect();
                return Err(NoPlan(format!(
                    "{} has no test '{name}'; there are: {}",
                    protocol.name(),
                    known.join(", ")
                )));
            }
        }
        let stages = || protocol.tests.iter().flat_map(|test| &test.stages);
        if wanted.trace.is_some() && !stages().any(|stage| stage.trace.is_some()) {
            return Err(NoPlan(format!("{} plays no trace, so none can be given in its place", protocol.name())));
        }
        let setups = setups(protocol, form, wanted, &mut left_out)?;
        let mut parts = Vec::new();
        for test in protocol
            .tests
            .iter()
            .filter(|test| wanted.tests.is_empty() || wanted.tests.iter().any(|name| name == test.name()))
        {
            let disk_form = Form { times: form.disk_times.unwrap_or(form.times), ..form.clone() };
            for setup in &setups {
                let form = if setup.is_disk { &disk_form } else { form };
                for (label, prepared) in variants(test, form, wanted.quick, setup.arrangement()?)? {
                    for repeat in 0..wanted.repeat.max(1) {
                        parts.push(part(test, setup, &label, &prepared, repeat, wanted));
                    }
                }
            }
        }
        Ok(Plan { parts, left_out })
    }

    /// What of it is written down.
    pub fn line(&self) -> PlanLine {
        PlanLine {
            version: VERSION,
            parts: self.parts.iter().map(|part| part.plan.clone()).collect(),
            left_out: self.left_out.clone(),
        }
    }
}

/// A device in a format and an arrangement.
struct Setup {
    device: String,
    format: Option<String>,
    array: Option<String>,
    write_cache: Option<bool>,
    /// The host's driver, where somebody named one.
    driver: Option<String>,
    /// A virtual disk, or an array of them.
    is_disk: bool,
    /// The cache in front of it.
    cache: Option<String>,
}

impl Setup {
    fn arrangement(&self) -> Result<Arrangement, NoPlan> {
        self.array.as_deref().map_or(Ok(Arrangement::Single), |name| name.parse().map_err(NoPlan))
    }
}

fn setups(protocol: &Protocol, form: &Form, wanted: &Wanted, left_out: &mut Vec<String>) -> Result<Vec<Setup>, NoPlan> {
    let devices = if wanted.devices.is_empty() { &protocol.devices } else { &wanted.devices };
    if devices.is_empty() {
        return Err(NoPlan(format!("{} is for any device; name one with --device", protocol.name())));
    }
    let choice = |asked: &Option<Vec<String>>, form: &Option<Vec<String>>, all: &Spanned<Vec<String>>| {
        asked.clone().or_else(|| form.clone()).unwrap_or_else(|| all.get_ref().clone())
    };
    let formats = choice(&wanted.formats, &form.formats, &protocol.formats);
    let arrays = choice(&wanted.arrays, &form.arrays, &protocol.arrays);
    let named = wanted.drivers.as_ref().unwrap_or(&protocol.drivers);
    let mut drivers: Vec<Option<String>> = named.iter().cloned().map(Some).collect();
    if drivers.is_empty() {
        drivers.push(None);
    }
    let mut setups: Vec<Setup> = Vec::new();
    for device in devices {
        if !wanted.is_virtual {
            let device = device.clone();
            let (format, array, write_cache, driver, cache) = (None, None, None, None, None);
            setups.push(Setup { device, format, array, write_cache, driver, is_disk: false, cache });
            continue;
        }
        let profile = profile::find(device).map_err(|error| NoPlan(error.to_string()))?;
        if let Some(cache) = &wanted.cache {
            cache.check(&profile).map_err(|error| NoPlan(error.to_string()))?;
        }
        let flash = std::iter::once(None).chain(wanted.cache.as_ref().map(|cache| Some(cache.to_string())));
        let known = super::setting::Choices::of(&profile);
        let before = setups.len();
        for array in &arrays {
            for format in &formats {
                if let Some(problem) = known.refuses(format, array, &formats, &arrays) {
                    left_out.push(format!("{device}: {problem}"));
                    continue;
                }
                let caches: Vec<Option<bool>> = match protocol.write_caches[..] {
                    [] => vec![None],
                    _ if !known.has_write_cache => vec![None],
                    ref list => list.iter().copied().map(Some).collect(),
                };
                for (write_cache, driver) in caches.iter().flat_map(|cache| drivers.iter().map(move |it| (cache, it))) {
                    if let Some(name) = driver.as_ref().filter(|name| !profile.drivers.contains_key(*name)) {
                        left_out.push(format!("{device}: nobody knows what a driver for '{name}' costs there"));
                        continue;
                    }
                    setups.extend(flash.clone().map(|cache| Setup {
                        device: profile.name.clone(),
                        format: known.has_formats.then(|| format.clone()),
                        array: Some(known.array(array).into()),
                        write_cache: *write_cache,
                        driver: driver.clone(),
                        is_disk: is_disk(&profile),
                        cache,
                    }));
                }
            }
        }
        if setups.len() == before {
            return Err(NoPlan(format!(
                "{device} can be tested in none of the formats, arrangements and drivers: {}",
                left_out.join("; ")
            )));
        }
    }
    Ok(setups)
}

/// What is done in a part: its stages, and how the device is brought to where they begin.
struct Prepared {
    stages: Vec<StagePlan>,
    driver: Option<String>,
}

/// The ways a test is done on one device: one, or one for each point where each has a device of its own.
fn variants(
    test: &Test,
    form: &Form,
    quick: bool,
    arrangement: Arrangement,
) -> Result<Vec<(String, Prepared)>, NoPlan> {
    let fail = |problem: String| NoPlan(format!("test '{}': {problem}", test.name()));
    // Each with the stage that it is a point of.
    let mut alternatives: Vec<(String, Option<(&str, Combination)>)> = Vec::new();
    for stage in test.stages.iter().filter(|stage| test.each_anew && stage.role == Role::Measure) {
        let all = combinations(test, stage, vary(stage, quick)).map_err(fail)?;
        alternatives.extend(all.into_iter().map(|one| (one.label.clone(), Some((stage.name(), one)))));
    }
    if alternatives.is_empty() {
        alternatives.push((String::new(), None));
    }
    let mut variants = Vec::new();
    for (label, only) in alternatives {
        let mut prepared = Prepared { stages: Vec::new(), driver: None };
        if let Some(name) = &test.prepared_as {
            let load = match &only {
                Some((_, one)) => one.load.clone(),
                None => heaviest(test, quick).map_err(fail)?,
            };
            prepare(test, name.get_ref(), arrangement, load, &mut prepared).map_err(fail)?;
        }
        for stage in &test.stages {
            let only = only.as_ref().filter(|_| stage.role == Role::Measure);
            if only.is_some_and(|(name, _)| *name != stage.name()) {
                continue;
            }
            let only = only.map(|(_, one)| one);
            prepared.stages.push(stage_plan(test, stage, form, quick, only).map_err(fail)?);
        }
        variants.push((label, prepared));
    }
    Ok(variants)
}

/// The load of what is measured with the most outstanding.
fn heaviest(test: &Test, quick: bool) -> Result<Load, String> {
    let mut all = Vec::new();
    for stage in test.stages.iter().filter(|stage| stage.role == Role::Measure) {
        all.extend(combinations(test, stage, vary(stage, quick))?);
    }
    let heaviest =
        all.into_iter().map(|one| one.load).max_by_key(|load| u64::from(load.threads) * u64::from(load.depth()));
    heaviest.ok_or_else(|| "it measures nothing".into())
}

/// Preparation as the published measurements of a source are assumed to have done it.
fn prepare(
    test: &Test,
    source: &str,
    arrangement: Arrangement,
    load: Load,
    prepared: &mut Prepared,
) -> Result<(), String> {
    let all = sources().map_err(|error| error.to_string())?;
    let source =
        all.into_iter().find(|it| it.name == source).ok_or_else(|| format!("no source is called '{source}'"))?;
    let source = source.for_workload(test.published.as_deref().unwrap_or(test.name()));
    for phase in preparation(&source, arrangement, &load) {
        let role = if phase.name == "fill" { Role::Fill } else { Role::Precondition };
        prepared.stages.push(StagePlan {
            name: phase.name.clone(),
            role,
            steps: vec![StepPlan {
                label: String::new(),
                point: point(phase.loads.first(), Time::default()),
                phase,
                pause: Time::default(),
                intervals: INTERVALS,
            }],
            rounds: 1,
            tracked: Vec::new(),
            until_steady: true,
            until_written: None,
            played: None,
        });
    }
    prepared.driver = Some(source.driver);
    Ok(())
}

fn vary(stage: &Stage, quick: bool) -> &crate::protocol::Vary {
    let own = stage.quick.as_ref().filter(|_| quick).and_then(|quick| quick.vary.as_ref());
    own.unwrap_or(&stage.vary)
}

fn stage_plan(
    test: &Test,
    stage: &Stage,
    form: &Form,
    is_quick: bool,
    only: Option<&Combination>,
) -> Result<StagePlan, String> {
    let quick = stage.quick.as_ref().filter(|_| is_quick);
    let shorter = |time: Time, least: std::time::Duration| Time(time.0.div_f64(form.times).max(least.min(time.0)));
    let duration = match quick.and_then(|quick| quick.duration) {
        Some(duration) => Some(duration),
        None if quick.is_some_and(|quick| quick.written.is_some()) => None,
        None => stage.duration.map(|time| shorter(time, form.least.0)),
    };
    let written = quick
        .and_then(|quick| quick.written)
        .or(stage.written.filter(|_| quick.is_none_or(|quick| quick.duration.is_none())));
    let ramp = shorter(stage.ramp, SHORTEST);
    let all = match (only, stage.role) {
        (Some(one), _) => vec![Combination { label: String::new(), ..one.clone() }],
        (None, Role::Idle) => Vec::new(),
        (None, _) => combinations(test, stage, vary(stage, is_quick))?,
    };
    let intervals = stage.intervals.unwrap_or(INTERVALS);
    let mut steps = Vec::new();
    if stage.role == Role::Idle {
        steps.push(StepPlan {
            label: String::new(),
            point: point(None, Time::default()),
            phase: Phase {
                name: stage.name().into(),
                measured: false,
                ramp: Time::default(),
                stop: Stop { duration, ..Stop::default() },
                loads: Vec::new(),
            },
            pause: Time::default(),
            intervals,
        });
    }
    for one in all {
        let share = one.load.write_percent() / 100.0;
        // Times over the part that is used. Where that is given in bytes, who knows the device sees to it.
        let used = match one.load.region.size {
            Some(Extent::Percent(percent)) => percent / 100.0,
            _ => 1.0,
        };
        let capacities = match written {
            None => None,
            Some(_) if share <= 0.0 => {
                return Err(format!("stage '{}' ends when enough was written, and only reads", stage.name()));
            }
            Some(times) => Some(times / share * used),
        };
        let pause = match quick.and_then(|quick| quick.pause) {
            Some(pause) if stage.vary.pause.is_empty() => pause,
            _ => shorter(one.pause, SHORTEST),
        };
        steps.push(StepPlan {
            label: one.label,
            point: point(Some(&one.load), pause),
            phase: Phase {
                name: stage.name().into(),
                measured: stage.role == Role::Measure,
                ramp,
                stop: Stop { duration, bytes: None, capacities },
                loads: vec![one.load],
            },
            pause,
            intervals,
        });
    }
    let rounds = quick.and_then(|quick| quick.rounds).or(stage.rounds);
    Ok(StagePlan {
        name: stage.name().into(),
        role: stage.role,
        steps,
        // With something to be steady and no number of its own, the rule's.
        rounds: rounds.unwrap_or(if stage.steady.is_empty() { 1 } else { 0 }),
        tracked: stage.steady.clone(),
        until_steady: stage.until_steady,
        until_written: quick.and_then(|quick| quick.until_written).or(stage.until_written),
        played: stage.trace.clone().map(|played| Played {
            requests: quick.and_then(|quick| quick.requests).unwrap_or(played.requests),
            ..played
        }),
    })
}

#[allow(clippy::too_many_arguments)]
fn part(test: &Test, setup: &Setup, label: &str, prepared: &Prepared, repeat: u32, wanted: &Wanted) -> Part {
    let mut name = vec![test.name().to_string(), short(&setup.device).to_string()];
    name.extend(setup.format.clone());
    name.extend(setup.array.clone());
    name.extend(setup.write_cache.map(|on| format!("cache-{}", if on { "on" } else { "off" })));
    name.extend(setup.driver.clone());
    name.extend(setup.cache.clone());
    if !label.is_empty() {
        name.push(label.into());
    }
    if wanted.repeat > 1 {
        name.push(format!("repeat-{}", repeat + 1));
    }
    let mut stages = prepared.stages.clone();
    // A disk is the same whatever it holds.
    if setup.is_disk {
        stages.retain(|stage| !matches!(stage.role, Role::Fill | Role::Precondition));
    }
    let steps = stages.iter().map(|stage| stage.steps.len() as u32 * stage.rounds.max(1)).sum();
    let seed = wanted.seed.wrapping_add(u64::from(repeat));
    let made = stages.iter_mut().filter_map(|stage| with_trace(stage, wanted, seed)).collect();
    Part {
        plan: PartPlan {
            part: name.join("/"),
            test: test.name().into(),
            title: test.title.clone(),
            device: setup.device.clone(),
            format: setup.format.clone(),
            array: setup.array.clone(),
            write_cache: setup.write_cache,
            driver: setup.driver.clone(),
            cache: setup.cache.clone(),
            point: (!label.is_empty()).then(|| label.into()),
            repeat,
            seed,
            steps,
        },
        stages,
        made,
        driver: setup.driver.clone().or_else(|| prepared.driver.clone()),
    }
}

/// Tells the steps of a stage which file they play; gives what has to be made for it.
fn with_trace(stage: &mut StagePlan, wanted: &Wanted, seed: u64) -> Option<Made> {
    let played = stage.played.as_ref()?;
    let recorded = wanted.trace.as_ref().or(played.file.as_ref());
    let made = match recorded {
        Some(_) => None,
        None => Some(Made::new(played, &wanted.directory, wanted.scale, wanted.holds, seed)),
    };
    let (path, text) = match (&made, recorded) {
        (Some(made), _) => (made.path.clone(), made.text()),
        (None, Some(path)) => (path.clone(), format!("recorded trace {}", path.display())),
        (None, None) => return None,
    };
    for step in &mut stage.steps {
        step.point.trace = Some(text.clone());
        for trace in step.phase.loads.iter_mut().filter_map(|load| load.trace.as_mut()) {
            trace.file = path.clone();
            // What was said of one file says nothing of another.
            if wanted.trace.is_some() {
                (trace.format, trace.volume) = (None, None);
            }
        }
    }
    made
}

/// A device's name as a part of another: of a path or an NBD address what stands last.
fn short(device: &str) -> &str {
    let address = device.split('?').next().unwrap_or(device).trim_end_matches('/');
    match address.rsplit('/').next() {
        Some(last) if !last.is_empty() => last,
        _ => device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short() {
        for (device, expected) in [
            ("wd-re3", "wd-re3"),
            ("/dev/nvme0n1", "nvme0n1"),
            ("nbd+unix:///fct0?socket=/run/openvsl/nbd.sock", "fct0"),
            ("nbd://127.0.0.1:10809/", "127.0.0.1:10809"),
        ] {
            assert_eq!(short(device), expected);
        }
    }
}
