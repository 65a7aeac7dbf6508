//! Published measurements of real devices beside those of their models.
//!
//! A row of `data/published.csv` says what somebody measured: on which device, in which format and arrangement, with which load.
//! Everything that is run follows from the row's columns, from the device's data sheet and from what `data/sources.toml` says about
//! its source; nothing is known about single rows.
//!
//! **Where to start.** [`rows`] gives the rows, [`measure::measure`] runs them, [`summary::Summary`] says how far off the models are.

mod experiment;
pub mod measure;
mod row;
mod source;
pub mod summary;
mod text;

pub use experiment::{Experiment, Reading, Unfit};
pub(crate) use experiment::{is_disk, preparation};
pub(crate) use measure::fitted;
pub use measure::{Measured, Settings, measure};
pub use row::{Row, RowError, rows, rows_from};
pub use source::{Group, Source, sources, sources_from};
pub use text::{summary_text, table};
