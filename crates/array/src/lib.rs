//! Several devices as one: RAID 0, RAID 1 and concatenation, as a deterministic state machine.
//!
//! **What it is for.** An [`Array`] takes the requests that a device takes, says which requests to its member devices follow from
//! them ([`Array::next_command`]), is told their answers ([`Array::finish`]), and answers ([`Array::poll`]). It does no I/O and has no
//! clock and no threads, so the simulator drives the same code as the service.
//!
//! **What it promises.**
//! - What a flush covers is durable on every member that counts.
//! - A write of up to [`Array::max_request_bytes`] is never torn, also where it lies on two members: each of the two takes its own
//!   piece and a record of the other's in one batch (`log.rs`). A batch is all or nothing, too, wherever it lies (`batch.rs`).
//! - After a crash the members of a mirror show the same again: a member that has data has the mark of its region, too
//!   (`regions.rs`), and until a marked region is copied, only members that have everything answer reads of it.
//! - What a copy cannot read another one answers, and writes back to it (`repair.rs`).
//! - What is told to be a hole holds nothing (`holes.rs`).
//! - A member that is added has everything, or no part in the array, whenever a crash comes (`grow.rs`); RAID 0 lays its stripes out
//!   over it while requests go on (`reshape.rs`).
//! - A snapshot is one moment on all members, or is not there (`snapshots.rs`).
//! - A member that missed a write is never taken for current: the others note that it left before the write is answered
//!   (`meta.rs`, `assemble.rs`).
//!
//! A [`Mover`] joins two devices for as long as it takes to move what one holds to the other (`mover.rs`).
//!
//! **What it asks of its driver.** The requests of one member reach that member in the order in which they were given out.
//!
//! **Where to start.** `array.rs` takes a host's requests; `docs/array-format.md` says what stands on the members.

mod array;
mod assemble;
mod batch;
mod command;
mod error;
mod geometry;
mod grow;
mod holes;
mod log;
mod meta;
mod mover;
mod regions;
mod repair;
mod reply;
mod reshape;
mod resync;
mod snapshots;
mod status;
mod wire;

pub use array::Array;
pub use command::{Answer, Command, Handed, What};
pub use error::{Damage, GrowError, ShapeError};
pub use geometry::{Level, MEMBERS_MAX, MIRRORS_MAX, Member, Shape};
pub use mover::{MoveCondition, MoveFailure, MoveStatus, Mover, SOURCE, TARGET};
pub use status::{Condition, MemberState, Status};
pub use wire::{Role, Superblock, superblock_sector};
