//! What a reader must know to use a figure: on what, in which state, how asked, and whether steady.

use lab::protocol::Role;
use lab::run::{Header, LoopKind, Step, Verdict};

use crate::view::{View, distinct};

/// Names and values at the head of every section.
pub(crate) fn facts(view: &View) -> Vec<(String, String)> {
    let mut facts = vec![("Platform".to_string(), platform(&view.run.header)), ("Device".to_string(), device(view))];
    facts.push(("Set-up".to_string(), setup(view)));
    facts.push(("Measured".to_string(), parameters(view)));
    facts.push(("Steady state".to_string(), verdicts(view)));
    facts
}

/// The lines under a chart's title.
pub(crate) fn lines(view: &View) -> Vec<String> {
    let form = &view.run.header.form;
    vec![format!("{} · {form} form", device(view)), setup(view), format!("Steady state: {}", verdicts(view))]
}

/// The machine that the run was made on.
pub(crate) fn platform(header: &Header) -> String {
    let environment = &header.environment;
    let mut words = vec![
        format!("{} processors {}", environment.processors, environment.cpu),
        format!("{} memory", ::size::show(environment.memory_bytes)),
        environment.kernel.clone(),
        format!("vsl {}", environment.vsl),
    ];
    words.extend(environment.fio.clone());
    words.retain(|word| !word.trim().is_empty());
    words.join(", ")
}

fn device(view: &View) -> String {
    // With several formats the size is that of the first: it is said only where it is the same for all.
    let begins = view.variants.iter().filter_map(|variant| variant.part().begin.as_ref());
    let one_size = distinct(begins.map(|begin| begin.machine.bytes)).len() <= 1;
    let describe = |part: &lab::run::PartResults| {
        let plan = &part.plan;
        let Some(machine) = part.begin.as_ref().map(|begin| &begin.machine) else { return plan.device.clone() };
        let mut words = vec![machine.product.clone()];
        words.extend(machine.array.clone().or(plan.array.clone()));
        let count = if machine.devices > 1 { format!("{} x ", machine.devices) } else { String::new() };
        words.extend(one_size.then(|| format!("{count}{}", decimal(machine.bytes))));
        if machine.scaled_by > 1.0 {
            words.push(format!("{} 1:{:.0}", machine.target, machine.scaled_by));
        } else {
            words.push(machine.target.clone());
        }
        words.join(" · ")
    };
    let devices = distinct(view.variants.iter().map(|variant| describe(variant.part())));
    let formats = distinct(view.variants.iter().filter_map(|variant| variant.part().plan.format.clone()));
    let mut text = devices.join("; ");
    if !formats.is_empty() {
        text.push_str(&format!(" · format {}", formats.join(" and ")));
    }
    text
}

fn decimal(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        big if big >= 1e12 => format!("{} TB", chart::digits(big / 1e12, 3)),
        big if big >= 1e9 => format!("{} GB", chart::digits(big / 1e9, 3)),
        small => format!("{} MB", chart::digits(small / 1e6, 3)),
    }
}

/// How the device was emptied and brought into its state.
fn setup(view: &View) -> String {
    let part = view.variants[0].part();
    let mut words: Vec<String> = part.begin.iter().map(|begin| format!("purged ({})", begin.purge)).collect();
    let preparing =
        |step: &&Step| matches!(step.role, Role::Fill | Role::Precondition) && step.loop_kind != LoopKind::Idle;
    let stages = distinct(part.steps.iter().filter(preparing).map(|step| step.stage.clone()));
    for stage in stages {
        let steps: Vec<&Step> = part.steps.iter().filter(|step| step.stage == stage).collect();
        let Some(step) = steps.first() else { continue };
        let seconds: f64 = steps.iter().map(|step| step.seconds).sum();
        let written: f64 = steps.iter().map(|step| step.total.write.bytes as f64).sum();
        let point = &step.point;
        words.push(format!(
            "{stage}: {} {} {} at {}, {}{}",
            size(step),
            point.access,
            mix(point.read_percent),
            load(step),
            time(seconds),
            if written > 0.0 { format!(", {} written", decimal(written as u64)) } else { String::new() }
        ));
    }
    if words.is_empty() { "as it was found".to_string() } else { words.join("; ") }
}

