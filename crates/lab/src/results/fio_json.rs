//! Results in the shape of fio's `--output-format=json+`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Flow, LoadResult, OPS, Phase, Results};
use crate::stats::Latency;
use crate::workload::{Access, Load};

/// Results as fio's JSON+: `jobs` has an entry for every load of every measured phase, in fio's units. What fio has no place for
/// stands under `openvsl`.
pub fn fio_json(results: &Results) -> Value {
    let phases = results.workload.phases.iter().zip(&results.phases).filter(|(_, phase)| phase.measured);
    let mut jobs = Vec::new();
    for (group, (asked, phase)) in phases.enumerate() {
        for (load, result) in asked.loads.iter().zip(&phase.loads) {
            jobs.push(job(group, load, result, phase));
        }
    }
    json!({
        "fio version": concat!("openvsl-", env!("CARGO_PKG_VERSION")),
        "global options": { "ioengine": "openvsl-virtual-time", "randseed": results.workload.seed.to_string() },
        "jobs": jobs,
        "openvsl": value(results),
    })
}

/// The results themselves, without the histograms that stand in the jobs already.
fn value(results: &Results) -> Value {
    let mut whole = to_value(results);
    if let Some(phases) = whole.get_mut("phases").and_then(Value::as_array_mut) {
        for load in phases.iter_mut().filter_map(|phase| phase.get_mut("loads").and_then(Value::as_array_mut)).flatten()
        {
            if let Some(load) = load.as_object_mut() {
                load.remove("bins");
            }
        }
    }
    whole
}

fn to_value(value: &impl Serialize) -> Value {
    // Text keys and numbers only: nothing in results has no form in JSON.
    serde_json::to_value(value).unwrap_or_default()
}

fn job(group: usize, load: &Load, result: &LoadResult, phase: &Phase) -> Value {
    let mut job = Map::new();
    let name = if result.name.is_empty() { phase.name.clone() } else { format!("{} {}", phase.name, result.name) };
    job.insert("jobname".into(), name.into());
    job.insert("groupid".into(), group.into());
    job.insert("error".into(), 0.into());
    job.insert("eta".into(), 0.into());
    job.insert("elapsed".into(), (phase.seconds.ceil() as u64).into());
    job.insert("job options".into(), options(load, phase));
    for (at, (name, flow)) in
        [("read", &result.ops.read), ("write", &result.ops.write), ("trim", &result.ops.trim)].into_iter().enumerate()
    {
        job.insert(name.into(), direction(flow, &result.bins[at], phase));
    }
    debug_assert_eq!(OPS.len(), result.bins.len());
    job.insert("job_runtime".into(), milliseconds(phase).into());
    job.insert("latency_depth".into(), load.depth().into());
    job.insert("latency_target".into(), 0.into());
    job.insert("latency_window".into(), 0.into());
    job.insert("latency_percentile".into(), 100.0.into());
    Value::Object(job)
}

/// The load in fio's words, as text, as fio prints its own.
fn options(load: &Load, phase: &Phase) -> Value {
    if let Some(trace) = &load.trace {
        return json!({
            "name": phase.name,
            "read_iolog": trace.file.display().to_string(),
            "iodepth": load.depth().to_string(),
            "numjobs": load.threads.to_string(),
            "runtime": format!("{}", phase.seconds),
        });
    }
    let random = if matches!(load.access, Access::Sequential) { "" } else { "rand" };
    let rw = match (load.read_percent, load.trim_percent) {
        (100.0, _) => format!("{random}read"),
        (0.0, 100.0) => format!("{random}trim"),
        (0.0, 0.0) => format!("{random}write"),
        _ => format!("{random}rw"),
    };
    let sizes = load.size.list();
    let largest = sizes.iter().max_by(|a, b| a.weight.total_cmp(&b.weight)).map_or(0, |entry| entry.size.0);
    json!({
        "name": phase.name,
        "rw": rw,
        "rwmixread": format!("{}", load.read_percent),
        "bs": largest.to_string(),
        "iodepth": load.depth().to_string(),
        "numjobs": load.threads.to_string(),
        "runtime": format!("{}", phase.seconds),
    })
}

fn milliseconds(phase: &Phase) -> u64 {
    (phase.seconds * 1000.0).round() as u64
}

fn direction(flow: &Flow, bins: &[(u64, u64)], phase: &Phase) -> Value {
    let nothing = latency(&Latency::default(), &[]);
    let latency = latency(&flow.latency, bins);
    json!({
        "io_bytes": flow.bytes,
        "io_kbytes": flow.bytes / 1024,
        "bw_bytes": flow.bytes_per_second.round() as u64,
        "bw": (flow.bytes_per_second / 1024.0).round() as u64,
        "iops": flow.iops,
        "runtime": if flow.requests > 0 { milliseconds(phase) } else { 0 },
        "total_ios": flow.requests,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": nothing,
        // One latency is kept for a request: from where it may begin to where its thread has seen the answer.
        "clat_ns": latency,
        "lat_ns": latency,
    })
}

fn latency(latency: &Latency, bins: &[(u64, u64)]) -> Value {
    let mut value = json!({
        "min": latency.min_ns,
        "max": latency.max_ns,
        "mean": latency.mean_ns,
        "stddev": latency.stddev_ns,
        "N": latency.samples,
    });
    // Of no requests fio prints neither, and its tools stumble over empty ones.
    if let Some(fields) = value.as_object_mut().filter(|_| !bins.is_empty()) {
        let percentiles: Map<String, Value> =
            latency.percentiles.iter().map(|entry| (format!("{:.6}", entry.percent), entry.ns.into())).collect();
        let bins: Map<String, Value> = bins.iter().map(|(ns, count)| (ns.to_string(), (*count).into())).collect();
        fields.insert("percentile".into(), percentiles.into());
        fields.insert("bins".into(), bins.into());
    }
    value
}
