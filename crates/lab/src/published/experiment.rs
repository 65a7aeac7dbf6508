//! From a row to what is run: everything follows from the row's columns, its source and the device's data sheet.

use std::time::Duration;

use card::{Arrangement, Format, Options, Surroundings};
use profile::{Device, Profile};

use super::row::Row;
use super::source::Source;
use crate::workload::prepare::{phase, writes};
use crate::workload::{
    Access, Arrivals, Bytes, Extent, Load, Phase, Rate, Region, Sizes, Stop, Streams, Time, Weighted, Workload, find,
};

/// Outstanding requests of a sweep, as Fujitsu's tests have them.
const SWEEP: [u32; 9] = [1, 3, 8, 16, 32, 64, 128, 256, 512];
/// Requests of the mail-server trace: see `docs/published.md`.
const MAIL_SIZES: [(u64, f64); 5] =
    [(4 << 10, 84.0), (8 << 10, 8.0), (16 << 10, 3.0), (32 << 10, 3.5), (64 << 10, 1.5)];
/// Pieces in which a device is filled.
const FILL_BYTES: u64 = 128 << 10;
/// Share of the measured time that is not counted at its beginning.
const RAMP: f64 = 0.1;
/// Requests that may be outstanding where they come at a rate, and where they age a device before.
const OPEN_DEPTH: u32 = 512;
const AGEING_DEPTH: u32 = 64;
/// How many times the capacity is written at that rate before it is measured.
const SETTLED: f64 = 0.1;

/// Why a row cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// What is run for a row, and what is read off it.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The device's name.
    pub device: String,
    /// How it is built, and what the host costs.
    pub options: Options,
    /// What is run, sizes at full scale.
    pub workload: Workload,
}

/// What is read off the measured phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Requests a second, the most of all phases.
    Iops,
    /// Millions of bytes a second, the most of all phases.
    MegabytesPerSecond,
    /// Shortest latency, ms.
    Least,
    /// Mean latency, ms.
    Mean,
    /// Longest latency, ms.
    Most,
    /// Standard deviation of latency, ms.
    Deviation,
    /// Mean latency of reads alone, ms.
    Reads,
    /// 99th percentile of the latency of reads alone, ms.
    SlowReads,
    /// Bytes programmed for each that the host wrote.
    Amplification,
}

impl Reading {
    /// What a row's metric and unit mean. A word such as "burst" or "steady" in front says when.
    fn new(metric: &str, unit: &str) -> Result<Reading, Unfit> {
        let when = ["burst ", "steady ", "fill "];
        let what = when.iter().fold(metric, |metric, when| metric.trim_start_matches(when));
        match (what, unit) {
            ("transactions" | "iops", "IO/s") => Ok(Reading::Iops),
            ("throughput", "MB/s") => Ok(Reading::MegabytesPerSecond),
            ("min latency", "ms") => Ok(Reading::Least),
            ("avg latency" | "latency", "ms") => Ok(Reading::Mean),
            ("max latency", "ms") => Ok(Reading::Most),
            ("latency stddev" | "stddev", "ms") => Ok(Reading::Deviation),
            ("read latency", "ms") => Ok(Reading::Reads),
            ("p99 read latency", "ms") => Ok(Reading::SlowReads),
            ("write amplification", "x") => Ok(Reading::Amplification),
            _ => Err(Unfit(format!(
                "metric '{metric}' in '{unit}' is not known; there are: transactions (IO/s), throughput (MB/s), latency, min, avg and max latency, latency stddev, read latency, p99 read latency (ms), write amplification (x)"
            ))),
        }
    }
}

