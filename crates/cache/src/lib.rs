//! A device as the cache of slower storage, as a deterministic state machine.
//!
//! **What it is for.** A [`Volume`] takes the requests that a device takes, and says which requests follow from them to the cache device
//! and to the store behind it ([`Volume::next_command`]); it is told their answers ([`Volume::finish`]) and answers
//! ([`Volume::poll`]). It does no I/O and has no clock and no threads, so the simulator drives the same code as the service.
//!
//! The cache device is a sparse one: sector `s` of the volume is cached at an address that follows from `s` (`layout.rs`), and it is
//! cached if that address is mapped. There is no other index. Copies of what stands behind are *clean*: the groomer of the cache device
//! loses them when it needs room. What is not behind yet is *held* at other addresses, which the groomer never loses.
//!
//! **What it promises.**
//! - A read gives what was written last, or what stands behind; never what stood there before, also after power cuts of the
//!   cache, of the store behind, or of both.
//! - What a flush covers is durable: behind, or with [`Mode::Back`] on the cache device.
//! - With [`Mode::Back`] a write of up to [`Volume::max_request_bytes`] is never torn, whatever the store behind does.
//!
//! How, in one rule each:
//! - What is held goes before all else. It is written behind only once it is durable on the cache device, and it is let go
//!   only once it is durable behind (`back.rs`).
//! - A region in which the store behind is changed is marked before, durably; after an end without [`Volume::stop`] the clean
//!   copies of marked regions are dropped (`marks.rs`, `open.rs`).
//! - What is read from behind is kept only if nothing changed there meanwhile (`busy.rs`).
//!
//! **What it asks of its driver.** Nothing but answers: requests to one member may be carried out in any order.
//!
//! A volume also estimates the hit ratio that it would have with a larger or smaller cache (`estimate.rs`).
//!
//! **Where to start.** `volume.rs` takes a host's requests; `docs/cache-format.md` says what stands on the cache device.

mod back;
mod busy;
mod change;
mod estimate;
mod header;
mod layout;
mod marks;
mod miniature;
mod open;
mod read;
mod sectors;
mod status;
mod volume;

pub use array::{Answer, Command, What};
pub use estimate::{Changed, Estimate, Estimates, Estimator};
pub use header::{Header, HeaderError, Mode};
pub use layout::{BEHIND, CACHE, DIRTY_PART, Layout, REGION_BYTES, Range, VOLUMES_MAX};
pub use status::{Condition, Failure, Status};
pub use volume::{Config, Volume};
