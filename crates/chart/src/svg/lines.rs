//! Lines, dots and bands.

use super::axes::{Ends, Frame};
use super::canvas::{Canvas, px};
use super::legend::{Legend, Sample};
use super::{Drawing, Size, outline};
use crate::axis::Scale;
use crate::model::{Chart, Mark, Note, Series};
use crate::number::Unit;
use crate::range::{ends, extent};
use crate::theme::HUES;

/// The colour of the series at a place of the chart.
pub(crate) fn hue(series: &[Series], place: usize) -> usize {
    series[place].hue.unwrap_or(place) % HUES
}

pub(super) fn draw(chart: &Chart, series: &[Series], size: Size, key: &str) -> Drawing {
    let legend = Legend::new(entries(series), size.width());
    let frame = Frame::new(chart, &limits(chart, series, size, legend.height), size);
    let mut canvas = Canvas::default();
    legend.draw(&mut canvas, 0.0);
    frame.draw_behind(&mut canvas, chart, true);

    let area = frame.area;
    let (x, y, width, height) = (px(area.left - 4.0), px(area.top - 4.0), px(area.width + 8.0), px(area.height + 8.0));
    canvas.raw(&format!(
        "<clipPath id=\"{key}-c\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/></clipPath><g clip-path=\"url(#{key}-c)\">"
    ));
    for (place, one) in series.iter().enumerate() {
        draw_band(&mut canvas, chart, one, hue(series, place), &frame);
    }
    for (place, one) in series.iter().enumerate() {
        draw_series(&mut canvas, chart, one, hue(series, place), &frame);
    }
    canvas.raw("</g>");
    frame.draw_around(&mut canvas, chart);
    Drawing { width: size.width(), height: frame.height, plot: Some(area), canvas }
}

fn entries(series: &[Series]) -> Vec<(Sample, String)> {
    let mut entries = Vec::new();
    for (place, one) in series.iter().enumerate() {
        let hue = hue(series, place);
        let sample = match one.mark {
            Mark::Line => Sample::Line(hue),
            Mark::Marked => Sample::Marked(hue),
            Mark::Dots => Sample::Dots(hue),
            Mark::Points => Sample::Points(hue),
            Mark::Published => Sample::Published(hue),
            Mark::Dashed => Sample::Dashed(hue),
        };
        entries.push((sample, one.name.clone()));
        if let Some(band) = &one.band {
            entries.push((Sample::Band(hue), band.name.clone()));
        }
    }
    // A single line is what the title and the axis say already.
    if entries.len() == 1 && matches!(entries[0].0, Sample::Line(_) | Sample::Marked(_)) && series[0].name.is_empty() {
        entries.clear();
    }
    entries
}

/// Where the axes end.
fn limits(chart: &Chart, series: &[Series], size: Size, above: f64) -> Ends {
    let shown = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let usable = |(x, y): &(f64, f64)| crate::range::usable(*x, &chart.x) && crate::range::usable(*y, &chart.y);
        points.iter().copied().filter(usable).collect()
    };
    let points: Vec<(f64, f64)> = series.iter().flat_map(|one| shown(&one.points)).collect();
    let bands = series.iter().filter_map(|one| one.band.as_ref()).flat_map(|band| band.low.iter().chain(&band.high));
    let marks = chart.notes.iter().filter_map(|note| if let Note::AtY { y, .. } = note { Some(y) } else { None });
    let y = extent(points.iter().map(|(_, y)| *y).chain(bands.copied()).chain(marks.copied()), &chart.y);
    let only_dots = series.iter().all(|one| matches!(one.mark, Mark::Dots | Mark::Points | Mark::Published));
    // A time that begins late, or a load, need not begin at zero; a cloud of dots shows two quantities.
    let expand_x = only_dots || chart.x.scale != Scale::Linear;
    let x = if chart.x.names.is_empty() {
        let x = extent(points.iter().map(|(x, _)| *x), &chart.x);
        // A course that is shown from near its beginning is shown from its beginning.
        let from_start = chart.x.unit == Unit::Elapsed && x.is_some_and(|(low, high)| low >= 0.0 && low < 0.2 * high);
        ends(x, &chart.x, only_dots || from_start)
    } else {
        (-0.5, chart.x.names.len() as f64 - 0.5)
    };
    Ends {
        x,
        y: ends(y, &chart.y, true),
        expand_x,
        expand_y: true,
        above,
        plot_height: size.plot_height(),
        skip_names: true,
    }
}

fn draw_band(canvas: &mut Canvas, chart: &Chart, series: &Series, hue: usize, frame: &Frame) {
    let Some(band) = &series.band else { return };
    let axes = (&chart.x, &chart.y);
    let rulers = (&frame.x, &frame.y);
    // On a logarithmic axis a lower end of zero lies at the bottom.
    let floor = if chart.y.scale == Scale::Linear { f64::NEG_INFINITY } else { frame.y.low };
    let pairs =
        || series.points.iter().zip(band.low.iter().zip(&band.high)).map(|((x, _), (low, high))| (*x, *low, *high));
    // A gap in one side is a gap in both.
    let side = |upper: bool| {
        let points: Vec<(f64, f64)> = pairs()
            .map(|(x, low, high)| match (low.is_finite() && high.is_finite(), upper) {
                (false, _) => (x, f64::NAN),
                (true, true) => (x, high.max(floor)),
                (true, false) => (x, low.max(floor)),
            })
            .collect();
        outline::placed(&points, axes, rulers)
    };
    for (low, high) in side(false).iter().zip(&side(true)) {
        canvas.path(&format!("bd f{hue}"), &outline::area(&outline::thinned(low), &outline::thinned(high)));
    }
}

fn draw_series(canvas: &mut Canvas, chart: &Chart, series: &Series, hue: usize, frame: &Frame) {
    let runs = outline::placed(&series.points, (&chart.x, &chart.y), (&frame.x, &frame.y));
    let each =
        |draw: &dyn Fn((f64, f64)) -> String| runs.iter().flatten().map(|point| draw(*point)).collect::<String>();
    let lines = || runs.iter().map(|run| outline::line(&outline::thinned(run))).collect::<String>();
    match series.mark {
        Mark::Line => canvas.path(&format!("ln s{hue} d{hue}"), &lines()),
        Mark::Marked => {
            canvas.path(&format!("ln s{hue} d{hue}"), &lines());
            canvas.path(&format!("mk f{hue}"), &each(&|point| outline::marker(hue, point, 3.8)));
        }
        Mark::Points => canvas.path(&format!("mk f{hue}"), &each(&|point| outline::marker(hue, point, 3.8))),
        Mark::Dots => {
            let points: Vec<(f64, f64)> = runs.concat();
            canvas.path(&format!("dots s{hue}"), &outline::dots(&points));
        }
        Mark::Published => {
            // A gap around it, so that it stands out from the measured line behind.
            let diamonds = each(&|point| outline::diamond(point, 4.6));
            canvas.path("gap", &diamonds);
            canvas.path(&format!("pub s{hue}"), &diamonds);
        }
        Mark::Dashed => canvas.path(&format!("thin s{hue}"), &lines()),
    }
}
