//! Repair of a mirror: a copy that could not read something gets it from another one.
//!
//! What a host's read was given may be old by the time it could be written back. So a repair reads again, as a piece of copying does:
//! changes of its region wait from before that read until the copies that could not read have the piece (`resync.rs`). And it waits until
//! the region's last change is durable on all copies: what is written back may be a part of it, and no power cut may leave that alone.

use std::collections::VecDeque;
use std::ops::Range;

use crate::array::{Array, Mask, bit};
use crate::geometry::{Level, Piece};
use crate::wire::Role;

/// Repairs that wait at most: whatever is found beyond them, the next read finds again.
const WAITING_MAX: usize = 64;

/// What copies could not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    /// Within one region, and no more than a request takes.
    pub sectors: Range<u64>,
    /// The copies.
    pub targets: Mask,
}

/// Repairs that wait, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    waiting: VecDeque<Repair>,
    /// The one that is carried out.
    pub current: Option<Repair>,
    /// Sectors given back to copies.
    pub sectors: u64,
}

impl Repairs {
    /// Nothing is to be repaired any more.
    pub fn end(&mut self) {
        self.waiting.clear();
        self.current = None;
    }

    /// Remembers one, unless it is known or too much waits.
    fn add(&mut self, repair: Repair) {
        let known = self.waiting.iter().chain(&self.current).any(|known| *known == repair);
        if !known && self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(repair);
        }
    }

    /// The next becomes the one that is carried out.
    pub fn begin_next(&mut self) -> Option<&Repair> {
        self.current = self.waiting.pop_front();
        self.current.as_ref()
    }
}

impl Array {
    /// These copies could not read a piece that another one has.
    pub(crate) fn repair(&mut self, piece: &Piece, broken: Mask) {
        if broken == 0 || self.shape.level != Level::Raid1 {
            return;
        }
        let (mut at, end) = (piece.lba, piece.lba + piece.count);
        while at < end {
            let region = self.regions.of(&(at..at + 1)).start;
            let upto = self.regions.sectors(region, self.sectors()).end;
            let to = end.min(upto).min(at + u64::from(self.shape.largest));
            self.sync.repairs.add(Repair { sectors: at..to, targets: broken });
            at = to;
        }
    }

    /// A copy that can give what a repair needs: one that counts and was able to read it, in a region that all have.
    pub(crate) fn repair_source(&self, region: usize, targets: Mask) -> Option<usize> {
        if self.pinned || self.regions.get(region).unsynced {
            return None;
        }
        let others = || self.serving().into_iter().filter(|member| targets & bit(*member) == 0);
        others().find(|member| self.seats[*member].role == Role::Active).or_else(|| others().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_waits_once_and_not_more_than_so_many_do() {
        let mut repairs = Repairs::default();
        let of = |at: u64| Repair { sectors: at..at + 1, targets: 1 };
        for at in 0..2 * WAITING_MAX as u64 {
            repairs.add(of(at));
            repairs.add(of(at));
        }
        assert_eq!(repairs.waiting.len(), WAITING_MAX);
        assert_eq!(repairs.begin_next(), Some(&of(0)));
        repairs.add(of(0));
        assert_eq!(repairs.waiting.len(), WAITING_MAX - 1, "it is being carried out");
        repairs.end();
        assert!(repairs.waiting.is_empty() && repairs.current.is_none());
    }
}
