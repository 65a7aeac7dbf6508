//! A medium in memory: for speed limits, tests and throw-away devices.
//!
//! A program keeps the page's handle instead of copying it, and a read lends out the stored page, so a sector costs one
//! table look-up either way. Everything but a read is done on the spot; a read is done with the next poll, and meanwhile
//! its bytes are on their way from memory to the cache, which is most of what a random read costs.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use crate::arena::Arena;
use crate::{Command, Done, Geometry, LABEL_BYTES, Media, MediaError, Page, PageAddr, PageBuf, Slice};
use words::prefetch;

/// The pages of one erase block on one die; the table itself exists only once something was programmed.
type BlockPages = Option<Box<[Option<Page>]>>;

/// A medium in memory, gone when dropped.
///
/// A page never programmed since its erase reads as zeros. In a page that was programmed in part,
/// the units not yet programmed read as anything (they may belong to the buffer that its owner
/// is filling right now).
pub struct Memory {
    geometry: Geometry,
    page_bytes: usize,
    /// Index: `block * dies + die`.
    blocks: Vec<BlockPages>,
    zeros: Page,
    arena: Arena,
    stored: u64,
    /// Reads that are done with the next poll.
    reads: VecDeque<Done>,
    labels: Vec<[Box<[u8]>; 2]>,
}

impl Memory {
    /// An empty medium. Takes memory for pages as they are programmed.
    pub fn new(geometry: Geometry) -> Memory {
        let page_bytes = geometry.page_bytes() as usize;
        let label = || vec![0; LABEL_BYTES as usize].into_boxed_slice();
        Memory {
            geometry,
            page_bytes,
            blocks: (0..geometry.blocks as usize * geometry.dies as usize).map(|_| None).collect(),
            zeros: PageBuf::new(page_bytes),
            arena: Arena::new(page_bytes),
            stored: 0,
            reads: VecDeque::new(),
            labels: (0..geometry.dies).map(|_| [label(), label()]).collect(),
        }
    }

    /// Takes the memory for `bytes` of pages, at most all, now instead of page by page when they
    /// are programmed.
    pub fn reserve(&mut self, bytes: u64) {
        let all = self.geometry.block_bytes() * u64::from(self.geometry.blocks) * u64::from(self.geometry.dies);
        self.arena.reserve(usize::try_from(bytes.min(all)).unwrap_or(usize::MAX));
    }

    #[inline]
    fn block_index(&self, die: u32, block: u32) -> usize {
        debug_assert!(die < self.geometry.dies && block < self.geometry.blocks);
        block as usize * self.geometry.dies as usize + die as usize
    }

    #[inline]
    fn read(&self, at: PageAddr, bytes: Range<u32>) -> Slice {
        let block = &self.blocks[self.block_index(at.die, at.block)];
        let stored = block.as_ref().and_then(|pages| pages[at.page as usize].as_ref());
        let page = Rc::clone(stored.unwrap_or(&self.zeros));
        assert!(bytes.start <= bytes.end && bytes.end as usize <= self.page_bytes, "read outside the page");
        Slice { page, offset: bytes.start as usize, len: bytes.len() }
    }

    fn program(&mut self, at: PageAddr, bytes: Range<u32>, page: Page) {
        let unit = self.geometry.unit_bytes;
        debug_assert!(bytes.start.is_multiple_of(unit) && bytes.end.is_multiple_of(unit), "programs are whole units");
        assert!(bytes.start < bytes.end && bytes.end as usize <= self.page_bytes, "program outside the page");
        let index = self.block_index(at.die, at.block);
        let pages_per_block = self.geometry.pages_per_block as usize;
        let block = self.blocks[index].get_or_insert_with(|| (0..pages_per_block).map(|_| None).collect());
        let slot = &mut block[at.page as usize];
        // The owner goes on filling only units that were not programmed yet, so the buffer itself can be the stored
        // page, also when this program covers a part of it. What a page held before its first program is of no account.
        let Some(stored) = slot.as_mut().filter(|_| bytes.start > 0) else {
            self.stored += u64::from(slot.is_none());
            *slot = Some(page);
            return;
        };
        if Rc::ptr_eq(stored, &page) {
            return;
        }
        if Rc::strong_count(stored) > 1 {
            // Somebody reads the stored page: leave that one alone and go on with a copy.
            let copy = self.arena.page();
            // SAFETY: the buffer was just made, nobody else knows it.
            unsafe { copy.bytes_mut(0..self.page_bytes) }.copy_from_slice(stored.bytes(0..self.page_bytes));
            *stored = copy;
        }
        let range = bytes.start as usize..bytes.end as usize;
        // SAFETY: the stored handle is the only one, and `page` is another buffer.
        unsafe { stored.bytes_mut(range.clone()) }.copy_from_slice(page.bytes(range));
    }

    fn erase(&mut self, block: u32) {
        for die in 0..self.geometry.dies {
            let index = self.block_index(die, block);
            // A page that somebody still reads goes back to the arena when it is let go.
            let pages = self.blocks[index].take().into_iter().flatten();
            self.stored -= pages.flatten().count() as u64;
        }
    }

