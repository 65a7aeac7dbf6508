//! What a chart is made of.

use serde::Serialize;

use crate::axis::Axis;
use crate::number::Unit;

/// A chart: what it shows, in words and in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// Names it within its page: letters, digits and hyphens; anything else is replaced.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// One sentence that says what one sees.
    pub sees: String,
    /// Device, format, preconditioning, verdict: what a reader must know to use the numbers. A line each.
    pub context: Vec<String>,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub plot: Plot,
    /// Marks beside the data.
    pub notes: Vec<Note>,
    /// Whether it takes the whole width of a page.
    pub wide: bool,
}

/// What is drawn in a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Plot {
    /// Lines, dots or both. On an axis with names, x counts its places from 0.
    Lines(Vec<Series>),
    /// Bars side by side at each of the x axis's names.
    Bars(Vec<BarSeries>),
    /// Coloured cells.
    Heat(Heat),
}

impl Default for Plot {
    fn default() -> Plot {
        Plot::Lines(Vec::new())
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// A line through many points.
    #[default]
    Line,
    /// A line with a marker at each of a few points.
    Marked,
    /// Dots only: maxima, or a scatter.
    Dots,
    /// Markers only: a few points that no line joins.
    Points,
    /// Someone else's figures beside the measured ones: hollow diamonds.
    Published,
    /// A thin dashed line: a fit or a limit.
    Dashed,
}

/// A range around a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    /// What the range is, such as "median to 99.9 %".
    pub name: String,
    /// Lower end at each of the series' points.
    pub low: Vec<f64>,
    /// Upper end at each of the series' points.
    pub high: Vec<f64>,
}

/// One line or cloud of dots.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// What it is called in the legend.
    pub name: String,
    /// Points by x. Values that are no number leave a gap.
    pub points: Vec<(f64, f64)>,
    /// A range drawn around it.
    pub band: Option<Band>,
    /// How it is drawn.
    pub mark: Mark,
    /// Which colour; a published series has that of the measured one it stands beside. Otherwise its place in the chart decides.
    pub hue: Option<usize>,
}

impl Series {
    /// A line through many points.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, ..Series::default() }
    }

    /// The same series, drawn another way.
    #[must_use]
    pub fn mark(self, mark: Mark) -> Series {
        Series { mark, ..self }
    }

    /// The same series in the colour of the chart's series number `hue`.
    #[must_use]
    pub fn hue(self, hue: usize) -> Series {
        Series { hue: Some(hue), ..self }
    }

    /// The same series with a range around it.
    #[must_use]
    pub fn band(self, name: impl Into<String>, low: Vec<f64>, high: Vec<f64>) -> Series {
        Series { band: Some(Band { name: name.into(), low, high }), ..self }
    }
}

/// One bar at each of the x axis's names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BarSeries {
    /// What it is called in the legend.
    pub name: String,
    /// One value for each name; what is no number has no bar.
    pub values: Vec<f64>,
    /// Half the width of each value's confidence interval; empty without one.
    pub error: Vec<f64>,
    /// Whether these are someone else's figures: hollow bars.
    pub published: bool,
    /// Which colour, as for [`Series::hue`].
    pub hue: Option<usize>,
}

impl BarSeries {
    /// Bars without intervals.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> BarSeries {
        BarSeries { name: name.into(), values, ..BarSeries::default() }
    }

    /// The same values as someone else's, beside the chart's series number `hue`.
    #[must_use]
    pub fn published_beside(self, hue: usize) -> BarSeries {
        BarSeries { published: true, hue: Some(hue), ..self }
    }
}

/// Where the cells of a heat map lie along one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Steps {
    /// One cell for each name of the axis.
    Names,
    /// A cell between each value and the next.
    Edges(Vec<f64>),
}

/// Coloured cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heat {
    /// Where cells lie horizontally.
    pub columns: Steps,
    /// Where they lie vertically, from the bottom up for edges, from the top down for names.
    pub rows: Steps,
    /// `cells[row][column]`; what is no number is left empty.
    pub cells: Vec<Vec<f64>>,
    /// What the colour says.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether equal ratios differ equally in colour.
    pub log: bool,
}

/// A mark beside the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Note {
    /// A vertical line.
    AtX {
        /// Where.
        x: f64,
        /// What it means.
        text: String,
    },
    /// A horizontal line.
    AtY {
        /// Where.
        y: f64,
        /// What it means.
        text: String,
    },
    /// A shaded range of x.
    Span {
        /// Where it begins.
        from: f64,
        /// Where it ends.
        to: f64,
        /// What it means.
        text: String,
    },
}

impl Chart {
    /// Whether there is nothing to draw: no finite value at all.
    pub fn is_empty(&self) -> bool {
        match &self.plot {
            Plot::Lines(series) => series.iter().all(|series| {
                !series
                    .points
                    .iter()
                    .any(|(x, y)| crate::range::usable(*x, &self.x) && crate::range::usable(*y, &self.y))
            }),
            Plot::Bars(series) => {
                !series.iter().flat_map(|series| &series.values).any(|value| crate::range::usable(*value, &self.y))
            }
            Plot::Heat(heat) => !heat.cells.iter().flatten().any(|value| value.is_finite()),
        }
    }

    /// The identifier, fit for attributes and file names.
    pub fn key(&self) -> String {
        let words = self.id.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let key = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
        if key.is_empty() { "chart".to_string() } else { key }
    }
}
