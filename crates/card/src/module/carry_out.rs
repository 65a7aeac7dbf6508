//! What the layer asks of the flash, and what the flash says to it.

use ftl::{Engine, LebId, Medium, PageAt, ReadFor, Tag};
use media::PageAddr;
use media::nand::{Class, Nand};

use super::{Module, PASS};
use crate::device::Nanos;

/// Chips, and what time it is for them.
pub(super) struct Chips {
    pub nand: Nand,
    pub now: Nanos,
}

impl Medium for Chips {
    #[inline]
    fn read(&mut self, id: u64, page: PageAt, bytes: u32, purpose: &ReadFor) -> bool {
        self.nand.read(self.now, id, address(page), bytes, Class::of(purpose));
        false
    }

    #[inline]
    fn program(&mut self, id: u64, page: PageAt, bytes: u32) -> bool {
        self.nand.program(self.now, id, address(page), bytes);
        false
    }

    #[inline]
    fn erase(&mut self, id: u64, leb: LebId) -> bool {
        self.nand.erase(self.now, id, leb);
        false
    }
}

fn address(page: PageAt) -> PageAddr {
    PageAddr { die: page.die, block: page.leb, page: page.page }
}

impl Module {
    /// Carries out what the layer wants done.
    #[inline]
    pub(super) fn carry_out(&mut self) {
        self.flash.carry_out(());
        while let Some(completion) = self.flash.ftl.completion() {
            self.read_done(completion.tag, completion.result);
            self.next_reads();
        }
    }

    /// A read has ended: one that waited takes its place. Those that are done at once leave theirs to the next.
    fn next_reads(&mut self) {
        while !self.free_tags.is_empty()
            && let Some((tag, request)) = self.reads_waiting.pop_front()
        {
            self.read(tag, request);
        }
    }

    /// Tells the layer what the flash finished.
    pub(super) fn flash_done(&mut self, id: u64, ok: bool) {
        if id & PASS == PASS {
            self.read_done((id & 0xffff_ffff) as Tag, Ok(()));
            self.next_reads();
            return self.carry_out();
        }
        self.flash.done(id, ok);
        let bad_blocks = self.flash.medium.nand.wear().bad_blocks();
        if bad_blocks != self.bad_blocks {
            self.bad_blocks = bad_blocks;
            self.update_health();
        }
        self.carry_out();
    }
}
