//! Cards, drives and disks in virtual time.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use card::{Format, Options, Surroundings};
use device::Capacity;
use lab::engine::{Position, Progress};
use lab::results::Ended;
use lab::simulation::{Asked, Simulation, words};
use lab::workload::{self, Precondition, Time, Trace, Workload};
use profile::Profile;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::errors::SimulationError;

/// How often Python is asked whether the run is to go on, and told where it stands.
const TICK: Duration = Duration::from_millis(100);

/// What Python asks for: the words of `vsl sim`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    profile: Named<Profile>,
    #[serde(default)]
    workload: Option<Named<Workload>>,
    #[serde(default)]
    job: Option<PathBuf>,
    #[serde(default)]
    trace: Option<Trace>,
    /// fio's options.
    #[serde(default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    precondition: Option<Precondition>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    interval: Option<Time>,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    array: Option<String>,
    #[serde(default)]
    driver: Option<String>,
    #[serde(default)]
    sector: Option<u32>,
    #[serde(default)]
    scale: Option<u32>,
    #[serde(default)]
    write_cache: Option<bool>,
    #[serde(default)]
    ambient: Option<f64>,
    #[serde(default)]
    airflow: Option<f64>,
    #[serde(default)]
    external_power: bool,
    #[serde(default)]
    groomer: Option<String>,
    #[serde(default)]
    pacing: Option<String>,
    #[serde(default)]
    idle_grooming: Option<bool>,
}

/// Something by its name, or written out.
#[derive(Deserialize)]
#[serde(untagged)]
enum Named<T> {
    Name(String),
    Written(Box<T>),
}

impl Request {
    fn simulation(self) -> Result<Simulation, String> {
        let named = |name: &'static str| move |expected: String| format!("{name}: {expected}");
        let profile = match self.profile {
            Named::Name(name) => profile::find(&name).map_err(|error| error.to_string())?,
            Named::Written(profile) => *profile,
        };
        let asked = match (self.workload, self.job, self.trace) {
            (Some(Named::Name(name)), None, None) => Asked::Named(name),
            (Some(Named::Written(workload)), None, None) => Asked::Written(workload),
            (None, Some(job), None) => Asked::Job(job),
            (None, None, Some(trace)) => Asked::Trace(trace),
            (None, None, None) if self.options.contains_key("rw") => Asked::Options,
            (None, None, None) => return Err("nothing says what to run: give workload, job, trace or rw".into()),
            _ => return Err("expected one of workload, job and trace".into()),
        };
        let options: Vec<(String, String)> = self.options.into_iter().collect();
        let (mut workload, _) = asked.workload(&options).map_err(|error| error.to_string())?;
        workload.seed = self.seed.unwrap_or(workload.seed);
        let usual = Surroundings::default();
        let interval = self.interval.map_or(1_000_000_000, Time::nanos);
        if interval < words::SHORTEST_INTERVAL {
            return Err("interval: expected a millisecond or more".into());
        }
        let options = Options {
            arrangement: self
                .array
                .map_or(Ok(Default::default()), |text| words::arrangement(&text))
                .map_err(named("array"))?,
            format: self
                .format
                .map_or(Ok(Format::default()), |text| text.parse().map(|capacity: Capacity| capacity.into()))
                .map_err(named("format"))?,
            sector_bytes: self.sector,
            scale: within("scale", self.scale, words::SCALES)?.unwrap_or(words::USUAL_SCALE),
            write_cache: self.write_cache,
            surroundings: Surroundings {
                ambient_celsius: within("ambient", self.ambient, words::AMBIENT_CELSIUS)?
                    .unwrap_or(usual.ambient_celsius),
                airflow_lfm: within("airflow", self.airflow, words::AIRFLOW_LFM)?,
                power_unlimited: self.external_power,
            },
            policy: self.groomer.map(|text| words::policy(&text)).transpose().map_err(named("groomer"))?,
            pacing: self.pacing.map(|text| words::pacing(&text)).transpose().map_err(named("pacing"))?,
            grooms_ahead: self.idle_grooming.unwrap_or(true),
            seed: self.seed.unwrap_or(1),
            ..Options::default()
        };
        let precondition = self.precondition.unwrap_or_else(|| asked.precondition());
        Ok(Simulation {
            profile,
            options,
            driver: self.driver,
            precondition,
            workload,
            interval,
            snapshots: None,
            kills: Vec::new(),
            cache: None,
        })
    }
}

fn within<T: PartialOrd + Display>(
    name: &str,
    value: Option<T>,
    range: RangeInclusive<T>,
) -> Result<Option<T>, String> {
    match value {
        Some(value) if !range.contains(&value) => {
            Err(format!("{name}: {value}: expected {} to {}", range.start(), range.end()))
        }
        value => Ok(value),
    }
}

/// Tells Python where a run stands, and ends it when Python has an exception.
struct Told {
    progress: Option<Py<PyAny>>,
    last: Instant,
    raised: Option<PyErr>,
}

impl Progress for Told {
    fn at(&mut self, position: &Position<'_>) -> ControlFlow<()> {
        if self.last.elapsed() < TICK {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        let told = Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = &self.progress else { return Ok(()) };
            let whole = (position.phase as f64 + position.done) / position.phases as f64;
            progress.call1(py, (position.name, whole)).map(|_| ())
        });
        match told {
            Ok(()) => ControlFlow::Continue(()),
            Err(raised) => {
                self.raised = Some(raised);
                ControlFlow::Break(())
            }
        }
    }
}

/// Runs what a request in JSON asks for, and gives the results as `vsl sim --json` prints them.
#[pyfunction]
#[pyo3(signature = (request, progress = None))]
pub(crate) fn run(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let invalid = |error: String| PyValueError::new_err(error);
    let request: Request = serde_json::from_str(request).map_err(|error| invalid(error.to_string()))?;
    let simulation = request.simulation().map_err(invalid)?;
    let mut told = Told { progress, last: Instant::now(), raised: None };
    let ran = py.detach(|| {
        let mut ready = simulation.build().map_err(|error| error.to_string())?;
        let results = ready.run(&mut told).map_err(|error| error.to_string())?;
        Ok((results.ended.clone(), ready.setting.beside(&results).to_string()))
    });
    if let Some(raised) = told.raised {
        return Err(raised);
    }
    match ran.map_err(invalid)? {
        (Ended::Failed(why), _) => Err(SimulationError::new_err(why)),
        (_, results) => Ok(results),
    }
}

/// The names of all data sheets.
#[pyfunction]
pub(crate) fn data_sheets() -> PyResult<Vec<String>> {
    let all = profile::all().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(all.into_iter().map(|profile| profile.name).collect())
}

/// A data sheet in JSON.
#[pyfunction]
pub(crate) fn data_sheet(name: &str) -> PyResult<String> {
    json(profile::find(name).map_err(|error| error.to_string()))
}

/// A workload that comes with the package, or a file of one, in JSON.
#[pyfunction]
pub(crate) fn named_workload(name: &str) -> PyResult<String> {
    json(Asked::Named(name.into()).workload(&[]).map(|(workload, _)| workload).map_err(|error| error.to_string()))
}

/// The names of the workloads that come with the package.
#[pyfunction]
pub(crate) fn named_workloads() -> Vec<&'static str> {
    workload::names().iter().map(|named| named.name).collect()
}

fn json(found: Result<impl Serialize, String>) -> PyResult<String> {
    let text = found.and_then(|found| serde_json::to_string(&found).map_err(|error| error.to_string()));
    text.map_err(PyValueError::new_err)
}
