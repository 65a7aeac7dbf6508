//! Samples of latency and what they come to.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::percentile::{PERCENTILES, Percentile, supported};

/// Longest latency that is told apart, nanoseconds: an hour. Longer ones count as this in percentiles; the maximum stays exact.
const LONGEST: u64 = 3_600_000_000_000;
/// Decimal digits to which the histogram tells latencies apart.
const DIGITS: u8 = 3;

/// Latencies of requests: a histogram for percentiles, and exact sums for the rest. It can be added to others, and nothing is lost.
#[derive(Clone, Debug)]
pub struct Samples {
    histogram: Histogram<u64>,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
    bytes: u64,
    /// What came from elsewhere as figures rather than as samples.
    foreign: Foreign,
}

/// Samples whose single latencies are not known any more: how many, their mean, and the sum of squares about it.
#[derive(Clone, Copy, Debug, Default)]
struct Foreign {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Foreign {
    /// Two groups as one (Chan, Golub and LeVeque, 1979).
    fn with(self, other: Foreign) -> Foreign {
        let count = self.count + other.count;
        if count == 0 {
            return self;
        }
        let (own, share) = (self.count as f64, other.count as f64 / count as f64);
        let apart = other.mean - self.mean;
        Foreign {
            count,
            mean: self.mean + apart * share,
            squares: self.squares + other.squares + apart * apart * own * share,
        }
    }
}

/// Figures of samples that need no histogram, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub stddev_ns: f64,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples::new()
    }
}

impl Samples {
    /// None yet.
    pub fn new() -> Samples {
        // Fails only for bounds that make no sense, and these are constants.
        let histogram = Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("constant bounds make sense");
        Samples { histogram, sum: 0, squares: 0, min: u64::MAX, max: 0, bytes: 0, foreign: Foreign::default() }
    }

    /// One request of so many bytes took so long.
    #[inline]
    pub fn record(&mut self, ns: u64, bytes: u32) {
        self.histogram.saturating_record(ns);
        self.sum += u128::from(ns);
        self.squares += u128::from(ns) * u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.bytes += u64::from(bytes);
    }

    /// So many requests took about so long each.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.histogram.saturating_record_n(ns, count);
        self.sum += u128::from(ns) * u128::from(count);
        self.squares += u128::from(ns) * u128::from(ns) * u128::from(count);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Requests that are recorded had so many bytes more.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Takes those of another.
    pub fn add(&mut self, other: &Samples) {
        if other.count() == 0 {
            return;
        }
        // Same bounds on both sides: nothing can fall outside.
        self.histogram.add(&other.histogram).expect("both histograms have the same bounds");
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.bytes += other.bytes;
        self.foreign = self.foreign.with(other.foreign);
    }

    /// Takes those of a cell, whose histogram is given.
    pub(super) fn add_cell(&mut self, cell: &Cell, histogram: &Histogram<u64>) -> Result<(), String> {
        // What lies beyond the bounds counts as the longest that is told apart, as in `record`.
        for bucket in histogram.iter_recorded() {
            self.histogram
                .record_n(bucket.value_iterated_to().clamp(1, LONGEST), bucket.count_at_value())
                .map_err(|error| error.to_string())?;
        }
        self.min = self.min.min(cell.min_ns);
        self.max = self.max.max(cell.max_ns);
        self.bytes += cell.bytes;
        self.foreign = self.foreign.with(Foreign {
            count: cell.requests,
            mean: cell.mean_ns,
            squares: cell.stddev_ns * cell.stddev_ns * cell.requests as f64,
        });
        Ok(())
    }

