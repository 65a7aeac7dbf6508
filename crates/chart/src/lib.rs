//! Charts that explain themselves, as SVG, as PNG, and in one HTML page that works offline, on paper and without scripts.
//!
//! This crate knows nothing of what is measured. Its caller describes a [`Chart`]: what one sees, what was measured and how, axes with
//! units, and the points. From the same description come
//!
//! - [`Chart::svg`], a drawing of its own with a title, a description and both themes,
//! - [`Chart::png`], the same as pixels,
//! - [`Chart::table`], the numbers behind it, also as CSV,
//! - [`Page::html`], a report with a table of contents, the numbers beside each chart, and zoom where scripts run.
//!
//! Figures are in base units everywhere (seconds, bytes, requests a second); prefixes are chosen when they are printed.

mod axis;
mod model;
mod number;
mod page;
mod png;
mod range;
mod svg;
mod table;
mod text;
mod theme;
mod ticks;

pub use axis::{Axis, Scale};
pub use model::{Band, BarSeries, Chart, Heat, Mark, Note, Plot, Series, Steps};
pub use number::{Prefixed, Unit, digits};
pub use page::{Block, Cell, Column, Page, Section, Table};
pub use png::PngError;
pub use svg::Size;
pub use table::{CsvError, DataColumn, DataTable, Values};
pub use theme::Theme;
pub use ticks::{linear, logarithmic};
