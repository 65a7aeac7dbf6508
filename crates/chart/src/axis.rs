//! Axes: what is drawn along them, in which unit, on which scale.

use serde::Serialize;

use crate::number::Unit;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are equally far apart; ticks at 1, 2, 5 times powers of ten.
    Log,
    /// Equal ratios are equally far apart; ticks at powers of two.
    Log2,
}

/// One axis of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What is drawn along it, without the unit.
    pub label: String,
    /// In what it is counted.
    pub unit: Unit,
    /// How values are spread.
    pub scale: Scale,
    /// Names of the places 0, 1, 2 … along it, for loads, mixes and the like; empty for a numeric axis.
    pub names: Vec<String>,
    /// Lowest and highest value shown; otherwise they follow the data.
    pub bounds: Option<(f64, f64)>,
    /// Whether a linear axis may begin above zero. Only for data whose differences matter more than its size.
    pub from_data: bool,
    /// Whether only whole numbers lie on it, such as rounds.
    pub whole: bool,
}

impl Axis {
    /// A linear axis that follows the data and includes zero.
    pub fn new(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit, ..Axis::default() }
    }

    /// An axis of named places.
    pub fn named<N: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = N>) -> Axis {
        Axis { label: label.into(), names: names.into_iter().map(Into::into).collect(), ..Axis::default() }
    }

    /// The same axis, logarithmic with base ten.
    #[must_use]
    pub fn log(self) -> Axis {
        Axis { scale: Scale::Log, ..self }
    }

    /// The same axis, logarithmic with base two.
    #[must_use]
    pub fn log2(self) -> Axis {
        Axis { scale: Scale::Log2, ..self }
    }

    /// The same axis with fixed ends.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Axis {
        Axis { bounds: Some((low, high)), ..self }
    }

    /// The same axis for whole numbers.
    #[must_use]
    pub fn whole(self) -> Axis {
        Axis { whole: true, ..self }
    }

    /// The same axis, beginning where the data begins.
    #[must_use]
    pub fn from_data(self) -> Axis {
        Axis { from_data: true, ..self }
    }
}
