//! How a test became steady: figures over rounds, and the window that was judged.

use chart::{Axis, Cell, Chart, Column, Mark, Note, Plot, Series, Table, Unit};
use lab::protocol::{self, Metric};
use lab::run::{Step, Verdict};

use super::{stage, title};
use crate::context;
use crate::metric::{asks, axis, base, name, unit};
use crate::view::{SERIES, Variant, View, distinct, key};

/// A figure of each round, for the points with the mix that is tracked.
pub(super) fn convergence(view: &View, asked: &protocol::Chart, metric: Metric) -> Vec<Chart> {
    let mut charts = Vec::new();
    for variant in &view.variants {
        let steps: Vec<&Step> = variant.stage(stage(asked)).into_iter().filter(|step| step.round.is_some()).collect();
        let tracked: Vec<f64> = view
            .test
            .stages
            .iter()
            .flat_map(|stage| &stage.steady)
            .filter_map(|tracked| tracked.read_percent)
            .collect();
        let wanted = |step: &&&Step| tracked.is_empty() || tracked.contains(&step.point.read_percent);
        let keys = distinct(steps.iter().filter(wanted).map(|step| key(step)));
        let all: Vec<&Step> = steps.iter().filter(wanted).copied().collect();
        let series: Vec<Series> = keys
            .iter()
            .take(SERIES)
            .map(|own| {
                let of = || all.iter().filter(|step| key(step) == *own);
                let points = of().map(|step| {
                    (
                        f64::from(step.round.unwrap_or(0)),
                        step.metric(metric).map_or(f64::NAN, |value| value * base(metric)),
                    )
                });
                let label = of().next().map(|step| super::bars::label(step, &all)).unwrap_or_default();
                let points: Vec<(f64, f64)> = points.collect();
                // Of many rounds the course is to be seen, not the single one.
                let mark = if points.len() > 40 { Mark::Line } else { Mark::Marked };
                Series::line(label, points).mark(mark)
            })
            .collect();
        let window = variant
            .part()
            .verdicts
            .iter()
            .filter(|verdict| verdict.rounds > 0 && all.iter().any(|step| step.stage == verdict.stage))
            .find_map(|verdict| Some((verdict, verdict.window.as_ref()?)));
        let notes = window.map(|(verdict, window)| Note::Span {
            from: f64::from(window.first_round),
            to: f64::from(verdict.rounds),
            text: if verdict.steady { "steady".to_string() } else { "last window, not steady".to_string() },
        });
        let until = if notes.is_some() { ", until it does not change any more" } else { "" };
        let sees = format!("how {} in each round{until}.", asks(metric));
        let axes = (Axis::new("Round", Unit::Plain).whole(), super::spread(axis(metric), &series));
        let mut chart = super::chart(view, title(view, asked, metric, &variant.name), &sees, axes, Plot::Lines(series));
        chart.notes = notes.into_iter().collect();
        charts.push(chart);
    }
    charts
}