/// What a row's columns mean.
pub fn experiment(
    row: &Row,
    source: &Source,
    profile: &Profile,
    settings: &super::Settings,
) -> Result<(Experiment, Reading), Unfit> {
    let reading = Reading::new(&row.metric, &row.unit)?;
    let source = source.for_workload(&row.workload);
    let arrangement: Arrangement = row.array.parse().map_err(Unfit)?;
    let format: Format = row.format.parse().map_err(Unfit)?;
    let (outstanding, beside) = beside(&row.outstanding)?;
    let depths = depths(outstanding, &source)?;
    let sizes = sizes(row)?;
    let access = match row.access.as_str() {
        "random" => Access::Random,
        "sequential" => Access::Sequential,
        // Mail lies all over its store; what the trace asked for in which order is not known.
        "trace" => Access::Random,
        other => match other.strip_prefix("zipf ").and_then(|theta| theta.parse().ok()) {
            Some(theta) => Access::Zipf(theta),
            None => {
                return Err(Unfit(format!(
                    "access '{other}' is not known; there are: random, sequential, trace, such as 'zipf 0.8'"
                )));
            }
        },
    };
    let driver_name = driver_name(row, &source);
    let driver = *profile.drivers.get(driver_name).ok_or_else(|| {
        let known: Vec<&str> = profile.drivers.keys().map(String::as_str).collect();
        Unfit(format!("{} has no driver '{driver_name}'; it has: {}", profile.name, known.join(", ")))
    })?;
    let smallest = sizes.list().iter().map(|it| it.size.0).min().unwrap_or(4096);
    let options = Options {
        arrangement,
        format,
        sector_bytes: profile.largest_sector(&|sector| smallest.is_multiple_of(u64::from(sector))),
        scale: settings.scale,
        // Reviewers plug the external power in, or override the slot's limit.
        surroundings: Surroundings { power_unlimited: true, ..Surroundings::default() },
        driver,
        ..Options::default()
    };
    let region = source
        .file
        .map_or_else(Region::default, |file| Region { offset: Extent::Bytes(0), size: Some(Extent::Bytes(file.0)) });
    let load = |outstanding: u32| {
        let threads = threads(&source, outstanding);
        Load {
            name: String::new(),
            read_percent: row.read_pct,
            trim_percent: 0.0,
            size: sizes.clone(),
            write_size: None,
            access: access.clone(),
            streams: Streams::Shared,
            object: None,
            align: Some(Bytes(smallest)),
            region,
            placement: None,
            threads,
            depth: Some(outstanding.div_ceil(threads)),
            rate: None,
            thread_bytes: None,
            trace: None,
        }
    };
    let is_disk = is_disk(profile);
    let mut phases = Vec::new();
    // A burst and a fill begin on erased flash; everything else on a device that holds data.
    let fill = row.metric.starts_with("fill ");
    let burst = fill || row.metric.starts_with("burst ");
    let others = beside.map(|rate| {
        let Load { size, region, .. } = load(1);
        let writes = writes(smallest, Access::Random, 1);
        Load {
            name: "beside".into(),
            size,
            region,
            rate: Some(Rate { per_second: rate, arrivals: Arrivals::Poisson }),
            depth: Some(OPEN_DEPTH),
            ..writes
        }
    });
    // A disk is the same whatever it holds.
    if !burst && !is_disk {
        let deepest = load(depths.iter().copied().max().unwrap_or(1));
        // What ages it is what is written beside, as fast as it goes.
        let ages = others.clone().map(|others| Load { rate: None, depth: Some(AGEING_DEPTH), ..others });
        phases.extend(preparation(&source, arrangement, &ages.unwrap_or(deepest)));
    }
    if let Some(pause) = pause(&row.note, &source) {
        let stop = Stop { duration: Some(pause), ..Stop::default() };
        phases.push(Phase { name: "pause".into(), measured: false, ramp: Time::default(), stop, loads: Vec::new() });
    }
    if let Some(others) = &others {
        // After writes as fast as they go the groomer first makes up for what it is behind.
        phases.push(phase("settle", SETTLED, vec![others.clone()]));
    }
    let duration = source.measured.0.as_secs_f64();
    for outstanding in depths {
        let stop = match fill {
            true => Stop { capacities: Some(1.0), ..Stop::default() },
            false => Stop { duration: Some(seconds(duration)), ..Stop::default() },
        };
        phases.push(Phase {
            name: format!("measure at {outstanding}"),
            measured: true,
            ramp: if fill { Time::default() } else { seconds(duration * RAMP) },
            stop,
            loads: [load(outstanding)].into_iter().chain(others.clone()).collect(),
        });
    }
    let workload = Workload { name: row.workload.clone(), description: String::new(), seed: settings.seed, phases };
    Ok((Experiment { device: profile.name.clone(), options, workload }, reading))
}

