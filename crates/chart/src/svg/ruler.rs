//! An axis laid out: its ends, its ticks with their labels, its title, and where a value lies on it.

use crate::axis::{Axis, Scale};
use crate::number::{Unit, grouped, significant};
use crate::ticks;

/// An axis with its ends and ticks.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Value and label.
    pub(crate) ticks: Vec<(f64, String)>,
    /// Label and unit.
    pub(crate) title: String,
    /// Pixels of the low and of the high end.
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Ruler {
    /// An axis from `low` to `high` with at most `most` ticks; `expand` moves the ends outwards to the next tick.
    pub(crate) fn new(axis: &Axis, (low, high): (f64, f64), most: usize, expand: bool) -> Ruler {
        let ruler = if !axis.names.is_empty() {
            named(axis, low, high)
        } else if axis.scale == Scale::Linear {
            linear(axis, low, high, most, expand)
        } else {
            logarithmic(axis, low, high, most, expand)
        };
        debug_assert!(ruler.low < ruler.high);
        ruler
    }

    /// The same with its ends at these pixels.
    pub(crate) fn placed(self, from: f64, to: f64) -> Ruler {
        Ruler { from, to, ..self }
    }

    /// The pixel of a value; values outside lie outside, but not further than renderers can count.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.scale == Scale::Linear {
            (value - self.low) / (self.high - self.low)
        } else {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        };
        self.from + share.clamp(-4.0, 5.0) * (self.to - self.from)
    }
}

fn titled(axis: &Axis, unit: &str) -> String {
    match (axis.label.as_str(), unit) {
        (label, "") => label.to_string(),
        ("", unit) => unit.to_string(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

fn named(axis: &Axis, low: f64, high: f64) -> Ruler {
    let ticks = axis.names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect();
    Ruler { scale: Scale::Linear, low, high, ticks, title: titled(axis, axis.unit.base()), from: 0.0, to: 1.0 }
}

fn linear(axis: &Axis, mut low: f64, mut high: f64, most: usize, expand: bool) -> Ruler {
    let prefixed = axis.unit.prefixed(low.abs().max(high.abs()));
    let factor = prefixed.factor;
    let sixtieths = axis.unit == Unit::Elapsed && (factor == 1.0 || factor == 60.0);
    let step = ticks::step(low / factor, high / factor, most, sixtieths);
    let step = step.map(|step| if axis.whole && factor == 1.0 { step.max(1.0) } else { step });
    let mut marks = Vec::new();
    if let Some(step) = step {
        if expand && axis.bounds.is_none() {
            low = ((low / factor / step + 1e-9).floor() * step * factor).min(low);
            high = ((high / factor / step - 1e-9).ceil() * step * factor).max(high);
        }
        let decimals = decimals(step);
        marks = ticks::multiples(low / factor, high / factor, step)
            .into_iter()
            .map(|tick| {
                let label = match tick {
                    0.0 => "0".to_string(),
                    tick if tick.abs() >= 1e15 => significant(tick, 4),
                    tick => grouped(tick, decimals),
                };
                (tick * factor, label)
            })
            .collect();
    }
    Ruler { scale: Scale::Linear, low, high, ticks: marks, title: titled(axis, &prefixed.name), from: 0.0, to: 1.0 }
}

/// Decimals that a step needs.
fn decimals(step: f64) -> usize {
    (0..12)
        .find(|places| {
            let shifted = step * 10f64.powi(*places as i32);
            (shifted - shifted.round()).abs() < 1e-6 * shifted.abs().max(1e-9)
        })
        .unwrap_or(12)
}

fn logarithmic(axis: &Axis, mut low: f64, mut high: f64, most: usize, expand: bool) -> Ruler {
    let base: u32 = if axis.scale == Scale::Log2 { 2 } else { 10 };
    if expand && axis.bounds.is_none() {
        low = outwards(low, base, false);
        high = outwards(high, base, true);
    }
    // Each tick has the prefix that suits it: 1 µs, 1 ms, 1 s.
    let own_prefix = !matches!(axis.unit, Unit::Count(_) | Unit::Plain);
    let label = |tick: f64| if own_prefix { axis.unit.one(tick) } else { significant(tick, 4) };
    let marks = ticks::logarithmic(low, high, base, most).into_iter().map(|tick| (tick, label(tick))).collect();
    let title = titled(axis, if own_prefix { "" } else { axis.unit.base() });
    Ruler { scale: axis.scale, low, high, ticks: marks, title, from: 0.0, to: 1.0 }
}

/// The next of 1, 2, 5 times a power of ten (or the next power of two) that is not inside.
fn outwards(value: f64, base: u32, up: bool) -> f64 {
    let base = f64::from(base);
    let power = base.powf((value.ln() / base.ln() + if up { -1e-9 } else { 1e-9 }).floor());
    let multiples: &[f64] = if base == 10.0 { &[1.0, 2.0, 5.0, 10.0] } else { &[1.0, 2.0] };
    let found = if up {
        multiples.iter().map(|multiple| multiple * power).find(|end| *end >= value * (1.0 - 1e-9))
    } else {
        multiples.iter().rev().map(|multiple| multiple * power).find(|end| *end <= value * (1.0 + 1e-9))
    };
    found.filter(|end| end.is_finite() && *end > 0.0).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ruler: &Ruler) -> Vec<&str> {
        ruler.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn labels_are_those_of_the_field() {
        let ruler = Ruler::new(&Axis::new("Latency", Unit::Seconds), (0.0, 0.0073), 5, true);
        assert_eq!(labels(&ruler), ["0", "2", "4", "6", "8"]);
        assert_eq!(ruler.title, "Latency (ms)");
        let ruler = Ruler::new(&Axis::new("Latency", Unit::Seconds).log(), (23e-6, 0.04), 6, true);
        assert_eq!(labels(&ruler), ["100\u{a0}µs", "1\u{a0}ms", "10\u{a0}ms"]);
        let ruler = Ruler::new(&Axis::new("Time", Unit::Elapsed), (0.0, 21_600.0), 8, false);
        assert_eq!(labels(&ruler), ["0", "1", "2", "3", "4", "5", "6"]);
        assert_eq!(ruler.title, "Time (h)");
    }

    #[test]
    fn a_value_lies_between_the_ends_as_its_scale_says() {
        let linear = Ruler::new(&Axis::new("", Unit::Plain), (0.0, 10.0), 5, true).placed(0.0, 100.0);
        assert_eq!(linear.at(2.5), 25.0);
        let log = Ruler::new(&Axis::new("", Unit::Plain).log(), (1.0, 100.0), 5, true).placed(100.0, 0.0);
        assert!((log.at(10.0) - 50.0).abs() < 1e-9);
        assert!(log.at(f64::MAX).is_finite());
    }
}
