//! What a device keeps, whatever happens to it.

mod batches;
mod card;
mod clones;
mod common;
mod drills;
mod emulated;
mod encryption;
mod erase;
mod failed_sync;
mod faults;
mod files;
mod formats;
mod jobs;
mod made;
mod order;
mod placement;
mod rebuild;
mod resize;
mod set_aside;
mod snapshots;
mod staged;
mod superblocks;
mod witness;
mod zones;
