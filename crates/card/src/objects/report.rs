//! What a device on objects did to its store since it was made.

use ftl::Ftl;
use serde::{Deserialize, Serialize};

use super::journal::Journal;
use crate::device::Nanos;

/// Reads that an attach has under way at once: pages of the log and of the checkpoint, and headers of LEBs.
const PAGES_AT_ONCE: u64 = 16;
const HEADERS_AT_ONCE: u64 = 128;

/// Money, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// For bytes that were kept.
    pub stored: f64,
    /// For objects that were written.
    pub puts: f64,
    /// For anchors that were written.
    pub anchors: f64,
    /// For objects that were read.
    pub gets: f64,
    /// For bytes that left the store.
    pub egress: f64,
}

impl Bill {
    /// Each part as this makes it of two bills.
    pub fn with(self, other: Bill, each: impl Fn(f64, f64) -> f64) -> Bill {
        Bill {
            stored: each(self.stored, other.stored),
            puts: each(self.puts, other.puts),
            anchors: each(self.anchors, other.anchors),
            gets: each(self.gets, other.gets),
            egress: each(self.egress, other.egress),
        }
    }

    /// All of it.
    pub fn total(&self) -> f64 {
        self.stored + self.puts + self.anchors + self.gets + self.egress
    }
}

/// What a device on objects did to its store since it was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObjectsReport {
    /// Objects that were written.
    pub puts: u64,
    /// Anchors that were written.
    pub anchors: u64,
    /// Parts of objects that were read.
    pub gets: u64,
    /// Objects that were deleted.
    pub deletes: u64,
    /// Bytes of objects that were written.
    pub put_bytes: u64,
    /// Bytes of anchors that were written.
    pub anchor_bytes: u64,
    /// Bytes that were read.
    pub get_bytes: u64,
    /// Bytes in the store now, the anchor among them.
    pub stored_bytes: u64,
    /// The same over time: bytes times seconds.
    pub byte_seconds: f64,
    /// The anchor's length now.
    pub anchor_length: u64,
    /// Bytes of LEBs in the journal.
    pub local_bytes: u64,
    /// Sectors that are mapped, bytes.
    pub mapped_bytes: u64,
    /// LEBs that were collected by price.
    pub collected: u64,
    /// Bytes that were live in them.
    pub collected_bytes: u64,
    /// Memory of the map now.
    pub map_memory: u64,
    /// Memory of all the layer's books.
    pub memory: u64,
    /// How long another host takes to attach now, without this one's journal, nanoseconds.
    pub take_over: Nanos,
    /// Requests of that.
    pub take_over_requests: u64,
    /// What it cost.
    pub bill: Bill,
}

pub(super) fn of(ftl: &Ftl, journal: &Journal) -> ObjectsReport {
    let sector = u64::from(ftl.config().geometry.sector_bytes);
    let (take_over, take_over_requests) = take_over(ftl, journal);
    let collected = ftl.collected();
    ObjectsReport {
        local_bytes: journal.plan.local_bytes(),
        mapped_bytes: ftl.map().mapped() * sector,
        collected: collected.lebs,
        collected_bytes: collected.moved * sector,
        map_memory: ftl.map().memory() as u64,
        memory: ftl.memory() as u64,
        take_over,
        take_over_requests,
        ..journal.books.report(journal.now)
    }
}

/// What an attach from the store alone reads, one thing after another: the anchor, which is then replaced; the checkpoint; the header of every LEB
/// in the store; and the log since the checkpoint.
fn take_over(ftl: &Ftl, journal: &Journal) -> (Nanos, u64) {
    let (store, geometry) = (&journal.store, &ftl.config().geometry);
    let (begin, checkpoint) = ftl.last_checkpoint();
    let pages = |slots: u64| slots.div_ceil(u64::from(geometry.slots_per_page));
    let page = store.takes(u64::from(geometry.slots_per_page * geometry.slot_bytes()));
    let log = pages(u64::from(checkpoint)) + pages(ftl.next_seq().saturating_sub(begin.max(ftl::first_seq(1))));
    let lebs = journal.plan.anchor().lebs.len() as u64;
    let header = store.takes(2 * u64::from(geometry.slot_bytes()));
    let anchor = 2 * store.takes(journal.books.anchor_length());
    (anchor + log.div_ceil(PAGES_AT_ONCE) * page + lebs.div_ceil(HEADERS_AT_ONCE) * header, 2 + log + lebs)
}
