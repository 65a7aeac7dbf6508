//! What is measured of devices and of the service each second, and its history.
//!
//! [`table`] is the one table of figures, from which everything that shows or keeps them derives. [`Second`] is one second of one
//! device, [`Span`] adds seconds up to minutes and hours, and [`History`] keeps all three in SQLite.

mod csv;
mod filling;
mod second;
mod span;
mod store;
pub mod table;

pub use csv::write_csv;
pub use second::{Latencies, Previous, Second, Values};
pub use span::Span;
pub use store::{Error, History, KEEP, Query, Resolution, Row, Series, SeriesKey, Table};
pub use table::{Of, OverTime, Source, Unit};