/// What a source is assumed to have done to a device before it measured this load.
pub(crate) fn preparation(source: &Source, arrangement: Arrangement, load: &Load) -> Vec<Phase> {
    let size = match source.held {
        Some(Extent::Bytes(bytes)) => Some(Extent::Bytes(bytes * arrangement.spread_over())),
        held => held,
    };
    let held = Region { offset: Extent::Bytes(0), size };
    let mut phases = vec![fill(held)];
    for (name, region, times) in
        [("age", held, source.overwrite_held), ("overwrite", load.region, source.overwrite_file)]
    {
        if times > 0.0 {
            phases.push(overwrite(name, region, times));
        }
    }
    if source.precondition_capacities > 0.0 {
        phases.push(precondition(source, load.clone()));
    }
    phases
}

fn seconds(seconds: f64) -> Time {
    Time(Duration::from_secs_f64(seconds))
}

/// The driver that a row's note names first, or its source's.
fn driver_name<'a>(row: &Row, source: &'a Source) -> &'a str {
    let at = |name| row.note.find(name);
    match (at("Linux"), at("Windows")) {
        (Some(linux), Some(windows)) if linux < windows => "linux",
        (_, Some(_)) => "windows",
        (Some(_), None) => "linux",
        (None, None) => &source.driver,
    }
}

/// How long nobody asks anything before it is measured, where a row's note says that there was a pause: as long as it says, or as its source
/// always waits.
fn pause(note: &str, source: &Source) -> Option<Time> {
    let words: Vec<&str> = note.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|word| matches!(*word, "pause" | "pauses" | "idle"))?;
    if words[..at].iter().any(|word| matches!(*word, "without" | "no")) {
        return None;
    }
    // "30 s" as well as "30s".
    let one = words.iter().map(|word| (*word).to_string());
    let two = words.windows(2).map(|pair| pair.concat());
    let said = one.chain(two).find_map(|text| {
        let starts = text.starts_with(|c: char| c.is_ascii_digit());
        humantime::parse_duration(&text).ok().filter(|time| starts && !time.is_zero())
    });
    said.map(Time).or(source.pause)
}

/// What is outstanding, and how many random writes a second come beside it.
fn beside(text: &str) -> Result<(&str, Option<f64>), Unfit> {
    let Some((outstanding, rate)) = text.split_once(" beside ") else { return Ok((text, None)) };
    match rate.strip_suffix("/s").and_then(|rate| rate.parse().ok()) {
        Some(rate) if rate > 0.0 => Ok((outstanding, Some(rate))),
        _ => Err(Unfit(format!("outstanding '{text}': expected such as '1 beside 40000/s'"))),
    }
}

/// Requests outstanding, one figure for each phase that is measured.
fn depths(text: &str, source: &Source) -> Result<Vec<u32>, Unfit> {
    if text == "max" {
        return Ok(vec![source.deepest]);
    }
    if let Some((least, most)) = text.strip_suffix(" max").and_then(|range| range.split_once("..")) {
        let bound = |text: &str| text.trim().parse::<u32>().ok();
        if let (Some(least), Some(most)) = (bound(least), bound(most)) {
            return Ok(SWEEP.into_iter().filter(|depth| (least..=most).contains(depth)).collect());
        }
    }
    // What follows a comma is about the driver's queue, which the driver knows.
    let number = text.split(',').next().unwrap_or_default().trim();
    match number.parse::<u32>() {
        Ok(depth) if depth > 0 => Ok(vec![depth]),
        _ => {
            Err(Unfit(format!("outstanding '{text}' is not known; expected a number, 'max', or such as '1..512 max'")))
        }
    }
}

/// Threads that share so many requests: the source's number, or about as many as requests for each.
fn threads(source: &Source, outstanding: u32) -> u32 {
    match source.threads {
        Some(threads) => threads.min(outstanding),
        None => {
            (1..=outstanding.isqrt().max(1)).rev().find(|threads| outstanding.is_multiple_of(*threads)).unwrap_or(1)
        }
    }
}

