//! What `vsl sim` is asked for.

use card::{Arrangement, Options, Surroundings};
use daemon::Failure;
use lab::simulation::{Asked, AskedError, OnObjects, Simulation};
use lab::workload::{self, Trace, Workload};
use media::object::Prices;

use crate::args::Switch;
use crate::args::sim::{self, Sim};
use crate::output::Output;

/// The device of a name, and what it is to do; notes about that are printed.
pub fn simulation(name: &str, args: &Sim, output: Output) -> Result<Simulation, Failure> {
    let asked = asked(args)?;
    let workload = workload(&asked, args, output)?;
    let machine = &args.machine;
    let profile =
        profile::find(name).map_err(|error| Failure::invalid(error.to_string()).help("`vsl profiles` lists them"))?;
    let options = Options {
        arrangement: Arrangement::from(machine.array),
        format: machine.format,
        sector_bytes: machine.sector,
        scale: machine.scale,
        write_cache: machine.write_cache.map(|switch| switch == Switch::On),
        surroundings: Surroundings {
            ambient_celsius: machine.ambient,
            airflow_lfm: machine.airflow,
            power_unlimited: machine.external_power,
        },
        policy: machine.groomer,
        pacing: machine.pacing,
        grooms_ahead: machine.idle_grooming == Switch::On,
        seed: args.seed.unwrap_or(1),
        ..Options::default()
    };
    // A disk is the same whatever it holds, and what fills it would leave the cache full of that.
    let usual = || if args.cache.cache.is_some() { workload::Precondition::Fresh } else { asked.precondition() };
    let precondition = args.precondition.map_or_else(usual, workload::Precondition::from);
    let driver = machine.driver.clone();
    let (interval, snapshots) = (args.interval.nanos(), machine.snapshots());
    Ok(Simulation {
        profile,
        options,
        driver,
        precondition,
        workload,
        interval,
        snapshots,
        kills: machine.kill_chip.clone(),
        cache: args.cache.plan()?,
    })
}

/// What a device on objects is to do.
pub fn on_objects(prices: Prices, args: &Sim, output: Output) -> Result<OnObjects, Failure> {
    let asked = asked(args)?;
    let workload = workload(&asked, args, output)?;
    let config = args.store.config(prices, &args.machine, args.seed.unwrap_or(1))?;
    let precondition = args.precondition.map_or_else(|| asked.precondition(), workload::Precondition::from);
    Ok(OnObjects { config, precondition, workload, interval: args.interval.nanos() })
}

/// The workload that is asked for; notes about it are printed.
fn workload(asked: &Asked, args: &Sim, output: Output) -> Result<Workload, Failure> {
    let (mut workload, notes) = asked.workload(&options(&args.load)).map_err(|error| {
        let help = matches!(error, AskedError::Unknown(_)).then_some("`vsl sim --list` lists the names");
        let failure = Failure::invalid(error.to_string());
        help.map_or(failure.clone(), |help| failure.help(help))
    })?;
    for note in &notes {
        output.note(&format!("note: {note}"));
    }
    workload.seed = args.seed.unwrap_or(workload.seed);
    Ok(if args.unplaced { workload.unplaced() } else { workload })
}

fn asked(args: &Sim) -> Result<Asked, Failure> {
    let trace = &args.trace;
    match (&args.workload, &args.job, &trace.trace) {
        (Some(name), _, _) => Ok(Asked::Named(name.clone())),
        (None, Some(path), _) => Ok(Asked::Job(path.clone())),
        (None, None, _) if args.load.rw.is_some() => Ok(Asked::Options),
        (None, None, Some(file)) => Ok(Asked::Trace(Trace {
            file: file.clone(),
            format: trace.trace_format,
            volume: trace.trace_volume.clone(),
            map: trace.map.unwrap_or_default(),
            pace: trace.pace.unwrap_or_default(),
        })),
        (None, None, None) => Err(Failure::invalid("nothing says what to run")
            .help("give --workload NAME (`vsl sim --list`), --job FILE, --trace FILE, or --rw with fio's options")),
    }
}

/// Those of fio's options that are given.
fn options(load: &sim::Load) -> Vec<(String, String)> {
    let all = [
        ("rw", &load.rw),
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
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
}
