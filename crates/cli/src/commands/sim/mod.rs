//! `vsl sim`.

mod asked;
mod chips;
mod machine;
mod over_time;
mod watch;

use std::process::ExitCode;

use daemon::Failure;
use lab::engine::virtual_time;
use lab::results::{Ended, Results, fio_json, table};
use lab::workload::names;
use serde_json::{Value, json};

use self::machine::Setting;
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
    let (workload, notes) = asked::workload(args)?;
    for note in &notes {
        output.note(&format!("note: {note}"));
    }
    let how = asked::precondition(args);
    let (mut built, setting) = machine::build_for(device, args, how, &workload)?;
    let workload =
        workload.scaled(setting.scaled_by).preconditioned(how, built.devices.len() as u32, setting.sector_bytes);
    if args.dry_run {
        let text = toml::to_string(&workload)
            .map_err(|error| Failure::failed(format!("the workload cannot be written as TOML: {error}")))?;
        return output.result(&workload, || text).map(|()| ExitCode::SUCCESS);
    }
    let options = virtual_time::Options {
        driver: setting.costs,
        interval: args.interval.nanos(),
        now: 0,
        scaled_by: setting.scaled_by,
        ..virtual_time::Options::default()
    };
    let mut watch = watch::Watch::new(output)?;
    let run = chips::run(&workload, &mut built.devices, &options, &args.machine.kill_chip, &mut watch);
    watch.finish();
    let (results, chips) = run?;
    print(&results, &chips, &setting, args, output)?;
    Ok(match results.ended {
        Ended::Complete => ExitCode::SUCCESS,
        Ended::Interrupted => ExitCode::from(INTERRUPTED),
        Ended::Failed(_) => ExitCode::FAILURE,
    })
}

fn print(
    results: &Results,
    chips: &[chips::Happened],
    setting: &Setting,
    args: &Sim,
    output: Output,
) -> Result<(), Failure> {
    if output.json {
        let mut whole = fio_json(results);
        if let Some(own) = whole.get_mut("openvsl").and_then(Value::as_object_mut) {
            own.insert("setting".into(), json!(setting));
            if !chips.is_empty() {
                own.insert("chips".into(), json!(chips));
            }
        }
        return output.result(&whole, String::new);
    }
    let mut text = setting.text();
    text.push_str(&table(results));
    chips.iter().for_each(|happened| text.push_str(&format!("{happened}\n")));
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
