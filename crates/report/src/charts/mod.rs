//! What a protocol asks to be charted.

mod bars;
mod by_size;
mod latency;
mod load;
mod matrix;
mod over_time;
mod rounds;
mod table;

use chart::{Axis, Block, Chart, Mark, Plot, Series};
use lab::protocol::{self, ChartKind, Metric};
use lab::published::Row;

use crate::ReportError;
use crate::context;
use crate::metric::{capital, name};
use crate::view::{View, joined};

pub(crate) use latency::{exceedances, field, with_band};
pub(crate) use over_time::amplification;
pub(crate) use rounds::{window_chart, window_table};

/// The stage that a chart is of.
fn stage(asked: &protocol::Chart) -> Option<&str> {
    asked.stage.as_deref()
}

/// Whether a chart is of several tests at once.
pub(crate) fn is_of_all(kind: ChartKind) -> bool {
    matches!(kind, ChartKind::Bars | ChartKind::Table | ChartKind::Quotients)
}

/// Tests that a chart is of.
pub(crate) fn wants(asked: &protocol::Chart, view: &View) -> bool {
    asked.tests.is_empty() || asked.tests.iter().any(|test| test == view.test.name())
}

/// The charts of one test that a protocol asks for.
pub(crate) fn of_test(asked: &protocol::Chart, view: &View, rows: &[Row]) -> Result<Vec<Block>, ReportError> {
    let metrics = metrics(asked);
    let mut charts = Vec::new();
    match asked.kind {
        ChartKind::OverTime => {
            for metric in metrics {
                charts.extend(over_time::over_time(view, asked, metric, rows)?);
            }
        }
        ChartKind::AgainstLoad => {
            for metric in metrics {
                charts.extend(load::against_load(view, asked, metric, rows)?);
            }
        }
        ChartKind::LatencyAgainstThroughput => charts.extend(load::latency_against_throughput(view, asked, &metrics)?),
        ChartKind::BySize => {
            for metric in metrics {
                charts.extend(by_size::by_size(view, asked, metric, rows)?);
            }
        }
        ChartKind::HeatMap => {
            for metric in metrics {
                charts.extend(matrix::heat_maps(view, asked, metric)?);
            }
        }
        ChartKind::Convergence => {
            for metric in metrics {
                charts.extend(rounds::convergence(view, asked, metric));
            }
        }
        ChartKind::SteadyWindow => {
            for variant in &view.variants {
                charts
                    .extend(variant.part().verdicts.iter().filter_map(|verdict| window_chart(view, variant, verdict)));
            }
        }
        ChartKind::LatencyHeatMap => charts.extend(field(view, stage(asked))?),
        ChartKind::Histogram => charts.extend(latency::histograms(view, stage(asked))?),
        ChartKind::Exceedance => charts.extend(exceedances(view, stage(asked))?),
        ChartKind::Bars | ChartKind::Table | ChartKind::Quotients => {}
    }
    Ok(charts.into_iter().filter(|chart| !chart.is_empty()).map(Block::from).collect())
}

/// The charts and tables of several tests at once.
pub(crate) fn of_all(asked: &protocol::Chart, views: &[View], rows: &[Row]) -> Result<Vec<Block>, ReportError> {
    let views: Vec<&View> = views.iter().filter(|view| wants(asked, view)).collect();
    if views.is_empty() {
        return Ok(Vec::new());
    }
    match asked.kind {
        ChartKind::Bars => {
            let mut blocks = Vec::new();
            for metric in metrics(asked) {
                for chart in bars::bars(&views, asked, metric, rows)? {
                    blocks.extend((!chart.is_empty()).then(|| Block::from(chart)));
                }
            }
            Ok(blocks)
        }
        _ => table::tables(&views, asked, &metrics(asked), rows),
    }
}

fn metrics(asked: &protocol::Chart) -> Vec<Metric> {
    if asked.metrics.is_empty() { vec![Metric::Iops] } else { asked.metrics.clone() }
}

/// A heading that says of which test a chart is, and of which of several figures.
fn title(view: &View, asked: &protocol::Chart, metric: Metric, group: &str) -> String {
    let own = asked.title.get_ref();
    let several = asked.metrics.len() > 1;
    let figure = if several { format!(", {}", name(metric).to_lowercase()) } else { String::new() };
    let group = if group.is_empty() { String::new() } else { format!(" · {group}") };
    // What repeats the test's own heading needs no second one before it.
    if own.to_lowercase().starts_with(&view.test.title.to_lowercase()) {
        return format!("{own}{figure}{group}");
    }
    format!("{}: {}{figure}{group}", view.test.title, lowered(own))
}

/// The first letter small, unless the word is all capitals.
fn lowered(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    if word.len() > 1 && word.chars().skip(1).any(|char| char.is_uppercase() || char.is_ascii_digit()) {
        return text.to_string();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Adds what was measured, and what was published of the same in the same colour. Colours go by what was measured, so that one means the
/// same in charts with published figures and in those without. Where no `words` tell it from others, it is called `alone`.
fn add(
    series: &mut Vec<Series>,
    words: &[String],
    alone: &str,
    mark: Mark,
    points: Vec<(f64, f64)>,
    published: Vec<(f64, f64)>,
) {
    let hue = series.iter().filter(|one| one.mark != Mark::Published).count();
    let label = joined(words);
    let name = if label.is_empty() { alone.to_string() } else { label.clone() };
    series.push(Series::line(name, points).mark(mark).hue(hue));
    if !published.is_empty() {
        let name = joined(&[label, "published".to_string()]);
        series.push(Series::line(name, published).mark(Mark::Published).hue(hue));
    }
}

/// The axis, logarithmic where a linear one would press most of the series onto the ground.
fn spread(axis: Axis, series: &[chart::Series]) -> Axis {
    let highest =
        |one: &chart::Series| one.points.iter().map(|(_, y)| *y).filter(|y| y.is_finite()).fold(0.0, f64::max);
    let lowest = |one: &chart::Series| {
        one.points.iter().map(|(_, y)| *y).filter(|y| y.is_finite()).fold(f64::INFINITY, f64::min)
    };
    let low = series.iter().map(lowest).fold(f64::INFINITY, f64::min);
    let high = series.iter().map(highest).fold(0.0, f64::max);
    if low > 0.0 && high / low > 40.0 { axis.log() } else { axis }
}

/// A chart of a test with everything around its plot.
fn chart(view: &View, title: String, sees: &str, (x, y): (Axis, Axis), plot: Plot) -> Chart {
    Chart {
        id: title.clone(),
        title,
        sees: capital(sees),
        context: context::lines(view),
        x,
        y,
        plot,
        ..Chart::default()
    }
}
