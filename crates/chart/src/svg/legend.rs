//! What the colours, dashes and markers mean, in rows above the plot, where nothing can lie under them.

use super::canvas::{Anchor, Canvas};
use super::outline;
use super::{LINE, TEXT};
use crate::text::{shortened, width};

/// What stands before a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    Line(usize),
    Marked(usize),
    Dots(usize),
    Points(usize),
    Published(usize),
    Dashed(usize),
    Band(usize),
    Bar(usize),
    PublishedBar(usize),
}

/// Width of a sample and the gap behind it.
const SAMPLE: f64 = 30.0;
/// Gap between entries.
const GAP: f64 = 18.0;

/// Entries with their places.
pub(super) struct Legend {
    entries: Vec<(f64, f64, Sample, String)>,
    pub(super) height: f64,
}

impl Legend {
    /// Flows entries into rows of a width.
    pub(super) fn new(entries: impl IntoIterator<Item = (Sample, String)>, room: f64) -> Legend {
        let (mut x, mut row) = (0.0, 0.0);
        let mut placed = Vec::new();
        for (sample, name) in entries {
            if name.is_empty() {
                continue;
            }
            let name = shortened(&name, TEXT, room - SAMPLE);
            let wide = SAMPLE + width(&name, TEXT);
            if x > 0.0 && x + wide > room {
                (x, row) = (0.0, row + 1.0);
            }
            placed.push((x, row, sample, name));
            x += wide + GAP;
        }
        let height = if placed.is_empty() { 0.0 } else { (row + 1.0) * (LINE + 2.0) + 6.0 };
        Legend { entries: placed, height }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) {
        for (x, row, sample, name) in &self.entries {
            let y = top + row * (LINE + 2.0) + 9.0;
            draw_sample(canvas, *sample, (*x, y));
            canvas.text("lg", (x + SAMPLE, y + 4.0), Anchor::Start, name);
        }
    }
}

fn draw_sample(canvas: &mut Canvas, sample: Sample, (x, y): (f64, f64)) {
    let (from, to, middle) = ((x, y), (x + 24.0, y), (x + 12.0, y));
    match sample {
        Sample::Line(hue) => canvas.line(&format!("ln s{hue} d{hue}"), from, to),
        Sample::Marked(hue) => {
            canvas.line(&format!("ln s{hue} d{hue}"), from, to);
            canvas.path(&format!("mk f{hue}"), &outline::marker(hue, middle, 3.8));
        }
        Sample::Dots(hue) => canvas.path(
            &format!("dots s{hue}"),
            &outline::dots(&[(x + 6.0, y + 2.0), (x + 12.0, y - 2.0), (x + 18.0, y + 1.0)]),
        ),
        Sample::Points(hue) => canvas.path(&format!("mk f{hue}"), &outline::marker(hue, middle, 3.8)),
        Sample::Published(hue) => canvas.path(&format!("pub s{hue}"), &outline::diamond(middle, 4.0)),
        Sample::Dashed(hue) => canvas.line(&format!("thin s{hue}"), from, to),
        Sample::Band(hue) => canvas.rect(&format!("bd f{hue}"), (x, y - 5.0), (24.0, 10.0), ""),
        Sample::Bar(hue) => canvas.rect(&format!("bar f{hue}"), (x + 5.0, y - 6.0), (14.0, 12.0), ""),
        Sample::PublishedBar(hue) => {
            canvas.rect(&format!("pubbar f{hue} s{hue}"), (x + 5.5, y - 5.5), (13.0, 11.0), "")
        }
    }
}
