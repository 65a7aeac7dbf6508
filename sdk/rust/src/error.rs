//! What can go wrong, in types.

use std::io;
use std::path::PathBuf;

use device::{AttachError, BatchError, CreateError, DrillError, IoError};

use crate::BadAddress;

/// Why a request was not carried out. Unless it says otherwise, nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Sectors beyond the device's end.
    #[error("sectors {lba} to {end} do not lie on the device, which has {sectors}")]
    OutOfRange {
        /// The first that was named.
        lba: u64,
        /// The one behind the last.
        end: u64,
        /// How many there are.
        sectors: u64,
    },
    /// Data that are no whole sectors.
    #[error("{bytes} bytes are no whole sectors of {sector_bytes} bytes")]
    Misaligned {
        /// How many there were.
        bytes: usize,
        /// Bytes of a sector.
        sector_bytes: u32,
    },
    /// More than one request may carry.
    #[error("a request of {bytes} bytes is larger than the device takes in one, {max} bytes; it would not be atomic")]
    TooLarge {
        /// What was asked for.
        bytes: u64,
        /// What is possible.
        max: u64,
    },
    /// A batch that is none.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The device takes no writes.
    #[error("the device is read-only")]
    ReadOnly,
    /// There is no space left under the device, or of the raw space of a sparse one.
    #[error("no space is left under the device")]
    NoSpace,
    /// The media failed. What a write was to change is in doubt.
    #[error("the media failed")]
    Media,
    /// The power of a drill device is cut. What was outstanding is in doubt.
    #[error("a drill has cut the device's power; switch it on again")]
    PowerOff,
    /// What a power cut left cannot be attached.
    #[error("the device does not come back: {why}")]
    Recovery {
        /// Why.
        why: String,
    },
    /// The device was closed, or its thread has ended.
    #[error("the device is not open any more")]
    Gone,
    /// The connection to the service ended. What was outstanding is in doubt.
    #[error("the connection to the service ended: {why}")]
    Disconnected {
        /// Why.
        why: String,
    },
    /// The service answered with a status that has no meaning of its own here.
    #[error("the service refused: NVMe status {status:#05x}")]
    Refused {
        /// Status code type and status code.
        status: u16,
    },
    /// What only a device that was opened in this process can do, or only a newer service.
    #[error("{what}: not possible over this connection")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// The snapshot that is shown or compared with is not there, or not any more.
    #[error("there is no such snapshot, or not any more")]
    NoSnapshot,
    /// A drill was refused.
    #[error(transparent)]
    Drill(#[from] DrillError),
}

impl From<IoError> for Error {
    fn from(error: IoError) -> Error {
        match error {
            IoError::ReadOnly => Error::ReadOnly,
            IoError::NoSpace | IoError::Full => Error::NoSpace,
            IoError::Batch(error) => Error::Batch(error),
            IoError::NoSnapshot => Error::NoSnapshot,
            // Ranges and sizes were checked before; a device that refuses them all the same is broken.
            IoError::Media | IoError::OutOfRange | IoError::TooLarge | IoError::Scattered | IoError::Zone(_) => {
                Error::Media
            }
        }
    }
}

/// Why there is no device to use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be attached: not there, in use, damaged, encrypted.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The device has no snapshot of that name.
    #[error("{path}: there is no snapshot \"{snapshot}\"")]
    NoSnapshot {
        /// The device.
        path: PathBuf,
        /// What was asked for.
        snapshot: String,
    },
    /// A device could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// An address that is none.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// Nobody serves there.
    #[error(
        "{address}: {error}; `vsl up` starts the service, and `vsl status DEVICE --field nvme_uri` prints an address"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// The service does not serve the device, or not to us.
    #[error("{address}: {error}")]
    Refused {
        /// Where.
        address: String,
        /// Why.
        error: nvme::initiator::Error,
    },
    /// An address without a device, where there is not exactly one.
    #[error("{address}: the service has {count} devices; name one of them in the address")]
    Ambiguous {
        /// Where.
        address: String,
        /// How many it has.
        count: usize,
    },
    /// The operating system has no thread or descriptor for it.
    #[error("{path}: {error}")]
    System {
        /// The device.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}
