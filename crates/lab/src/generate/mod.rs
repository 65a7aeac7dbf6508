//! Requests out of a load: which operation, how large, and where.

mod choice;
mod feed;
mod place;
mod placer;
mod plan;
mod shuffle;
mod source;

pub use feed::{Feed, Share, TracePlan};
pub use placer::Placer;
pub use plan::{Plan, Shape};
pub use source::{Item, Sequence, Source};
