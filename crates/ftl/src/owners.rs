//! Whose the sectors of a cache are that several volumes share: how much each volume holds, altogether and in each LEB.
//!
//! A byte for each slot and a count for each LEB and volume, and only where somebody asked for it with [`crate::Ftl::set_quotas`].

use std::ops::Range;
use std::sync::Arc;

use crate::types::{LebId, Slot};

/// Volumes that may share a cache at most.
pub const QUOTAS_MAX: usize = 64;

/// What one of the volumes that share a cache may have of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Where its copies lie, which may be lost. What it holds beyond them, which may not, lies as far behind the first sector that may not be lost.
    pub sectors: Range<u64>,
    /// Its weight among those that want more than they have.
    pub share: u32,
    /// Sectors that it may hold at most.
    pub limit: Option<u64>,
}

/// The places of the volumes.
#[derive(Clone)]
pub struct Places {
    /// In order.
    ranges: Arc<[Range<u64>]>,
    below: u64,
}

impl Places {
    /// The quota that a sector belongs to, by number, and whether it may not be lost.
    #[inline]
    pub fn find(&self, lba: u64) -> Option<(usize, bool)> {
        let pinned = lba >= self.below;
        let at = if pinned { lba - self.below } else { lba };
        let quota = self.ranges.partition_point(|range| range.end <= at);
        self.ranges.get(quota).filter(|range| range.start <= at).map(|_| (quota, pinned))
    }
}

/// Who has each slot, and how much that is.
pub(crate) struct Owners {
    places: Places,
    quotas: Vec<Quota>,
    /// For every slot twice the number of its quota and two, one less where it may be lost; zero for nobody's.
    of: Vec<u8>,
    /// Live slots of each LEB, by who has them.
    live: Vec<u32>,
    held: Vec<u64>,
    slots_per_leb: u32,
    /// A volume that holds more than its limit less this is taken from.
    lead: u64,
}

impl Owners {
    /// Of so many LEBs, for quotas in the order of their places. Nobody has anything yet.
    pub fn new(quotas: &[Quota], below: u64, lebs: u32, slots_per_leb: u32) -> Owners {
        let places = Places { ranges: quotas.iter().map(|quota| quota.sectors.clone()).collect(), below };
        Owners {
            places,
            quotas: quotas.to_vec(),
            of: vec![0; (lebs * slots_per_leb) as usize],
            live: vec![0; lebs as usize * 2 * quotas.len()],
            held: vec![0; 2 * quotas.len()],
            slots_per_leb,
            lead: u64::from(slots_per_leb / 2),
        }
    }

    /// These are the quotas from now on, where the places are the same. Whether they are.
    pub fn change(&mut self, quotas: &[Quota], below: u64) -> bool {
        let same =
            self.places.below == below && quotas.iter().map(|quota| &quota.sectors).eq(self.places.ranges.iter());
        if same {
            self.quotas = quotas.to_vec();
        }
        same
    }

    pub fn quotas(&self) -> &[Quota] {
        &self.quotas
    }

    pub fn places(&self) -> &Places {
        &self.places
    }

    pub fn grow(&mut self, lebs: u32) {
        self.of.resize((lebs * self.slots_per_leb) as usize, 0);
        self.live.resize(lebs as usize * self.held.len(), 0);
    }

    /// Slots from this one on, all of one LEB, have just become live with sectors from `lba` on.
    pub fn add(&mut self, lba: u64, slot: Slot, count: u32) {
        for at in 0..count {
            let Some((quota, pinned)) = self.places.find(lba + u64::from(at)) else { continue };
            let who = 2 * quota + usize::from(pinned);
            self.of[(slot + at) as usize] = who as u8 + 1;
            self.held[who] += 1;
            self.live[((slot + at) / self.slots_per_leb) as usize * self.held.len() + who] += 1;
        }
    }

    /// A slot of this LEB is live no more.
    pub fn remove(&mut self, leb: LebId, slot: Slot) {
        let Some(who) = usize::from(std::mem::take(&mut self.of[slot as usize])).checked_sub(1) else { return };
        self.held[who] -= 1;
        self.live[leb as usize * self.held.len() + who] -= 1;
    }

    /// Sectors that a quota holds.
    pub fn held(&self, quota: usize) -> u64 {
        self.held[2 * quota] + self.held[2 * quota + 1]
    }

    /// Of a LEB, the copies of each quota.
    pub fn copies(&self, leb: LebId) -> impl Iterator<Item = u32> {
        self.live[leb as usize * self.held.len()..][..self.held.len()].iter().step_by(2).copied()
    }

    /// Whether a quota holds more than its limit, or is about to, and there is something that can be taken from it.
    pub fn is_over(&self, quota: usize) -> bool {
        let over = |limit: u64| self.held(quota) + self.lead.min(limit / 16) > limit;
        self.held[2 * quota] > 0 && self.quotas[quota].limit.is_some_and(over)
    }

    /// Whether any is.
    pub fn any_over(&self) -> bool {
        (0..self.quotas.len()).any(|quota| self.is_over(quota))
    }

    /// Copies in a LEB of quotas that are over their limits.
    pub fn over_in(&self, leb: LebId) -> u32 {
        self.copies(leb).enumerate().filter(|(quota, _)| self.is_over(*quota)).map(|(_, copies)| copies).sum()
    }

    pub fn memory(&self) -> usize {
        self.of.capacity() + self.live.capacity() * size_of::<u32>()
    }

    /// Whether the books are those of another count.
    pub fn agrees(&self, other: &Owners) -> bool {
        self.of == other.of && self.live == other.live && self.held == other.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(limit: Option<u64>) -> Owners {
        let quota = |from: u64, limit| Quota { sectors: from..from + 50, share: 1, limit };
        Owners::new(&[quota(100, limit), quota(200, None)], 1000, 4, 10)
    }

    #[test]
    fn what_belongs_to_nobody_is_not_counted() {
        let places = owners(None).places().clone();
        let found = [99, 100, 149, 150, 199, 249, 250, 999, 1100, 1149, 1150, 2000].map(|lba| places.find(lba));
        let (first, second) = (Some((0, false)), Some((1, false)));
        let pinned = Some((0, true));
        assert_eq!(found, [None, first, first, None, None, second, None, None, pinned, pinned, None, None]);
    }

    #[test]
    fn sectors_come_and_go() {
        let mut owners = owners(Some(12));
        owners.add(145, 5, 5);
        owners.add(1100, 10, 10);
        owners.add(150, 20, 10);
        assert_eq!((owners.held(0), owners.held(1)), (15, 0));
        assert_eq!(owners.copies(0).collect::<Vec<_>>(), [5, 0]);
        assert_eq!(owners.copies(1).collect::<Vec<_>>(), [0, 0], "what is held is no copy");
        assert!(owners.is_over(0) && owners.any_over() && owners.over_in(0) == 5);
        (5..10).for_each(|slot| owners.remove(0, slot));
        owners.remove(2, 20);
        assert_eq!(owners.held(0), 10);
        owners.add(1110, 30, 5);
        assert!(!owners.any_over(), "nothing that may be taken");
    }
}
