//! Figures over time.

use chart::{Axis, Chart, Mark, Plot, Series, Unit};
use lab::protocol::{self, Metric};
use lab::published::Row;
use lab::run::{Interval, Step};

use super::{stage, title};
use crate::ReportError;
use crate::figure::damaged;
use crate::metric::{asks, axis, base, name};
use crate::published::{When, of_part};
use crate::view::{SERIES, Variant, View, distinct, groups, key};

/// A figure over the time of a stage.
pub(super) fn over_time(
    view: &View,
    asked: &protocol::Chart,
    metric: Metric,
    rows: &[Row],
) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for group in groups(&view.variants) {
        let several =
            group.members.iter().map(|(_, variant)| keys(&variant.stage(stage(asked))).len()).sum::<usize>() > SERIES;
        if several && group.members.len() > 1 {
            // One chart each, with the steps as series.
            for (own, variant) in &group.members {
                let mut series = Vec::new();
                of_variant(view, own, variant, asked, metric, rows, &mut series)?;
                let heading = title(view, asked, metric, &join(&group.name, own));
                charts.push(drawn_of(view, asked, heading, metric, series));
            }
            continue;
        }
        let mut series = Vec::new();
        for (own, variant) in &group.members {
            of_variant(view, own, variant, asked, metric, rows, &mut series)?;
        }
        let heading = title(view, asked, metric, &group.name);
        charts.push(drawn_of(view, asked, heading, metric, series));
    }
    Ok(charts)
}

fn join(one: &str, other: &str) -> String {
    crate::view::joined(&[one.to_string(), other.to_string()])
}

fn drawn(view: &View, title: String, metric: Metric, series: Vec<Series>) -> Chart {
    let sees = format!("how {}, over the time of the device.", asks(metric));
    super::chart(view, title, &sees, (Axis::new("Time", Unit::Elapsed), axis(metric)), Plot::Lines(series))
}

/// A chart over the time of a stage, or of places beside each other.
fn drawn_of(view: &View, asked: &protocol::Chart, title: String, metric: Metric, series: Vec<Series>) -> Chart {
    let mut chart = drawn(view, title, metric, series);
    if view.variants.iter().any(|variant| are_places(&variant.stage(stage(asked)))) {
        chart.sees =
            crate::metric::capital(&format!("how {}; places beside each other, each from its begin.", asks(metric)));
        chart.x = Axis::new("Time measured", Unit::Elapsed);
        chart.wide = true;
    }
    chart
}

fn keys(steps: &[&Step]) -> Vec<String> {
    distinct(steps.iter().map(|step| key(step)))
}

/// Adds the series of a variant, and what was published beside them.
fn of_variant(
    view: &View,
    own: &str,
    variant: &Variant,
    asked: &protocol::Chart,
    metric: Metric,
    rows: &[Row],
    series: &mut Vec<Series>,
) -> Result<(), ReportError> {
    let steps = variant.stage(stage(asked));
    let Some(first) = steps.first() else { return Ok(()) };
    let begin = first.from_seconds;
    let keys = keys(&steps);
    if are_places(&steps) {
        return side_by_side(own, &steps, &keys, metric, series);
    }
    let published = of_part(view, variant.part(), rows);
    for one in keys.iter().take(SERIES) {
        let mut points = Vec::new();
        for step in steps.iter().filter(|step| key(step) == *one) {
            points.extend(course(step, begin, metric)?);
        }
        let mut beside = Vec::new();
        if let (Some((start, _)), Some((end, _)), 1) = (points.first(), points.last(), keys.len()) {
            let fitting = published.iter().filter(|one| one.metric == metric && one.fits(first));
            let fitting = fitting.filter(|one| one.when != When::Measured);
            beside.extend(fitting.map(|one| (if one.when == When::Burst { *start } else { *end }, one.value)));
        }
        let label = if keys.len() > 1 { one.split('/').next_back().unwrap_or_default() } else { "" };
        let words = [own.to_string(), label.to_string()];
        super::add(series, &words, &name(metric), Mark::Line, points, beside);
    }
    Ok(())
}

/// Whether the steps are places of a device rather than a course.
fn are_places(steps: &[&Step]) -> bool {
    distinct(steps.iter().map(|step| step.point.region.clone())).len() > 1
}

/// What lies between two places on the axis, as a share of what was measured.
const APART: f64 = 0.02;

/// Places beside each other, each with its own course: one after the other they were measured, with much in between that is not shown.
fn side_by_side(
    own: &str,
    steps: &[&Step],
    keys: &[String],
    metric: Metric,
    series: &mut Vec<Series>,
) -> Result<(), ReportError> {
    let gap = steps.iter().map(|step| step.seconds).sum::<f64>() * APART;
    let mut at = 0.0;
    for one in keys.iter().take(SERIES) {
        let mut points = Vec::new();
        let mut place = String::new();
        for step in steps.iter().filter(|step| key(step) == *one) {
            place = join(&step.stage, &crate::context::region(step));
            points.extend(
                course(step, step.from_seconds, metric)?.into_iter().map(|(seconds, value)| (at + seconds, value)),
            );
            at += step.seconds;
            // No line leads over what was not measured.
            points.push((at, f64::NAN));
        }
        at += gap;
        super::add(series, &[own.to_string(), place], &name(metric), Mark::Line, points, Vec::new());
    }
    Ok(())
}

/// The intervals of a step. The last one ends with the step, wherever that is: a stump says little, and too loudly.
pub(super) fn whole(step: &Step) -> impl Iterator<Item = &Interval> {
    let usual = step.series.first().map_or(0.0, |first| first.seconds);
    let last = step.series.len().saturating_sub(1);
    step.series
        .iter()
        .enumerate()
        .filter(move |(at, one)| *at < last || *at == 0 || one.seconds * 2.0 >= usual)
        .map(|(_, one)| one)
}

/// A figure of each interval of a step.
fn course(step: &Step, begin: f64, metric: Metric) -> Result<Vec<(f64, f64)>, ReportError> {
    let point = |interval: &Interval| {
        let at = step.from_seconds - begin + interval.end_seconds - interval.seconds / 2.0;
        let value = interval.metric(metric).map_err(|problem| damaged(step, problem))?;
        Ok((at, value.map_or(f64::NAN, |value| value * base(metric))))
    };
    whole(step).map(point).collect()
}

/// Write amplification over the time of a stage.
pub(crate) fn amplification(view: &View, stage: &str) -> Result<Vec<Chart>, ReportError> {
    let mut charts = Vec::new();
    for group in groups(&view.variants) {
        let mut series = Vec::new();
        for (own, variant) in &group.members {
            let steps = variant.stage(Some(stage));
            let Some(begin) = steps.first().map(|step| step.from_seconds) else { continue };
            let mut points = Vec::new();
            for step in &steps {
                points.extend(course(step, begin, Metric::WriteAmplification)?);
            }
            series.push(Series::line(own.clone(), points));
        }
        let heading = format!("{}: write amplification over time ({stage})", view.test.title);
        charts.push(drawn(view, join(&heading, &group.name), Metric::WriteAmplification, series));
    }
    Ok(charts)
}
