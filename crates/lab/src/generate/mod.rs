//! Requests out of a load: which operation, how large, and where.

mod choice;
mod place;
mod plan;
mod source;

pub use plan::{Plan, Shape};
pub use source::{Item, Sequence, Source};
