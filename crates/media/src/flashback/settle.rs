//! After a crash: the stripes that were open get the parity of what stands on media.
//!
//! This happens before anything new is written, so the journal still holds what the last sync put there, and parity that is
//! found right is left alone: a power cut meanwhile, with the loss of a die on top, costs nothing.

use ftl::Slot;

use super::numbers::Rows;
use super::{Flashback, journal, parity};
use crate::{Command, Done, MediaError, Page, PageAddr, Slice};

use super::parity::Which;

/// The id of the commands that are waited for here; nothing else is under way.
const ID: u64 = 0;

impl Flashback {
    /// Makes sure of the journal's space, before the first sync needs it.
    ///
    /// # Errors
    /// The backing store is full, or failed.
    pub fn prepare(&mut self) -> Result<(), MediaError> {
        for block in self.geometry.blocks..self.geometry.blocks + journal::blocks(&self.geometry) {
            self.call(Command::Allocate { block })?;
        }
        Ok(())
    }

    /// Looks into the journal, after a crash: what it holds may count until the first program.
    pub fn find_journal(&mut self) {
        let geometry = self.geometry;
        let pages = (0..geometry.dies).flat_map(|die| (0..journal::pages(&geometry)).map(move |number| (die, number)));
        let pages: Vec<_> = pages
            .map(|(die, number)| Some(journal::page(&geometry, die, number)).filter(|at| self.dies.reads(at.die)))
            .collect();
        self.found = self.read_together(&pages, geometry.page_bytes());
    }

    /// Gives every stripe of a block the parity of what stands there. What was written since the block was opened has at least
    /// the sequence number `opened`.
    ///
    /// # Errors
    /// More dies failed than there is parity.
    pub fn settle(&mut self, block: u32, opened: u64) -> Result<(), MediaError> {
        self.call(Command::Allocate { block })?;
        for page in 0..self.geometry.pages_per_block {
            self.settle_stripe(block, page, opened, &[])?;
        }
        Ok(())
    }

    /// Gives a stripe what a killed process left of its pages, and the parity that follows: also of a page whose die is lost, and
    /// which is nowhere else. The pages are of a block that was opened at `opened`.
    ///
    /// # Errors
    /// More dies failed than there is parity.
    pub fn settle_left(&mut self, pages: &[(PageAddr, Page)], opened: u64) -> Result<(), MediaError> {
        let Some((PageAddr { block, page, .. }, _)) = pages.first() else { return Ok(()) };
        self.settle_stripe(*block, *page, opened, pages)
    }

    /// Makes what was settled durable.
    ///
    /// # Errors
    /// More dies failed than there is parity.
    pub fn settled(&mut self) -> Result<(), MediaError> {
        self.call(Command::Sync)?;
        Ok(())
    }

    fn settle_stripe(
        &mut self,
        block: u32,
        page: u32,
        opened: u64,
        left: &[(PageAddr, Page)],
    ) -> Result<(), MediaError> {
        let geometry = self.geometry;
        let (data, bytes) = (geometry.data_dies() as usize, geometry.page_bytes());
        let addresses = self.pages(block, page);
        let mut parts = self.read_together(&addresses, bytes);
        // Each lane as it stands. What is missing is as finished parity says, so that parity which holds is not written again.
        let rows = self.rows(page, &(0..bytes), &parts);
        let mut lanes: Vec<Vec<u8>> = (0..data)
            .map(|lane| match &parts[lane] {
                Some(slice) => slice.bytes().to_vec(),
                None => rows.lane(lane).unwrap_or_else(|| vec![0; bytes as usize]),
            })
            .collect();
        for (at, here) in left {
            let lane = geometry.lane_of(page, at.die) as usize;
            self.take_over(
                &mut lanes[lane],
                here.bytes(0..bytes as usize),
                geometry.lane_slot(block, page, lane as u32),
                opened,
            );
        }
        let mut any = false;
        for row in 0..geometry.slots_per_page {
            any |= self.settle_row((block, page, row), opened, &rows, &mut lanes);
        }
        if !any {
            return Ok(());
        }
        for (lane, here) in (0..).zip(&lanes) {
            let at = PageAddr { die: geometry.die_of(page, lane), block, page };
            let old = parts[lane as usize].take();
            self.mend(at, old.as_ref(), here)?;
        }
        for number in 0..geometry.parity {
            let at = PageAddr { die: geometry.parity_die(page, number), block, page };
            let mut sum = vec![0; bytes as usize];
            parity::make(Which::nth(number), &mut sum, lanes.iter().map(|lane| &lane[..]));
            let old = parts[data + number as usize].take();
            self.mend(at, old.as_ref(), &sum)?;
        }
        Ok(())
    }

