//! `vsl sim`.

mod asked;
mod over_time;
mod watch;

use std::process::ExitCode;

use daemon::Failure;
use lab::results::{Ended, Results, table};
use lab::simulation::Setting;
use lab::workload::names;
use serde_json::json;

use crate::args::sim::Sim;
use crate::output::{Output, raw};
use crate::progress::INTERRUPTED;

pub fn sim(args: &Sim, output: Output) -> Result<ExitCode, Failure> {
    if args.list {
        return list(output).map(|()| ExitCode::SUCCESS);
    }
    let Some(device) = &args.device else {
        return Err(Failure::invalid("no device is given").help("`vsl profiles` lists them"));
    };
    let mut ready =
        asked::simulation(device, args, output)?.build().map_err(|error| Failure::invalid(error.to_string()))?;
    if args.dry_run {
        let text = toml::to_string(&ready.workload)
            .map_err(|error| Failure::failed(format!("the workload cannot be written as TOML: {error}")))?;
        return output.result(&ready.workload, || text).map(|()| ExitCode::SUCCESS);
    }
    let mut watch = watch::Watch::new(output)?;
    let run = ready.run(&mut watch);
    watch.finish();
    let results = run.map_err(|error| Failure::invalid(error.to_string()))?;
    print(&results, &ready.setting, args, output)?;
    Ok(match results.ended {
        Ended::Complete => ExitCode::SUCCESS,
        Ended::Interrupted => ExitCode::from(INTERRUPTED),
        Ended::Failed(_) => ExitCode::FAILURE,
    })
}

fn print(results: &Results, setting: &Setting, args: &Sim, output: Output) -> Result<(), Failure> {
    if output.json {
        return output.result(&setting.beside(results), String::new);
    }
    let mut text = setting.text();
    text.push_str(&table(results));
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
