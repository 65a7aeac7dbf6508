//! Where the buffers of one size come from and go back to, without the allocator in between.
//!
//! Buffers are cut from large chunks that ask for huge pages: a store of many gigabytes then takes
//! one page fault per 2 MiB instead of one per 4 KiB, and its random reads miss the TLB less.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::rc::Rc;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::page::{ALIGN, Page, PageBuf};

/// Size and alignment of a huge page on the machines with 4 KiB base pages.
const HUGE: usize = 2 << 20;

/// A chunk doubles its predecessor up to this. Only address space: memory is taken as it is touched.
const LARGEST_CHUNK: usize = 64 << 20;

/// Memory that free buffers keep, bytes, in an arena that [gives the rest back](Arena::passing).
const WARM: usize = 32 << 20;

thread_local! {
    /// Arenas that are kept, by the length of their buffers.
    static KEPT: RefCell<HashMap<usize, Arena>> = RefCell::default();
}

/// A source of page buffers of one length. A buffer comes back by itself when its last handle goes.
#[derive(Clone)]
pub struct Arena(Rc<Shared>);

/// What the arena and its buffers hold together; lives as long as the last of them.
pub(crate) struct Shared {
    len: usize,
    stride: usize,
    free: RefCell<Vec<NonNull<u8>>>,
    /// Free as well, and without memory until they are used again.
    cold: RefCell<Vec<NonNull<u8>>>,
    /// How many free buffers keep their memory.
    warm: usize,
    chunks: RefCell<Vec<Chunk>>,
    /// The part of the newest chunk that no buffer was cut from yet.
    next: Cell<(usize, usize)>,
}

struct Chunk {
    start: NonNull<u8>,
    bytes: usize,
}

impl Arena {
    /// An arena of buffers that are `len` bytes long. Takes no memory yet.
    pub fn new(len: usize) -> Arena {
        assert!(len > 0);
        Arena(Rc::new(Shared {
            len,
            stride: len.next_multiple_of(ALIGN),
            free: RefCell::default(),
            cold: RefCell::default(),
            warm: usize::MAX,
            chunks: RefCell::default(),
            next: Cell::default(),
        }))
    }

    /// An arena whose buffers are in use for a moment only: a burst of them leaves nothing behind.
    pub fn passing(len: usize) -> Arena {
        let mut arena = Arena::new(len);
        if let Some(shared) = Rc::get_mut(&mut arena.0) {
            shared.warm = WARM / shared.stride;
        }
        arena
    }

    /// This thread's arena of that length, which stays for the next who asks: for media that are made and dropped thousands of times a second.
    pub fn kept(len: usize) -> Arena {
        KEPT.with_borrow_mut(|kept| kept.entry(len).or_insert_with(|| Arena::new(len)).clone())
    }

    /// Makes sure that the next `bytes` of buffers cost no page faults. Where the machine itself is
    /// virtual and its host short of memory, those cost more than everything else together.
    pub fn reserve(&self, bytes: usize) {
        let pages: Vec<Page> = (0..bytes.div_ceil(self.0.len)).map(|_| self.page()).collect();
        for page in pages {
            // SAFETY: the arena just handed the buffer out, nobody else knows it.
            unsafe { page.bytes_mut(0..page.len()) }.fill(0);
        }
    }

    /// A buffer. Its content is unspecified: zeros, or what its last user left.
    pub fn page(&self) -> Page {
        let recycled = self.0.free.borrow_mut().pop().or_else(|| self.0.cold.borrow_mut().pop());
        let start = recycled.or_else(|| self.0.cut());
        match start {
            Some(start) => PageBuf::from_arena(start, self.0.len, Rc::clone(&self.0)),
            // The kernel maps nothing more for us; the allocator gives the answer that is usual here.
            None => PageBuf::new(self.0.len),
        }
    }
}

