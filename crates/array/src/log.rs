//! The intent log of RAID 0 and of a concatenation: what keeps a write whole that lies on two members, and a batch (`batch.rs`) that lies
//! on several.
//!
//! Of a write each of the two members takes one batch: its piece, and in one slot of the log a record with the other's piece. If a crash leaves the batch
//! on one of them only, its record has what the other lacks. A slot that holds a record of the same number, or a newer one, says that
//! the piece is there, because both stand in one batch.
//!
//! A record stays open until a flush covers it. Until then nothing else may change what it covers, so that a replay never
//! overwrites something newer; and its slot is not used again, so that it is there when it is needed.

use std::ops::Range;

/// A slot.
#[derive(Clone, Debug)]
enum Slot {
    Free,
    /// Its write is under way.
    Open(Vec<Range<u64>>),
    /// It is done; a flush that begins after the one with this number covers it.
    Done(Vec<Range<u64>>, u64),
}

/// The slots, and the number of the next record.
#[derive(Debug, Default)]
pub(crate) struct Log {
    slots: Vec<Slot>,
    pub next: u64,
}

impl Log {
    pub fn new(slots: usize, next: u64) -> Log {
        Log { slots: vec![Slot::Free; slots], next }
    }

    /// Whether a change must wait for a record that covers some of the same sectors.
    pub fn covers(&self, sectors: &Range<u64>) -> bool {
        let meets = |covered: &Range<u64>| covered.start < sectors.end && sectors.start < covered.end;
        self.slots.iter().any(|slot| match slot {
            Slot::Free => false,
            Slot::Open(covered) | Slot::Done(covered, _) => covered.iter().any(meets),
        })
    }

    /// A slot for a change of these sectors, and its record's number; nothing where all are in use.
    pub fn take(&mut self, sectors: impl IntoIterator<Item = Range<u64>>) -> Option<(usize, u64)> {
        let slot = self.slots.iter().position(|slot| matches!(slot, Slot::Free))?;
        self.slots[slot] = Slot::Open(sectors.into_iter().collect());
        self.next += 1;
        Some((slot, self.next - 1))
    }

    /// Whether all slots are in use.
    pub fn is_full(&self) -> bool {
        !self.slots.iter().any(|slot| matches!(slot, Slot::Free))
    }

    /// Its write is done, when so many flushes had begun.
    pub fn done(&mut self, slot: usize, begun: u64) {
        if let Slot::Open(covered) = &mut self.slots[slot] {
            self.slots[slot] = Slot::Done(std::mem::take(covered), begun);
        }
    }

    /// Flushes up to this one cover what was done before each.
    pub fn flushed(&mut self, durable: u64) {
        for slot in &mut self.slots {
            if matches!(slot, Slot::Done(_, begun) if *begun < durable) {
                *slot = Slot::Free;
            }
        }
    }

    /// Whether so many are done that a flush should make room.
    pub fn is_filling(&self) -> bool {
        2 * self.done_count() >= self.slots.len() && !self.slots.is_empty()
    }

    /// How many are done and wait for a flush.
    pub fn done_count(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Done(..))).count()
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    use super::*;

    #[test]
    fn a_slot_is_used_again_only_behind_a_flush_that_covers_it() {
        let mut log = Log::new(2, 7);
        assert_eq!(log.take(once(4..8)), Some((0, 7)));
        assert_eq!(log.take([20..21, 21..22]), Some((1, 8)));
        assert_eq!(log.take(once(30..32)), None);
        assert!(log.covers(&(7..9)) && !log.covers(&(8..20)));
        log.done(0, 3);
        assert!(log.is_filling());
        log.flushed(3);
        assert!(log.covers(&(4..5)));
        log.flushed(4);
        assert!(!log.covers(&(4..5)));
        assert_eq!(log.take(once(30..32)), Some((0, 9)));
    }
}
