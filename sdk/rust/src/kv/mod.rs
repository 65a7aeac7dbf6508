//! A key-value store on a device, without a file system and without a log of its own.
//!
//! A key's hash says where on the device its record lies, so the device's own map is the only index: the store keeps nothing in
//! memory. Every change, of one key or of many, is one atomic batch, so there is nothing to recover: after a crash the store is as it
//! was before the change, or as it is after it. That takes a device whose addresses are many more than what is stored at a time; space
//! is taken by what is stored only.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let device = openvsl::Device::memory(64 << 20, 4096)?;
//! use openvsl::kv::{Change, Options, Store};
//!
//! let store = Store::create(device, &Options::default())?;
//! let users = store.pool("users")?;
//! store.put(&users, b"anna", b"admin")?; // durable when it returns
//! store.change(&[
//!     Change::put(&users, b"ben", b"guest"),
//!     Change::delete(&users, b"anna"),
//! ])?; // both or none
//! assert_eq!(store.get(&users, b"ben")?.as_deref(), Some(&b"guest"[..]));
//! assert_eq!(store.get(&users, b"anna")?, None);
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - A change is durable when it was answered, and there as a whole or not at all whatever fails. So are all changes of one
//!   [`Store::change`].
//! - A key has 1 to 128 bytes, a value up to [`Store::max_value_bytes`]. Records that expire are not seen from their moment on, and
//!   give their space back with [`Store::sweep`], or when their key is written again.
//! - One store has a device at a time. Threads may share it: their changes share a sync of the disk, and one that touches what another is
//!   about to change waits for it.
//!
//! # How it lies on the device
//!
//! Sector 0 tells what the rest is. From sector 1 on the device is divided into *slots* of equal length. A record lies at the start of a
//! slot; the sectors behind it are not mapped. The hash of pool and key names a slot, and a record whose slot is taken lies in one of
//! the next 63. A search ends at the first slot that is empty, so a record that is deleted in front of another leaves a mark.

mod changing;
mod error;
mod iter;
mod layout;
mod plan;
mod slots;
mod space;
mod store;
#[cfg(test)]
mod tests;

pub use error::KvError;
pub use iter::Iter;
pub use layout::{MAX_KEY_BYTES, MAX_POOL_NAME_BYTES};
pub use space::{Answer, Space, SpaceChange};
pub use store::{Change, Entry, Options, Pool, Store};
