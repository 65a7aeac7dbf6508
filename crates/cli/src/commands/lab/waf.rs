//! `vsl lab waf`.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use chart::Size;
use daemon::Failure;
use lab::waf::{Erases, Measured, Policy, Recorded, Setup, Traffic, Workload, cells, measure};
use serde_json::json;

use super::page::save;
use crate::args::lab::waf::Waf;
use crate::output::Output;
use crate::progress::{INTERRUPTED, Interrupt, bar};

/// As in published tables, and for wear.
const DRIVE_WRITES: u32 = 24;
const WORN: u32 = 500;
/// Per cent, as in published tables.
const OVER_PROVISIONING: [f64; 3] = [7.0, 15.0, 28.0];

/// Of the space beyond the sectors, at least so much should be in use.
const LEAST_USED: f64 = 0.9;

pub fn waf(args: &Waf, output: Output) -> Result<ExitCode, Failure> {
    let setup = Setup {
        sectors: args.sectors,
        drive_writes: args.drive_writes.unwrap_or(if args.wear { WORN } else { DRIVE_WRITES }),
        loops: args.loops,
        as_published: args.as_published,
        wear: args.wear.then_some(true),
        seed: args.seed,
    };
    let traffic = traffic(args)?;
    let policies = if args.policy.is_empty() { Policy::BY_THEMSELVES.to_vec() } else { args.policy.clone() };
    let percents = if args.over_provisioning.is_empty() { &OVER_PROVISIONING[..] } else { &args.over_provisioning };
    let shares: Vec<f64> = percents.iter().map(|percent| percent / 100.0).collect();
    let cells = cells(&traffic, &shares, &policies);
    let interrupt = Interrupt::listen()?;
    let bar = bar(output, "{bar:30} {pos}/{len} cells, {elapsed}, about {eta} left  {msg}")?;
    bar.set_length(cells.len() as u64 * if args.wear { 2 } else { 1 });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.jobs.map_or(processors, |jobs| jobs as usize);
    let done = |cell: &Measured| {
        bar.set_message(format!("{} {}: {:.2}", cell.workload, cell.policy, cell.write_amplification));
        bar.inc(1);
    };
    let run = |setup: &Setup| measure(setup, &cells, threads, &|| interrupt.came(), &done);
    let levelled = run(&setup);
    let left_alone = if args.wear { run(&Setup { wear: Some(false), ..setup.clone() }) } else { Ok(Vec::new()) };
    bar.finish_and_clear();
    let stuck = |stuck: lab::waf::Stuck| Failure::failed(stuck.to_string());
    let (measured, left_alone) = (levelled.map_err(stuck)?, left_alone.map_err(stuck)?);
    let mut value = json!({ "setup": setup, "cells": measured });
    if args.wear {
        value["without_levelling"] = json!(left_alone);
    }
    if let Some(directory) = &args.out {
        write(directory, &value, &setup, &measured)?;
    }
    let text = || if args.wear { wear(&measured, &left_alone) } else { table(&measured) };
    output.result(&value, || text() + &scarce(&traffic, &measured))?;
    Ok(if interrupt.came() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn traffic(args: &Waf) -> Result<Vec<Traffic>, Failure> {
    let mut traffic: Vec<Traffic> = args.workload.iter().copied().map(Traffic::Made).collect();
    if let Some(file) = &args.trace {
        let recorded = Recorded::read(file, &trace::Wanted { format: args.trace_format, volume: None })
            .map_err(|error| Failure::invalid(error.to_string()))?;
        let name = file.file_stem().map_or_else(|| "trace".into(), |name| name.to_string_lossy().into_owned());
        traffic.push(Traffic::Recorded(name, Arc::new(recorded)));
    }
    if traffic.is_empty() {
        traffic = Workload::ALL.into_iter().map(Traffic::Made).collect();
    }
    Ok(traffic)
}

fn write(directory: &Path, value: &serde_json::Value, setup: &Setup, measured: &[Measured]) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| Failure::io(directory, &error))?;
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    save(&directory.join("waf.json"), text.as_bytes())?;
    for chart in report::waf_charts(setup, measured, Policy::default().name()) {
        save(&directory.join(format!("{}.svg", chart.key())), chart.svg(Size::Normal).as_bytes())?;
    }
    Ok(())
}

