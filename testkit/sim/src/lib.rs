//! The seeded simulator: the real layer and device on a simulated medium, against a model that knows for every sector
//! what it may hold.
//!
//! **What it promises.** One seed, one run: geometry, format, traffic, delays and power cuts all follow from it, and a
//! failure names the seed that replays it (`vsl-sim --seed N`). Every read is compared, every answer must come, every crash
//! must leave each sector at its last durable version or a newer one and no write torn, and the layer's books must agree.
//!
//! **Where to start.** [`run`] in `run.rs`; the promises themselves are `model.rs`.

mod arrays;
mod caches;
mod exhaustive;
mod model;
mod mortal;
mod moves;
mod objects;
mod payload;
mod plan;
mod requests;
mod resizes;
mod run;
mod seen;
mod series;
mod snapshots;
mod tapped;
mod traffic;
mod trouble;
mod watch;
mod zones;

pub use exhaustive::{Behind, Exhaustive, KINDS, Scope};
pub use objects::describe as describe_objects;
pub use plan::{Plan, Wish};
pub use run::{Failure, Report, run};
pub use series::{Held, Series};
pub use watch::Watch;

/// Of all programs here, tests as well: devices are made and dropped all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
