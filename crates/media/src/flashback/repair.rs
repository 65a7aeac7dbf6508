//! Rebuilding slots that could not be read: the same bytes of every other page of the stripe are read and solved for them.

use std::ops::Range;

use ftl::Slot;

use super::numbers::Rows;
use super::parity::{self, Which};
use super::{Flashback, Own, journal};
use crate::{Command, Done, MediaError, Page, PageAddr, Slice};

pub(super) struct Repair {
    id: u64,
    at: PageAddr,
    bytes: Range<u32>,
    min_seq: u64,
    left: u32,
    /// Data lanes first, then parity.
    parts: Vec<Option<Slice>>,
}

impl Flashback {
    /// Every page of a stripe, data lanes first, then parity; `None` for one that no die has.
    pub(super) fn pages(&self, block: u32, page: u32) -> Vec<Option<PageAddr>> {
        let die = |lane| self.geometry.die_of(page, lane);
        let pages = (0..self.geometry.dies).map(|lane| PageAddr { die: die(lane), block, page });
        pages.map(|at| Some(at).filter(|at| self.dies.reads(at.die))).collect()
    }

    /// What was read of such pages, and what the journal held, as rows to solve.
    pub(super) fn rows<'a>(&'a self, page: u32, bytes: &Range<u32>, parts: &'a [Option<Slice>]) -> Rows<'a> {
        let geometry = &self.geometry;
        let row = |part: &'a Option<Slice>| part.as_ref().map(|slice| slice.bytes());
        let (lanes, finished) = parts.split_at(geometry.data_dies() as usize);
        let mut parities = vec![[row(&finished[0]), finished.get(1).and_then(row)]];
        let on_die = journal::pages(geometry) as usize;
        for first in (0..on_die).step_by(geometry.parity as usize).filter(|_| !self.found.is_empty()) {
            let found = |which: usize| {
                let die = geometry.parity_die(page, which as u32) as usize;
                let slice = self.found[die * on_die + first + which].as_ref();
                slice.map(|slice| &slice.bytes()[bytes.start as usize..bytes.end as usize])
            };
            parities.push([found(0), (geometry.parity > 1).then(|| found(1)).flatten()]);
        }
        Rows { lanes: lanes.iter().map(row).collect(), parities }
    }

    /// What one page of a complete stripe must be, from the others: data lanes first, then parity; `None` where one is missing.
    /// All slots are checked, none of them may be older than `min_seq`, and solved for in every other way if need be; one
    /// that cannot be had is as finished parity has it, which its own check refuses. It is an error for those that `live` names.
    pub fn solve_page(
        &mut self,
        at: PageAddr,
        parts: &[Option<Slice>],
        min_seq: u64,
        live: impl Fn(Slot) -> bool,
    ) -> Option<Page> {
        let geometry = self.geometry;
        let (data, bytes) = (geometry.data_dies() as usize, geometry.page_bytes());
        let lane = geometry.lane_of(at.page, at.die) as usize;
        let rows = self.rows(at.page, &(0..bytes), parts);
        let solved = match lane < data {
            true => {
                let mut page = rows.lane(lane)?;
                self.put_right(at, lane, &rows, &mut page, min_seq, &live);
                page
            }
            false => {
                // Parity of what should stand there: a sector that is rotten now must not cost the redundancy that it needs.
                let mut lanes: Vec<Vec<u8>> = Vec::with_capacity(data);
                for (lane, part) in parts[..data].iter().enumerate() {
                    let mut page = match part {
                        Some(slice) => slice.bytes().to_vec(),
                        None => rows.lane(lane)?,
                    };
                    self.put_right(at, lane, &rows, &mut page, min_seq, &live);
                    lanes.push(page);
                }
                let mut sum = vec![0; bytes as usize];
                parity::make(Which::nth((lane - data) as u32), &mut sum, lanes.iter().map(|lane| &lane[..]));
                sum
            }
        };
        let page = self.inner.page();
        // SAFETY: the buffer was just handed out, nobody else knows it.
        unsafe { page.bytes_mut(0..bytes as usize) }.copy_from_slice(&solved);
        Some(page)
    }

    /// Checks the slots of a data lane's page, and solves for those that are wrong. Also for those that nobody reads any more: parity
    /// was made of what stood there, and is needed for the same slots of other pages. A blank slot passes no check either, and is not taken
    /// for one that was never written: the program that should have filled it may have been lost.
    fn put_right(
        &self,
        at: PageAddr,
        lane: usize,
        rows: &Rows<'_>,
        page: &mut [u8],
        min_seq: u64,
        live: impl Fn(Slot) -> bool,
    ) {
        let slot_bytes = self.geometry.slot_bytes() as usize;
        let first = self.geometry.lane_slot(at.block, at.page, lane as u32);
        for (i, number) in (0..self.geometry.slots_per_page as usize).zip(first..) {
            let range = i * slot_bytes..(i + 1) * slot_bytes;
            let right = |bytes: &[u8]| self.check.seq(bytes, number).is_some_and(|seq| seq >= min_seq);
            if right(&page[range.clone()]) {
                continue;
            }
            let slot = (lane, range.clone(), number);
            match rows.slot(&*self.check, slot, min_seq, false).or_else(|| rows.blank(lane, &range)) {
                Some(right) => page[range].copy_from_slice(&right),
                None if live(number) => {
                    tracing::error!(slot = number, "a sector cannot be rebuilt: too much of its stripe is wrong");
                }
                None => {}
            }
        }
    }