/// A line for each workload and policy, a column for each over-provisioning.
fn table(measured: &[Measured]) -> String {
    let mut columns: Vec<f64> = Vec::new();
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for cell in measured {
        if !columns.contains(&cell.over_provisioning_percent) {
            columns.push(cell.over_provisioning_percent);
        }
        if !rows.contains(&(cell.workload.as_str(), cell.policy)) {
            rows.push((&cell.workload, cell.policy));
        }
    }
    let mut text = format!("{:<24} {:<18}", "write amplification", "");
    columns.iter().for_each(|percent| text += &format!(" {:>8}", format!("{percent} %")));
    text.push('\n');
    for (workload, policy) in rows {
        let _ = write!(text, "{workload:<24} {policy:<18}");
        for percent in &columns {
            let cell = measured.iter().find(|cell| {
                cell.workload == workload && cell.policy == policy && cell.over_provisioning_percent == *percent
            });
            match cell {
                Some(cell) => text += &format!(" {:>8.2}", cell.write_amplification),
                None => text += &format!(" {:>8}", "-"),
            }
        }
        text.push('\n');
    }
    text
}

/// Where the layer's own reserves take much of a small device's space, figures are not those of a large one.
fn scarce(traffic: &[Traffic], measured: &[Measured]) -> String {
    // A recording begins on an empty device, which may never be full.
    let made = |cell: &&Measured| {
        traffic.iter().any(|traffic| matches!(traffic, Traffic::Made(_)) && traffic.name() == cell.workload)
    };
    let used = |cell: &Measured| (cell.slots_a_sector - 1.0) * 100.0;
    let short = measured.iter().filter(made).filter(|cell| used(cell) < LEAST_USED * cell.over_provisioning_percent);
    let Some(worst) = short.min_by(|one, other| used(one).total_cmp(&used(other))) else { return String::new() };
    format!(
        "\nOf the {} % beyond the sectors only {:.1} % could be written to ({}): the rest is kept free or being filled, which is so many LEBs\n\
         whatever the size. With more --sectors it is less of all.\n",
        worst.over_provisioning_percent,
        used(worst).max(0.0),
        worst.policy,
    )
}

/// A line for each cell: how often blocks were erased, and what levelling costs.
fn wear(levelled: &[Measured], left_alone: &[Measured]) -> String {
    let mut text = format!(
        "{:<24} {:<18} {:>6} {:>8} {:>18} {:>18} {:>8} {:>8}\n",
        "wear", "", "spare", "erases", "with levelling", "without", "moved", "cost"
    );
    for cell in levelled {
        let other = left_alone.iter().find(|other| {
            other.workload == cell.workload
                && other.policy == cell.policy
                && other.over_provisioning_percent == cell.over_provisioning_percent
        });
        let (Some(other), Some(erases)) = (other, &cell.erases) else { continue };
        let spread = |erases: &Erases| {
            let (least, most) = erases.spread_percent();
            format!("{least:+.1} to {most:+.1} %")
        };
        let _ = writeln!(
            text,
            "{:<24} {:<18} {:>6} {:>8.0} {:>18} {:>18} {:>8} {:>8}",
            cell.workload,
            cell.policy,
            format!("{} %", cell.over_provisioning_percent),
            erases.mean,
            spread(erases),
            other.erases.as_ref().map(spread).unwrap_or_default(),
            format!("{:.2} %", erases.moved_a_write / cell.write_amplification * 100.0),
            format!("{:+.2} %", (cell.write_amplification / other.write_amplification - 1.0) * 100.0),
        );
    }
    text
}
