//! Bars side by side.

use super::axes::{Ends, Frame};
use super::canvas::{Anchor, Canvas};
use super::legend::{Legend, Sample};
use super::{Drawing, Size, TEXT};
use crate::axis::Scale;
use crate::model::{BarSeries, Chart, Note};
use crate::number::significant;
use crate::range::{ends, extent, usable};
use crate::text::width;
use crate::theme::HUES;

/// Widest bar, so that a single one does not become a wall.
const WIDEST: f64 = 56.0;

pub(super) fn draw(chart: &Chart, series: &[BarSeries], size: Size) -> Drawing {
    let hue = |place: usize| series[place].hue.unwrap_or(place) % HUES;
    let entries = series.iter().enumerate().map(|(place, one)| {
        (if one.published { Sample::PublishedBar(hue(place)) } else { Sample::Bar(hue(place)) }, one.name.clone())
    });
    let legend = Legend::new(entries, size.width());
    let tops = series.iter().flat_map(|one| {
        one.values
            .iter()
            .enumerate()
            .map(|(at, value)| value + one.error.get(at).filter(|it| it.is_finite()).unwrap_or(&0.0))
    });
    let marks = chart.notes.iter().filter_map(|note| if let Note::AtY { y, .. } = note { Some(*y) } else { None });
    let count = chart.x.names.len() as f64;
    let (low, high) = ends(extent(tops.chain(marks), &chart.y), &chart.y, true);
    // Room for the figures above the bars.
    let high =
        if chart.y.scale == Scale::Linear && chart.y.bounds.is_none() { high + (high - low) * 0.07 } else { high };
    let limits = Ends {
        x: (-0.5, count - 0.5),
        y: (low, high),
        expand_x: false,
        expand_y: true,
        above: legend.height,
        plot_height: size.plot_height(),
        skip_names: false,
    };
    let frame = Frame::new(chart, &limits, size);
    let mut canvas = Canvas::default();
    legend.draw(&mut canvas, 0.0);
    frame.draw_behind(&mut canvas, chart, false);

    let band = frame.area.width / count;
    let bar = (band * 0.84 / series.len() as f64).min(WIDEST);
    let base = if chart.y.scale == Scale::Linear { frame.y.at(0.0_f64.max(frame.y.low)) } else { frame.area.bottom() };
    let prefixed = chart.y.unit.prefixed(frame.y.high.abs().max(frame.y.low.abs()));
    let mut values = Canvas::default();
    let mut crowded = false;
    for (place, one) in series.iter().enumerate() {
        let hue = hue(place);
        for (at, value) in one.values.iter().enumerate().take(chart.x.names.len()) {
            if !usable(*value, &chart.y) {
                continue;
            }
            let left = frame.x.at(at as f64) - bar * series.len() as f64 / 2.0 + bar * place as f64;
            let top = frame.y.at(*value);
            let (upper, lower) = (top.min(base), top.max(base));
            let class = if one.published { format!("pubbar f{hue} s{hue}") } else { format!("bar f{hue}") };
            let tip = format!("{} · {}: {}", chart.x.names[at], one.name, chart.y.unit.one(*value));
            let inset = if one.published { 1.2 } else { 0.5 };
            // A bar that is almost nothing must still be seen.
            let height = (lower - upper).max(1.0);
            canvas.rect(&class, (left + inset, upper), (bar - 2.0 * inset, height), &tip);
            let error = one.error.get(at).copied().filter(|error| error.is_finite() && *error > 0.0);
            if let Some(error) = error {
                let (high, low) = (frame.y.at(value + error), frame.y.at((value - error).max(frame.y.low)));
                let middle = left + bar / 2.0;
                canvas.line("whisker", (middle, high), (middle, low));
                canvas.line("whisker", (middle - 3.0, high), (middle + 3.0, high));
                canvas.line("whisker", (middle - 3.0, low), (middle + 3.0, low));
            }
            let label = significant(value / prefixed.factor, 3);
            let above = upper - 4.0 - error.map_or(0.0, |error| top - frame.y.at(value + error));
            crowded |= width(&label, TEXT - 1.0) > bar + 1.0 || above < frame.area.top;
            values.text("val note", (left + bar / 2.0, above), Anchor::Middle, &label);
        }
    }
    if !crowded {
        canvas.raw(&values.into_markup());
    }
    frame.draw_around(&mut canvas, chart);
    Drawing { width: size.width(), height: frame.height, plot: Some(frame.area), canvas }
}
