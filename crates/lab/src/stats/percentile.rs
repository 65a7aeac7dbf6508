//! Which percentiles are shown.

use serde::{Deserialize, Serialize};

/// Percentiles that are asked for.
pub const PERCENTILES: [f64; 9] = [1.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999];

/// Samples that must lie beyond a percentile, on its nearer side, for it to be shown.
pub const BEYOND: f64 = 10.0;

/// A percentile of latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// Per cent of requests that were answered within the latency.
    pub percent: f64,
    /// The latency, nanoseconds.
    pub ns: u64,
}

/// Whether so many samples can carry a percentile: at least ten of them must lie beyond it. The 99.9th needs 10,000.
pub fn supported(percent: f64, samples: u64) -> bool {
    let beyond = percent.min(100.0 - percent) / 100.0 * samples as f64;
    // A hair less, because 100 - 99.9 is not a tenth in binary.
    beyond >= BEYOND - 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_need_samples() {
        for (percent, enough) in
            [(50.0, 20), (99.0, 1_000), (99.9, 10_000), (99.99, 100_000), (99.999, 1_000_000), (1.0, 1_000)]
        {
            assert!(supported(percent, enough), "{percent} of {enough}");
            assert!(!supported(percent, enough - 1), "{percent} of {}", enough - 1);
        }
    }
}
