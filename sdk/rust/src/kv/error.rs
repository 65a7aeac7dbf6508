//! Why a store did not do as asked. Nothing was changed, unless the device says that it is in doubt.

use super::layout::{MAX_KEY_BYTES, MAX_POOL_NAME_BYTES};
use crate::Error;

/// What can go wrong with a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// A key that is none.
    #[error("a key of {len} bytes: expected 1 to {MAX_KEY_BYTES}")]
    Key {
        /// Its length.
        len: usize,
    },
    /// A value that is too long.
    #[error("a value of {len} bytes: this store takes up to {max}")]
    Value {
        /// Its length.
        len: usize,
        /// The longest.
        max: usize,
    },
    /// A name that no pool can have.
    #[error("a pool's name of {len} bytes: expected 1 to {MAX_POOL_NAME_BYTES}")]
    PoolName {
        /// Its length.
        len: usize,
    },
    /// The pool was deleted.
    #[error("the pool \"{name}\" is not there any more")]
    NoPool {
        /// Its name.
        name: String,
    },
    /// All slots where the record could lie are taken.
    #[error("the store is too full for this key; delete some, or use a device with more addresses")]
    Full,
    /// Changes that are not atomic together.
    #[error("the changes take {sectors} sectors together; the device makes {max} atomic")]
    TooLarge {
        /// What they take.
        sectors: u64,
        /// What is possible.
        max: u64,
    },
    /// The device holds something else.
    #[error("the device holds no key-value store")]
    NoStore,
    /// A store of a version that is not known.
    #[error("the store has format version {found}, this program knows {known}")]
    Version {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The device holds data, which a new store would overwrite.
    #[error("the device is not empty; trim it first if what it holds may go")]
    NotEmpty,
    /// The device is too small, or values of the wanted size would not be atomic.
    #[error("{name}: {value}: expected {expected}")]
    Invalid {
        /// Which parameter.
        name: &'static str,
        /// What was given.
        value: u64,
        /// What was expected.
        expected: String,
    },
    /// Something else wrote to the device.
    #[error("sector {lba} holds no record of this store: something else wrote to the device")]
    Corrupt {
        /// Where.
        lba: u64,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] Error),
}
