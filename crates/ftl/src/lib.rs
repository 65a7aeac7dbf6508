//! The translation layer: a deterministic state machine that decides where every sector lives.
//!
//! **What it is for.** Host sectors are written nowhere twice: everything is appended, host data, groomed data, trims and
//! checkpoints alike, into logical erase blocks (LEBs) striped over all dies. The layer keeps the forward map, frees LEBs by
//! grooming, and finds everything again after a crash.
//!
//! **What it promises.** No I/O, no clock, no threads, no randomness: the same calls give the same commands, byte for byte.
//! It never holds a host byte: the device owns the buffers, the layer says what goes where. Reads get the newest data taken,
//! a flush covers all that was answered before it, one write is never torn, and what was trimmed and flushed stays trimmed.
//!
//! **Where to start.** [`Ftl`] in `layer.rs`: [`Ftl::submit`] takes a request, [`Ftl::commands`] gives [`Command`]s,
//! [`Ftl::complete`] takes what the medium finished. An [`Engine`] carries the commands out, with bytes (`device`) or without
//! ([`Addressed`]). Then `read.rs` and `write.rs`, `append.rs` (where bytes go), `durability.rs`
//! (flushes), `groom.rs`, `evict.rs`, `rent.rs`, `pace.rs` and `stake.rs`, `checkpoint.rs`, and [`Recovery`], which makes an `Ftl` from what stands on media. [`Zones`] stands
//! beside all that: it says what a host may write where on a device of zones.

mod addressed;
mod ahead;
mod append;
mod batch;
mod checkpoint;
mod dense;
mod durability;
mod engine;
mod evict;
mod fill;
mod geometry;
mod groom;
mod layer;
mod leb;
mod map;
mod narrow;
mod optimise;
mod owners;
mod pace;
mod placement;
mod policy;
mod preallocate;
mod read;
mod recovery;
mod rent;
mod resize;
mod slots;
mod snapshot;
mod space;
mod stake;
mod stats;
mod trims;
mod types;
mod verify;
mod victim;
mod wear;
mod write;
mod zones;

pub use addressed::{Addressed, AtOnce, Medium};
pub use append::LebHeader;
pub use batch::batch_slots;
pub use checkpoint::Anchor;
pub use engine::{Engine, SlotRead};
pub use geometry::{Geometry, TRAILER_BYTES};
pub use layer::{Config, Ftl, is_read, is_sync};
pub use leb::{DATA_STREAMS, Leb, LebState, Lebs, STREAMS, Stream, Times, ZONE_STREAMS};
pub use map::{LEAF_SECTORS, Map};
pub use optimise::Optimised;
pub use owners::{QUOTAS_MAX, Quota};
pub use pace::Pacing;
pub use placement::Reclaimed;
pub use policy::{
    Cache, CostBenefit, DChoices, Dac, Destination, Eligible, Fifo, Greedy, GroomPolicy, LebView, Lifetime, Midas,
    Moved, Old, Placement, Policy, SepBit, Shape, Write,
};
pub use recovery::{Damage, EPOCH_SHIFT, Recovery, first_seq};
pub use rent::{Collected, Fees};
pub use resize::Beyond;
pub use slots::{NOTE_BITS, Notes, UNNOTED};
pub use snapshot::clones::{CLONES_MAX, SnapshotClone, is_inside, sector_of};
pub use snapshot::{
    Changed, Held, SNAPSHOT_NAME_MAX, SNAPSHOTS_MAX, Snapshot, SnapshotChange, SnapshotError, SnapshotId,
};
pub use space::{is_sparse, max_sectors, min_spare_lebs, room};
pub use stats::Stats;
pub use trims::{TrimRecord, encode as encode_trims};
pub use types::{
    Admission, BatchOp, BufId, Command, Completion, Error, Header, Kind, LebId, NO_SLOT, PageAddr, ReadFor, Request,
    Slot, Source, Tag,
};
pub use zones::{ZoneAction, ZoneCounts, ZoneError, ZoneShape, ZoneState, ZoneView, Zones};
