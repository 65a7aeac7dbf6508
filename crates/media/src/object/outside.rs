//! The world outside of the device's thread, as the medium knows it: the object store, and the journal's notes.

use std::ops::Range;

use rustix::time::{ClockId, clock_gettime};

/// One thing to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Make an object of this name, which has none yet. One that is there already is an earlier attempt of the same.
    Put {
        /// Below the prefix.
        name: String,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// Read some bytes of an object.
    Get {
        /// Below the prefix.
        name: String,
        /// Which bytes.
        range: Range<u64>,
    },
    /// Replace the anchor, if it is still the one of this version, or if there is none yet.
    Swap {
        /// The new one.
        bytes: Vec<u8>,
        /// What the store said of the old one.
        expected: Option<String>,
    },
    /// Read the anchor.
    Fetch,
    /// Delete an object. One that is not there is an earlier attempt of the same.
    Delete {
        /// Below the prefix.
        name: String,
    },
    /// Append to the journal's notes, durably.
    Note {
        /// Whole records.
        bytes: Vec<u8>,
    },
}

/// How that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The bytes that were asked for.
    Bytes(Vec<u8>),
    /// The anchor, and its version.
    Anchor(Vec<u8>, String),
    /// The anchor was replaced; the version of the new one.
    Swapped(String),
    /// It failed, or nobody knows whether it did.
    Failed(Failure),
}

/// What stands where a device's anchor is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing.
    Missing,
    /// The version that is known already.
    Same,
    /// This anchor, in this version.
    Found(Vec<u8>, String),
}

/// Why a device in a store could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLook {
    /// The address or the endpoint make no sense, or what stands there is no device.
    #[error("{0}")]
    Wrong(String),
    /// The store does not answer.
    #[error("the object store does not answer: {0}")]
    Silent(String),
}

/// The steady clock of this machine: nobody sets it, and it goes on while the machine sleeps. Milliseconds since it was started.
pub fn steady_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// Why something outside failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is no such object.
    #[error("it is not there")]
    Missing,
    /// The anchor is not the one that was expected.
    #[error("another anchor stands there")]
    Precondition,
    /// Anything else: it may have been done all the same, now or later.
    #[error("{0}")]
    Other(String),
}

/// The store and the notes. Used from the device's thread, which never waits for them but where [`Outside::wait`] is called.
pub trait Outside {
    /// Takes a request, whose answer comes out of [`Outside::answer`] under the same number.
    fn ask(&mut self, id: u64, ask: Ask);

    /// The next answer, never waiting.
    fn answer(&mut self) -> Option<(u64, Answer)>;

    /// Waits for an answer, or a moment.
    fn wait(&mut self);

    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;

    /// Milliseconds by a clock that nobody sets, and that goes on while the machine sleeps: for spans.
    fn steady_ms(&self) -> u64;

    /// Has the device's thread woken up at this moment, where it sleeps. The last one counts.
    fn alarm(&mut self, at_ms: u64);
}
