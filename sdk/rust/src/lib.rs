//! OpenVSL's devices from a program of your own: without a file system, without the kernel, and with what both hide.
//!
//! A [`Device`] is a range of sectors. It is either **opened** in this process, which then has it alone, or **connected** to in a
//! service (`vsl up`), which shares it with others. Both are used in the same way:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("data.vsl");
//! use openvsl::{CreateOptions, Device};
//!
//! openvsl::create(&path, 64 << 20, &CreateOptions::default())?;
//! let device = Device::open(&path)?;
//! let sector = device.capabilities().sector_bytes as usize;
//!
//! device.write(7, &vec![1; 2 * sector])?; // sectors 7 and 8
//! device.flush()?; // now they survive a power cut
//! assert_eq!(device.read(8, 1)?, vec![1; sector]);
//!
//! assert!(device.exists(7)?);
//! device.trim(7, 1)?;
//! let mapped: Vec<_> = device.ranges(..).collect::<Result<_, _>>()?;
//! assert_eq!(mapped, [8..9]);
//! device.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is atomic, and what is durable
//!
//! - **A write is atomic** up to [`Capabilities::max_write_bytes`]: after a crash or a power cut it is there as a whole or not at all.
//!   A longer one is refused, never split.
//! - **A batch is atomic**: see [`Batch`].
//! - **A write is durable** once a [`flush`](Device::flush) that began after its answer is answered, or once it is answered itself if
//!   it was [`write_durable`](Device::write_durable). Before that a power cut, or the end of this process, may take it.
//! - **Requests that are outstanding at the same time have no order.** To have one, wait for the first before you begin the second.
//!
//! # Without blocking
//!
//! Each request has a form that begins it and returns a [`Pending`]: [`Device::begin_read`], [`Device::begin_write`] and so on. A
//! `Pending` is a [`Future`] that the device's thread completes, whichever runtime polls it, and has [`wait`](Pending::wait) for those
//! who have none. Many may be outstanding:
//!
//! ```
//! # fn main() -> Result<(), openvsl::Error> {
//! # let device = openvsl::Device::memory(64 << 20, 4096).expect("good sizes");
//! let writes: Vec<_> = (0..100).map(|lba| device.begin_write(lba, vec![lba as u8; 4096])).collect();
//! for write in writes {
//!     write.wait()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Threads
//!
//! Each device has one thread, on which everything happens; a [`Device`] is a handle on it that can be cloned, sent and shared. The
//! last handle that goes detaches the device, and waits until that is done. Data are copied once, into the layer's page buffer, or
//! into the socket of a service.

mod address;
mod batch;
mod connect;
mod create;
mod device_handle;
mod drill;
mod error;
mod job;
pub mod kv;
mod local;
mod pending;
mod ranges;
mod remote;

pub use address::{Address, BadAddress};
pub use batch::Batch;
pub use connect::ConnectOptions;
pub use create::{CreateOptions, create};
pub use device::{BatchError, Drill, DrillError, Secret, Unsynced};
pub use device_handle::{Capabilities, Device, OpenOptions};
pub use error::{Error, OpenError};
pub use nvme::auth::Secret as HostSecret;
pub use pending::Pending;
pub use ranges::{Changes, Ranges};

/// The examples of the SDK's page are tested with those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sdk.md")]
pub struct Page;