impl Shared {
    /// Takes back a buffer's memory.
    pub(crate) fn give_back(&self, start: NonNull<u8>) {
        let mut free = self.free.borrow_mut();
        if free.len() < self.warm {
            return free.push(start);
        }
        // SAFETY: the buffer was cut from a chunk of ours in whole pages, and its last handle is gone.
        let _ = unsafe { madvise(start.as_ptr().cast(), self.stride, Advice::LinuxDontNeed) };
        self.cold.borrow_mut().push(start);
    }

    fn cut(&self) -> Option<NonNull<u8>> {
        let (offset, end) = self.next.get();
        let mut chunks = self.chunks.borrow_mut();
        let (offset, end) = if offset + self.stride <= end {
            (offset, end)
        } else {
            let wanted = chunks.last().map_or(HUGE, |last| (last.bytes * 2).min(LARGEST_CHUNK));
            let chunk = Chunk::map(wanted.max(self.stride.next_multiple_of(HUGE)))?;
            let end = chunk.bytes;
            chunks.push(chunk);
            (0, end)
        };
        self.next.set((offset + self.stride, end));
        let chunk = chunks.last()?;
        // SAFETY: `offset + stride <= end`, and `end` is the chunk's length.
        Some(unsafe { chunk.start.add(offset) })
    }
}

impl Chunk {
    /// Maps zeroed memory that begins on a huge page.
    fn map(bytes: usize) -> Option<Chunk> {
        // SAFETY: a new private mapping at an address of the kernel's choice disturbs nobody.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes + HUGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let base = base.ok()?.cast::<u8>();
        let skip = base.align_offset(HUGE);
        // SAFETY: `skip < HUGE`, so the chunk lies inside the mapping, and what is unmapped in front
        // of it and behind it was mapped just above and is not used. Sizes are whole 4 KiB pages.
        unsafe {
            let start = base.add(skip);
            if skip > 0 {
                let _ = munmap(base.cast(), skip);
            }
            let _ = munmap(start.add(bytes).cast(), HUGE - skip);
            // Refused where the kernel has no huge pages; the chunk then works as it is.
            let _ = madvise(start.cast(), bytes, Advice::LinuxHugepage);
            Some(Chunk { start: NonNull::new(start)?, bytes })
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: this very range was mapped in `map`; every buffer cut from it holds `Shared`,
        // which holds the chunk, so none is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_passing_buffers_leaves_little_behind() {
        let arena = Arena::passing(1 << 20);
        let pages: Vec<Page> = (0..100).map(|_| arena.page()).collect();
        // SAFETY: nobody else has these buffers.
        pages.iter().for_each(|page| unsafe { page.bytes_mut(0..page.len()) }.fill(7));
        drop(pages);
        let (warm, cold) = (arena.0.free.borrow().len(), arena.0.cold.borrow().len());
        assert_eq!((warm, cold), (32, 68));
        let again: Vec<Page> = (0..100).map(|_| arena.page()).collect();
        let blank = again.iter().filter(|page| page.bytes(0..1) == [0]).count();
        assert_eq!(blank, 68, "what was given back reads as zeros");
    }

    #[test]
    fn buffers_come_back_when_their_last_handle_goes() {
        let arena = Arena::new(68 << 10);
        let first = arena.page();
        let address = first.as_ptr();
        let second = Rc::clone(&first);
        drop(first);
        assert_ne!(arena.page().as_ptr(), address, "still lent out");
        drop(second);
        assert_eq!(arena.page().as_ptr(), address);
    }

    #[test]
    fn buffers_are_aligned_apart_and_outlive_the_arena() {
        let arena = Arena::new(5000);
        let pages: Vec<Page> = (0..2000).map(|_| arena.page()).collect();
        for (number, page) in pages.iter().enumerate() {
            assert_eq!(page.as_ptr() as usize % ALIGN, 0);
            // SAFETY: the only user of the buffer.
            unsafe { page.bytes_mut(0..5000) }.fill(number as u8);
        }
        drop(arena);
        for (number, page) in pages.iter().enumerate() {
            assert!(page.bytes(0..5000).iter().all(|byte| *byte == number as u8));
        }
    }
}
