//! Plans and results for people.

use std::fmt::Write;

use super::compare::{compare, repeats_text};
use super::directory::Options;
use super::plan::{Plan, StagePlan, StepPlan};
use super::record::{LoopKind, Step, Verdict};
use super::results::{PartResults, Run};
use crate::protocol::{Protocol, Role};
use crate::results::duration;

/// What is to be done.
pub fn plan_text(protocol: &Protocol, plan: &Plan, options: &Options) -> String {
    let mut text = format!("{}\n{}\nfollows: {}\n", protocol.title, protocol.description, protocol.follows);
    if !protocol.assumes.is_empty() {
        let _ = writeln!(text, "assumes: {}", protocol.assumes);
    }
    let _ = writeln!(
        text,
        "form: {}; steady state: {}",
        if options.quick { "quick" } else { "full" },
        protocol.steady.text()
    );
    for left_out in &plan.left_out {
        let _ = writeln!(text, "left out: {left_out}");
    }
    for part in &plan.parts {
        let _ = writeln!(text, "\n{} ({})", part.plan.part, part.plan.title);
        for stage in &part.stages {
            text.push_str(&stage_text(stage, protocol.steady.at_most));
        }
    }
    text
}

fn stage_text(stage: &StagePlan, at_most: u32) -> String {
    let rounds = match (stage.rounds, stage.tracked.is_empty()) {
        (1, true) => String::new(),
        (0, _) => format!(", at most {at_most} rounds"),
        (rounds, true) => format!(", {rounds} rounds"),
        (rounds, false) => format!(", at most {rounds} rounds"),
    };
    let until: Vec<String> = stage.tracked.iter().map(|tracked| tracked.text()).collect();
    let until = match (until.is_empty(), stage.until_steady) {
        (true, _) => String::new(),
        (false, true) => format!(", until steady: {}", until.join("; ")),
        (false, false) => format!(", judged by {}", until.join("; ")),
    };
    let step = match &stage.steps[..] {
        [one] => step_text(one),
        [first, .., last] => {
            format!("{} steps, from {} to {}; {}", stage.steps.len(), first.label, last.label, length(first))
        }
        [] => String::new(),
    };
    format!("  {:<14} {step}{rounds}{until}\n", stage.name)
}

fn step_text(step: &StepPlan) -> String {
    let point = &step.point;
    if step.phase.loads.is_empty() {
        return format!("idle, {}", length(step));
    }
    if let Some(trace) = &point.trace {
        return format!("{trace}, {} outstanding, {}", point.depth, length(step));
    }
    format!(
        "{} {}, {} % read, {} threads with {} outstanding, {}",
        point.size,
        point.access,
        point.read_percent,
        point.threads,
        point.depth,
        length(step)
    )
}

fn length(step: &StepPlan) -> String {
    let stop = &step.phase.stop;
    match (stop.duration, stop.capacities) {
        (Some(time), _) => format!("{}", humantime::format_duration(time.0)),
        (None, Some(times)) => format!("{times:.2} times the capacity"),
        (None, None) => "until all is done".into(),
    }
}

/// What came of a run.
pub fn report_text(run: &Run) -> String {
    let header = &run.header;
    let mut text = format!("{} ({} form)\n", run.protocol.title, header.form);
    if !header.differs.is_empty() {
        let _ = writeln!(text, "not as published: {}", header.differs);
    }
    let environment = &header.environment;
    let _ = writeln!(
        text,
        "{}, {}, {} processors, vsl {}, begun {}",
        environment.kernel, environment.cpu, environment.processors, environment.vsl, header.started
    );
    for left_out in &run.left_out {
        let _ = writeln!(text, "left out: {left_out}");
    }
    for part in &run.parts {
        part_text(&mut text, part);
    }
    if header.options.repeat > 1 {
        text.push_str(&repeats_text(&compare(std::slice::from_ref(run)), header.options.repeat));
    }
    if !run.finished {
        text.push_str("\nthe run is not finished\n");
    }
    text
}

