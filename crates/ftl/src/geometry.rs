//! The shape of the media: dies, erase blocks, pages and the slots that sectors live in.
//!
//! A *slot* is one sector with its trailer. A *page* holds [`Geometry::slots_per_page`] slots and is
//! the unit that a die programs; a program may stop at any multiple of [`Geometry::unit_bytes`].
//! A *stripe* is one page on every die, a *LEB* one erase block on every die.

use crate::types::{LebId, PageAddr, Slot};

/// Bytes that follow each sector on media, where it is not encrypted: address, sequence, batch and checksum.
/// The byte layout stands in `docs/format.md`.
pub const TRAILER_BYTES: u32 = 32;

/// The shape of one module's media. All counts are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Lanes that work on their own: NAND chips, or backing files.
    pub dies: u32,
    /// How many of the dies of every stripe hold parity.
    pub parity: u32,
    /// Erase blocks on each die; equally the number of LEBs.
    pub blocks: u32,
    /// Pages in an erase block.
    pub pages_per_block: u32,
    /// Slots in a page: a power of two.
    pub slots_per_page: u32,
    /// Bytes of user data in a slot: 512, 1024, 2048 or 4096.
    pub sector_bytes: u32,
    /// Bytes that follow each sector: [`TRAILER_BYTES`], and more where the sectors are encrypted.
    pub trailer_bytes: u32,
    /// The smallest piece of a page that can be programmed alone, bytes; pages start and end on it.
    pub unit_bytes: u32,
}

impl Geometry {
    /// Distance between two slots of a page, bytes.
    pub const fn slot_bytes(&self) -> u32 {
        self.sector_bytes + self.trailer_bytes
    }

    /// Bytes of a page on media: its slots, rounded up to whole program units.
    pub const fn page_bytes(&self) -> u32 {
        (self.slots_per_page * self.slot_bytes()).next_multiple_of(self.unit_bytes)
    }

    /// Bytes of an erase block on one die.
    pub const fn block_bytes(&self) -> u64 {
        self.page_bytes() as u64 * self.pages_per_block as u64
    }

    /// Dies that hold data in every stripe.
    pub const fn data_dies(&self) -> u32 {
        self.dies - self.parity
    }

    /// Slots for data in a LEB.
    pub const fn slots_per_leb(&self) -> u32 {
        self.pages_per_block * self.data_dies() * self.slots_per_page
    }

    /// Slots for data on the whole module.
    pub const fn slots(&self) -> u64 {
        self.blocks as u64 * self.slots_per_leb() as u64
    }

    /// Bytes of sectors that all slots together could hold: the raw capacity.
    pub const fn raw_bytes(&self) -> u64 {
        self.slots() * self.sector_bytes as u64
    }

    /// Where a slot of a LEB lies: page address, and slot in the page.
    pub fn locate(&self, slot: Slot) -> (PageAddr, u32) {
        let leb = slot / self.slots_per_leb();
        let in_leb = slot % self.slots_per_leb();
        let (lane_page, at) = (in_leb / self.slots_per_page, in_leb % self.slots_per_page);
        (self.page_at(leb, lane_page), at)
    }

    /// The `n`-th data page of a LEB in the order in which pages are filled: stripe by stripe, lane by lane.
    pub fn page_at(&self, leb: LebId, n: u32) -> PageAddr {
        let (stripe, lane) = (n / self.data_dies(), n % self.data_dies());
        PageAddr { die: self.die_of(stripe, lane), block: leb, page: stripe }
    }

    /// The die of a stripe's lane; lanes from [`Geometry::data_dies`] on hold parity. With parity the lanes are turned by one
    /// die for every stripe, so that parity wears all dies alike.
    pub const fn die_of(&self, stripe: u32, lane: u32) -> u32 {
        if self.parity == 0 { lane } else { (lane + stripe) % self.dies }
    }

    /// The opposite of [`Geometry::die_of`].
    pub const fn lane_of(&self, stripe: u32, die: u32) -> u32 {
        if self.parity == 0 { die } else { (die + self.dies - stripe % self.dies) % self.dies }
    }

    /// The die of a stripe's parity, by number.
    pub const fn parity_die(&self, stripe: u32, which: u32) -> u32 {
        self.die_of(stripe, self.data_dies() + which)
    }

    /// Data pages in a LEB.
    pub const fn pages_per_leb(&self) -> u32 {
        self.pages_per_block * self.data_dies()
    }

    /// The number of the first slot of a LEB's `n`-th data page.
    pub const fn first_slot(&self, leb: LebId, n: u32) -> Slot {
        leb * self.slots_per_leb() + n * self.slots_per_page
    }

    /// The number of the first slot of a data lane of a LEB's stripe.
    pub const fn lane_slot(&self, leb: LebId, stripe: u32, lane: u32) -> Slot {
        self.first_slot(leb, stripe * self.data_dies() + lane)
    }
}
