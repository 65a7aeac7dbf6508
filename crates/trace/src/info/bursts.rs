//! How unevenly requests come: counts in windows of time, from a millisecond to a minute.

use serde::Serialize;

/// Lengths of windows, nanoseconds.
const WINDOWS: [u64; 6] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000];

/// Counts in windows of every length.
#[derive(Clone, Debug, Default)]
pub struct Bursts {
    counts: [Counts; WINDOWS.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Number of the window that is being counted, and its count.
    window: u64,
    current: u64,
    /// Of those before it; those without a request count too, with 0.
    sum: u64,
    squares: f64,
    peak: u64,
}

impl Bursts {
    /// A request, so long after the first. One that is out of order counts to the window that is open.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        for (counts, length) in self.counts.iter_mut().zip(WINDOWS) {
            let window = ns / length;
            if window > counts.window {
                counts.close();
                counts.window = window;
            }
            counts.current += 1;
        }
    }

    /// What it comes to, for every length of which there are two windows at least.
    pub fn windows(mut self) -> Vec<Window> {
        let mut windows = Vec::new();
        for (counts, length) in self.counts.iter_mut().zip(WINDOWS) {
            counts.close();
            let number = counts.window as f64 + 1.0;
            if counts.window == 0 {
                continue;
            }
            let mean = counts.sum as f64 / number;
            let variance = (counts.squares / number - mean * mean).max(0.0);
            windows.push(Window {
                seconds: length as f64 / 1e9,
                windows: counts.window + 1,
                mean,
                dispersion: variance / mean,
                peak: counts.peak,
                peak_to_mean: counts.peak as f64 / mean,
            });
        }
        windows
    }
}

impl Counts {
    fn close(&mut self) {
        self.sum += self.current;
        self.squares += self.current as f64 * self.current as f64;
        self.peak = self.peak.max(self.current);
        self.current = 0;
    }
}

/// Requests in windows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// The length.
    pub seconds: f64,
    /// How many there are, those without requests included.
    pub windows: u64,
    /// Requests in one on average.
    pub mean: f64,
    /// Index of dispersion: variance of the counts by their mean. 1 where requests come independently of each other (Poisson), 0 where
    /// they come like a clock, and the more the burstier.
    pub dispersion: f64,
    /// Requests in the fullest.
    pub peak: u64,
    /// The fullest by the mean.
    pub peak_to_mean: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_second(times: impl Iterator<Item = u64>) -> Window {
        let mut bursts = Bursts::default();
        times.for_each(|ns| bursts.add(ns));
        *bursts.windows().iter().find(|window| window.seconds == 1.0).expect("two seconds at least")
    }

    #[test]
    fn a_clock_has_no_dispersion_and_bursts_have_much() {
        let clock = one_second((0..100_000).map(|at| at * 1_000_000));
        assert_eq!((clock.windows, clock.mean, clock.dispersion, clock.peak), (100, 1000.0, 0.0, 1000));
        // All of every ten seconds in the first of them.
        let bursts = one_second((0..100_000).map(|at| at / 10_000 * 10_000_000_000 + at % 10_000));
        assert_eq!((bursts.windows, bursts.peak), (91, 10_000));
        assert!(bursts.dispersion > 8_000.0, "{}", bursts.dispersion);
    }
}
