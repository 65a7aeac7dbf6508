//! Requests out of a load: which operation, how large, and where.

mod choice;
mod feed;
mod place;
mod plan;
mod source;

pub use feed::{Feed, Share, TracePlan};
pub use plan::{Plan, Shape};
pub use source::{Item, Sequence, Source};
