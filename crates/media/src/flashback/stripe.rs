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
    /// In which of the seat's places.
    pub place: u8,
}

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

    /// The journal is about to hold these rows with all the lanes that they have, each in one of `places` places where nothing
    /// counts in the program units that it takes. Gives, for each place, the runs of units to be written there.
    pub fn journal(&mut self, rows: &[usize], slot_bytes: u32, unit: u32, places: u32) -> Vec<Vec<Range<u32>>> {
        let mut runs: Vec<Vec<Range<u32>>> = vec![Vec::new(); places as usize];
        let before = self.journaled.clone();
        let units = |row: usize| {
            let (start, end) = (row as u32 * slot_bytes, (row as u32 + 1) * slot_bytes);
            start / unit * unit..end.next_multiple_of(unit)
        };
        for row in rows {
            let Range { start, end } = units(*row);
            let sharing = (start / slot_bytes) as usize..(end.div_ceil(slot_bytes) as usize).min(before.len());
            let counts = |place: u8| before[sharing.clone()].iter().any(|row| row.lanes > 0 && row.place == place);
            let free = (0..places as u8).find(|place| !counts(*place));
            let place = free.expect("more places than can hold anything that counts here");
            self.journaled[*row] = Journaled { lanes: self.covered((*row as u32 + 1) * slot_bytes), place };
            let runs = &mut runs[usize::from(place)];
            match runs.last_mut() {
                Some(last) if last.end >= start => last.end = end,
                _ => runs.push(start..end),
            }
        }
        runs
    }

    /// Fills a run of a page of the journal with the rows that stand in this place.
    pub fn journal_page(&self, which: Which, place: u8, run: &Range<u32>, slot_bytes: u32, into: &Page) {
        // SAFETY: `into` is a buffer that the caller just took and fills.
        unsafe { into.bytes_mut(run.start as usize..run.end as usize) }.fill(0);
        for (row, journaled) in (0..).zip(&self.journaled) {
            let bytes = (row * slot_bytes).max(run.start)..((row + 1) * slot_bytes).min(run.end);
            if journaled.place == place && journaled.lanes > 0 && !bytes.is_empty() {
                self.parity(which, usize::from(journaled.lanes), bytes, into);
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

    /// What is programmed is journalled once, and where it goes nothing stands that counts, also not of the rows that share a unit
    /// with it.
    #[test]
    fn the_journal_never_overwrites_what_counts() {
        let (slot, unit, places) = (1000, 512, 4);
        let mut stripe = Stripe::new(0, 0, 4);
        stripe.lanes.push(lane(1, 2048, &[(1024, 2048)]));
        assert_eq!(stripe.uncovered(slot), [0]);
        assert_eq!(stripe.journal(&[0], slot, unit, places), [runs(&[(0, 1024)]), runs(&[]), runs(&[]), runs(&[])]);
        assert!(stripe.uncovered(slot).is_empty());
        stripe.lanes[0] = lane(1, 4096, &[]);
        stripe.lanes.push(lane(2, 2048, &[]));
        assert_eq!(stripe.uncovered(slot), [0, 1, 2, 3]);
        // Row 0 counts in the first place, and row 1 begins in its last unit.
        let written = stripe.journal(&[0, 1, 2, 3], slot, unit, places);
        assert_eq!(written, [runs(&[(1536, 4096)]), runs(&[(0, 2048)]), runs(&[]), runs(&[])]);
        assert_eq!(stripe.journaled.iter().map(|row| row.lanes).collect::<Vec<_>>(), [2, 2, 1, 1]);
        let into = PageBuf::new(4096);
        stripe.journal_page(Which::P, 0, &(1536..4096), slot, &into);
        stripe.journal_page(Which::P, 1, &(0..1536), slot, &into);
        // Rows 0 and 1 of two lanes, rows 2 and 3 of one.
        for (range, byte) in [(0..1536, 3), (2000..4000, 1), (4000..4096, 0)] {
            assert!(into.bytes(range.clone()).iter().all(|found| *found == byte), "{range:?}");
        }
    }

    /// However the lanes grow, with slots larger and smaller than a unit, there is a place for every row, and no run touches a
    /// unit of the place where a row counted before.
    #[test]
    fn there_is_always_a_place() {
        let mut random = random::SplitMix64::new(7);
        for (slot, unit, slots) in
            [(4128u32, 4096u32, 64u32), (544, 512, 16), (544, 4096, 128), (528, 2048, 32), (1056, 1024, 8)]
        {
            let places = if slot >= unit { 4 } else { 6 };
            let page = (slot * slots).next_multiple_of(unit);
            for _ in 0..200 {
                let mut stripe = Stripe::new(0, 0, slots);
                for byte in 1..=4 {
                    stripe.lanes.push(lane(byte, 0, &[]));
                    let mut at = 0;
                    while at < page {
                        at = (at + unit * (1 + random.below(6) as u32)).min(page);
                        stripe.lanes[usize::from(byte) - 1].submitted = at;
                        if !random.one_in(2) {
                            continue;
                        }
                        let before = stripe.journaled.clone();
                        let rows = stripe.uncovered(slot);
                        for (place, runs) in (0..).zip(stripe.journal(&rows, slot, unit, places)) {
                            for (row, old) in (0..).zip(&before) {
                                let bytes = row * slot..(row + 1) * slot;
                                let hit = runs.iter().any(|run| run.start < bytes.end && bytes.start < run.end);
                                assert!(!hit || old.lanes == 0 || old.place != place, "row {row} in place {place}");
                            }
                        }
                    }
                }
            }
        }
    }
}
