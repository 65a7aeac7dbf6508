//! Why there is no cached volume.

use cache::{Failure, HeaderError};

use crate::array::ArrayError;

/// Why a cached volume is not made, or not opened. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// A device cannot be used.
    #[error(transparent)]
    Device(#[from] ArrayError),
    /// The cache device is no sparse one.
    #[error(
        "{cache}: the device has {sectors} sectors and room for as many; expected one with a larger address space: `vsl create --address-space 1PiB`"
    )]
    Dense {
        /// The cache device.
        cache: String,
        /// Its sectors.
        sectors: u64,
    },
    /// The cache device holds something else.
    #[error("{cache}: holds data that belongs to no cached volume; expected an empty device")]
    NotEmpty {
        /// The cache device.
        cache: String,
    },
    /// There is no place for the volume.
    #[error(
        "{cache}: has no place for a volume of {sectors} sectors; expected an address space more than twice as large, and fewer than {most} volumes"
    )]
    NoPlace {
        /// The cache device.
        cache: String,
        /// The volume's sectors.
        sectors: u64,
        /// Volumes at most.
        most: u64,
    },
    /// A limit is too small.
    #[error("{cache}: {found} bytes are too small a limit; expected at least {least} bytes")]
    Limit {
        /// The cache device.
        cache: String,
        /// The limit.
        found: u64,
        /// The smallest one.
        least: u64,
    },
    /// The store behind has other sectors.
    #[error("{behind}: {found}; the cache device has sectors of {expected} bytes")]
    Sectors {
        /// The store behind.
        behind: String,
        /// What it has, in words.
        found: String,
        /// Bytes of a sector of the cache device.
        expected: u32,
    },
    /// The store behind became smaller.
    #[error("{behind}: has {found} bytes, and had {expected} when the volume was made; expected the same store")]
    Shrunk {
        /// The store behind.
        behind: String,
        /// Its bytes.
        found: u64,
        /// Those that it had.
        expected: u64,
    },
    /// A header cannot be read.
    #[error("{cache}: {error}")]
    Header {
        /// The cache device.
        cache: String,
        /// Why.
        error: HeaderError,
    },
    /// The volume is not there.
    #[error("{cache}: does not cache this volume; it was formatted since, or is another device")]
    Unknown {
        /// The cache device.
        cache: String,
    },
    /// What is not behind would be lost.
    #[error(
        "{cache}: holds something that is not behind yet; open the volume and delete it again while no client writes, or lose that: add --discard"
    )]
    Dirty {
        /// The cache device.
        cache: String,
    },
    /// It cannot be opened.
    #[error("{0}")]
    Failure(#[from] Failure),
    /// A store that came back takes less in one request than it did.
    #[error(
        "{behind}: takes requests of at most {found} bytes, and took {expected}; open the volume anew: `vsl cache open`"
    )]
    Smaller {
        /// The store behind.
        behind: String,
        /// What it takes.
        found: u32,
        /// What the volume was opened for.
        expected: u32,
    },
    /// Nobody waits for the store.
    #[error("{volume}: has what stands behind it, or serves nobody")]
    NotAlone {
        /// The volume.
        volume: String,
    },
    /// The operating system has no thread or ring for it.
    #[error("no thread for the cached volume: {0}")]
    Thread(String),
}