    /// Takes the slots of a page over that pass their check, where those that stand there do not, or are older.
    fn take_over(&self, into: &mut [u8], from: &[u8], first: Slot, opened: u64) {
        let slot_bytes = self.geometry.slot_bytes() as usize;
        for (number, (old, new)) in (first..).zip(into.chunks_exact_mut(slot_bytes).zip(from.chunks_exact(slot_bytes)))
        {
            let newer = |seq: &u64| self.check.seq(old, number).is_none_or(|old| old < *seq);
            if self.check.seq(new, number).filter(|seq| *seq >= opened).is_some_and(|seq| newer(&seq)) {
                old.copy_from_slice(new);
            }
        }
    }

    /// Puts what slots at the same place of every page should hold into `lanes`: those that fail their check as they were, where
    /// something knows. Returns whether anything there was written since the block was opened.
    fn settle_row(
        &self,
        (block, page, row): (u32, u32, u32),
        opened: u64,
        whole: &Rows<'_>,
        lanes: &mut [Vec<u8>],
    ) -> bool {
        let geometry = &self.geometry;
        let slot_bytes = geometry.slot_bytes() as usize;
        let range = row as usize * slot_bytes..(row as usize + 1) * slot_bytes;
        let number = |lane: usize| geometry.lane_slot(block, page, lane as u32) + row;
        let right = |lane: usize, bytes: &[u8]| self.check.seq(bytes, number(lane)).is_some_and(|seq| seq >= opened);
        let mut known: Vec<bool> = (0..lanes.len()).map(|lane| right(lane, &lanes[lane][range.clone()])).collect();
        // What is solved for helps to solve for the next.
        loop {
            let rows = Rows {
                lanes: (0..lanes.len())
                    .map(|lane| (known[lane] || whole.lanes[lane].is_some()).then(|| &lanes[lane][range.clone()]))
                    .collect(),
                parities: whole.parities.iter().map(|set| set.map(|row| row.map(|row| &row[range.clone()]))).collect(),
            };
            // Also where the stripe looks whole: it may be the one of the block's life before.
            let solved =
                (0..lanes.len()).filter(|lane| !known[*lane] && self.may_solve(whole, *lane)).find_map(|lane| {
                    let slot = (lane, 0..slot_bytes, number(lane));
                    rows.slot(&*self.check, slot, opened, true).map(|bytes| (lane, bytes))
                });
            let Some((lane, bytes)) = solved else { return known.contains(&true) };
            lanes[lane][range.clone()].copy_from_slice(&bytes);
            known[lane] = true;
        }
    }

    /// Writes those units of a page that are not as they should be. The bytes between them that are right stay as they are,
    /// so a power cut meanwhile does no harm.
    fn mend(&mut self, at: PageAddr, old: Option<&Slice>, new: &[u8]) -> Result<(), MediaError> {
        if !self.dies.reads(at.die) {
            return Ok(());
        }
        let unit = self.geometry.unit_bytes as usize;
        let buffer = self.inner.page();
        // SAFETY: the buffer was just handed out, nobody else knows it.
        unsafe { buffer.bytes_mut(0..new.len()) }.copy_from_slice(new);
        for start in (0..new.len()).step_by(unit) {
            let range = start..start + unit;
            if old.is_some_and(|old| old.bytes()[range.clone()] == new[range.clone()]) {
                continue;
            }
            let bytes = start as u32..(start + unit) as u32;
            let result = self.call_inner(Command::Program { at, bytes, page: buffer.clone() }).map(|_| ());
            self.without(result, Some(at.die))?;
        }
        Ok(())
    }

    /// Reads whole pages side by side; `None` for those that are missing or cannot be read.
    fn read_together(&mut self, pages: &[Option<PageAddr>], bytes: u32) -> Vec<Option<Slice>> {
        let mut parts: Vec<Option<Slice>> = pages.iter().map(|_| None).collect();
        let mut left = 0;
        let take = |parts: &mut Vec<Option<Slice>>, done: Done| {
            parts[done.id as usize] = done.result.ok().flatten();
        };
        for (id, at) in (0..).zip(pages) {
            let Some(at) = at else { continue };
            match self.inner.submit(id, Command::Read { at: *at, bytes: 0..bytes }) {
                Some(done) => take(&mut parts, done),
                None => left += 1,
            }
        }
        while left > 0 {
            match self.inner.poll() {
                Some(done) => {
                    take(&mut parts, done);
                    left -= 1;
                }
                None => self.inner.wait(),
            }
        }
        parts
    }

    /// Carries a command out on the medium itself and waits for it.
    fn call_inner(&mut self, command: Command) -> Result<Option<Slice>, MediaError> {
        if let Some(done) = self.inner.submit(ID, command) {
            return done.result;
        }
        loop {
            match self.inner.poll() {
                Some(done) => return done.result,
                None => self.inner.wait(),
            }
        }
    }

    /// Carries a command on every die out and waits for it; dies that fail are lost.
    fn call(&mut self, command: Command) -> Result<(), MediaError> {
        debug_assert!(!matches!(command, Command::Program { .. }));
        let result = self.call_inner(command).map(|_| ());
        self.without(result, None)
    }
}

impl std::fmt::Debug for Flashback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Flashback on {:?} dies, {} stripes open", self.dies(), self.stripes.len())
    }
}
