//! What fio says of a job: its JSON+.

use serde::Deserialize;
use std::collections::HashMap;

use crate::results::{Flow, Ops};
use crate::stats::{Cell, Kind, Pool, Samples};

/// What fio says of a job.
#[derive(Debug, Deserialize)]
pub struct Report {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    error: i64,
    read: Direction,
    write: Direction,
    trim: Direction,
    /// Of all threads together, milliseconds.
    job_runtime: f64,
    usr_cpu: f64,
    sys_cpu: f64,
}

#[derive(Debug, Deserialize)]
struct Direction {
    io_bytes: u64,
    total_ios: u64,
    runtime: f64,
    clat_ns: Latency,
    lat_ns: Latency,
}

#[derive(Debug, Default, Deserialize)]
struct Latency {
    min: f64,
    max: f64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(default)]
    bins: HashMap<String, u64>,
}

/// What a job comes to.
pub struct Totals {
    /// How long it was counted, seconds.
    pub seconds: f64,
    /// Reads, writes and trims.
    pub ops: Ops,
    /// The same with histograms.
    pub cells: Vec<Cell>,
    /// Histograms of the time from submission to completion, which fio's logs over time hold.
    pub completion: [Vec<(u64, u64)>; 3],
    /// Processor time of the client for each request, microseconds.
    pub cpu_us_per_io: Option<f64>,
    /// Requests outstanding on average: their times added up, by the time it took.
    pub outstanding: f64,
}

/// Reads fio's report. `size` is that of all requests, where there is one.
///
/// # Errors
/// It is none, or contradicts itself; the message shows how it begins.
pub fn totals(text: &str, size: Option<u64>) -> Result<Totals, String> {
    let begin = text.find('{').ok_or_else(|| no_report("it is no JSON", text))?;
    let mut stream = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Report>();
    let report = match stream.next() {
        Some(Ok(report)) => report,
        Some(Err(error)) => return Err(no_report(&error.to_string(), text)),
        None => return Err(no_report("it is empty", text)),
    };
    let [job] = &report.jobs[..] else {
        return Err(no_report(&format!("it has {} jobs, where one was asked for", report.jobs.len()), text));
    };
    if job.error != 0 {
        let error = std::io::Error::from_raw_os_error(i32::try_from(job.error).unwrap_or(0));
        return Err(format!("fio: error {}: {error}", job.error));
    }
    let directions = [(Kind::Read, &job.read), (Kind::Write, &job.write), (Kind::Trim, &job.trim)];
    let seconds = directions.iter().map(|(_, it)| it.runtime).fold(0.0, f64::max) / 1000.0;
    let requests: u64 = directions.iter().map(|(_, it)| it.total_ios).sum();
    if requests == 0 || seconds <= 0.0 {
        return Err("fio made no request that counts; is the step too short?".into());
    }
    let mut cells = Vec::new();
    let mut completion: [Vec<(u64, u64)>; 3] = Default::default();
    let mut held = 0.0;
    for (at, (kind, direction)) in directions.into_iter().enumerate() {
        cells.extend(cell(kind, direction, size).map_err(|problem| no_report(&problem, text))?);
        completion[at] = bins(&direction.clat_ns).map_err(|problem| no_report(&problem, text))?;
        held += direction.lat_ns.mean * direction.lat_ns.count as f64;
    }
    let flow = |kind: Option<Kind>| {
        let of = cells.iter().filter(|cell: &&Cell| kind.is_none_or(|kind| cell.op == kind));
        Pool::of(of).map(|pool| Flow::of_pool(&pool, seconds)).map_err(|error| error.to_string())
    };
    let ops = Ops {
        all: flow(None)?,
        read: flow(Some(Kind::Read))?,
        write: flow(Some(Kind::Write))?,
        trim: flow(Some(Kind::Trim))?,
    };
    let cpu = (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime * 1000.0;
    Ok(Totals {
        seconds,
        ops,
        cells,
        completion,
        // What is over within a tick of the kernel's accounting may seem to have needed none.
        cpu_us_per_io: (cpu > 0.0).then_some(cpu / requests as f64),
        outstanding: held / 1e9 / seconds,
    })
}

fn no_report(problem: &str, text: &str) -> String {
    let begin: String = text.trim_start().chars().take(200).collect();
    format!(
        "fio's report is not understood: {problem}; it begins: {}",
        if begin.is_empty() { "(nothing)" } else { &begin }
    )
}

/// fio's buckets: the middle of each, nanoseconds, and how many requests.
fn bins(latency: &Latency) -> Result<Vec<(u64, u64)>, String> {
    let mut bins = Vec::with_capacity(latency.bins.len());
    for (ns, count) in &latency.bins {
        let ns: u64 = ns.parse().map_err(|_| format!("bucket '{ns}' is no number of nanoseconds"))?;
        bins.push((ns, *count));
    }
    bins.sort_unstable();
    Ok(bins)
}

fn cell(kind: Kind, direction: &Direction, size: Option<u64>) -> Result<Option<Cell>, String> {
    let latency = &direction.lat_ns;
    if latency.count == 0 {
        return Ok(None);
    }
    let bins = bins(latency)?;
    let counted: u64 = bins.iter().map(|(_, count)| count).sum();
    if counted != latency.count {
        return Err(format!("the buckets of {}s hold {counted} of {} requests", kind.name(), latency.count));
    }
    // fio counts what it asked for while it warmed up among the bytes of neither; its requests and bytes are those of its samples.
    let bytes = match size {
        Some(size) => latency.count * size,
        None if direction.total_ios > 0 => {
            (direction.io_bytes as f64 / direction.total_ios as f64 * latency.count as f64).round() as u64
        }
        None => 0,
    };
    Ok(Some(Cell {
        requests: latency.count,
        bytes,
        min_ns: latency.min.max(0.0) as u64,
        max_ns: latency.max.max(0.0) as u64,
        mean_ns: latency.mean,
        stddev_ns: latency.stddev,
        ..cell_of_bins(kind, size.unwrap_or(0), &bins, 0)
    }))
}

/// A cell whose figures are those of its buckets.
pub fn cell_of_bins(kind: Kind, size: u64, bins: &[(u64, u64)], bytes: u64) -> Cell {
    let mut samples = Samples::new();
    for (ns, count) in bins {
        samples.record_many(*ns, *count);
    }
    samples.add_bytes(bytes);
    Cell::new(kind, size, &samples).unwrap_or(Cell {
        op: kind,
        size,
        requests: 0,
        bytes: 0,
        min_ns: 0,
        max_ns: 0,
        mean_ns: 0.0,
        stddev_ns: 0.0,
        hdr: String::new(),
    })
}
