//! Cached volumes: a device as the cache of slower storage.
//!
//! A volume is a [`crate::Composite`] that drives the state machine of the crate `cache`; here is how its thread begins. What stands behind is
//! an attached device, or a [`Store`]: a file or block device as it is, an export of an NBD server, or what else implements it.

mod error;
mod file;
mod nbd;
mod open;
mod quota;
mod store;

pub use error::CacheError;
pub use file::FileStore;
pub use nbd::NbdStore;
pub use open::{Behind, CachePlan};
pub use quota::CacheShare;
pub use store::{Store, witness_of, write_zeros};