    /// The histogram.
    pub(super) fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        if self.count() > 0 {
            self.histogram.reset();
            (self.sum, self.squares, self.min, self.max, self.bytes) = (0, 0, u64::MAX, 0, 0);
            self.foreign = Foreign::default();
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Bytes of their requests.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The figures that need no histogram.
    pub fn moments(&self) -> Moments {
        let own = self.count() - self.foreign.count;
        if self.count() == 0 {
            return Moments::default();
        }
        let mut all = self.foreign;
        if own > 0 {
            let mean = self.sum as f64 / own as f64;
            // n * squares - sum^2 in whole numbers would need more than 128 bits; the difference of means does not.
            let variance = (self.squares as f64 / own as f64 - mean * mean).max(0.0);
            all = Foreign { count: own, mean, squares: variance * own as f64 }.with(self.foreign);
        }
        let stddev_ns = (all.squares / all.count as f64).sqrt();
        Moments { min_ns: self.min, max_ns: self.max, mean_ns: all.mean, stddev_ns }
    }

    /// What they come to.
    pub fn latency(&self) -> Latency {
        let samples = self.count();
        if samples == 0 {
            return Latency::default();
        }
        let moments = self.moments();
        let percentiles = PERCENTILES.iter().filter(|percent| supported(**percent, samples)).map(|percent| {
            let ns = self.histogram.value_at_quantile(percent / 100.0);
            // A bucket's upper end may lie above the longest latency there was.
            Percentile { percent: *percent, ns: ns.clamp(self.min, self.max) }
        });
        Latency {
            samples,
            min_ns: moments.min_ns,
            mean_ns: moments.mean_ns,
            max_ns: moments.max_ns,
            stddev_ns: moments.stddev_ns,
            percentiles: percentiles.collect(),
        }
    }

    /// Every bucket of the histogram that holds something: its middle, and how many.
    pub fn bins(&self) -> Vec<(u64, u64)> {
        let buckets = self.histogram.iter_recorded();
        buckets
            .map(|bucket| (self.histogram.median_equivalent(bucket.value_iterated_to()), bucket.count_at_value()))
            .collect()
    }
}

/// What latencies come to, nanoseconds. Percentiles that the samples cannot carry are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many requests.
    pub samples: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Longest.
    pub max_ns: u64,
    /// Standard deviation.
    pub stddev_ns: f64,
    /// Percentiles, from the histogram of single requests, to three digits.
    pub percentiles: Vec<Percentile>,
}

impl Latency {
    /// One percentile, if the samples carry it.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.percentiles.iter().find(|entry| entry.percent == percent).map(|entry| entry.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_samples() {
        let mut samples = Samples::new();
        for ns in 1..=1000u64 {
            samples.record(ns * 1000, 4096);
        }
        let latency = samples.latency();
        assert_eq!((latency.samples, latency.min_ns, latency.max_ns), (1000, 1000, 1_000_000));
        assert_eq!(latency.mean_ns, 500_500.0);
        assert!((latency.stddev_ns - 288_674.99).abs() < 1.0, "{}", latency.stddev_ns);
        let p50 = latency.percentile(50.0).expect("1000 samples carry the median");
        assert!(p50.abs_diff(500_000) <= 500, "{p50}");
        assert!(latency.percentile(99.0).is_some());
        assert_eq!(latency.percentile(99.9), None);
        assert_eq!(samples.bytes(), 4_096_000);
    }

    #[test]
    fn added_histograms_are_as_if_recorded_in_one() {
        let (mut all, mut one, mut two) = (Samples::new(), Samples::new(), Samples::new());
        for ns in 1..5000u64 {
            let part = if ns % 3 == 0 { &mut one } else { &mut two };
            part.record(ns * ns, 512);
            all.record(ns * ns, 512);
        }
        one.add(&two);
        assert_eq!(one.latency(), all.latency());
        assert_eq!(one.bins(), all.bins());
        assert_eq!(all.bins().iter().map(|(_, count)| count).sum::<u64>(), 4999);
        one.clear();
        assert_eq!(one.latency(), Latency::default());
        one.record(7, 1);
        assert_eq!((one.latency().min_ns, one.latency().max_ns), (7, 7));
    }

    #[test]
    fn the_longest_stays_exact() {
        let mut samples = Samples::new();
        samples.record(2 * LONGEST, 1);
        assert_eq!(samples.latency().max_ns, 2 * LONGEST);
    }
}
