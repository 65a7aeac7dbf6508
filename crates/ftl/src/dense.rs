//! The leaves of the forward map that have one slot for every sector: all in one table, each at its own place.

use crate::map::LEAF_SECTORS;
use crate::types::{NO_SLOT, Slot};
use crate::words::{HUGE_WORDS, Words};

/// Leaves in a stretch of the table that makes a huge page.
const GATHERED: usize = HUGE_WORDS / LEAF_SECTORS;

/// Which leaves are dense, and the slots of their sectors. What is not dense takes address space only.
pub struct Dense {
    slots: Words,
    /// A bit for every leaf.
    dense: Vec<u64>,
    /// For every stretch of [`GATHERED`] leaves: how many are dense. When all are, they move into a huge page.
    counts: Vec<u16>,
}

impl Dense {
    pub fn new(sectors: u64) -> Dense {
        let leaves = (sectors as usize).div_ceil(LEAF_SECTORS);
        Dense {
            slots: Words::new(leaves * LEAF_SECTORS),
            dense: vec![0; leaves.div_ceil(64)],
            counts: vec![0; leaves.div_ceil(GATHERED)],
        }
    }

    /// Heap memory of everything but the slots, bytes.
    pub fn memory(&self) -> usize {
        self.dense.capacity() * size_of::<u64>() + self.counts.capacity() * size_of::<u16>()
    }

    /// Whether the leaf of a sector is dense.
    #[inline]
    pub fn holds(&self, lba: u64) -> bool {
        let leaf = lba as usize / LEAF_SECTORS;
        self.dense[leaf / 64] >> (leaf % 64) & 1 == 1
    }

    /// The slot of a sector whose leaf is dense.
    #[inline]
    pub fn get(&self, lba: u64) -> Slot {
        self.slots[lba as usize]
    }

    /// Sets the slot of a sector whose leaf is dense; gives what it was.
    #[inline]
    pub fn set(&mut self, lba: u64, slot: Slot) -> Slot {
        std::mem::replace(&mut self.slots[lba as usize], slot)
    }

    /// Starts to fetch the slot of a sector into the cache.
    #[inline]
    pub fn prefetch(&self, lba: u64) {
        self.slots.prefetch(lba as usize);
    }

    /// The slots of a leaf.
    pub fn leaf(&self, leaf: usize) -> &[Slot] {
        &self.slots[leaf * LEAF_SECTORS..(leaf + 1) * LEAF_SECTORS]
    }

    /// Makes a leaf dense, and gives its slots, none of them mapped, to `fill`.
    pub fn add(&mut self, leaf: usize, fill: impl FnOnce(&mut [Slot])) {
        self.dense[leaf / 64] |= 1 << (leaf % 64);
        let slots = &mut self.slots[leaf * LEAF_SECTORS..(leaf + 1) * LEAF_SECTORS];
        debug_assert!(slots.iter().all(|slot| *slot == NO_SLOT));
        fill(slots);
        let stretch = leaf / GATHERED;
        self.counts[stretch] += 1;
        if usize::from(self.counts[stretch]) == GATHERED {
            self.slots.gather(stretch);
        }
    }

    /// A leaf is dense no longer; its memory is given back.
    pub fn remove(&mut self, leaf: usize) {
        self.dense[leaf / 64] &= !(1 << (leaf % 64));
        self.counts[leaf / GATHERED] -= 1;
        self.slots.release(leaf * LEAF_SECTORS..(leaf + 1) * LEAF_SECTORS);
    }
}
