//! Latencies: over time with their percentiles, as a field, as a curve of exceedance, as a histogram.

use chart::{Axis, Chart, Heat, Mark, Plot, Series, Steps, Unit};
use lab::run::{Interval, Step};
use lab::stats::Pool;

use crate::ReportError;
use crate::figure::{Place, damaged, places};
use crate::view::{SERIES, Variant, View, groups, joined};

/// Samples that must lie beyond a point of the curve of exceedance, as for percentiles.
const BEYOND: f64 = 10.0;
/// Buckets of a field for each power of ten.
const BUCKETS: f64 = 12.0;
/// Columns of a field at most.
const COLUMNS: usize = 240;

/// Intervals of steps with when each began and ended, since the first.
fn intervals<'a>(steps: &[&'a Step]) -> Vec<(f64, f64, &'a Step, &'a Interval)> {
    let Some(begin) = steps.first().map(|step| step.from_seconds) else { return Vec::new() };
    let each = |step: &&'a Step| {
        let (step, offset) = (*step, step.from_seconds - begin);
        super::over_time::whole(step)
            .map(move |one| (offset + one.end_seconds - one.seconds, offset + one.end_seconds, step, one))
    };
    steps.iter().flat_map(each).collect()
}

fn pooled(step: &Step, interval: &Interval) -> Result<Pool, ReportError> {
    interval.pool(None).map_err(|problem| damaged(step, problem))
}

/// Mean, maximum and the range from the median to the highest percentile that every interval can carry, one chart for each variant.
pub(crate) fn with_band(view: &View, stage: &str) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for variant in &view.variants {
        let steps = variant.stage(Some(stage));
        let mut latencies = Vec::new();
        for (from, to, step, interval) in intervals(&steps) {
            latencies.push(((from + to) / 2.0, pooled(step, interval)?.latency()));
        }
        latencies.retain(|(_, latency)| latency.samples > 0);
        let carried = |percent: &f64| {
            let carrying = latencies.iter().filter(|(_, latency)| latency.percentile(*percent).is_some()).count();
            carrying > 0 && carrying * 10 >= latencies.len() * 9
        };
        let mut mean =
            Series::line("mean", latencies.iter().map(|(at, latency)| (*at, latency.mean_ns / 1e9)).collect());
        if let Some(percent) = [99.99, 99.9, 99.0, 90.0].into_iter().find(carried) {
            let at = |percent: f64| -> Vec<f64> {
                latencies
                    .iter()
                    .map(|(_, latency)| latency.percentile(percent).map_or(f64::NAN, |ns| ns as f64 / 1e9))
                    .collect()
            };
            mean = mean.band(format!("median to {percent} %"), at(50.0), at(percent));
        }
        let most = latencies.iter().map(|(at, latency)| (*at, latency.max_ns as f64 / 1e9)).collect();
        let deviation = latencies.iter().map(|(at, latency)| (*at, latency.stddev_ns / 1e9)).collect();
        let series =
            vec![mean, Series::line("maximum", most).mark(Mark::Dots), Series::line("standard deviation", deviation)];
        let heading = with_group(&format!("{}: latency over time ({stage})", view.test.title), &variant.name);
        let sees =
            "The mean, the range in which all but the slowest requests lie, and the slowest request of each interval.";
        let axes = (Axis::new("Time", Unit::Elapsed), Axis::new("Latency", Unit::Seconds).log());
        charts.push(super::chart(view, heading, sees, axes, Plot::Lines(series)));
    }
    Ok(charts)
}

fn with_group(title: &str, group: &str) -> String {
    joined(&[title.to_string(), group.to_string()])
}

/// Every latency over time, as a field of buckets; one for each variant.
pub(crate) fn field(view: &View, stage: Option<&str>) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for variant in &view.variants {
        charts.extend(field_of(view, variant, stage)?);
    }
    Ok(charts)
}

fn field_of(view: &View, variant: &Variant, stage: Option<&str>) -> Result<Option<Chart>, ReportError> {
    let steps = variant.stage(stage);
    let all = intervals(&steps);
    if all.len() < 4 {
        return Ok(None);
    }
    let mut columns = Vec::new();
    for several in all.chunks(all.len().div_ceil(COLUMNS)) {
        let mut bins = Vec::new();
        for (_, _, step, interval) in several {
            bins.extend(pooled(step, interval)?.bins());
        }
        columns.push((several[0].0, several[several.len() - 1].1, bins));
    }
    let bucket = |ns: u64| ((ns.max(1) as f64).log10() * BUCKETS).floor() as i64;
    let buckets = columns.iter().flat_map(|(_, _, bins)| bins).map(|(ns, _)| bucket(*ns));
    let Some((low, high)) = buckets.fold(None, |found: Option<(i64, i64)>, at| {
        Some(found.map_or((at, at), |(low, high)| (low.min(at), high.max(at))))
    }) else {
        return Ok(None);
    };
    let edges: Vec<f64> = (low..=high + 1).map(|at| 10f64.powf(at as f64 / BUCKETS) * 1e-9).collect();
    // A gap between steps is a column of its own, without requests.
    let mut times = Vec::new();
    let mut held: Vec<Option<usize>> = Vec::new();
    for (at, (from, to, _)) in columns.iter().enumerate() {
        match times.last() {
            Some(end) if *from - *end > (to - from) * 0.01 => {
                times.push(*from);
                held.push(None);
            }
            Some(_) => {}
            None => times.push(*from),
        }
        times.push(*to);
        held.push(Some(at));
    }
    let mut cells = vec![vec![f64::NAN; held.len()]; (high - low + 1) as usize];
    for (at, column) in held.iter().enumerate() {
        let Some((from, to, bins)) = column.map(|column| &columns[column]) else { continue };
        for (ns, count) in bins {
            let cell = &mut cells[(bucket(*ns) - low) as usize][at];
            let rate = *count as f64 / (to - from).max(1e-9);
            *cell = if cell.is_nan() { rate } else { *cell + rate };
        }
    }
    let heat = Heat {
        columns: Steps::Edges(times),
        rows: Steps::Edges(edges),
        cells,
        label: "Requests a second".to_string(),
        unit: Unit::Plain,
        log: true,
    };
    let stage = stage.map(|stage| format!(" ({stage})")).unwrap_or_default();
    let heading = with_group(&format!("{}: every latency over time{stage}", view.test.title), &variant.name);
    let sees = "How many requests took how long at each time: two dark bands are two ways to be served, what lies high above is slow.";
    let axes = (Axis::new("Time", Unit::Elapsed), Axis::new("Latency", Unit::Seconds).log());
    Ok(Some(super::chart(view, heading, sees, axes, Plot::Heat(heat))))
}