    fn write_label(&mut self, copy: u8, bytes: Vec<Vec<u8>>) -> Result<(), MediaError> {
        if copy > 1 || bytes.len() > self.labels.len() || bytes.iter().any(|b| b.len() > LABEL_BYTES as usize) {
            return Err(MediaError::Os(rustix::io::Errno::INVAL));
        }
        for (label, bytes) in self.labels.iter_mut().zip(bytes) {
            label[usize::from(copy)][..bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
}

/// Reads up to this are fetched ahead; more would push each other out of the cache.
const PREFETCH_BYTES: usize = 8192;

impl Media for Memory {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        self.arena.page()
    }

    #[inline]
    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        let result = match command {
            Command::Read { at, bytes } => {
                let slice = self.read(at, bytes);
                if slice.len <= PREFETCH_BYTES {
                    prefetch(slice.bytes());
                }
                self.reads.push_back(Done { id, result: Ok(Some(slice)) });
                return None;
            }
            Command::Program { at, bytes, page } => {
                self.program(at, bytes, page);
                Ok(None)
            }
            Command::Erase { block } => {
                self.erase(block);
                Ok(None)
            }
            Command::Allocate { .. } | Command::Fill { .. } | Command::Sync => Ok(None),
            Command::WriteLabel { copy, bytes } => self.write_label(copy, bytes).map(|()| None),
            Command::Rebuild { .. } => Err(MediaError::Lost),
        };
        Some(Done { id, result })
    }

    fn poll(&mut self) -> Option<Done> {
        self.reads.pop_front()
    }

    fn has_done(&self) -> bool {
        !self.reads.is_empty()
    }

    fn wait(&mut self) {}

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        let label = self.labels.get(die as usize).and_then(|copies| copies.get(usize::from(copy)));
        label.map(|bytes| bytes.to_vec()).ok_or(MediaError::Os(rustix::io::Errno::INVAL))
    }

    fn tamper(&mut self, at: PageAddr, bytes: Range<u32>, change: &mut dyn FnMut(&mut [u8])) -> Result<(), MediaError> {
        // A copy: the page as it is may be lent out, or be the one that its owner still fills.
        let copy = self.arena.page();
        let now = self.read(at, 0..self.page_bytes as u32);
        // SAFETY: the buffer was just made, nobody else knows it.
        let all = unsafe { copy.bytes_mut(0..self.page_bytes) };
        all.copy_from_slice(now.bytes());
        change(&mut all[bytes.start as usize..bytes.end as usize]);
        let index = self.block_index(at.die, at.block);
        let pages_per_block = self.geometry.pages_per_block as usize;
        let block = self.blocks[index].get_or_insert_with(|| (0..pages_per_block).map(|_| None).collect());
        self.stored += u64::from(block[at.page as usize].is_none());
        block[at.page as usize] = Some(copy);
        Ok(())
    }

    fn allocated_bytes(&self) -> Option<u64> {
        Some(self.stored * self.page_bytes as u64)
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        None
    }

    fn grow(&mut self, blocks: u32) -> Result<(), MediaError> {
        self.geometry.blocks = blocks;
        self.blocks.resize_with(blocks as usize * self.geometry.dies as usize, || None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium() -> Memory {
        Memory::new(Geometry {
            dies: 1,
            parity: 0,
            blocks: 2,
            pages_per_block: 2,
            slots_per_page: 2,
            sector_bytes: 4096,
            trailer_bytes: ftl::TRAILER_BYTES,
            unit_bytes: 4096,
        })
    }

    fn program(medium: &mut Memory, block: u32, page: u32, bytes: Range<u32>, with: u8) {
        let buffer = medium.page();
        // SAFETY: the medium just handed the buffer out.
        unsafe { buffer.bytes_mut(0..buffer.len()) }.fill(with);
        let command = Command::Program { at: PageAddr { die: 0, block, page }, bytes, page: buffer };
        assert!(medium.submit(1, command).is_some_and(|done| done.result.is_ok()));
    }

    #[test]
    fn space_is_taken_by_programs_and_given_back_by_erases() {
        let mut medium = medium();
        let page = u64::from(medium.geometry.page_bytes());
        medium.reserve(u64::MAX);
        assert_eq!(medium.allocated_bytes(), Some(0));
        for (block, number, expected) in [(0, 0, 1), (0, 1, 2), (1, 0, 3)] {
            program(&mut medium, block, number, 0..4096, 1);
            assert_eq!(medium.allocated_bytes(), Some(expected * page));
        }
        program(&mut medium, 0, 0, 4096..8192, 2);
        assert_eq!(medium.allocated_bytes(), Some(3 * page));
        medium.submit(1, Command::Erase { block: 0 });
        assert_eq!(medium.allocated_bytes(), Some(page));
    }

    #[test]
    fn a_read_is_there_before_it_is_taken() {
        let mut medium = medium();
        let command = Command::Read { at: PageAddr { die: 0, block: 0, page: 0 }, bytes: 0..4096 };
        assert!(medium.submit(1, command).is_none() && medium.has_done());
        assert!(medium.poll().is_some() && !medium.has_done());
    }

    #[test]
    fn a_program_from_another_buffer_leaves_lent_bytes_alone() {
        let mut medium = medium();
        program(&mut medium, 0, 0, 0..4096, 1);
        let all = medium.read(PageAddr { die: 0, block: 0, page: 0 }, 0..8192);
        let before = all.bytes().to_vec();
        program(&mut medium, 0, 0, 4096..8192, 2);
        assert_eq!(all.bytes(), before);
        let now = medium.read(PageAddr { die: 0, block: 0, page: 0 }, 0..8192);
        assert_eq!(now.bytes(), [[1; 4096], [2; 4096]].concat());
    }
}
