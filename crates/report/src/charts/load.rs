//! Figures against load.

use chart::{Axis, Chart, Mark, Note, Plot, Series, Unit};
use lab::protocol::{self, Metric};
use lab::published::Row;
use lab::run::Step;

use super::{stage, title};
use crate::ReportError;
use crate::context::{load, mix};
use crate::figure::{Place, places};
use crate::metric::{asks, axis, name};
use crate::published::{When, of_part};
use crate::view::{View, distinct, groups, joined};

/// Loads as the axis names them: outstanding requests where that says all, otherwise threads and queue.
fn names(steps: &[&Step]) -> Vec<String> {
    let mut pairs = distinct(steps.iter().map(|step| (step.point.threads, step.point.depth)));
    // From few outstanding requests to many, so that the axis is a load and lines do not go back and forth.
    pairs.sort_by_key(|(threads, depth)| (threads.saturating_mul(*depth), *threads));
    let totals = distinct(pairs.iter().map(|(threads, depth)| threads.saturating_mul(*depth)));
    let one_way = distinct(steps.iter().map(|step| step.point.threads)).len() == 1;
    if one_way && totals.len() == pairs.len() {
        totals.iter().map(u32::to_string).collect()
    } else {
        pairs.iter().map(|(threads, depth)| format!("{threads}T/{depth}Q")).collect()
    }
}

fn name_of(step: &Step, names: &[String]) -> Option<usize> {
    let outstanding = step.point.outstanding().to_string();
    names.iter().position(|name| *name == load(step) || *name == outstanding)
}

/// What else than load tells points apart.
fn rest(step: &Step, all: &[&Step]) -> String {
    let differs = |value: &dyn Fn(&Step) -> String| all.iter().any(|other| value(other) != value(step));
    let size = crate::context::size;
    let mixed = |step: &Step| mix(step.point.read_percent);
    let region = crate::context::region;
    let stage = |step: &Step| step.stage.clone();
    let access = |step: &Step| step.point.access.clone();
    let mut words = Vec::new();
    if differs(&stage) {
        words.push(stage(step));
    }
    if differs(&size) {
        words.push(size(step));
    }
    if differs(&mixed) {
        words.push(mixed(step));
    }
    if differs(&access) {
        words.push(access(step));
    }
    if differs(&region) {
        words.push(region(step));
    }
    words.join(" ")
}

/// A figure over loads.
pub(super) fn against_load(
    view: &View,
    asked: &protocol::Chart,
    metric: Metric,
    rows: &[Row],
) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for group in groups(&view.variants) {
        let all: Vec<Vec<Place>> = group.members.iter().map(|(_, variant)| places(variant, stage(asked))).collect();
        let steps: Vec<&Step> = all.iter().flatten().map(|place| place.step).collect();
        let loads = names(&steps);
        let mut series: Vec<Series> = Vec::new();
        let mut notes = Vec::new();
        for ((own, variant), places) in group.members.iter().zip(&all) {
            for other in distinct(places.iter().map(|place| rest(place.step, &steps))) {
                let mut points = Vec::new();
                let published = of_part(view, variant.part(), rows);
                let mut beside: Vec<(f64, f64)> = Vec::new();
                for place in places.iter().filter(|place| rest(place.step, &steps) == other) {
                    let Some(at) = name_of(place.step, &loads) else { continue };
                    let value = place.figure(metric)?.map_or(f64::NAN, |figure| figure.value);
                    points.push((at as f64, value));
                    for one in published
                        .iter()
                        .filter(|one| one.metric == metric && one.when == When::Measured && one.fits(place.step))
                    {
                        if one.is_best() {
                            let text = joined(&[own.clone(), "published, best of all loads".to_string()]);
                            let note = Note::AtY { y: one.value, text };
                            if !notes.contains(&note) {
                                notes.push(note);
                            }
                        } else if !beside.iter().any(|(_, value)| *value == one.value) {
                            beside.push((at as f64, one.value));
                        }
                    }
                }
                points.sort_by(|one: &(f64, f64), other| one.0.total_cmp(&other.0));
                beside.sort_by(|one, other| one.0.total_cmp(&other.0));
                super::add(&mut series, &[own.clone(), other], "measured", Mark::Marked, points, beside);
            }
        }
        let pairs = loads.iter().any(|name| name.contains('T'));
        let x = Axis::named(
            if pairs { "Threads and queue of each, by outstanding requests" } else { "Outstanding requests" },
            loads,
        );
        let sees = format!("how {}, the more requests are outstanding.", asks(metric));
        let mut chart =
            super::chart(view, title(view, asked, metric, &group.name), &sees, (x, axis(metric)), Plot::Lines(series));
        chart.notes = notes;
        charts.push(chart);
    }
    Ok(charts)
}

/// Latency over requests a second: a point for each load.
pub(super) fn latency_against_throughput(
    view: &View,
    asked: &protocol::Chart,
    metrics: &[Metric],
) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for group in groups(&view.variants) {
        let mut series = Vec::new();
        for (own, variant) in &group.members {
            let places = places(variant, stage(asked));
            for metric in metrics {
                let mut points = Vec::new();
                for place in &places {
                    let (Some(iops), Some(latency)) = (place.figure(Metric::Iops)?, place.figure(*metric)?) else {
                        continue;
                    };
                    points.push((iops.value, latency.value));
                }
                let label = joined(&[own.clone(), name(*metric).to_lowercase()]);
                series.push(Series::line(label, points).mark(Mark::Points));
            }
        }
        let heading = format!(
            "{}: {}{}",
            view.test.title,
            super::lowered(asked.title.get_ref()),
            if group.name.is_empty() { String::new() } else { format!(" · {}", group.name) }
        );
        let sees =
            "What more requests a second cost in latency: each point is one load; the best lie far right and low.";
        let axes = (Axis::new("Requests", Unit::count("IO/s")), Axis::new("Latency", Unit::Seconds).log());
        charts.push(super::chart(view, heading, sees, axes, Plot::Lines(series)));
    }
    Ok(charts)
}
