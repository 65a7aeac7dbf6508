//! The workload that a simulation is asked for.

use std::path::{Path, PathBuf};

use crate::fio_job::{self, JobError};
use crate::workload::{self, Invalid, Load, Phase, Precondition, ReadError, Trace, Workload};

/// How long is measured when nothing is said, as fio writes it.
const RUNTIME: &str = "10s";

/// Where a workload comes from.
#[derive(Clone, Debug)]
pub enum Asked {
    /// One that comes with the program, or a file of one.
    Named(String),
    /// What somebody wrote themselves.
    Written(Box<Workload>),
    /// A job file of fio.
    Job(PathBuf),
    /// A trace.
    Trace(Trace),
    /// fio's options are all there is.
    Options,
}

/// Why there is no such workload.
#[derive(Debug, thiserror::Error)]
pub enum AskedError {
    /// Neither a name nor a file.
    #[error("'{0}' is neither a workload's name nor a file")]
    Unknown(String),
    /// A file, or what was written, is none.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// A job or an option of fio makes no sense.
    #[error("{0}")]
    Job(#[from] JobError),
    /// All together make no sense.
    #[error("{0}")]
    Invalid(#[from] Invalid),
}

impl Asked {
    /// The workload, and notes about it. `options` are fio's, by their names with underscores: they are the workload or change its
    /// measured phases.
    ///
    /// # Errors
    /// What is no workload, or no option.
    pub fn workload(&self, options: &[(String, String)]) -> Result<(Workload, Vec<String>), AskedError> {
        let (mut workload, notes) = match self {
            Asked::Options => return Ok(whole(options)?),
            Asked::Trace(trace) => {
                let note = format!(
                    "addresses of the trace are placed by the rule '{}'; docs/traces.md says what that keeps",
                    trace.map
                );
                return Ok((of_trace(trace.clone(), options)?, vec![note]));
            }
            Asked::Named(name) => (named(name)?, Vec::new()),
            Asked::Written(workload) => ((**workload).clone(), Vec::new()),
            Asked::Job(path) => fio_job::read(path)?,
        };
        change(&mut workload, options)?;
        workload.validate()?;
        Ok((workload, notes))
    }

    /// What the device has been through where nobody says it: files say so themselves.
    pub fn precondition(&self) -> Precondition {
        match self {
            Asked::Written(_) | Asked::Job(_) => Precondition::Fresh,
            Asked::Named(name) if workload::find(name).is_none() => Precondition::Fresh,
            Asked::Named(_) | Asked::Trace(_) | Asked::Options => Precondition::Fill,
        }
    }
}

/// A workload that comes with the program, or that of a file.
fn named(name: &str) -> Result<Workload, AskedError> {
    if let Some(workload) = workload::find(name) {
        return Ok(workload?);
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(AskedError::Unknown(name.into()));
    }
    Ok(workload::read(path)?)
}

/// A workload of fio's options and nothing else.
fn whole(options: &[(String, String)]) -> Result<(Workload, Vec<String>), JobError> {
    let mut options = options.to_vec();
    if !has(&options, "runtime") {
        options.push(("runtime".into(), RUNTIME.into()));
    }
    options.push(("time_based".into(), "1".into()));
    fio_job::from_options("measure", &options)
}

fn has(options: &[(String, String)], name: &str) -> bool {
    options.iter().any(|(key, _)| key == name)
}

/// What some options say: the phase that they would be by themselves.
fn said(options: &[(String, String)]) -> Result<Option<Phase>, JobError> {
    let mut options = options.to_vec();
    if !has(&options, "rw") {
        options.push(("rw".into(), "randrw".into()));
    }
    if has(&options, "runtime") {
        options.push(("time_based".into(), "1".into()));
    }
    let (workload, _) = fio_job::from_options("measure", &options)?;
    Ok(workload.phases.into_iter().next())
}

/// A workload that plays a trace.
fn of_trace(trace: Trace, options: &[(String, String)]) -> Result<Workload, AskedError> {
    let from = said(options)?;
    let given = |name| from.as_ref().filter(|_| has(options, name));
    let depth = given("iodepth").and_then(|phase| phase.loads.first()?.depth);
    let phase = Phase {
        name: "measure".into(),
        measured: true,
        ramp: given("ramp_time").map(|phase| phase.ramp).unwrap_or_default(),
        stop: given("runtime").map(|phase| phase.stop).unwrap_or_default(),
        loads: vec![Load::of_trace(trace, depth)],
    };
    let workload = Workload { name: "trace".into(), description: String::new(), seed: 1, phases: vec![phase] };
    workload.validate()?;
    Ok(workload)
}

/// Puts what is given in place of what the measured phases say.
fn change(workload: &mut Workload, options: &[(String, String)]) -> Result<(), JobError> {
    let Some(phase) = said(options)? else { return Ok(()) };
    let Some(from) = phase.loads.first() else { return Ok(()) };
    let given = |name| has(options, name);
    for to in workload.phases.iter_mut().filter(|phase| phase.measured) {
        if given("runtime") {
            to.stop = phase.stop;
        }
        if given("ramp_time") {
            to.ramp = phase.ramp;
        }
        for to in &mut to.loads {
            if given("bs") {
                to.size = from.size.clone();
                to.write_size = from.write_size.clone();
                to.align = to.align.and(from.align);
            }
            if given("rwmixread") {
                to.read_percent = from.read_percent;
            }
            if given("numjobs") {
                to.threads = from.threads;
            }
            if given("iodepth") {
                to.depth = from.depth;
            }
            if let (true, Some(mut rate)) = (given("rate_iops"), from.rate) {
                // That of one thread, by as many as there are.
                rate.per_second = rate.per_second / f64::from(from.threads) * f64::from(to.threads);
                to.rate = Some(rate);
            }
            if given("runtime") {
                to.thread_bytes = None;
            }
        }
    }
    Ok(())
}
