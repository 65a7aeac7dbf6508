//! One module: the translation layer on a medium, with its format, recovery and health.
//!
//! **What it is for.** `ftl` decides, a medium stores; this crate brings the two together and gives everyone else, export,
//! lab, daemon and sdk alike, one thing to use: a [`Device`].
//!
//! **What it promises.** One thread, run to completion: [`Device::submit`] answers on the spot or later through
//! [`Device::poll`], never blocking. Every byte is copied once, sealed with address, sequence and checksum, and checked
//! before it is given out: a sector that fails is an error, never wrong data. What comes from outside is checked here; the
//! layer below may rely on it.
//!
//! **Where to start.** A request's way: `device.rs` (checks; those of batches in `batch.rs`, of zones in `zones.rs`) → `core.rs` (carries out what the layer asks for) →
//! [`media::Media`]. An attach: `attach.rs`. What stands on media: `superblock.rs`, `checksum.rs`, and `docs/format.md`.

mod assemble;
mod attach;
mod batch;
mod capacity;
mod checksum;
mod copies;
mod core;
mod crypt;
mod device;
mod drill;
mod durability;
mod emulated;
mod erase;
mod error;
mod format;
mod geometry;
mod identity;
mod io;
mod keys;
pub mod members;
mod objects;
mod page_file;
mod prices;
mod refusal;
mod resize;
mod room;
mod settings;
mod snapshots;
mod staging;
mod status;
mod store;
mod superblock;
mod vanished;
mod zones;

pub use crate::core::Background;
pub use batch::check_batch;
pub use capacity::Capacity;
pub use crypt::SEALED_TRAILER_BYTES;
pub use crypt::{Secret, SecretError, SecretKind, WRAPPED_KEY_BYTES, unwrap_key, wrap_key};
#[cfg(feature = "simulation")]
pub use crypt::{nonces, seed_entropy};
pub use device::{AttachOptions, Device};
pub use drill::{CarriedDrills, Drill, DrillError, PowerCut, Unsynced, mark_for_drills};
pub use durability::Durability;
pub use emulated::{Clock, EmulateOptions, Emulation, Keeping, Pacing, WallClock, create_emulated};
pub use erase::{Certificate, EraseLevel, Erased, sure_erase};
pub use error::{AttachError, BatchError, CreateError, FormatError, IoError};
pub use format::{CreateOptions, FormatOptions, Info, MediaFormat, create, create_encrypted, format, inspect};
pub use ftl::{
    BatchOp, CLONES_MAX, Changed, Error as LayerError, Held, Quota, Reclaimed, SNAPSHOT_NAME_MAX, Snapshot,
    SnapshotChange, SnapshotClone, SnapshotError, SnapshotId, ZoneAction, ZoneCounts, ZoneError, ZoneShape, ZoneState,
    ZoneView, Zones, batch_slots,
};
#[cfg(feature = "simulation")]
pub use geometry::allow_tiny_modules;
pub use geometry::max_sectors;
pub use identity::give_up_identity;
pub use io::{Completion, Extent, Io, Submitted};
pub use keys::{KeyChange, KeyError, KeyRing, add_key, change_key, remove_key};
pub use objects::{
    Place, Seen, StoreLooker, StoreOpener, Taken, create_on_objects, look_at, take_device, taken_over_labels,
    use_stores,
};
pub use resize::{Resize, ResizeError, ResizePlan};
pub use settings::{Setting, Settings};
pub use snapshots::Shown;
pub use staging::{Keeper, Staging, forget_staged, staging_file};
pub use status::{CacheFigures, Chips, Condition, Counts, Figures, ObjectsFigures, State, Status, Trouble};
pub use superblock::FORMAT_VERSION;
pub use zones::ZoneInfo;
