//! The state machines that a composite may drive, as one.

use array::{Answer, Array, Command};
use cache::{BEHIND, Volume};
use device::{CacheFigures, Completion, Extent, Io, IoError, Snapshot, SnapshotChange, SnapshotError, Submitted};

/// One of them.
pub(crate) enum Machine {
    Array(Box<Array>),
    Cached(Box<Volume>),
}

/// Takes the answer from whichever it is.
macro_rules! either {
    ($machine:expr, $one:ident => $call:expr) => {
        match $machine {
            Machine::Array($one) => $call,
            Machine::Cached($one) => $call,
        }
    };
}

impl Machine {
    #[inline]
    pub fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        either!(self, one => one.submit(tag, io))
    }

    pub fn poll(&mut self) -> Option<Completion> {
        either!(self, one => one.poll())
    }

    pub fn finish(&mut self, tag: u64, outcome: Result<Answer, IoError>) {
        either!(self, one => one.finish(tag, outcome));
    }

    pub fn lost(&mut self, member: usize) {
        either!(self, one => one.lost(member));
    }

    pub fn next_command(&mut self) -> Option<Command> {
        either!(self, one => one.next_command())
    }

    pub fn tick(&mut self) {
        either!(self, one => one.tick());
    }

    pub fn is_idle(&self) -> bool {
        either!(self, one => one.is_idle())
    }

    pub fn has_background(&self) -> bool {
        match self {
            Machine::Array(array) => array.has_background(),
            // It goes on with each answer, and with the clock.
            Machine::Cached(_) => false,
        }
    }

    pub fn background(&mut self) {
        if let Machine::Array(array) = self {
            array.background();
        }
    }

    pub fn extent(&self, lba: u64, max: u64) -> Extent {
        either!(self, one => one.extent(lba, max))
    }

    pub fn is_stopped(&self) -> bool {
        either!(self, one => one.is_stopped())
    }

    /// Whether it was stopped in order.
    pub fn has_stopped(&self) -> bool {
        match self {
            Machine::Array(array) => array.status().condition == array::Condition::Stopped,
            Machine::Cached(volume) => volume.status().condition == cache::Condition::Stopped,
        }
    }

    /// Whether it takes no writes.
    pub fn is_read_only(&self) -> bool {
        match self {
            Machine::Array(array) => array.refuses_writes().is_some(),
            Machine::Cached(volume) => volume.status().failure.is_some(),
        }
    }

    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Machine::Array(_) => "an array",
            Machine::Cached(_) => "a cached volume",
        }
    }

    /// Its snapshots, from the oldest to the newest.
    pub fn snapshots(&self) -> &[Snapshot] {
        match self {
            Machine::Array(array) => array.snapshots(),
            Machine::Cached(_) => &[],
        }
    }

    /// See [`Array::begin_snapshot_change`].
    pub fn begin_snapshot_change(&mut self, change: &SnapshotChange) -> Result<bool, SnapshotError> {
        match self {
            Machine::Array(array) => array.begin_snapshot_change(change),
            Machine::Cached(_) => Err(SnapshotError::Unsupported("it is a cached volume")),
        }
    }

    /// What the cache of a volume did.
    pub fn cache_figures(&self) -> Option<CacheFigures> {
        let Machine::Cached(volume) = self else { return None };
        let status = volume.status();
        Some(CacheFigures {
            hit: status.hit_sectors,
            missed: status.missed_sectors,
            written_back: status.written_back_sectors,
            dirty: status.dirty_sectors,
        })
    }

    /// Sectors that hold data, where members say so: `mapped` are theirs.
    pub fn mapped(&self, mapped: impl Iterator<Item = u64>) -> u64 {
        match self {
            Machine::Array(array) if array.shape().level == array::Level::Raid1 => mapped.max().unwrap_or(0),
            Machine::Array(_) => mapped.sum(),
            Machine::Cached(_) => mapped.skip(BEHIND).sum(),
        }
    }
}
