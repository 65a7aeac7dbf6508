//! The leaves of the forward map that have one slot for every sector: all in one table, each at its own place.

use crate::map::LEAF_SECTORS;
use crate::types::{NO_SLOT, Slot};
use words::{HUGE_WORDS, Words};

/// Leaves in a stretch of the table that makes a huge page.
const GATHERED: usize = HUGE_WORDS / LEAF_SECTORS;
/// A huge page is kept while at least so many of its leaves are dense: to gather them costs a copy of it, and leaves come and go.
const KEPT: usize = GATHERED - GATHERED / 8;

/// Which leaves are dense, and the slots of their sectors. What is not dense takes address space only.
pub struct Dense {
    slots: Words,
    /// A bit for every leaf.
    dense: Vec<u64>,
    /// For every stretch of [`GATHERED`] leaves: how many are dense. When all are, they move into a huge page.
    counts: Vec<u16>,
    /// Which stretches have one.
    gathered: Vec<bool>,
}

impl Dense {
    pub fn new(sectors: u64) -> Dense {
        let leaves = (sectors as usize).div_ceil(LEAF_SECTORS);
        Dense {
            slots: Words::new(leaves * LEAF_SECTORS),
            dense: vec![0; leaves.div_ceil(64)],
            counts: vec![0; leaves.div_ceil(GATHERED)],
            gathered: vec![false; leaves.div_ceil(GATHERED)],
        }
    }

    /// Makes room for so many sectors.
    pub fn grow(&mut self, sectors: u64) {
        let leaves = (sectors as usize).div_ceil(LEAF_SECTORS);
        if leaves * LEAF_SECTORS <= self.slots.len() {
            return;
        }
        let mut larger = Dense::new(sectors);
        for leaf in 0..self.slots.len() / LEAF_SECTORS {
            if self.holds((leaf * LEAF_SECTORS) as u64) {
                larger.add(leaf, |slots| slots.copy_from_slice(self.leaf(leaf)));
            }
        }
        *self = larger;
    }

    /// Memory of everything but the slots of dense leaves, bytes.
    pub fn memory(&self) -> usize {
        let kept = self.counts.iter().zip(&self.gathered).filter(|(_, gathered)| **gathered);
        let idle: usize = kept.map(|(count, _)| GATHERED - usize::from(*count)).sum();
        // The bits are not counted: one is for hundreds of sectors, and where nobody touches them they take none.
        self.counts.capacity() * size_of::<u16>() + self.gathered.capacity() + idle * LEAF_SECTORS * size_of::<Slot>()
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
        if usize::from(self.counts[stretch]) == GATHERED && !self.gathered[stretch] {
            self.slots.gather(stretch);
            self.gathered[stretch] = true;
        }
    }

    /// Keeps memory for all leaves at hand.
    ///
    /// # Errors
    /// There is not so much, or it may not be kept.
    pub fn lock(&mut self) -> std::io::Result<()> {
        self.slots.lock()
    }

    /// Memory follows what is mapped again.
    pub fn unlock(&mut self) {
        self.slots.unlock();
    }

    /// Makes a leaf dense, none of its sectors mapped, in memory that is there already.
    pub fn keep(&mut self, leaf: usize) -> &mut [Slot] {
        self.dense[leaf / 64] |= 1 << (leaf % 64);
        self.counts[leaf / GATHERED] += 1;
        &mut self.slots[leaf * LEAF_SECTORS..(leaf + 1) * LEAF_SECTORS]
    }

    /// Unmaps all sectors of a leaf, which stays dense.
    pub fn empty(&mut self, leaf: usize) {
        self.slots[leaf * LEAF_SECTORS..(leaf + 1) * LEAF_SECTORS].fill(NO_SLOT);
    }

    /// A leaf is dense no longer; its memory is given back, unless it is a small part of a huge page.
    pub fn remove(&mut self, leaf: usize) {
        self.dense[leaf / 64] &= !(1 << (leaf % 64));
        let stretch = leaf / GATHERED;
        self.counts[stretch] -= 1;
        if self.gathered[stretch] && usize::from(self.counts[stretch]) >= KEPT {
            return self.slots[leaf * LEAF_SECTORS..(leaf + 1) * LEAF_SECTORS].fill(NO_SLOT);
        }
        let leaves = match std::mem::take(&mut self.gathered[stretch]) {
            true => stretch * GATHERED..((stretch + 1) * GATHERED).min(self.slots.len() / LEAF_SECTORS),
            false => leaf..leaf + 1,
        };
        for leaf in leaves {
            if !self.holds((leaf * LEAF_SECTORS) as u64) {
                self.slots.release(leaf * LEAF_SECTORS..(leaf + 1) * LEAF_SECTORS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves that come and go in a huge page are empty when they come again; when many go, their memory goes with them.
    #[test]
    fn leaves_come_and_go() {
        let mut dense = Dense::new((2 * GATHERED * LEAF_SECTORS) as u64);
        let empty = dense.memory();
        let fill = |dense: &mut Dense, leaf: usize| dense.add(leaf, |slots| slots.fill(leaf as Slot + 7));
        (0..GATHERED).for_each(|leaf| fill(&mut dense, leaf));
        for _ in 0..3 {
            dense.remove(5);
            assert_eq!(dense.memory(), empty + LEAF_SECTORS * size_of::<Slot>());
            fill(&mut dense, 5);
        }
        (0..GATHERED - KEPT).for_each(|leaf| dense.remove(leaf));
        assert!(dense.memory() > empty);
        dense.remove(GATHERED - 1);
        assert_eq!(dense.memory(), empty);
        assert!(dense.leaf(0).iter().all(|slot| *slot == NO_SLOT));
        fill(&mut dense, 0);
        for leaf in GATHERED - KEPT..GATHERED - 1 {
            assert!(dense.leaf(leaf).iter().all(|slot| *slot == leaf as Slot + 7), "leaf {leaf}");
        }
    }
}
