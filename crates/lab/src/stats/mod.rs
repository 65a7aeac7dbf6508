//! Statistics of latencies, from histograms of single requests.

mod latency;
mod percentile;

pub use latency::{Latency, Samples};
pub use percentile::{PERCENTILES, Percentile, supported};
