//! Cached volumes: a device as the cache of slower storage.
//!
//! A volume is a [`crate::Composite`] that drives the state machine of the crate `cache`; here is how its thread begins. What stands behind is
//! an attached device, or a file or block device as it is (`store.rs`).

mod error;
mod open;
mod store;

pub use error::CacheError;
pub use open::{Behind, CachePlan};
