//! The frame around the data: grid, ticks, labels, titles, notes.

use super::canvas::{Anchor, Canvas};
use super::ruler::Ruler;
use super::{Area, LINE, Size, TEXT};
use crate::axis::{Axis, Scale};
use crate::model::{Chart, Note};
use crate::text::{shortened, width, wrap};

/// How the labels below the plot are set.
enum Below {
    /// One line each.
    Flat(Vec<(f64, String)>),
    /// Several short lines each.
    Stacked(Vec<(f64, Vec<String>)>),
    /// Slanted, because there are many or long ones.
    Slanted(Vec<(f64, String)>),
}

/// A plot's place with its axes.
pub(super) struct Frame {
    pub(super) area: Area,
    pub(super) x: Ruler,
    pub(super) y: Ruler,
    below: Below,
    /// Where the drawing ends.
    pub(super) height: f64,
}

/// What a frame is laid out from.
pub(super) struct Ends {
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    /// Whether the x axis may be longer than the data, up to the next tick.
    pub(super) expand_x: bool,
    /// Whether the y axis may.
    pub(super) expand_y: bool,
    /// What is above the frame already.
    pub(super) above: f64,
    /// Height of the plot.
    pub(super) plot_height: f64,
    /// Whether names of the x axis may be left out where they crowd: on a scale that one can fill in.
    pub(super) skip_names: bool,
}

const LABEL_GAP: f64 = 8.0;
const SLANT: f64 = -40.0;
const LONGEST_NAME: f64 = 150.0;

impl Frame {
    pub(super) fn new(chart: &Chart, ends: &Ends, size: Size) -> Frame {
        let ticks_up = (ends.plot_height / 38.0) as usize;
        let y = Ruler::new(&chart.y, ends.y, ticks_up, ends.expand_y);
        let longest = if size == Size::Narrow { 96.0 } else { LONGEST_NAME };
        let labels = y.ticks.iter().map(|(_, label)| width(label, TEXT).min(longest)).fold(8.0, f64::max);
        let left = labels + LABEL_GAP + 2.0;
        // The y axis's title stands above its labels, where it can be read without turning one's head.
        let top = ends.above + if y.title.is_empty() { 8.0 } else { LINE + 8.0 };
        let mut area = Area { left, top, width: size.width() - left - 10.0, height: ends.plot_height };
        let (x, below) = horizontal(&chart.x, ends, &mut area);
        let y = y.placed(area.bottom(), area.top);
        let labels = match &below {
            Below::Flat(_) => LINE,
            Below::Stacked(labels) => {
                labels.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1) as f64 * (LINE - 2.0) + 2.0
            }
            Below::Slanted(labels) => {
                let longest = labels.iter().map(|(_, label)| width(label, TEXT)).fold(0.0, f64::max);
                longest * (-SLANT).to_radians().sin() + LINE
            }
        };
        let title = if x.title.is_empty() { 0.0 } else { LINE + 4.0 };
        Frame { area, x, y, below, height: area.bottom() + 6.0 + labels + title + 2.0 }
    }

    /// What lies behind the data.
    pub(super) fn draw_behind(&self, canvas: &mut Canvas, chart: &Chart, lines_at_x: bool) {
        let area = self.area;
        for note in &chart.notes {
            if let Note::Span { from, to, .. } = note {
                let (from, to) = (self.clamped_x(*from), self.clamped_x(*to));
                canvas.rect("span", (from.min(to), area.top), ((to - from).abs(), area.height), "");
            }
        }
        let mut grid = String::new();
        let mut add = |from: (f64, f64), to: (f64, f64)| {
            grid.push_str(&super::outline::line(&[from, to]));
        };
        for (value, _) in &self.y.ticks {
            let y = self.y.at(*value).round() + 0.5;
            add((area.left, y), (area.right(), y));
        }
        if lines_at_x {
            for (value, _) in &self.x.ticks {
                let x = self.x.at(*value).round() + 0.5;
                add((x, area.top), (x, area.bottom()));
            }
        }
        canvas.path("gr", &grid);
    }

    /// What lies in front of the data: axes, labels, notes.
    pub(super) fn draw_around(&self, canvas: &mut Canvas, chart: &Chart) {
        let area = self.area;
        canvas.line("ax", (area.left, area.bottom() + 0.5), (area.right(), area.bottom() + 0.5));
        if !self.y.title.is_empty() {
            canvas.text("yl", (0.0, area.top - 10.0), Anchor::Start, &self.y.title);
        }
        for (value, label) in &self.y.ticks {
            let label = shortened(label, TEXT, area.left - LABEL_GAP + 1.0);
            canvas.text("tk", (area.left - LABEL_GAP, self.y.at(*value) + 4.0), Anchor::End, &label);
        }
        self.draw_below(canvas);
        if !self.x.title.is_empty() {
            let title = shortened(&self.x.title, TEXT, area.right());
            let half = width(&title, TEXT) / 2.0;
            let middle = (area.left + area.width / 2.0).min(area.right() - half).max(half);
            canvas.text("yl", (middle, self.height - 6.0), Anchor::Middle, &title);
        }
        self.draw_notes(canvas, chart);
    }

    fn draw_below(&self, canvas: &mut Canvas) {
        let y = self.area.bottom() + 6.0;
        match &self.below {
            Below::Flat(labels) => {
                for (value, label) in labels {
                    // The outermost labels must not leave the drawing.
                    let half = width(label, TEXT) / 2.0;
                    let x = self.x.at(*value).min(self.area.right() + 10.0 - half);
                    canvas.text("tk", (x, y + 11.0), Anchor::Middle, label);
                }
            }
            Below::Stacked(labels) => {
                for (value, lines) in labels {
                    for (row, line) in lines.iter().enumerate() {
                        canvas.text(
                            "tk",
                            (self.x.at(*value), y + 11.0 + row as f64 * (LINE - 2.0)),
                            Anchor::Middle,
                            line,
                        );
                    }
                }
            }
            Below::Slanted(labels) => {
                for (value, label) in labels {
                    canvas.turned("tk", (self.x.at(*value) + 4.0, y + 9.0), Anchor::End, SLANT, label);
                }
            }
        }
    }

    fn clamped_x(&self, value: f64) -> f64 {
        if value.is_finite() { self.x.at(value).clamp(self.area.left, self.area.right()) } else { self.area.left }
    }

    fn draw_notes(&self, canvas: &mut Canvas, chart: &Chart) {
        let area = self.area;
        let mut row = 0.0;
        for note in &chart.notes {
            match note {
                Note::AtX { x, text } | Note::Span { from: x, text, .. } => {
                    let at = self.clamped_x(*x);
                    if matches!(note, Note::AtX { .. }) {
                        canvas.line("at", (at, area.top), (at, area.bottom()));
                    }
                    let room = area.width - 8.0;
                    let text = shortened(text, TEXT, room);
                    let wide = width(&text, TEXT);
                    let y = area.top + 13.0 + row * LINE;
                    // To the right of its line if there is room, else to the left, else as far right as it goes.
                    if at + 5.0 + wide <= area.right() {
                        canvas.text("note", (at + 5.0, y), Anchor::Start, &text);
                    } else if at - 5.0 - wide >= area.left {
                        canvas.text("note", (at - 5.0, y), Anchor::End, &text);
                    } else {
                        canvas.text("note", (area.right() - 2.0, y), Anchor::End, &text);
                    }
                    row += if text.is_empty() { 0.0 } else { 1.0 };
                }
                Note::AtY { y, text } if y.is_finite() && *y >= self.y.low && *y <= self.y.high => {
                    let at = self.y.at(*y);
                    canvas.line("at", (area.left, at), (area.right(), at));
                    let above = if at - area.top > LINE + 2.0 { at - 5.0 } else { at + 14.0 };
                    canvas.text("note", (area.right() - 2.0, above), Anchor::End, &shortened(text, TEXT, area.width));
                }
                Note::AtY { .. } => {}
            }
        }
    }
}