fn part_text(text: &mut String, part: &PartResults) {
    let _ = writeln!(text, "\n{}", part.plan.part);
    let Some(begin) = &part.begin else {
        let why = part.broke.as_deref().unwrap_or("not begun");
        let _ = writeln!(text, "  {why}");
        return;
    };
    let machine = &begin.machine;
    let _ = writeln!(
        text,
        "  {}, {}{}, sectors of {} B, driver {}{}; {}",
        machine.product,
        if machine.devices > 1 { format!("{} x ", machine.devices) } else { String::new() },
        size::show(machine.bytes),
        machine.sector_bytes,
        machine.driver,
        machine.groomer.as_ref().map_or_else(String::new, |name| format!(", groomer {name}")),
        begin.purge
    );
    for verdict in &part.verdicts {
        let _ = writeln!(text, "  {}", verdict_text(verdict));
    }
    let steps: Vec<&Step> = counted(part);
    if !steps.is_empty() {
        let _ = writeln!(
            text,
            "  {:<28} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}",
            "step", "IO/s", "MB/s", "mean", "p99", "max", "deviation", "WA"
        );
    }
    for step in steps {
        let _ = writeln!(text, "  {}", step_row(step));
    }
    if let Some(broke) = &part.broke {
        let _ = writeln!(text, "  broke off: {broke}");
    } else if !part.complete {
        let _ = writeln!(text, "  not finished");
    }
}

/// Steps that are shown: what was measured, and of rounds the last.
fn counted(part: &PartResults) -> Vec<&Step> {
    let last = |stage: &str| part.steps.iter().filter(|step| step.stage == stage).filter_map(|step| step.round).max();
    part.steps
        .iter()
        .filter(|step| step.role == Role::Measure && (step.round.is_none() || step.round == last(&step.stage)))
        .collect()
}

fn step_row(step: &Step) -> String {
    let all = &step.total.all;
    let p99 = all.latency.percentile(99.0).map_or_else(|| "-".into(), |ns| duration(ns as f64));
    let cache = step.device_use.as_ref().and_then(|used| used.cache.as_ref());
    let flash = cache.map(|cache| &*cache.module).or(step.device_use.as_ref());
    let amplification = flash.and_then(|used| used.write_amplification);
    let hits =
        cache.and_then(|cache| cache.hit_ratio).map_or_else(String::new, |ratio| format!("  hit ratio {ratio:.3}"));
    let open = match step.loop_kind {
        LoopKind::Open => " (open loop)",
        LoopKind::OpenFromSubmission => " (open loop, latency from submission)",
        LoopKind::Closed | LoopKind::Idle => "",
    };
    format!(
        "{:<28} {:>10.0} {:>9.1} {:>9} {:>9} {:>9} {:>9} {:>6}{open}{hits}",
        step.step,
        all.iops,
        all.bytes_per_second / 1e6,
        duration(all.latency.mean_ns),
        p99,
        duration(all.latency.max_ns as f64),
        duration(all.latency.stddev_ns),
        amplification.map_or_else(|| "-".into(), |it| format!("{:.2}", it.total)),
    )
}

/// What the steady-state rule says, in a line.
pub fn verdict_text(verdict: &Verdict) -> String {
    let what = format!("{}: {}", verdict.stage, verdict.tracked);
    match &verdict.window {
        None => format!("{what}: too few rounds to judge ({})", verdict.rounds),
        Some(window) => format!(
            "{what}: {} (mean {:.4}, range {:.4} of {:.4} allowed, excursion {:.4} of {:.4}{})",
            if verdict.steady { "steady" } else { "NOT STEADY" },
            window.mean,
            window.range,
            window.range_allowed,
            window.excursion,
            window.excursion_allowed,
            if verdict.rounds > 0 {
                format!(", rounds {} to {}", window.first_round, verdict.rounds)
            } else {
                String::new()
            }
        ),
    }
}