    /// Whether a slot of a complete stripe can be had, one way or another, from what was read of the stripe's pages.
    pub fn can_solve(&self, at: PageAddr, slot: u32, min_seq: u64, parts: &[Option<Slice>]) -> bool {
        let geometry = &self.geometry;
        let lane = geometry.lane_of(at.page, at.die);
        let slot_bytes = geometry.slot_bytes() as usize;
        let first = geometry.lane_slot(at.block, at.page, lane);
        let range = slot as usize * slot_bytes..(slot as usize + 1) * slot_bytes;
        let rows = self.rows(at.page, &(0..geometry.page_bytes()), parts);
        rows.slot(&*self.check, (lane as usize, range, first + slot), min_seq, false).is_some()
    }

    /// Whether the parity of a complete stripe is that of its lanes, as far as all of them could be read.
    pub fn parity_holds(&self, parts: &[Option<Slice>]) -> bool {
        let (lanes, parities) = parts.split_at(self.geometry.data_dies() as usize);
        let mut sum = vec![0; self.geometry.page_bytes() as usize];
        if lanes.iter().any(Option::is_none) {
            return true;
        }
        (0..).zip(parities).filter_map(|(number, part)| Some((number, part.as_ref()?))).all(|(number, part)| {
            parity::make(Which::nth(number), &mut sum, lanes.iter().flatten().map(|slice| slice.bytes()));
            sum == part.bytes()
        })
    }

    /// Whether a lane may be solved for after a crash. With no redundancy to spare only what is missing is: to write a sector of
    /// a die that serves could cost its neighbours, should the power fail.
    pub(super) fn may_solve(&self, rows: &Rows<'_>, lane: usize) -> bool {
        let finished = &rows.parities[0][..self.geometry.parity as usize];
        let missing = rows.lanes.iter().chain(finished).filter(|part| part.is_none()).count();
        self.found.is_empty() || rows.lanes[lane].is_none() || missing < self.geometry.parity as usize
    }

    pub(super) fn repair(&mut self, id: u64, at: PageAddr, bytes: Range<u32>, min_seq: u64) {
        if let Some(slice) = self.retained(at, &bytes) {
            self.done.push_back(Done { id, result: Ok(Some(slice)) });
            return;
        }
        let pages = self.pages(at.block, at.page);
        let parts = pages.iter().map(|_| None).collect();
        let repair = Repair { id, at, bytes: bytes.clone(), min_seq, left: 1, parts };
        let key = self.repairs.insert(repair);
        for (part, at) in (0..).zip(pages) {
            if let Some(at) = at {
                if let Some(repair) = self.repairs.get_mut(key) {
                    repair.left += 1;
                }
                self.submit_own(Own::Part { repair: key, part }, Command::Read { at, bytes: bytes.clone() });
            }
        }
        self.part_done(key);
    }

    /// A page of an open stripe, which is in memory.
    fn retained(&self, at: PageAddr, bytes: &Range<u32>) -> Option<Slice> {
        let stripe = &self.stripes[self.stripe_at(at.block, at.page)?];
        let lane = stripe.lanes.get(self.geometry.lane_of(at.page, at.die) as usize)?;
        let slice =
            Slice { page: lane.page.clone(), offset: bytes.start as usize, len: (bytes.end - bytes.start) as usize };
        (lane.submitted >= bytes.end).then_some(slice)
    }

    pub(super) fn part_read(&mut self, key: usize, part: u32, slice: Option<Slice>) {
        if let Some(repair) = self.repairs.get_mut(key) {
            repair.parts[part as usize] = slice;
        }
        self.part_done(key);
    }

    fn part_done(&mut self, key: usize) {
        let Some(repair) = self.repairs.get_mut(key) else { return };
        repair.left -= 1;
        if repair.left > 0 {
            return;
        }
        let Some(repair) = self.repairs.try_remove(key) else { return };
        let result = self.solve(&repair).ok_or(MediaError::Lost).map(Some);
        self.done.push_back(Done { id: repair.id, result });
    }

    /// Solves for each slot; what cannot be solved is zeros, which pass no check. `None` when that is everything.
    fn solve(&mut self, repair: &Repair) -> Option<Slice> {
        let geometry = self.geometry;
        let lane = geometry.lane_of(repair.at.page, repair.at.die);
        let slot_bytes = geometry.slot_bytes() as usize;
        let (start, end) = (repair.bytes.start as usize, repair.bytes.end as usize);
        let page = self.inner.page();
        // SAFETY: the buffer was just handed out, nobody else knows it.
        let out = unsafe { page.bytes_mut(start..end) };
        out.fill(0);
        let mut rows = self.rows(repair.at.page, &repair.bytes, &repair.parts);
        if !self.may_solve(&rows, lane as usize) {
            rows.parities.clear();
        }
        let skipped = (start / slot_bytes) as u32;
        let first = geometry.lane_slot(repair.at.block, repair.at.page, lane) + skipped;
        let mut any = false;
        for (number, (i, out)) in (first..).zip(out.chunks_exact_mut(slot_bytes).enumerate()) {
            let slot = (lane as usize, i * slot_bytes..(i + 1) * slot_bytes, number);
            if let Some(bytes) = rows.slot(&*self.check, slot, repair.min_seq, !self.found.is_empty()) {
                out.copy_from_slice(&bytes);
                any = true;
            }
        }
        any.then_some(Slice { page, offset: start, len: end - start })
    }
}
