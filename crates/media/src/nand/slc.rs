//! A cache of single-level cells: pages that are programmed one bit a cell, in a fraction of the time, and folded into dense cells later.
//!
//! What is folded stays where the layer put it: the drive moves it behind the layer's back. In quiet times every die folds one page
//! after another, oldest first. Where the cache is full and the drive does not go on in dense cells, each program folds a page
//! before it. A fold stays inside its die (copyback) and takes no channel.
//!
//! A page of it takes as many pages' cells as a dense one has bits; so it holds only what erased flash has room for. What the groomer
//! moves goes through it like what the host writes.

use std::collections::VecDeque;

use profile::{SlcCache as Sheet, WhenFull};

use super::{Kind, Nand, Nanos, Operation, Shape, Stage, micros};
use crate::PageAddr;

/// The cache of a module.
pub(super) struct Slc {
    program: Nanos,
    read: Nanos,
    quiet: Nanos,
    bits: u32,
    when_full: WhenFull,
    /// Pages that a die may hold in it.
    most: u32,
    pages_per_block: u32,
    /// Pages of a die.
    pages: u32,
    dies: Vec<Held>,
    /// When something was asked last.
    asked: Nanos,
    /// Somebody looks for quiet times.
    watched: bool,
}

/// What a die holds.
struct Held {
    /// Pages in the cache, oldest first: numbered over all blocks.
    cached: VecDeque<u32>,
    /// The same, a bit for each page.
    is_cached: Vec<u64>,
    /// Pages programmed, by block and in all.
    by_block: Vec<u32>,
    programmed: u32,
}

/// Where a page that is programmed goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placed {
    Cached,
    Dense,
    /// Into the cache, after this page of it was folded.
    Folding(u32),
}

impl Slc {
    pub fn new(sheet: &Sheet, shape: &Shape) -> Slc {
        let geometry = shape.geometry;
        let pages = geometry.blocks * geometry.pages_per_block;
        let held = || Held {
            cached: VecDeque::new(),
            is_cached: vec![0; pages.div_ceil(64) as usize],
            by_block: vec![0; geometry.blocks as usize],
            programmed: 0,
        };
        Slc {
            program: micros(sheet.program_us),
            read: micros(sheet.read_us),
            quiet: micros(sheet.quiet_ms * 1000.0),
            bits: sheet.bits_per_cell,
            when_full: sheet.when_full,
            most: shape.slc_pages,
            pages_per_block: geometry.pages_per_block,
            pages,
            dies: (0..geometry.dies).map(|_| held()).collect(),
            asked: 0,
            watched: false,
        }
    }

    /// Something is asked of the flash.
    #[inline]
    pub fn asked(&mut self, now: Nanos) {
        self.asked = now;
    }

    /// How long the cells of a page take to be read, where it is in the cache.
    #[inline]
    pub fn read_of(&self, die: u32, block: u32, page: u32) -> Option<Nanos> {
        let number = block * self.pages_per_block + page;
        let word = self.dies[die as usize].is_cached[number as usize / 64];
        (word >> (number % 64) & 1 == 1).then_some(self.read)
    }

    /// A block of a die is erased: what it held need not be folded any more.
    pub fn erased(&mut self, die: u32, block: u32) {
        let held = &mut self.dies[die as usize];
        let numbers = block * self.pages_per_block..(block + 1) * self.pages_per_block;
        held.programmed -= std::mem::take(&mut held.by_block[block as usize]);
        held.cached.retain(|number| !numbers.contains(number));
        for number in numbers {
            held.is_cached[number as usize / 64] &= !(1 << (number % 64));
        }
    }

    /// A page is programmed.
    fn place(&mut self, die: u32, block: u32, page: u32) -> Placed {
        let held = &mut self.dies[die as usize];
        held.by_block[block as usize] += 1;
        held.programmed += 1;
        let cached = held.cached.len() as u32;
        // Dense pages, and those of the cache as large as they are.
        let taken = held.programmed - cached - 1 + self.bits * (cached + 1);
        let has_room = cached < self.most && taken <= self.pages;
        let placed = match self.when_full {
            _ if has_room => Placed::Cached,
            WhenFull::Dense => return Placed::Dense,
            WhenFull::Fold => match held.fold() {
                Some(oldest) => Placed::Folding(oldest),
                None => return Placed::Dense,
            },
        };
        let number = block * self.pages_per_block + page;
        held.cached.push_back(number);
        held.is_cached[number as usize / 64] |= 1 << (number % 64);
        placed
    }
}

impl Held {
    /// Takes the oldest page out of the cache.
    fn fold(&mut self) -> Option<u32> {
        let number = self.cached.pop_front()?;
        self.is_cached[number as usize / 64] &= !(1 << (number % 64));
        Some(number)
    }
}

impl Nand {
    /// How long a program takes where there is a cache.
    pub(super) fn program_by_the_cache(&mut self, now: Nanos, die: u32, block: u32, page: u32) -> Nanos {
        let Some(slc) = &mut self.slc else { return self.timing.program_of(page) };
        let time = match slc.place(die, block, page) {
            Placed::Cached => slc.program,
            Placed::Dense => return self.timing.program_of(page),
            Placed::Folding(oldest) => {
                self.counts.folds += 1;
                slc.read + self.timing.program_of(oldest % slc.pages_per_block) + slc.program
            }
        };
        if !slc.watched {
            slc.watched = true;
            let quiet = slc.quiet;
            self.watch(now + quiet);
        }
        time
    }

    /// Has it looked at a moment whether times are quiet.
    fn watch(&mut self, at: Nanos) {
        let nobody = Operation::of_its_own(Kind::Watch, PageAddr { die: 0, block: 0, page: 0 });
        let which = self.put(Operation { stage: Stage::Cells, ..nobody });
        self.aside += 1;
        self.events.set(at, which);
    }

    /// It is looked whether times are quiet.
    pub(super) fn watched(&mut self, now: Nanos, which: u32) {
        self.put_aside(which);
        let Some(slc) = &mut self.slc else { return };
        slc.watched = slc.dies.iter().any(|held| !held.cached.is_empty());
        if !slc.watched {
            return;
        }
        let again = (slc.asked + slc.quiet).max(now + 1);
        let is_quiet = again == now + 1;
        let again = if is_quiet { now + slc.quiet } else { again };
        self.watch(again);
        if is_quiet {
            (0..self.dies.len() as u32).for_each(|die| self.fold_if_quiet(now, die));
        }
    }

    /// A die that has nothing to do in quiet times folds a page.
    pub(super) fn fold_if_quiet(&mut self, now: Nanos, die: u32) {
        let Some(slc) = &mut self.slc else { return };
        let idle = !self.dies[die as usize].busy && now >= slc.asked + slc.quiet;
        let Some(oldest) = slc.dies[die as usize].cached.front().copied().filter(|_| idle) else { return };
        slc.dies[die as usize].fold();
        let page = oldest % slc.pages_per_block;
        let (read, block) = (slc.read, oldest / slc.pages_per_block);
        let which = self.put(Operation::of_its_own(Kind::Fold, PageAddr { die, block, page }));
        self.aside += 1;
        self.counts.folds += 1;
        self.dies[die as usize].busy = true;
        let time = self.timing.program_of(page);
        let time = self.varied(read + time);
        self.cells(now, which, time);
    }
}
