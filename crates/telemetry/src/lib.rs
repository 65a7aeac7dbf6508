//! What is measured of devices and of the service each second, and its history.
//!
//! [`catalogue`] is the one table of metrics: the live stream, the history's columns, alert rules, Prometheus names and the API's
//! description all come from it. [`Second`] is one second of one device, [`Span`] adds seconds up to minutes and hours, and [`History`]
//! keeps all three in SQLite.

pub mod catalogue;
mod csv;
mod filling;
mod second;
mod span;
mod store;

pub use catalogue::{Metric, Of, OverTime, Source, Unit};
pub use csv::write_csv;
pub use second::{Latencies, Previous, Second, Values};
pub use span::Span;
pub use store::{Error, History, KEEP, Query, Resolution, Row, Series, SeriesKey, Table};