/// The window that was judged, with its mean, bounds and fit.
pub(crate) fn window_chart(view: &View, variant: &Variant, verdict: &Verdict) -> Option<Chart> {
    let window = verdict.window.as_ref()?;
    let factor = base(verdict.metric);
    let first = f64::from(window.first_round);
    let last = first + window.values.len().saturating_sub(1) as f64;
    // Rounds before the window show where it came from.
    let mut points: Vec<(f64, f64)> = Vec::new();
    if verdict.rounds > 0 {
        let tracked =
            view.test.stages.iter().filter(|stage| stage.name() == verdict.stage).flat_map(|stage| &stage.steady);
        let tracked: Vec<_> = tracked
            .filter(|tracked| tracked.metric == verdict.metric && verdict.tracked.contains(&tracked.text()))
            .collect();
        let fits = |step: &&Step| {
            tracked.iter().any(|tracked| {
                tracked.size.is_none_or(|size| step.point.size_bytes == Some(size.0))
                    && tracked.read_percent.is_none_or(|percent| percent == step.point.read_percent)
            })
        };
        let before = variant.stage(Some(&verdict.stage));
        let before =
            before.into_iter().filter(fits).filter(|step| step.round.is_some_and(|round| round < window.first_round));
        points.extend(before.filter_map(|step| Some((f64::from(step.round?), step.metric(verdict.metric)? * factor))));
    }
    points.extend(window.values.iter().enumerate().map(|(at, value)| (first + at as f64, value * factor)));
    let flat = |value: f64| vec![(first, value * factor), (last, value * factor)];
    let fit = |round: f64| (window.intercept + window.slope * round) * factor;
    let half = window.range_allowed / 2.0;
    let series = vec![
        Series::line(name(verdict.metric), points).mark(Mark::Marked),
        Series::line("mean", flat(window.mean)).mark(Mark::Dashed).hue(1),
        Series::line("allowed range about the mean", flat(window.mean + half)).mark(Mark::Dashed).hue(6),
        Series::line("", flat(window.mean - half)).mark(Mark::Dashed).hue(6),
        Series::line("least-squares line", vec![(first, fit(first)), (last, fit(last))]).mark(Mark::Dashed).hue(2),
    ];
    let (label, what) = if verdict.rounds > 0 {
        ("Round", "rounds")
    } else {
        ("Slice of the last fifth of the course", "fifth of its course, cut into slices")
    };
    let sees = format!(
        "Whether {} changed little enough over the last {what}: {}.",
        verdict.tracked.split(", over").next().unwrap_or_default(),
        context::verdict(verdict)
    );
    let heading = format!(
        "{}: steady-state window, {}{}",
        view.test.title,
        if verdict.rounds > 0 { &verdict.tracked } else { &verdict.stage },
        if variant.name.is_empty() { String::new() } else { format!(" · {}", variant.name) }
    );
    let axes = (Axis::new(label, Unit::Plain).whole(), axis(verdict.metric).from_data());
    let mut chart = super::chart(view, heading, &sees, axes, Plot::Lines(series));
    if verdict.rounds > 0 {
        chart.notes.push(Note::Span { from: first, to: last, text: "window".to_string() });
    }
    Some(chart)
}

/// The heading of the line's formula.
const LINE: &str = "Least-squares line";

/// The numbers of every window that was judged.
pub(crate) fn window_table(view: &View) -> Option<Table> {
    let columns = ["Mean", "Range", "allowed", "Fit, rise over the window", "allowed", LINE, "Steady"];
    let mut rows = Vec::new();
    for variant in &view.variants {
        for part in variant.repeats.iter().flatten() {
            for verdict in &part.verdicts {
                let Some(window) = &verdict.window else { continue };
                let unit = unit(verdict.metric);
                let shown = |value: f64| unit.one(value * base(verdict.metric));
                let rounds = if verdict.rounds > 0 {
                    format!("rounds {} to {}", window.first_round, verdict.rounds)
                } else {
                    "last fifth, in five".to_string()
                };
                let what = crate::view::joined(&[
                    variant.name.clone(),
                    part.plan.point.clone().unwrap_or_default(),
                    verdict.stage.clone(),
                    verdict.tracked.clone(),
                ]);
                rows.push(vec![
                    Cell::head(what),
                    Cell::new(rounds),
                    Cell::new(shown(window.mean)),
                    Cell::new(shown(window.range)),
                    Cell::new(shown(window.range_allowed)),
                    Cell::new(shown(window.excursion)),
                    Cell::new(shown(window.excursion_allowed)),
                    Cell::new(format!(
                        "{} {} {} × round",
                        shown(window.intercept),
                        if window.slope < 0.0 { "−" } else { "+" },
                        shown(window.slope.abs())
                    )),
                    Cell::new(if verdict.steady { "yes" } else { "NO" }),
                ]);
            }
        }
    }
    let mut all = vec![Column::text("What"), Column::text("Window")];
    // The line is a formula, which may be broken into lines.
    all.extend(columns.map(|name| if name == LINE { Column::text(name) } else { Column::number(name) }));
    let rule = view
        .run
        .parts
        .iter()
        .flat_map(|part| &part.verdicts)
        .next()
        .map(|verdict| verdict.rule.clone())
        .unwrap_or_default();
    (!rows.is_empty()).then(|| Table {
        caption: format!("Window determination: {rule}"),
        columns: all,
        rows,
        ..Table::default()
    })
}
