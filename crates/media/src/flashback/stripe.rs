//! A stripe whose parity is not on media yet: its pages stay in memory until it is.

use std::ops::Range;

use crate::Page;

use super::parity::{self, Which};

/// A data page of the stripe, as far as it was handed over.
pub(super) struct Lane {
    pub page: Page,
    /// Bytes handed over.
    pub submitted: u32,
    /// Programs that are not done.
    pub flying: Vec<Range<u32>>,
}

impl Lane {
    /// Bytes from the beginning that are programmed.
    pub fn done(&self) -> u32 {
        self.flying.iter().map(|range| range.start).min().unwrap_or(self.submitted)
    }
}

/// What the journal holds of one row of slots: those at the same place in every page of the stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Journaled {
    /// Parity of so many lanes; 0 for none.
    pub lanes: u8,
    /// In which of its two places.
    pub version: u8,
    /// The other place holds parity of so many lanes, from before.
    pub before: u8,
}

/// An open stripe.
pub(super) struct Stripe {
    pub block: u32,
    pub page: u32,
    /// In the order in which they are filled; the first is complete before the second begins.
    pub lanes: Vec<Lane>,
    /// By slot of the page.
    pub journaled: Vec<Journaled>,
    /// Its place in the journal, once it needs one.
    pub seat: Option<u32>,
    /// Nothing more comes; its parity is being programmed.
    pub closing: bool,
    /// Programs of parity and of padding that are not done.
    pub finals: u32,
}

impl Stripe {
    pub fn new(block: u32, page: u32, slots: u32) -> Stripe {
        let journaled = vec![Journaled::default(); slots as usize];
        Stripe { block, page, lanes: Vec::new(), journaled, seat: None, closing: false, finals: 0 }
    }

    /// How many lanes, from the first on, have programmed the bytes below `end`.
    fn covered(&self, end: u32) -> u8 {
        self.lanes.iter().take_while(|lane| lane.done() >= end).count() as u8
    }

    /// Rows of slots that more lanes have programmed than the journal covers.
    pub fn uncovered(&self, slot_bytes: u32) -> Vec<usize> {
        let rows = self.journaled.iter().enumerate();
        rows.filter(|(row, old)| self.covered((*row as u32 + 1) * slot_bytes) > old.lanes).map(|(row, _)| row).collect()
    }

    /// The journal is about to hold these rows with all the lanes that they have, each in the place that was not used last.
    /// Gives, for each of the two places, the runs of program units to be written there.
    pub fn journal(&mut self, rows: &[usize], slot_bytes: u32, unit: u32) -> [Vec<Range<u32>>; 2] {
        let mut runs: [Vec<Range<u32>>; 2] = Default::default();
        for row in rows {
            let (start, end) = (*row as u32 * slot_bytes, (*row as u32 + 1) * slot_bytes);
            let old = self.journaled[*row];
            let in_place = old.lanes == 0 || ftl::mutant!(JournalInPlace);
            let version = if in_place { 0 } else { 1 - old.version };
            self.journaled[*row] = Journaled { lanes: self.covered(end), version, before: old.lanes };
            let units = start / unit * unit..end.next_multiple_of(unit);
            let runs = &mut runs[usize::from(version)];
            match runs.last_mut() {
                Some(last) if last.end >= units.start => last.end = units.end,
                _ => runs.push(units),
            }
        }
        runs
    }

    /// Fills a run of a page of the journal. A row that shares a unit with those that are new here is written as it stands there
    /// already: until the sync is done, that may be what counts.
    pub fn journal_page(&self, which: Which, version: u8, run: &Range<u32>, slot_bytes: u32, into: &Page) {
        // SAFETY: `into` is a buffer that the caller just took and fills.
        unsafe { into.bytes_mut(run.start as usize..run.end as usize) }.fill(0);
        for (row, journaled) in (0..).zip(&self.journaled) {
            let bytes = (row * slot_bytes).max(run.start)..((row + 1) * slot_bytes).min(run.end);
            let lanes = if journaled.version == version { journaled.lanes } else { journaled.before };
            if lanes > 0 && !bytes.is_empty() {
                self.parity(which, usize::from(lanes), bytes, into);
            }
        }
    }

    /// Puts parity of the first `lanes` lanes into the same bytes of `into`.
    ///
    /// # Panics
    /// When the bytes were not all handed over.
    pub fn parity(&self, which: Which, lanes: usize, bytes: Range<u32>, into: &Page) {
        assert!(self.lanes[..lanes].iter().all(|lane| lane.submitted >= bytes.end));
        let range = bytes.start as usize..bytes.end as usize;
        // SAFETY: `into` is a buffer that the caller just took and fills; lanes are other buffers.
        let sum = unsafe { into.bytes_mut(range.clone()) };
        parity::make(which, sum, self.lanes[..lanes].iter().map(|lane| lane.page.bytes(range.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageBuf;

    fn runs(bounds: &[(u32, u32)]) -> Vec<Range<u32>> {
        bounds.iter().map(|(start, end)| *start..*end).collect()
    }

    fn lane(byte: u8, submitted: u32, flying: &[(u32, u32)]) -> Lane {
        let page = PageBuf::new(4096);
        // SAFETY: nobody else knows the buffer.
        unsafe { page.bytes_mut(0..4096) }.fill(byte);
        Lane { page, submitted, flying: runs(flying) }
    }

    /// What is programmed is journalled once, in turns in two places, and what is under way is not. Where rows share a unit,
    /// the one that stands there already stays as it is.
    #[test]
    fn the_journal_never_overwrites_what_counts() {
        let (slot, unit) = (1000, 512);
        let mut stripe = Stripe::new(0, 0, 4);
        stripe.lanes.push(lane(1, 2048, &[(1024, 2048)]));
        assert_eq!(stripe.uncovered(slot), [0]);
        assert_eq!(stripe.journal(&[0], slot, unit), [runs(&[(0, 1024)]), runs(&[])]);
        assert!(stripe.uncovered(slot).is_empty());
        stripe.lanes[0] = lane(1, 4096, &[]);
        stripe.lanes.push(lane(2, 2048, &[]));
        assert_eq!(stripe.uncovered(slot), [0, 1, 2, 3]);
        assert_eq!(stripe.journal(&[0, 1, 2, 3], slot, unit), [runs(&[(512, 4096)]), runs(&[(0, 1024)])]);
        assert_eq!(stripe.journaled[1..].iter().map(|row| row.lanes).collect::<Vec<_>>(), [2, 1, 1]);
        let into = PageBuf::new(4096);
        stripe.journal_page(Which::P, 0, &(512..4096), slot, &into);
        stripe.journal_page(Which::P, 1, &(0..512), slot, &into);
        // Row 0 in the second place, and in the first as it was; row 1 of two lanes, rows 2 and 3 of one.
        for (range, byte) in [(0..512, 3), (512..1000, 1), (1000..2000, 3), (2000..4000, 1), (4000..4096, 0)] {
            assert!(into.bytes(range.clone()).iter().all(|found| *found == byte), "{range:?}");
        }
    }
}
