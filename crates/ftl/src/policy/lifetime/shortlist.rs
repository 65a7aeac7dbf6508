//! The LEBs most worth grooming.
//!
//! Which of them is the best changes from one moment to the next, which of thousands are among the best does not: those that were when all were looked
//! through last are compared each time, and all of them anew when time has gone by or the list is half used up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::policy::{Eligible, LebView};
use crate::types::LebId;

/// So many LEBs are listed.
const LISTED: usize = 64;
/// So often in a drive write, at the least, all LEBs are looked through.
const LOOKS: u64 = 256;

pub(super) struct Shortlist {
    /// With the scores of the last look, the least on top. Scores are not negative: then their bits have their order.
    lebs: BinaryHeap<Reverse<(u32, LebId)>>,
    /// When all are looked through next.
    due: u64,
    span: u64,
}

impl Shortlist {
    pub fn new(sectors: u64) -> Shortlist {
        Shortlist { lebs: BinaryHeap::with_capacity(LISTED + 1), due: 0, span: sectors / LOOKS }
    }

    /// Something else than writes changed what is worth grooming.
    pub fn outdate(&mut self) {
        self.due = 0;
    }

    /// The LEB of the highest score; those without live sectors come before all others.
    pub fn best(&mut self, eligible: &Eligible, score: impl Fn(&LebView) -> f32) -> Option<LebId> {
        let score = |leb: &LebView| if leb.live == 0 { f32::INFINITY } else { score(leb) }.to_bits();
        if eligible.now() < self.due {
            let mut left = 0;
            let lebs = self.lebs.iter().filter_map(|Reverse((_, id))| eligible.get(*id)).inspect(|_| left += 1);
            let best = highest(lebs.map(|leb| (score(&leb), leb.id)));
            if left > LISTED / 2 {
                return best;
            }
        }
        self.look_through(eligible, score)
    }

    fn look_through(&mut self, eligible: &Eligible, score: impl Fn(&LebView) -> u32) -> Option<LebId> {
        self.due = eligible.now() + self.span;
        self.lebs.clear();
        for leb in eligible.iter() {
            let entry = Reverse((score(&leb), leb.id));
            if self.lebs.len() < LISTED {
                self.lebs.push(entry);
            } else if let Some(mut least) = self.lebs.peek_mut().filter(|least| entry < **least) {
                *least = entry;
            }
        }
        highest(self.lebs.iter().map(|Reverse(entry)| *entry))
    }
}

/// The LEB of the highest score; of several the first one.
fn highest(lebs: impl Iterator<Item = (u32, LebId)>) -> Option<LebId> {
    lebs.max_by_key(|(score, id)| (*score, Reverse(*id))).map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leb::{LebState, Lebs};

    const SLOTS: u32 = 1024;
    const SECTORS: u64 = 256_000;

    /// So many LEBs, of which each has a live sector more than the one before.
    fn lebs(count: u32) -> Lebs {
        let mut lebs = Lebs::new(count, SLOTS);
        for id in 0..count {
            (lebs[id].state, lebs[id].live) = (LebState::Closed, id + 100);
        }
        lebs
    }

    fn best(list: &mut Shortlist, lebs: &Lebs, now: u64) -> Option<LebId> {
        list.best(&Eligible::new(lebs, SLOTS, now, now, u64::MAX), |leb| (SLOTS - leb.live) as f32)
    }

    #[test]
    fn all_are_taken_in_the_order_of_their_scores() {
        let (mut list, mut lebs) = (Shortlist::new(SECTORS), lebs(300));
        for id in 0..300 {
            assert_eq!(best(&mut list, &lebs, 0), Some(id));
            lebs[id].state = LebState::Grooming;
        }
        assert_eq!(best(&mut list, &lebs, 0), None);
    }

    #[test]
    fn what_changes_counts_at_once_on_the_list_and_soon_elsewhere() {
        let (mut list, mut lebs) = (Shortlist::new(SECTORS), lebs(300));
        assert_eq!(best(&mut list, &lebs, 0), Some(0));
        lebs[60].live = 50;
        lebs[200].live = 40;
        assert_eq!(best(&mut list, &lebs, 999), Some(60));
        assert_eq!(best(&mut list, &lebs, 1000), Some(200), "a 256th of a drive write later");
        lebs[250].live = 30;
        assert_eq!(best(&mut list, &lebs, 1001), Some(200));
        list.outdate();
        assert_eq!(best(&mut list, &lebs, 1002), Some(250));
    }

    #[test]
    fn what_is_empty_comes_first() {
        let (mut list, mut lebs) = (Shortlist::new(SECTORS), lebs(300));
        lebs[299].live = 0;
        lebs[298].live = 0;
        assert_eq!(best(&mut list, &lebs, 0), Some(298));
        lebs[298].state = LebState::Emptied;
        assert_eq!(best(&mut list, &lebs, 0), Some(299));
    }
}
