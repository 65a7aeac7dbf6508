//! Statistics of latencies, from histograms of single requests.

mod cell;
mod confidence;
mod latency;
mod percentile;

pub use cell::{Cell, Damaged, Kind, Pool};
pub use confidence::{Difference, Mean, quantile};
pub use latency::{Latency, Moments, Samples};
pub use percentile::{PERCENTILES, Percentile, supported};