fn sizes(row: &Row) -> Result<Sizes, Unfit> {
    if let Ok(kib) = row.block_kib.parse::<f64>() {
        let bytes = kib * 1024.0;
        if bytes < 512.0 || bytes % 512.0 != 0.0 {
            return Err(Unfit(format!("block_kib {kib}: expected a multiple of 0.5")));
        }
        return Ok(Sizes::One(Bytes(bytes as u64)));
    }
    if row.access == "trace" {
        let weighted = MAIL_SIZES.map(|(bytes, weight)| Weighted { size: Bytes(bytes), weight });
        return Ok(Sizes::Mix(weighted.to_vec()));
    }
    // A mix is that of the named workload: the phases of a test have its name in front of theirs.
    let named = ["storagereview-file-server", "storagereview-web-server", "thomas-krenn-throughput"];
    for name in named {
        let kind = name.split_once('-').map_or(name, |(_, kind)| kind);
        let meant =
            row.workload.starts_with(kind) || (row.block_kib == "throughput test" && name.ends_with("throughput"));
        if meant
            && let Some(Ok(workload)) = find(name)
            && let Some(load) = workload.phases.iter().flat_map(|phase| &phase.loads).next()
        {
            return Ok(load.size.clone());
        }
    }
    Err(Unfit(format!(
        "block_kib '{}' of workload '{}' is not known; expected a number of KiB, or the mix of file-server or web-server",
        row.block_kib, row.workload
    )))
}

/// Whether it is a spinning disk, or an array of them.
pub(crate) fn is_disk(profile: &Profile) -> bool {
    match &profile.device {
        Device::Disk(_) => true,
        Device::Array(array) => profile::find(&array.member).is_ok_and(|member| is_disk(&member)),
        Device::Flash(_) | Device::Bridged(_) => false,
    }
}

/// Writes of a region by two threads, so that both modules of a card are reached.
fn region_writes(bytes: u64, access: Access, region: Region) -> Load {
    Load { region, depth: Some(8), ..writes(bytes, access, 2) }
}

fn fill(region: Region) -> Phase {
    phase("fill", 1.0, vec![region_writes(FILL_BYTES, Access::Sequential, region)])
}

/// Overwrites a region at random so many times: see `measure::scaled`.
fn overwrite(name: &str, region: Region, times: f64) -> Phase {
    phase(name, times, vec![region_writes(4096, Access::Random, region)])
}

