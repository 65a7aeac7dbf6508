//! Whether what a superblock says can be.

use ftl::{Stats, ZoneShape};
use media::flashback::parity::LANES_MAX;

use super::{DIES_MAX, GivenUp, NotSuperblock, Superblock};

/// Attaches of one format: the epoch has 24 bits in a sequence number, and the next one must exist.
const EPOCHS_MAX: u32 = (1 << 24) - 2;

/// Four times as many LEBs as the largest format has: their table must fit into memory whatever a medium says.
const BLOCKS_MAX: u32 = 1 << 18;

/// More sectors than any device writes in its life: as bytes they still fit 64 bits.
const COUNT_MAX: u64 = 1 << 50;

impl Superblock {
    /// Numbers that only grow, from 0: one that is about to overflow was written by nobody of ours.
    pub(super) fn check_numbers(&self) -> Result<(), NotSuperblock> {
        let anchor = &self.anchor;
        let numbers = [anchor.begin, anchor.next, anchor.checkpoint_begin];
        if self.epoch >= EPOCHS_MAX || numbers.iter().any(|seq| seq >> ftl::EPOCH_SHIFT > u64::from(self.epoch)) {
            return Err(NotSuperblock::Damaged("its sequence numbers"));
        }
        let Stats { programmed_bytes, .. } = anchor.stats;
        let counters = Stats { programmed_bytes: 0, ..anchor.stats }.to_array();
        if self.generation >> 62 != 0
            || self.checkpoint_interval > COUNT_MAX
            || programmed_bytes >> 62 != 0
            || counters.iter().any(|count| *count > COUNT_MAX)
        {
            return Err(NotSuperblock::Damaged("its counters"));
        }
        Ok(())
    }

    /// An emulated card's chips, each at most once, in the order in which they were lost.
    pub(super) fn check_given_up(&self) -> Result<(), NotSuperblock> {
        let list = &self.given_up;
        let known =
            |gone: &GivenUp| gone.chip < self.geometry.dies && gone.since >> ftl::EPOCH_SHIFT <= u64::from(self.epoch);
        let in_order = list.array_windows().all(|[one, next]| one.since <= next.since);
        let distinct = (1..list.len()).all(|at| list[..at].iter().all(|gone| gone.chip != list[at].chip));
        let emulated = list.is_empty() || self.emulation.is_some();
        match list.iter().all(known) && in_order && distinct && emulated {
            true => Ok(()),
            false => Err(NotSuperblock::Damaged("the chips that it gave up")),
        }
    }

    /// Whether there can be these zones: each can be written up to its capacity, and marked.
    fn has_room_for(&self, zones: &ZoneShape) -> bool {
        let room = ftl::room(&self.geometry, self.sectors);
        let most = u128::from(zones.count) * (u128::from(zones.capacity) + 1);
        zones.is_sound()
            && zones.active < ftl::ZONE_STREAMS - 1
            && self.is_sparse()
            && zones.sectors() <= self.sectors
            && most <= u128::from(room)
            && self.policy == ftl::Policy::Zones.code()
            && !(self.objects || self.snapshots || self.clones || self.batches)
    }

    /// A checksum proves that the bytes are as they were written, not that whoever wrote them made sense.
    pub(crate) fn validate(&self) -> Result<(), NotSuperblock> {
        let g = &self.geometry;
        let counts = [g.dies, g.blocks, g.pages_per_block, g.slots_per_page, g.unit_bytes];
        let sane = counts.iter().all(|count| *count > 0)
            && match (&self.emulation, self.dies.is_empty()) {
                (None, true) => g.parity == 0,
                (Some(_), _) => g.parity < g.dies,
                (None, false) => (1..=2).contains(&g.parity) && g.parity < g.dies && g.data_dies() <= LANES_MAX,
            }
            && (self.dies.is_empty() || self.dies.len() == g.dies as usize)
            && g.dies <= DIES_MAX
            && [512, 1024, 2048, 4096].contains(&g.sector_bytes)
            && (self.nvme_block_shift == 0 || (9..=16).contains(&self.nvme_block_shift))
            && g.slots_per_page.is_power_of_two()
            && g.slots_per_page <= 1 << 16
            && g.pages_per_block <= 1 << 20
            && g.blocks <= BLOCKS_MAX
            && (self.emulation.is_some() || g.unit_bytes.is_multiple_of(512))
            && g.unit_bytes <= 1 << 20
            && u128::from(g.blocks) * u128::from(g.pages_per_block) * u128::from(g.dies) * u128::from(g.slots_per_page)
                < u128::from(u32::MAX)
            && g.slots_per_leb() > 1
            && crate::geometry::are_sectors(self.sectors, g, ftl::Policy::from_code(self.policy).unwrap_or_default())
            && !(self.objects && (self.emulation.is_some() || g.dies != 1))
            && !(self.is_sparse() && (self.emulation.is_some() && self.zones.is_none() || self.page_file))
            && self.zones.is_none_or(|zones| self.has_room_for(&zones))
            && self.max_request_bytes.is_multiple_of(g.sector_bytes)
            && self.max_request_bytes >= g.sector_bytes
            && self.max_request_bytes / g.sector_bytes <= 1 << 16
            && self.max_request_bytes / g.sector_bytes + 1 < g.slots_per_leb();
        if sane { Ok(()) } else { Err(NotSuperblock::Damaged("its geometry")) }
    }
}
