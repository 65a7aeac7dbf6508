//! Heat maps: of a matrix with its figures, or of a histogram over time.

use std::fmt::Write;

use super::axes::{Ends, Frame};
use super::canvas::{Anchor, Canvas, px};
use super::{Drawing, LINE, Size, TEXT};
use crate::axis::Axis;
use crate::model::{Chart, Heat, Steps};
use crate::number::{Prefixed, significant};
use crate::range::{extent, usable};
use crate::text::width;
use crate::theme::STEPS;

/// Height of a row with figures.
const ROW: f64 = 28.0;

/// Which of the nine colours a value has.
pub(crate) struct Shades {
    bounds: Vec<f64>,
}

impl Shades {
    /// Nine steps from the lowest to the highest of the values.
    pub(crate) fn new(values: impl IntoIterator<Item = f64>, log: bool) -> Shades {
        let axis = if log { Axis::default().log() } else { Axis::default() };
        let (low, high) = extent(values, &axis).unwrap_or((0.0, 1.0));
        let (low, high) = if low == high { (low, low + low.abs().max(1.0)) } else { (low, high) };
        let exact: Vec<f64> = (0..=STEPS)
            .map(|step| {
                let share = step as f64 / STEPS as f64;
                if log { (low.ln() + share * (high.ln() - low.ln())).exp() } else { low + share * (high - low) }
            })
            .collect();
        // Round numbers are easier to read beside the colours, if they keep them apart.
        let rounded: Vec<f64> = exact
            .iter()
            .enumerate()
            .map(|(step, bound)| if step == 0 || step == STEPS { *bound } else { round(*bound) })
            .collect();
        let apart = rounded.windows(2).all(|pair| pair[0] < pair[1]);
        Shades { bounds: if apart { rounded } else { exact } }
    }

    /// The colour of a value, if it has one.
    pub(crate) fn of(&self, value: f64) -> Option<usize> {
        if !value.is_finite() {
            return None;
        }
        let above = self.bounds[1..STEPS].iter().filter(|bound| value >= **bound).count();
        // A value that a logarithmic scale cannot show has none.
        (value >= self.bounds[0] || above > 0 || self.bounds[0] - value < self.bounds[0].abs() * 1e-9).then_some(above)
    }
}