/// Places of which a chart shows the latencies: all of a few, or some of many, evenly spread.
fn shown<'a>(view: &View, group: &[(String, &Variant<'a>)], stage: Option<&str>) -> Vec<(String, Place<'a>)> {
    let tracked: Vec<u64> =
        view.test.stages.iter().flat_map(|stage| &stage.steady).filter_map(|one| one.size).map(|size| size.0).collect();
    let room = (SERIES / group.len().max(1)).max(1);
    let mut all = Vec::new();
    for (own, variant) in group {
        let mut places = places(variant, stage);
        if places.len() > room {
            // Of many sizes, the one that is tracked stands for all.
            let tracked = |place: &Place| tracked.iter().any(|size| place.step.point.size_bytes == Some(*size));
            if places.iter().any(tracked) {
                places.retain(tracked);
            }
        }
        let steps: Vec<&Step> = places.iter().map(|place| place.step).collect();
        let count = places.len();
        let labels: Vec<String> = steps.iter().map(|step| super::bars::label(step, &steps)).collect();
        let chosen = |at: usize| {
            count <= room
                || (0..room).any(|slot| at == if room == 1 { count - 1 } else { slot * (count - 1) / (room - 1) })
        };
        for (at, (place, label)) in places.into_iter().zip(labels).enumerate().filter(|(at, _)| chosen(*at)) {
            let label = joined(&[own.clone(), label]);
            all.push((
                if label.is_empty() {
                    format!("measured{}", if at > 0 { at.to_string() } else { String::new() })
                } else {
                    label
                },
                place,
            ));
        }
    }
    all
}

/// For each latency the share of requests that took longer.
pub(crate) fn exceedances(view: &View, stage: Option<&str>) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for group in groups(&view.variants) {
        let mut series = Vec::new();
        for (label, place) in shown(view, &group.members, stage) {
            let pool = place.pool()?;
            let least = BEYOND / pool.requests().max(1) as f64;
            let mut points: Vec<(f64, f64)> = Vec::new();
            for (ns, share) in pool.exceedance() {
                // No more nines than the samples carry, and no more points than one can see.
                let far = points
                    .last()
                    .is_none_or(|(at, percent)| share * 100.0 < percent * 0.96 || ns as f64 * 1e-9 > at * 1.03);
                if share >= least && far {
                    points.push((ns as f64 * 1e-9, share * 100.0));
                }
            }
            series.push(Series::line(label, points));
        }
        let heading = with_group(&format!("{}: share of requests that take longer", view.test.title), &group.name);
        let sees = "For each latency the share of requests that took longer: the further left and the steeper, the better. Lines end where fewer than ten requests are left.";
        let axes =
            (Axis::new("Latency", Unit::Seconds).log(), Axis::new("Requests that take longer", Unit::Percent).log());
        charts.push(super::chart(view, heading, sees, axes, Plot::Lines(series)));
    }
    Ok(charts)
}

/// How many requests took how long.
pub(super) fn histograms(view: &View, stage: Option<&str>) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for group in groups(&view.variants) {
        let mut series = Vec::new();
        for (label, place) in shown(view, &group.members, stage) {
            let pool = place.pool()?;
            let all = pool.requests().max(1) as f64;
            let bucket = |ns: u64| ((ns.max(1) as f64).log10() * BUCKETS * 2.0).floor() as i64;
            let mut points: Vec<(i64, f64)> = Vec::new();
            for (ns, count) in pool.bins() {
                let share = count as f64 / all * 100.0;
                match points.last_mut() {
                    Some((at, sum)) if *at == bucket(ns) => *sum += share,
                    _ => points.push((bucket(ns), share)),
                }
            }
            let middle = |at: i64| 10f64.powf((at as f64 + 0.5) / (BUCKETS * 2.0)) * 1e-9;
            series.push(Series::line(label, points.into_iter().map(|(at, share)| (middle(at), share)).collect()));
        }
        let heading = with_group(&format!("{}: how many requests take how long", view.test.title), &group.name);
        let sees = "The share of requests by latency, in 24 buckets for each power of ten.";
        let axes = (Axis::new("Latency", Unit::Seconds).log(), Axis::new("Requests", Unit::Percent));
        charts.push(super::chart(view, heading, sees, axes, Plot::Lines(series)));
    }
    Ok(charts)
}
