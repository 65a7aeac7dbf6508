//! `vsl sim`.

mod asked;
mod over_time;
mod snapshots;
mod watch;

use std::fmt::Display;
use std::process::ExitCode;

use daemon::Failure;
use lab::results::{Ended, Results, table};
use lab::simulation::{Ready, Setting, Simulation};
use lab::workload::names;
use serde_json::{Value, json};

use self::snapshots::Costs;
use crate::args::sim::Sim;
use crate::output::{Output, raw};
use crate::progress::INTERRUPTED;

pub fn sim(args: &Sim, output: Output) -> Result<ExitCode, Failure> {
    if args.list {
        return list(output).map(|()| ExitCode::SUCCESS);
    }
    if let Some(prices) = args.store.objects {
        let mut ready = asked::on_objects(prices, args, output)?.build().map_err(invalid)?;
        if args.dry_run {
            return dry_run(&ready, output);
        }
        let results = run(&mut ready, output)?;
        print(&results, &ready.setting, None, args, output)?;
        return Ok(status(&results));
    }
    let Some(device) = &args.device else {
        return Err(Failure::invalid("no device is given").help("`vsl profiles` lists them"));
    };
    let simulation = asked::simulation(device, args, output)?;
    let mut ready = simulation.clone().build().map_err(invalid)?;
    if args.dry_run {
        return dry_run(&ready, output);
    }
    // The same device and the same requests, twice.
    let without = simulation
        .snapshots
        .map(|_| run(&mut Simulation { snapshots: None, ..simulation.clone() }.build().map_err(invalid)?, output))
        .transpose()?;
    let results = run(&mut ready, output)?;
    let costs = simulation.snapshots.zip(without.as_ref());
    let costs = costs.map(|(schedule, without)| Costs { schedule, without, with: &results });
    print(&results, &ready.setting, costs.as_ref(), args, output)?;
    Ok(status(&results))
}

fn dry_run(ready: &Ready, output: Output) -> Result<ExitCode, Failure> {
    let text = toml::to_string(&ready.workload)
        .map_err(|error| Failure::failed(format!("the workload cannot be written as TOML: {error}")))?;
    output.result(&ready.workload, || text).map(|()| ExitCode::SUCCESS)
}

fn run(ready: &mut Ready, output: Output) -> Result<Results, Failure> {
    let mut watch = watch::Watch::new(output)?;
    let run = ready.run(&mut watch);
    watch.finish();
    run.map_err(invalid)
}

fn status(results: &Results) -> ExitCode {
    match results.ended {
        Ended::Complete => ExitCode::SUCCESS,
        Ended::Interrupted => ExitCode::from(INTERRUPTED),
        Ended::Failed(_) => ExitCode::FAILURE,
    }
}

fn invalid(error: impl Display) -> Failure {
    Failure::invalid(error.to_string())
}

fn print(
    results: &Results,
    setting: &Setting,
    costs: Option<&Costs>,
    args: &Sim,
    output: Output,
) -> Result<(), Failure> {
    if output.json {
        let mut whole = setting.beside(results);
        if let (Some(own), Some(costs)) = (whole.get_mut("openvsl").and_then(Value::as_object_mut), costs) {
            own.insert("snapshots".into(), costs.json());
        }
        return output.result(&whole, String::new);
    }
    let mut text = setting.text();
    text.push_str(&table(results));
    setting.chips.iter().for_each(|happened| text.push_str(&format!("{happened}\n")));
    if let Some(costs) = costs {
        text.push_str(&costs.text());
    }
    if args.over_time {
        text.push_str(&over_time::rows(results));
    }
    raw(text.as_bytes())
}

fn list(output: Output) -> Result<(), Failure> {
    let mut workloads = Vec::new();
    for named in names() {
        let workload = lab::workload::from_toml(named.text)
            .map_err(|error| Failure::failed(format!("the built-in workload {}: {error}", named.name)))?;
        workloads.push(workload);
    }
    output.result(&json!({ "workloads": workloads }), || {
        workloads.iter().map(|workload| format!("{:<27} {}\n", workload.name, workload.description)).collect()
    })
}