/// A number with two digits that count.
fn round(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

/// A figure for a small cell: 378k, 13k, 6.6k, 940.
fn compact(value: f64) -> String {
    let (divided, suffix) = match value.abs() {
        size if size >= 999.5e6 => (value / 1e9, "G"),
        size if size >= 999.5e3 => (value / 1e6, "M"),
        size if size >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if divided.abs() >= 99.5 { 3 } else { 2 };
    format!("{}{suffix}", significant(divided, digits))
}

pub(super) fn draw(chart: &Chart, heat: &Heat, size: Size) -> Drawing {
    let shades = Shades::new(heat.cells.iter().flatten().copied(), heat.log);
    let most = heat
        .cells
        .iter()
        .flatten()
        .copied()
        .filter(|cell| cell.is_finite())
        .fold(0.0, |most, cell| f64::max(most, cell.abs()));
    let prefixed = heat.unit.prefixed(most);
    let mut canvas = Canvas::default();
    let above = draw_scale(&mut canvas, heat, &shades, &prefixed, size.width());
    let named_rows = heat.rows == Steps::Names;
    let plot_height = if named_rows { (chart.y.names.len() as f64 * ROW).max(ROW) } else { size.plot_height() };
    let limits = Ends {
        x: ends_of(&heat.columns, &chart.x),
        y: ends_of(&heat.rows, &chart.y),
        expand_x: false,
        expand_y: false,
        above,
        plot_height,
        skip_names: false,
    };
    let mut frame = Frame::new(chart, &limits, size);
    if named_rows {
        // Names read from the top down.
        frame.y = frame.y.placed(frame.area.top, frame.area.bottom());
    }
    if named_rows && heat.columns == Steps::Names {
        draw_matrix(&mut canvas, chart, heat, &shades, &prefixed, &frame);
    } else {
        draw_field(&mut canvas, chart, heat, &shades, &frame);
    }
    frame.draw_around(&mut canvas, chart);
    Drawing { width: size.width(), height: frame.height, plot: Some(frame.area), canvas }
}

fn ends_of(steps: &Steps, axis: &Axis) -> (f64, f64) {
    match steps {
        Steps::Names => (-0.5, (axis.names.len() as f64 - 0.5).max(0.5)),
        Steps::Edges(edges) => crate::range::ends(extent(edges.iter().copied(), axis), axis, false),
    }
}

/// The colours and what they mean; returns the height.
fn draw_scale(canvas: &mut Canvas, heat: &Heat, shades: &Shades, prefixed: &Prefixed, room: f64) -> f64 {
    let title =
        if prefixed.name.is_empty() { heat.label.clone() } else { format!("{} ({})", heat.label, prefixed.name) };
    canvas.text("yl", (0.0, 12.0), Anchor::Start, &title);
    let cell = (room / STEPS as f64).min(52.0);
    for step in 0..STEPS {
        let range = (shades.bounds[step], shades.bounds[step + 1]);
        let tip = format!("{} to {}", heat.unit.one(range.0), heat.unit.one(range.1));
        canvas.rect(&format!("cell q{step}"), (step as f64 * cell, 20.0), (cell, 12.0), &tip);
    }
    let mut free = f64::NEG_INFINITY;
    for (step, bound) in shades.bounds.iter().enumerate() {
        let label = significant(bound / prefixed.factor, 3);
        let half = width(&label, TEXT) / 2.0;
        let x = (step as f64 * cell).max(half);
        if x - half > free && x + half <= room {
            canvas.text("tk", (x, 45.0), Anchor::Middle, &label);
            free = x + half + 6.0;
        }
    }
    LINE + 40.0
}

/// Cells with names on both sides, with their figures where they fit.
fn draw_matrix(canvas: &mut Canvas, chart: &Chart, heat: &Heat, shades: &Shades, prefixed: &Prefixed, frame: &Frame) {
    let (columns, rows) = (chart.x.names.len(), chart.y.names.len());
    let (wide, high) = (frame.area.width / columns as f64, frame.area.height / rows as f64);
    let cells = || {
        heat.cells.iter().take(rows).enumerate().flat_map(|(row, cells)| {
            cells.iter().take(columns).enumerate().map(move |(column, value)| (row, column, *value))
        })
    };
    // The figures with three digits if they fit, else shortened ones, else none.
    let forms: [&dyn Fn(f64) -> String; 2] = [&|value| significant(value, 3), &compact];
    let fitting = forms.into_iter().find(|form| {
        cells()
            .all(|(_, _, value)| !value.is_finite() || width(&form(value / prefixed.factor), TEXT - 1.0) <= wide - 3.0)
    });
    for (row, column, value) in cells() {
        let Some(step) = shades.of(value) else { continue };
        let at = (frame.area.left + column as f64 * wide, frame.area.top + row as f64 * high);
        let tip = format!("{} · {}: {}", chart.y.names[row], chart.x.names[column], heat.unit.one(value));
        canvas.rect(&format!("cell q{step}"), at, (wide - 1.0, high - 1.0), &tip);
        if let Some(form) = fitting {
            let middle = (at.0 + wide / 2.0, at.1 + high / 2.0 + 4.0);
            canvas.text(&format!("val t{step}"), middle, Anchor::Middle, &form(value / prefixed.factor));
        }
    }
}

/// Cells between edges: neighbours of one colour become one outline.
fn draw_field(canvas: &mut Canvas, chart: &Chart, heat: &Heat, shades: &Shades, frame: &Frame) {
    let places = |steps: &Steps, axis: &Axis, ruler: &super::ruler::Ruler| -> Vec<f64> {
        match steps {
            Steps::Names => (0..=axis.names.len()).map(|edge| ruler.at(edge as f64 - 0.5)).collect(),
            Steps::Edges(edges) => edges
                .iter()
                .map(|edge| if usable(*edge, axis) { ruler.at(*edge) } else { ruler.at(ruler.low) })
                .collect(),
        }
    };
    let across = places(&heat.columns, &chart.x, &frame.x);
    let up = places(&heat.rows, &chart.y, &frame.y);
    let mut outlines = vec![String::new(); STEPS];
    for (row, cells) in heat.cells.iter().enumerate() {
        let (Some(one), Some(other)) = (up.get(row), up.get(row + 1)) else { break };
        let (top, bottom) = (one.min(*other), one.max(*other));
        let shaded: Vec<Option<usize>> =
            cells.iter().take(across.len().saturating_sub(1)).map(|cell| shades.of(*cell)).collect();
        let mut column = 0;
        for run in shaded.chunk_by(|one, other| one == other) {
            if let Some(step) = run[0] {
                let (left, right) = (across[column], across[column + run.len()]);
                let _ = write!(outlines[step], "M{} {}H{}V{}H{}Z", px(left), px(top), px(right), px(bottom), px(left));
            }
            column += run.len();
        }
    }
    for (step, outline) in outlines.iter().enumerate() {
        canvas.path(&format!("cell q{step}"), outline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cells_have_short_figures() {
        assert_eq!(
            [940.0, 6612.0, 12_943.0, 378_400.0, 2.5e6, 0.75].map(compact),
            ["940", "6.6k", "13k", "378k", "2.5M", "0.75"]
        );
    }

    #[test]
    fn shades_run_from_the_lowest_to_the_highest() {
        let shades = Shades::new([0.0, 9.0, f64::NAN], false);
        assert_eq!(
            [0.0, 0.9, 1.0, 8.9, 9.0].map(|value| shades.of(value)),
            [Some(0), Some(0), Some(1), Some(8), Some(8)]
        );
        assert_eq!(shades.of(f64::NAN), None);
        let log = Shades::new([1.0, 1e9, 0.0], true);
        assert_eq!([1.0, 11.0, 1e9, 0.0].map(|value| log.of(value)), [Some(0), Some(1), Some(8), None]);
    }
}