/// The x axis with labels that fit.
fn horizontal(axis: &Axis, ends: &Ends, area: &mut Area) -> (Ruler, Below) {
    if axis.names.is_empty() {
        let mut most = ((area.width / 46.0) as usize).clamp(2, 14);
        loop {
            let ruler = Ruler::new(axis, ends.x, most, ends.expand_x).placed(area.left, area.right());
            let fits = ruler.ticks.windows(2).all(|pair| {
                let room = (ruler.at(pair[1].0) - ruler.at(pair[0].0)).abs();
                (width(&pair[0].1, TEXT) + width(&pair[1].1, TEXT)) / 2.0 + 10.0 <= room
            });
            if fits || most <= 2 {
                let labels = ruler.ticks.clone();
                return (ruler, Below::Flat(labels));
            }
            most -= 1;
        }
    }
    debug_assert_eq!(axis.scale, Scale::Linear);
    let ruler = Ruler::new(axis, ends.x, axis.names.len(), false).placed(area.left, area.right());
    let each = area.width / (ruler.high - ruler.low);
    let labels = ruler.ticks.clone();
    let below = if labels.iter().all(|(_, label)| width(label, TEXT) + 8.0 <= each) {
        Below::Flat(labels)
    } else {
        let stacked: Vec<(f64, Vec<String>)> =
            labels.iter().map(|(value, label)| (*value, wrap(label, TEXT, each - 5.0))).collect();
        let fit = stacked
            .iter()
            .all(|(_, lines)| lines.len() <= 4 && lines.iter().all(|line| width(line, TEXT) + 4.0 <= each));
        if fit {
            Below::Stacked(stacked)
        } else if ends.skip_names {
            skipped(&labels, each)
        } else {
            let every = ((LINE - 1.0) / each).ceil().max(1.0) as usize;
            let labels: Vec<(f64, String)> = labels
                .into_iter()
                .step_by(every)
                .map(|(value, label)| (value, shortened(&label, TEXT, LONGEST_NAME - 20.0)))
                .collect();
            // The first slanted label begins left of its place: it must not leave the drawing.
            let overhang = labels
                .iter()
                .map(|(value, label)| width(label, TEXT) * SLANT.to_radians().cos() - ruler.at(*value))
                .fold(0.0, f64::max);
            area.left += overhang;
            area.width -= overhang;
            Below::Slanted(labels)
        }
    };
    (ruler.placed(area.left, area.right()), below)
}

/// Every second, third … label, in one line or stacked.
fn skipped(labels: &[(f64, String)], each: f64) -> Below {
    let stacked: Vec<(f64, Vec<String>)> =
        labels.iter().map(|(value, label)| (*value, wrap(label, TEXT, each))).collect();
    let widest = stacked.iter().flat_map(|(_, lines)| lines).map(|line| width(line, TEXT)).fold(1.0, f64::max);
    let every = ((widest + 8.0) / each).ceil().max(1.0) as usize;
    Below::Stacked(stacked.into_iter().step_by(every).collect())
}
