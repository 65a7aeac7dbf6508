//! The seam between a device in virtual time and whoever drives it.

use serde::Serialize;

use crate::report::Report;
use crate::snapshots::Schedule;

pub use media::nand::Nanos;

/// What a request does. Offsets and lengths are bytes, multiples of [`VirtualDevice::sector_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Give the range up.
    Trim,
    /// Make what was answered before durable; offset and length are 0.
    Flush,
}

/// One request as it arrives at the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u32,
    /// What a write belongs together with, as in NVMe's flexible data placement: less than [`VirtualDevice::placements`]. 0 where
    /// nothing is said, and of everything that writes nothing.
    pub placement: u8,
}

impl Request {
    /// A request of which nothing is said that it belongs together with.
    pub const fn new(op: Op, offset: u64, bytes: u32) -> Request {
        Request { op, offset, bytes, placement: 0 }
    }

    /// The same of a placement.
    pub const fn placed(self, placement: u8) -> Request {
        Request { placement, ..self }
    }

    /// Whether a device of this size and these sectors can take it.
    ///
    /// # Errors
    /// [`Failure::OutOfRange`].
    pub fn check(&self, device_bytes: u64, sector_bytes: u32) -> Result<(), Failure> {
        if self.op == Op::Flush {
            return Ok(());
        }
        let whole = self.offset.is_multiple_of(u64::from(sector_bytes))
            && self.bytes.is_multiple_of(sector_bytes)
            && self.bytes > 0;
        let inside = self.offset.checked_add(u64::from(self.bytes)).is_some_and(|end| end <= device_bytes);
        if whole && inside { Ok(()) } else { Err(Failure::OutOfRange) }
    }
}

/// Why a device refused or failed a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Outside the device, or not on its sectors.
    #[error("request outside the device or not on its sectors")]
    OutOfRange,
    /// The device is worn out and takes no more writes.
    #[error("the device is read-only: its reserve is used up")]
    ReadOnly,
    /// The device switched itself off.
    #[error("the device is shut down by heat")]
    Shutdown,
    /// As much holds data, for the host or for snapshots, as there is room for.
    #[error("the room is full of what snapshots hold: keep fewer of them, or a smaller format")]
    Full,
    /// Data could not be read.
    #[error("media error")]
    Media,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The tag it was submitted with.
    pub tag: u32,
    /// When it was answered.
    pub at: Nanos,
    /// How it ended.
    pub result: Result<(), Failure>,
}

/// A device in virtual time: a flash module, a disk, an array of them. It queues whatever it is given; a limit on
/// outstanding requests is the host's business.
///
/// Time only goes forward: every `now` is at least as late as the ones before. Requests submitted and answers popped
/// between two calls of [`VirtualDevice::advance`] belong to the same moment. Each request gets exactly one answer.
pub trait VirtualDevice {
    /// Smallest unit of address and length, bytes.
    fn sector_bytes(&self) -> u32;

    /// Capacity for the host, bytes.
    fn bytes(&self) -> u64;

    /// How many placements of writes it tells apart; 1: none. Arrays and caches have none, as real ones, whatever their members have.
    fn placements(&self) -> u8 {
        1
    }

    /// Takes a request at `now` under a tag that no unanswered request has.
    fn submit(&mut self, now: Nanos, tag: u32, request: Request);

    /// When something happens next by itself: never earlier than the last `now`. `None` when nothing will happen until
    /// a request comes.
    fn next_event(&mut self) -> Option<Nanos>;

    /// Lets everything happen up to and including `now`.
    fn advance(&mut self, now: Nanos);

    /// Lets everything happen up to the moment of the next answer, at most up to `limit`; gives the moment it came to. The same as
    /// going from event to event with [`VirtualDevice::advance`], in one call.
    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        let Some(next) = self.next_event().filter(|next| *next <= limit) else {
            self.advance(limit);
            return limit;
        };
        self.advance(next);
        next
    }

    /// The next answer; its `at` is no later than the last `now`.
    fn answer(&mut self) -> Option<Answer>;

    /// Says that a request at this offset comes soon, so that its books can be fetched into the cache. Changes nothing.
    fn hint(&self, offset: u64) {
        let _ = offset;
    }

    /// Has flash make snapshots of itself from now on, by this schedule. Returns whether it can.
    fn keep_snapshots(&mut self, now: Nanos, schedule: Schedule) -> bool {
        let _ = (now, schedule);
        false
    }

    /// Has a flash chip fail for good at a moment that is still to come; [`Report::chips`] tells what becomes of it.
    ///
    /// # Errors
    /// It has no such chip, or none at all, in words.
    fn kill_chip(&mut self, chip: u32, at: Nanos) -> Result<(), String> {
        let _ = (chip, at);
        Err("it is no single flash module with chips of parity".into())
    }

    /// How far the bytes from `offset` on, at most so many, are all mapped, or all not, and which. `None` where it keeps no map.
    fn extent(&self, offset: u64, bytes: u64) -> Option<(u64, bool)> {
        let _ = (offset, bytes);
        None
    }

    /// Counters since the device was made.
    fn report(&self) -> Report;
}
