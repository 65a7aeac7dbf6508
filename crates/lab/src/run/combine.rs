//! From a stage to its steps: every combination of what it varies.

use crate::protocol::{Stage, Test, Tracked, Vary};
use crate::run::record::Point;
use crate::workload::{Access, Bytes, Extent, Load, Phase, Region, Sizes, Stop, Time, Workload};

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// What distinguishes it within its stage: such as `t2-q4`; empty where nothing is varied.
    pub label: String,
    /// What is asked.
    pub load: Load,
    /// Idle time before it.
    pub pause: Time,
}

/// The loads of every combination.
///
/// # Errors
/// One of them makes no sense.
pub fn loads(test: &Test, stage: &Stage, vary: &Vary) -> Result<Vec<Load>, String> {
    Ok(combinations(test, stage, vary)?.into_iter().map(|one| one.load).collect())
}

/// Whether steps with this load are what must be steady.
pub fn is_tracked(tracked: &Tracked, load: &Load) -> bool {
    let size = |bytes: Bytes| load.size.list().iter().all(|entry| entry.size == bytes);
    tracked.size.is_none_or(size) && tracked.read_percent.is_none_or(|percent| percent == load.read_percent)
}

/// Every combination of what a stage varies, the outermost first.
///
/// # Errors
/// One of them makes no sense.
pub fn combinations(test: &Test, stage: &Stage, vary: &Vary) -> Result<Vec<Combination>, String> {
    let base = match &stage.trace {
        // Which file it is depends on the run: see the plan.
        Some(played) => Load::of_trace(played.trace(played.file.clone().unwrap_or_default()), stage.depth),
        None => with_settings(test.base(stage).map_err(|(_, problem)| problem)?, stage),
    };
    let mut all = vec![Combination { label: String::new(), load: base, pause: stage.pause }];
    all = spread(all, &vary.pause, |one, pause| {
        one.pause = *pause;
        format!("pause{}", humantime::format_duration(pause.0)).replace(' ', "")
    });
    all = spread(all, &vary.region, |one, region| {
        one.load.region = *region;
        format!("at{}", region_label(region))
    });
    all = spread(all, &vary.access, |one, access| {
        one.load.access = access.clone();
        access_label(access)
    });
    all = spread(all, &vary.read_percent, |one, percent| {
        one.load.read_percent = *percent;
        format!("r{percent}")
    });
    all = spread(all, &vary.size, |one, bytes| {
        one.load.size = Sizes::One(*bytes);
        one.load.write_size = None;
        size::exact(bytes.0)
    });
    all = spread(all, &vary.threads, |one, threads| {
        one.load.threads = *threads;
        format!("t{threads}")
    });
    all = spread(all, &vary.depth, |one, depth| {
        one.load.depth = Some(*depth);
        format!("q{depth}")
    });
    for one in &mut all {
        if stage.mirror && one.load.read_percent == 100.0 {
            one.load.read_percent = 0.0;
        }
        let stop = Stop { duration: Some(Time(std::time::Duration::from_secs(1))), ..Stop::default() };
        let phase = Phase {
            name: stage.name().into(),
            measured: true,
            ramp: Time::default(),
            stop,
            loads: vec![one.load.clone()],
        };
        let workload = Workload { name: test.name().into(), description: String::new(), seed: 1, phases: vec![phase] };
        workload.validate().map_err(|invalid| invalid.problem)?;
    }
    Ok(all)
}

fn spread<T>(all: Vec<Combination>, values: &[T], set: impl Fn(&mut Combination, &T) -> String) -> Vec<Combination> {
    if values.is_empty() {
        return all;
    }
    let mut more = Vec::with_capacity(all.len() * values.len());
    for one in all {
        for value in values {
            let mut next = one.clone();
            let label = set(&mut next, value);
            next.label = if one.label.is_empty() { label } else { format!("{}-{label}", one.label) };
            more.push(next);
        }
    }
    more
}

/// The load that a stage begins from, with what the stage itself says.
fn with_settings(base: Option<Load>, stage: &Stage) -> Load {
    let mut load = base.unwrap_or_else(|| Load::new(0.0, Sizes::One(Bytes(4096))));
    if let Some(size) = &stage.size {
        load.size = size.clone();
        load.write_size = None;
    }
    load.read_percent = stage.read_percent.unwrap_or(load.read_percent);
    load.access = stage.access.clone().unwrap_or(load.access);
    load.streams = stage.streams.unwrap_or(load.streams);
    load.region = stage.region.unwrap_or(load.region);
    load.threads = stage.threads.unwrap_or(load.threads);
    load.depth = stage.depth.or(load.depth);
    load.rate = stage.rate.or(load.rate);
    load
}

/// The settings of a load, for readers.
pub fn point(load: Option<&Load>, pause: Time) -> Point {
    let pause_seconds = (pause.nanos() > 0).then_some(pause.0.as_secs_f64());
    let Some(load) = load else {
        return Point { access: "idle".into(), pause_seconds, ..Point::default() };
    };
    if load.trace.is_some() {
        // How much of it reads is known once it was played.
        let (size, access) = ("mixed".into(), "trace".into());
        return Point { size, access, threads: load.threads, depth: load.depth(), pause_seconds, ..Point::default() };
    }
    let (reads, writes) = load.sizes();
    let mut sizes: Vec<u64> = Vec::new();
    if load.read_percent > 0.0 {
        sizes.extend(reads.iter().map(|entry| entry.size.0));
    }
    if load.read_percent < 100.0 {
        sizes.extend(writes.iter().map(|entry| entry.size.0));
    }
    sizes.sort_unstable();
    sizes.dedup();
    let (size, size_bytes) = match sizes[..] {
        [one] => (size::exact(one), Some(one)),
        [first, .., last] => (format!("{}-{} mix", size::exact(first), size::exact(last)), None),
        [] => (String::new(), None),
    };
    Point {
        size,
        size_bytes,
        read_percent: load.read_percent,
        access: access_label(&load.access),
        threads: load.threads,
        depth: load.depth(),
        region: (!load.region.is_whole()).then(|| region_label(&load.region)),
        pause_seconds,
        rate: load.rate.map(|rate| rate.per_second),
        trace: None,
    }
}

fn access_label(access: &Access) -> String {
    match access {
        Access::Random => "random".into(),
        Access::Shuffled => "shuffled".into(),
        Access::Sequential => "sequential".into(),
        Access::Mixed(percent) => format!("{percent}% random"),
        Access::Zipf(theta) => format!("zipf {theta}"),
        Access::HotCold(hot) => format!("{}% to {}%", hot.accesses, hot.space),
        Access::Zones(zones) => format!("{} zones", zones.len()),
    }
}

fn region_label(region: &Region) -> String {
    let size = region.size.map_or_else(|| "rest".into(), |size| size.to_string());
    match region.offset {
        Extent::Bytes(0) => format!("0+{size}"),
        offset => format!("{offset}+{size}"),
    }
}
