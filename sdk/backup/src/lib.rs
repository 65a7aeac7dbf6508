//! Backups: what a device holds as a stream of bytes, and back on a device.
//!
//! [`Writer`] makes a stream of pieces, [`Reader`] checks one and gives them back; [`backup`] and [`restore`] do that for a
//! [`Device`](openvsl::Device). What a stream looks like, byte by byte, stands in [`stream`]. It promises:
//!
//! - **Nothing wrong is restored.** Every frame is sealed together with all that stand before it. A changed, missing, doubled or
//!   exchanged one is an error that says where.
//! - **A part is never taken for the whole.** A complete stream ends with a frame that says so. One that was interrupted can be
//!   [resumed](Writer::resume).
//! - **An increment goes where it belongs.** A stream that holds only what changed since a snapshot names that snapshot by its number, and
//!   [`check_chain`] finds one that does not follow the stream before it.
//! - **A replica is one moment.** [`replicate`] brings a device up to a snapshot of another one, and whoever makes a snapshot of the replica after
//!   it keeps that moment while the next one is copied.
//! - **Memory does not grow** with the device or with what a hostile stream says about itself.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use openvsl::Device;
//! use openvsl_backup::{Reader, Source, backup, restore};
//!
//! let device = Device::memory(64 << 20, 4096)?;
//! device.write(7, &[1; 4096])?;
//! let stream = backup(&device, &Source::default(), Vec::new(), |_| true)?;
//!
//! let other = Device::memory(64 << 20, 512)?;
//! restore(&mut Reader::open(&stream[..], None)?, &other, |_| true)?;
//! assert_eq!(other.read(7 * 8, 8)?, [1; 4096]);
//! # Ok(())
//! # }
//! ```

mod backup;
mod error;
mod reader;
mod replicate;
mod restore;
mod seal;
pub mod stream;
mod writer;
mod writes;

pub use backup::{Source, backup, extend_file, resume};
pub use error::{BackupError, StreamError};
pub use reader::{Frame, Reader};
pub use replicate::{Base, replicate};
pub use restore::{check_chain, restore};
pub use stream::{Header, Moment, Piece};
pub use writer::Writer;

/// How far a backup or a restore has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The sector of the source that comes next.
    pub lba: u64,
    /// Sectors of the source in all.
    pub sectors: u64,
    /// Bytes of data, before compression.
    pub data_bytes: u64,
}