fn precondition(source: &Source, load: Load) -> Phase {
    let writes = 100.0 - load.read_percent;
    // The stop counts reads as well; what ages flash is what is written.
    let (read_percent, share) = if writes > 0.0 { (load.read_percent, writes / 100.0) } else { (0.0, 1.0) };
    phase("precondition", source.precondition_capacities / share, vec![Load { read_percent, ..load }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{Settings, rows, sources};

    fn planned(change: impl Fn(&mut Row)) -> Result<(Experiment, Reading), Unfit> {
        let rows = rows().expect("the built-in rows");
        let mut row =
            rows.into_iter().find(|row| row.workload == "file-copy" && row.outstanding == "16").expect("a row");
        change(&mut row);
        let sources = sources().expect("the built-in sources");
        let source = sources.iter().find(|source| source.name == row.source).expect("a source");
        let profile = profile::find(&row.device).expect("a profile");
        experiment(&row, source, &profile, &Settings::default())
    }

    #[test]
    fn every_row_can_be_planned_and_its_workload_is_sound() {
        let sources = sources().expect("the built-in sources");
        for row in rows().expect("the built-in rows") {
            let source = sources.iter().find(|source| source.name == row.source).expect("a source");
            let profile = profile::find(&row.device).expect("a profile");
            let (experiment, _) = experiment(&row, source, &profile, &Settings::default())
                .unwrap_or_else(|error| panic!("{}: {error}", row.line()));
            experiment.workload.validate().unwrap_or_else(|error| panic!("{}: {error}", row.line()));
            let measured = experiment.workload.phases.iter().filter(|phase| phase.measured).count();
            assert_eq!(measured, if row.outstanding.contains("..") { SWEEP.len() } else { 1 }, "{}", row.line());
        }
    }

    #[test]
    fn columns_that_were_never_seen_decide_as_well() {
        let (experiment, reading) = planned(|row| {
            row.format = "maximum-write-performance".into();
            row.array = "raid1".into();
            row.block_kib = "0.5".into();
            row.outstanding = "64".into();
            (row.metric, row.unit) = ("avg latency".into(), "ms".into());
        })
        .expect("planned");
        assert_eq!(experiment.options.format, Format::MaximumWrite);
        assert_eq!(experiment.options.arrangement, Arrangement::Raid1);
        assert_eq!(experiment.options.sector_bytes, Some(512));
        assert_eq!(reading, Reading::Mean);
        let load = &experiment.workload.phases.last().expect("a phase").loads[0];
        assert_eq!((load.threads, load.depth()), (1, 64));
    }

    #[test]
    fn each_card_holds_as_much_alone_and_in_an_array() {
        let held = |array: &str| {
            let (experiment, _) = planned(|row| row.array = array.into()).expect("planned");
            experiment.workload.phases[0].loads[0].region.size
        };
        let Some(Extent::Bytes(alone)) = held("single") else { panic!("no bytes are held") };
        for (array, times) in [("raid1", 1), ("raid0", 2), ("raid0-3", 3)] {
            assert_eq!(held(array), Some(Extent::Bytes(times * alone)), "{array}");
        }
    }

    #[test]
    fn what_a_row_may_not_say_is_refused_by_name() {
        let refused = |change: fn(&mut Row)| planned(change).expect_err("refused").to_string();
        assert!(refused(|row| row.metric = "charm".into()).contains("metric 'charm'"));
        assert!(refused(|row| row.access = "spiral".into()).contains("access 'spiral'"));
        assert!(refused(|row| row.array = "raid7".into()).contains("'raid7'"));
        assert!(refused(|row| row.format = "huge".into()).contains("'huge'"));
        assert!(refused(|row| row.block_kib = "some".into()).contains("block_kib 'some'"));
        assert!(refused(|row| row.block_kib = "0.3".into()).contains("multiple of 0.5"));
        assert!(refused(|row| row.outstanding = "many".into()).contains("outstanding 'many'"));
    }

    #[test]
    fn threads_share_what_is_outstanding() {
        let sources = sources().expect("the built-in sources");
        let review = sources.iter().find(|source| source.threads.is_none()).expect("a source without threads");
        let shares = |outstanding| (threads(review, outstanding), outstanding / threads(review, outstanding));
        assert_eq!([shares(256), shares(8), shares(4), shares(1)], [(16, 16), (2, 4), (2, 2), (1, 1)]);
    }

    #[test]
    fn the_note_says_how_long_the_device_was_left_alone() {
        let sources = sources().expect("the built-in sources");
        let source = |name| sources.iter().find(|source: &&Source| source.name.starts_with(name)).expect("a source");
        let seconds = |note: &str, name| pause(note, source(name)).map(|time| time.0.as_secs());
        for (note, expected) in [
            ("after a pause", Some(30)),
            ("directly after filling the device without pause", None),
            ("after 10 minutes of pause", Some(600)),
            ("filled; a pause of 2min", Some(120)),
            ("1 h idle", Some(3600)),
            ("64 jobs", None),
            ("", None),
        ] {
            assert_eq!(seconds(note, "thomas-krenn"), expected, "{note}");
        }
        assert_eq!(seconds("after a pause", "fujitsu"), None, "nobody says how long");
        let (experiment, _) = planned(|row| row.note = "after 30 s pause".into()).expect("planned");
        let [.., pause, measured] = &experiment.workload.phases[..] else { panic!("two phases") };
        assert_eq!((pause.name.as_str(), pause.measured, pause.loads.len()), ("pause", false, 0));
        assert!(measured.measured);
    }

    #[test]
    fn the_note_names_the_driver() {
        let driver = |note: &str| {
            let note = note.to_string();
            let rows = rows().expect("the built-in rows");
            let row = Row { note, ..rows.into_iter().find(|row| row.workload == "4k-steady").expect("a row") };
            let sources = sources().expect("the built-in sources");
            let source = sources.iter().find(|source| source.name == row.source).expect("a source");
            driver_name(&row, source).to_string()
        };
        assert_eq!(driver("Windows; the rest"), "windows");
        assert_eq!(driver("Linux; Windows 31.6"), "linux");
        assert_eq!(driver(""), "linux");
    }
}
