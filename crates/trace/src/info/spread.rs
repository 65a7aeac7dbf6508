//! Percentiles of times and amounts, in fixed memory.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Decimal digits to which values are told apart.
const DIGITS: u8 = 3;
/// Percentiles that are asked for.
const PERCENTILES: [f64; 9] = [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99];
/// Samples that must lie beyond a percentile for it to be shown.
const BEYOND: f64 = 10.0;

/// Values that come one after the other.
#[derive(Clone, Debug)]
pub struct Values {
    histogram: Histogram<u64>,
    sum: u128,
    squares: f64,
    max: u64,
}

impl Default for Values {
    fn default() -> Values {
        // Fails only for bounds that make no sense, and these are constants.
        let histogram = Histogram::new_with_bounds(1, 1 << 62, DIGITS).expect("constant bounds make sense");
        Values { histogram, sum: 0, squares: 0.0, max: 0 }
    }
}

impl Values {
    /// One more.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.histogram.saturating_record(value);
        self.sum += u128::from(value);
        self.squares += value as f64 * value as f64;
        self.max = self.max.max(value);
    }

    /// How they are spread, in units of which one is `unit` of what was added. `None`: there are none.
    pub fn spread(&self, unit: f64) -> Option<Spread> {
        let samples = self.histogram.len();
        if samples == 0 {
            return None;
        }
        let mean = self.sum as f64 / samples as f64;
        let variance = (self.squares / samples as f64 - mean * mean).max(0.0);
        let percentiles = PERCENTILES
            .into_iter()
            // A hair less, because 100 - 99.9 is not a tenth in binary.
            .filter(|percent| percent.min(100.0 - percent) / 100.0 * samples as f64 >= BEYOND - 1e-6)
            .map(|percent| Point {
                percent,
                value: self.histogram.value_at_quantile(percent / 100.0).min(self.max) as f64 / unit,
            });
        Some(Spread {
            samples,
            mean: mean / unit,
            standard_deviation: variance.sqrt() / unit,
            max: self.max as f64 / unit,
            percentiles: percentiles.collect(),
        })
    }
}

/// How values are spread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many there are.
    pub samples: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub standard_deviation: f64,
    /// The largest.
    pub max: f64,
    /// Percentiles, as far as ten samples or more lie beyond them.
    pub percentiles: Vec<Point>,
}

impl Spread {
    /// A percentile, if it is there.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentiles.iter().find(|point| point.percent == percent).map(|point| point.value)
    }
}

/// A percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Per cent of values that are not above it.
    pub percent: f64,
    /// The value.
    pub value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_samples() {
        let mut values = Values::default();
        assert_eq!(values.spread(1.0), None);
        (1..=1000).for_each(|value| values.add(value * 1000));
        let spread = values.spread(1000.0).expect("some");
        assert_eq!((spread.samples, spread.max, spread.mean), (1000, 1000.0, 500.5));
        assert!((spread.percentile(50.0).expect("enough") / 500.0 - 1.0).abs() < 0.01);
        assert!(spread.percentile(99.0).is_some() && spread.percentile(99.9).is_none());
        assert!((spread.standard_deviation - 288.7).abs() < 0.1, "{}", spread.standard_deviation);
    }
}
