//! What a chart shows, in words, for those who do not see it.

use crate::axis::Axis;
use crate::model::{Chart, Plot};
use crate::range::usable;

/// Series that are described one by one.
const DESCRIBED: usize = 12;

/// The chart's sentence, its context, and for each series where it lies.
pub(super) fn description(chart: &Chart) -> String {
    let mut parts = vec![chart.sees.clone()];
    parts.extend(chart.context.iter().map(|line| format!("{}.", line.trim_end_matches('.'))));
    if chart.is_empty() {
        parts.push("There is no data.".to_string());
        return joined(parts);
    }
    match &chart.plot {
        Plot::Lines(series) => {
            for series in series.iter().take(DESCRIBED) {
                let points: Vec<(f64, f64)> = series
                    .points
                    .iter()
                    .copied()
                    .filter(|(x, y)| usable(*x, &chart.x) && usable(*y, &chart.y))
                    .collect();
                parts.push(format!("{}: {}.", series.name, line(&points, chart)));
            }
        }
        Plot::Bars(series) => {
            for series in series.iter().take(DESCRIBED) {
                let bars: Vec<String> = chart
                    .x
                    .names
                    .iter()
                    .zip(&series.values)
                    .take(DESCRIBED * 2)
                    .filter(|(_, value)| value.is_finite())
                    .map(|(name, value)| format!("{name} {}", chart.y.unit.one(*value)))
                    .collect();
                parts.push(format!("{}: {}.", series.name, bars.join(", ")));
            }
        }
        Plot::Heat(heat) => {
            let cells = heat.cells.iter().flatten().copied().filter(|cell| cell.is_finite());
            let (low, high) =
                cells.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), cell| (low.min(cell), high.max(cell)));
            let label = &heat.label;
            parts.push(format!("{label}: from {} to {}.", heat.unit.one(low), heat.unit.one(high)));
        }
    }
    joined(parts)
}

fn joined(parts: Vec<String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn line(points: &[(f64, f64)], chart: &Chart) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return "no data".to_string();
    };
    let at = |(x, y): (f64, f64)| format!("{} at {}", chart.y.unit.one(y), place(x, &chart.x));
    if points.len() == 1 {
        return at(*first);
    }
    let extreme = |better: fn(f64, f64) -> bool| {
        points
            .iter()
            .copied()
            .reduce(|best, point| if better(point.1, best.1) { point } else { best })
            .unwrap_or(*first)
    };
    let (low, high) = (extreme(|new, best| new < best), extreme(|new, best| new > best));
    format!("from {} to {}; lowest {}, highest {}", at(*first), at(*last), at(low), at(high))
}

fn place(x: f64, axis: &Axis) -> String {
    match axis.names.get(x.max(0.0) as usize) {
        Some(name) => name.clone(),
        None => axis.unit.one(x),
    }
}
