//! The parity journal: where the parity of open stripes stands until they are complete.
//!
//! It is a few blocks behind those of the layer. A stripe that a sync finds open gets a *seat*: some [places](places) for each of its
//! parities, a page each, on the dies that hold these parities. A row of slots is written where nothing stands that counts, also not in
//! the rest of a program unit that it shares with its neighbours: whatever a power cut does to a write, it never costs what an
//! earlier sync promised. The seat is free again once the finished parity is durable.

use ftl::{Geometry, STREAMS};

use crate::PageAddr;

/// Seats: one for each open stripe, and a few for those whose parity is not durable yet. Where that is not enough, a sync goes in two steps.
pub(super) const SEATS: u32 = 8;
const _: () = assert!(SEATS as usize > STREAMS);
/// Places that the rows of a seat can go to: one more than can hold something that counts in the units that a row takes.
///
/// A slot of whole units shares none. One of at least a unit shares its first and its last with the row before and the row behind. Of
/// smaller slots those inside a unit are programmed together and stand in the same place; the one that straddles two units meets
/// those inside either, the straddlers at their other ends, and what it held itself.
pub(super) const fn places(geometry: &Geometry) -> u32 {
    match (geometry.slot_bytes(), geometry.unit_bytes) {
        (slot, unit) if slot % unit == 0 => 2,
        (slot, unit) if slot >= unit => 4,
        _ => 6,
    }
}

/// Blocks that the journal takes on every die.
pub(super) const fn blocks(geometry: &Geometry) -> u32 {
    pages(geometry).div_ceil(geometry.pages_per_block)
}

/// Who sits where.
pub(super) struct Journal {
    free: Vec<u32>,
    /// Free once what is done now is durable.
    retired: Vec<u32>,
    /// Free once the sync that is under way is done.
    released: Vec<u32>,
}

impl Journal {
    pub fn new() -> Journal {
        Journal { free: (0..SEATS).rev().collect(), retired: Vec::new(), released: Vec::new() }
    }

    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// The parity of the stripe in this seat is on media, and durable after the next sync.
    pub fn retire(&mut self, seat: u32) {
        self.retired.push(seat);
    }

    /// A sync begins.
    pub fn sync_begins(&mut self) {
        self.released.append(&mut self.retired);
    }

    /// It is done.
    pub fn sync_done(&mut self) {
        self.free.append(&mut self.released);
    }
}

/// Pages of the journal on one die.
pub(super) const fn pages(geometry: &Geometry) -> u32 {
    SEATS * places(geometry) * geometry.parity
}

/// Where page `number` of the journal stands on a die.
pub(super) fn page(geometry: &Geometry, die: u32, number: u32) -> PageAddr {
    PageAddr {
        die,
        block: geometry.blocks + number / geometry.pages_per_block,
        page: number % geometry.pages_per_block,
    }
}

/// Where a seat's parity number `which` of a stripe stands, in one of the seat's places.
pub(super) fn page_of(geometry: &Geometry, stripe: u32, seat: u32, place: u32, which: u32) -> PageAddr {
    let number = (seat * places(geometry) + place) * geometry.parity + which;
    page(geometry, geometry.parity_die(stripe, which), number)
}
