//! A bar for each point of several tests, a colour for each device, format and arrangement.

use chart::{Axis, BarSeries, Chart, Plot};
use lab::protocol::{self, Metric};
use lab::published::Row;
use lab::run::Step;

use super::stage;
use crate::ReportError;
use crate::context;
use crate::figure::{Place, places};
use crate::metric::{asks, axis, capital, name};
use crate::published::{When, of_part};
use crate::view::{View, distinct, joined};

/// Points of all tests that one chart shows side by side; of more, each test has a chart of its own.
const TOGETHER: usize = 6;

/// A figure of every point of these tests.
pub(super) fn bars(
    views: &[&View],
    asked: &protocol::Chart,
    metric: Metric,
    rows: &[Row],
) -> Result<Vec<Chart>, ReportError> {
    let points: usize = views.iter().map(|view| places(&view.variants[0], stage(asked)).len()).sum();
    if views.len() == 1 || points <= TOGETHER {
        return Ok(vec![together(views, asked, metric, rows, "")?]);
    }
    views.iter().map(|view| together(&[view], asked, metric, rows, &view.test.title)).collect()
}

fn together(
    views: &[&View],
    asked: &protocol::Chart,
    metric: Metric,
    rows: &[Row],
    name_of_test: &str,
) -> Result<Chart, ReportError> {
    let mut categories: Vec<String> = Vec::new();
    let names = distinct(views.iter().flat_map(|view| view.variants.iter().map(|variant| variant.name.clone())));
    let mut measured: Vec<Vec<(usize, f64, Option<f64>)>> = vec![Vec::new(); names.len()];
    let mut published: Vec<Vec<(usize, f64)>> = vec![Vec::new(); names.len()];
    for view in views {
        for variant in &view.variants {
            let Some(series) = names.iter().position(|name| *name == variant.name) else { continue };
            let beside = of_part(view, variant.part(), rows);
            let places = places(variant, stage(asked));
            let steps: Vec<&Step> = places.iter().map(|place| place.step).collect();
            for place in &places {
                let category = category(view, place, &steps, views.len() > 1);
                let at = categories.iter().position(|known| *known == category).unwrap_or_else(|| {
                    categories.push(category);
                    categories.len() - 1
                });
                if let Some(figure) = place.figure(metric)? {
                    measured[series].push((at, figure.value, figure.half_width));
                }
                let fitting = beside
                    .iter()
                    .find(|one| one.metric == metric && one.when == When::Measured && one.fits(place.step));
                published[series].extend(fitting.map(|one| (at, one.value)));
            }
        }
    }
    let spread = |points: &mut dyn Iterator<Item = (usize, f64)>| {
        let mut values = vec![f64::NAN; categories.len()];
        points.for_each(|(at, value)| values[at] = value);
        values
    };
    let mut series = Vec::new();
    for (place, own) in names.iter().enumerate() {
        let label = if own.is_empty() { "measured".to_string() } else { own.clone() };
        // Colours go by what was measured, as in other charts.
        let hue = series.iter().filter(|one: &&BarSeries| !one.published).count();
        let error = measured[place].iter().any(|(_, _, error)| error.is_some());
        series.push(BarSeries {
            hue: Some(hue),
            error: if error {
                spread(&mut measured[place].iter().map(|(at, _, error)| (*at, error.unwrap_or(f64::NAN))))
            } else {
                Vec::new()
            },
            ..BarSeries::new(label, spread(&mut measured[place].iter().map(|(at, value, _)| (*at, *value))))
        });
        if !published[place].is_empty() {
            let label = joined(&[own.clone(), "published".to_string()]);
            series.push(BarSeries::new(label, spread(&mut published[place].iter().copied())).published_beside(hue));
        }
    }
    let several = asked.metrics.len() > 1;
    let figure = if several { format!(": {}", name(metric).to_lowercase()) } else { String::new() };
    let wide = categories.len() * series.len() > 16;
    let title = joined(&[format!("{}{figure}", asked.title.get_ref()), name_of_test.to_string()]);
    Ok(Chart {
        id: title.clone(),
        title,
        sees: capital(&format!("how {}.", asks(metric))),
        context: context::lines(views[0]),
        x: Axis::named("", categories),
        y: axis(metric),
        plot: Plot::Bars(series),
        wide,
        ..Chart::default()
    })
}

/// What a point is called among those of all tests.
fn category(view: &View, place: &Place, all: &[&Step], several: bool) -> String {
    let test = if several { view.test.title.clone() } else { String::new() };
    let own = if all.len() > 1 { label(place.step, all) } else { String::new() };
    match (test.as_str(), own.as_str()) {
        ("", "") => view.test.title.clone(),
        (test, "") => test.to_string(),
        ("", own) => own.to_string(),
        (test, own) => format!("{test}: {own}"),
    }
}

/// What tells a step from the others.
pub(super) fn label(step: &Step, all: &[&Step]) -> String {
    let stage = if all.iter().any(|other| other.stage != step.stage) { step.stage.as_str() } else { "" };
    format!("{stage} {}", settings(step, all)).trim().to_owned()
}

/// The settings that tell a step from the others.
pub(super) fn settings(step: &Step, all: &[&Step]) -> String {
    let about: [&dyn Fn(&Step) -> String; 5] = [
        &context::size,
        &|step| context::mix(step.point.read_percent),
        &|step| step.point.access.clone(),
        &context::region,
        &context::load,
    ];
    let differing = about.iter().filter(|value| all.iter().any(|other| value(other) != value(step)));
    differing.map(|value| value(step)).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
