//! The workload that `vsl sim` is asked for.

use std::path::Path;

use daemon::Failure;
use lab::fio_job;
use lab::workload::{self, Phase, Precondition, Trace, Workload};

use crate::args::sim::{self, Sim};

/// How long is measured when nothing is said, as fio writes it.
const RUNTIME: &str = "10s";

/// The workload, and notes about it.
pub fn workload(args: &Sim) -> Result<(Workload, Vec<String>), Failure> {
    let (mut workload, notes) = match (&args.workload, &args.job) {
        (Some(name), _) => (named(name)?, Vec::new()),
        (None, Some(path)) => {
            let (mut workload, notes) = fio_job::read(path).map_err(|error| Failure::invalid(error.to_string()))?;
            change(&mut workload, &args.load)?;
            (workload, notes)
        }
        (None, None) if args.load.rw.is_some() => from_options(&args.load, true)?,
        (None, None) if args.trace.trace.is_some() => {
            let rule = args.trace.map.unwrap_or_default();
            (
                of_trace(args)?,
                vec![format!(
                    "addresses of the trace are placed by the rule '{rule}'; docs/traces.md says what that keeps"
                )],
            )
        }
        (None, None) => {
            return Err(Failure::invalid("nothing says what to run").help(
                "give --workload NAME (`vsl sim --list`), --job FILE, --trace FILE, or --rw with fio's options",
            ));
        }
    };
    if args.workload.is_some() {
        change(&mut workload, &args.load)?;
    }
    if let Some(seed) = args.seed {
        workload.seed = seed;
    }
    Ok((workload, notes))
}

/// What the device has been through before. Files say so themselves.
pub fn precondition(args: &Sim) -> Precondition {
    let file = args.job.is_some() || args.workload.as_ref().is_some_and(|name| workload::find(name).is_none());
    match args.precondition {
        Some(sim::Precondition::Fresh) => Precondition::Fresh,
        Some(sim::Precondition::Fill) => Precondition::Fill,
        Some(sim::Precondition::Random) => Precondition::Random,
        Some(sim::Precondition::Workload) => Precondition::Workload,
        None if file => Precondition::Fresh,
        None => Precondition::Fill,
    }
}

/// A workload that comes with the program, or that of a file.
fn named(name: &str) -> Result<Workload, Failure> {
    if let Some(workload) = workload::find(name) {
        return workload.map_err(|error| Failure::failed(format!("the built-in workload {name}: {error}")));
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(Failure::invalid(format!("'{name}' is neither a workload's name nor a file"))
            .help("`vsl sim --list` lists the names"));
    }
    workload::read(path).map_err(|error| Failure::invalid(error.to_string()))
}

/// A workload of fio's options. With `whole` they are all there is, without it some of them are to be put in place of others.
fn from_options(load: &sim::Load, whole: bool) -> Result<(Workload, Vec<String>), Failure> {
    let given = [
        ("bs", &load.bs),
        ("bssplit", &load.bssplit),
        ("rwmixread", &load.rwmixread),
        ("iodepth", &load.iodepth),
        ("numjobs", &load.numjobs),
        ("runtime", &load.runtime),
        ("ramp_time", &load.ramp_time),
        ("size", &load.size),
        ("offset", &load.offset),
        ("rate_iops", &load.rate_iops),
        ("rate_process", &load.rate_process),
        ("random_distribution", &load.random_distribution),
        ("percentage_random", &load.percentage_random),
    ];
    let mut options: Vec<(String, String)> =
        given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?))).collect();
    options.push(("rw".into(), load.rw.clone().unwrap_or_else(|| "randrw".into())));
    if whole && load.runtime.is_none() {
        options.push(("runtime".into(), RUNTIME.into()));
    }
    if whole || load.runtime.is_some() {
        options.push(("time_based".into(), "1".into()));
    }
    fio_job::from_options("measure", &options).map_err(|error| Failure::invalid(error.to_string()))
}

/// A workload that plays a trace.
fn of_trace(args: &Sim) -> Result<Workload, Failure> {
    let asked = &args.trace;
    let trace = Trace {
        file: asked.trace.clone().unwrap_or_default(),
        format: asked.trace_format,
        volume: asked.trace_volume.clone(),
        map: asked.map.unwrap_or_default(),
        pace: asked.pace.unwrap_or_default(),
    };
    let (given, _) = from_options(&args.load, false)?;
    let from = given.phases.first();
    let depth = args.load.iodepth.as_ref().and_then(|_| from?.loads.first()?.depth);
    let phase = Phase {
        name: "measure".into(),
        measured: true,
        ramp: from.filter(|_| args.load.ramp_time.is_some()).map(|phase| phase.ramp).unwrap_or_default(),
        stop: from.filter(|_| args.load.runtime.is_some()).map(|phase| phase.stop).unwrap_or_default(),
        loads: vec![workload::Load::of_trace(trace, depth)],
    };
    let workload = Workload { name: "trace".into(), description: String::new(), seed: 1, phases: vec![phase] };
    workload.validate().map_err(|invalid| Failure::invalid(invalid.to_string()))?;
    Ok(workload)
}

/// Puts what is given in place of what the measured phases say.
fn change(workload: &mut Workload, load: &sim::Load) -> Result<(), Failure> {
    let (given, _) = from_options(load, false)?;
    let Some(phase) = given.phases.first() else { return Ok(()) };
    let Some(from) = phase.loads.first() else { return Ok(()) };
    for to in workload.phases.iter_mut().filter(|phase| phase.measured) {
        if load.runtime.is_some() {
            to.stop = phase.stop;
        }
        if load.ramp_time.is_some() {
            to.ramp = phase.ramp;
        }
        for to in &mut to.loads {
            if load.bs.is_some() {
                to.size = from.size.clone();
                to.write_size = from.write_size.clone();
                to.align = to.align.and(from.align);
            }
            if load.rwmixread.is_some() {
                to.read_percent = from.read_percent;
            }
            if load.numjobs.is_some() {
                to.threads = from.threads;
            }
            if load.iodepth.is_some() {
                to.depth = from.depth;
            }
            if let (Some(_), Some(mut rate)) = (&load.rate_iops, from.rate) {
                // That of one thread, by as many as there are.
                rate.per_second = rate.per_second / f64::from(from.threads) * f64::from(to.threads);
                to.rate = Some(rate);
            }
            if load.runtime.is_some() {
                to.thread_bytes = None;
            }
        }
    }
    workload.validate().map_err(|invalid| Failure::invalid(invalid.to_string()))
}