/// What was asked while it was measured.
fn parameters(view: &View) -> String {
    let steps = view.variants[0].stage(None);
    let Some(first) = steps.first() else { return "nothing yet".to_string() };
    let list = |words: Vec<String>, unit: &str| match &words[..] {
        [one] => format!("{one}{unit}"),
        [first, .., last] => format!("{first} to {last}{unit}"),
        [] => String::new(),
    };
    let points = distinct(steps.iter().map(|step| crate::view::key(step))).len();
    let sizes = distinct(steps.iter().map(|step| size(step)));
    let mixes = distinct(steps.iter().map(|step| step.point.read_percent))
        .into_iter()
        .map(|percent| percent.to_string())
        .collect();
    let loads = distinct(steps.iter().map(|step| load(step)));
    let access = distinct(steps.iter().map(|step| step.point.access.clone()));
    format!(
        "{}{} {}, {}, {}; {} each; {}",
        if points > 1 { format!("{points} points: ") } else { String::new() },
        list(sizes, ""),
        access.join(" and "),
        list(mixes, " % read"),
        list(loads, ""),
        time(first.seconds),
        loop_words(first.loop_kind)
    )
}

/// Whether requests wait for each other, in words.
fn loop_words(kind: LoopKind) -> &'static str {
    match kind {
        LoopKind::Closed => "closed loop",
        LoopKind::Open => "open loop, latency from the intended start",
        LoopKind::OpenFromSubmission => "open loop, latency from submission",
        LoopKind::Idle => "idle",
    }
}

/// Threads and requests of each.
pub(crate) fn load(step: &Step) -> String {
    format!("{}T/{}Q", step.point.threads, step.point.depth)
}

/// A size in words: a bare number is one of bytes.
pub(crate) fn size(step: &Step) -> String {
    let size = &step.point.size;
    if size.parse::<u64>().is_ok() { format!("{size} B") } else { size.clone() }
}

/// A part of the device in words: its first or last so many per cent; another as it is written.
pub(crate) fn region(step: &Step) -> String {
    let Some(region) = &step.point.region else { return String::new() };
    let percent = |text: &str| text.trim_end_matches('%').parse::<f64>().ok();
    match region.split_once('+') {
        Some((offset, size)) if percent(offset) == Some(0.0) => format!("first {}", size.replace('%', " %")),
        Some((offset, size))
            if size.ends_with('%')
                && percent(offset).zip(percent(size)).is_some_and(|(at, size)| at + size == 100.0) =>
        {
            format!("last {}", size.replace('%', " %"))
        }
        _ => format!("at {region}"),
    }
}

/// A mix in words.
pub(crate) fn mix(read_percent: f64) -> String {
    match read_percent {
        100.0 => "reads".to_string(),
        0.0 => "writes".to_string(),
        percent => format!("{percent} % reads"),
    }
}

fn time(seconds: f64) -> String {
    chart::Unit::Elapsed.one(seconds).replace('\u{a0}', " ")
}

/// Verdicts that are written out; of more, only the bad ones are named.
const WRITTEN_OUT: usize = 2;

/// What the rule says of each variant.
fn verdicts(view: &View) -> String {
    let mut all: Vec<(String, &Verdict)> = Vec::new();
    for variant in &view.variants {
        for part in variant.repeats.iter().flatten() {
            let of = |one: &Verdict| {
                let stage = if one.rounds > 0 { String::new() } else { one.stage.clone() };
                let point = part.plan.point.clone().unwrap_or_default();
                crate::view::joined(&[variant.name.clone(), point, stage])
            };
            all.extend(part.verdicts.iter().map(|one| (of(one), one)));
        }
    }
    if all.is_empty() {
        return "not judged".to_string();
    }
    if all.len() <= WRITTEN_OUT {
        let each = all.iter().map(|(whose, one)| match whose.as_str() {
            "" => verdict(one),
            whose => format!("{whose}: {}", verdict(one)),
        });
        return each.collect::<Vec<_>>().join("; ");
    }
    let bad: Vec<&str> = all.iter().filter(|(_, one)| !one.steady).map(|(whose, _)| whose.as_str()).collect();
    let good = all.len() - bad.len();
    let named = match bad.len() {
        0 => String::new(),
        few if few <= 3 => format!("; NOT steady: {}", bad.join(", ")),
        many => format!("; NOT steady: {many}, see the section's table"),
    };
    format!("{good} of {} courses steady{named}", all.len())
}

/// A verdict in a few words.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    let Some(window) = &verdict.window else {
        return format!("not judged, too few rounds ({})", verdict.rounds);
    };
    let of_mean = |value: f64| if window.mean == 0.0 { 0.0 } else { value / window.mean.abs() * 100.0 };
    let rounds = if verdict.rounds > 0 {
        format!(", rounds {} to {}", window.first_round, verdict.rounds)
    } else {
        String::new()
    };
    format!(
        "{}{rounds} (range {:.1} % of {:.0} % allowed, slope {:.1} % of {:.0} %)",
        if verdict.steady { "steady" } else { "NOT steady" },
        of_mean(window.range),
        of_mean(window.range_allowed),
        of_mean(window.excursion),
        of_mean(window.excursion_allowed)
    )
}
