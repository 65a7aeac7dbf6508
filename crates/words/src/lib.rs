//! Large tables of numbers: address space for all of a table at once, memory only for what is touched, and huge pages where they pay.
//!
//! A table of hundreds of megabytes that is read at random misses the TLB at nearly every access, and in a virtual machine each miss
//! walks two page tables. In pages of 2 MiB it hardly ever does: full-size modules are simulated one and a half times as fast for it.

mod past_caches;
mod prefetch;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap_anonymous, munlock, munmap};

pub use past_caches::copy_past_caches;
pub use prefetch::{prefetch, prefetch_line};

/// Bytes of a huge page on the machines with 4 KiB base pages.
pub const HUGE_BYTES: usize = 2 << 20;
/// Words in a huge page.
pub const HUGE_WORDS: usize = HUGE_BYTES / size_of::<u32>();
/// Bytes of a base page.
const PAGE_BYTES: usize = 4096;
/// Words in a base page.
pub const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u32>();
/// Tables of at most so many bytes are from the heap: a mapping of their own costs two system calls and page faults, up to a fifth of
/// the time of a simulation that makes a small device for each moment of a power cut.
const HEAP_BYTES: usize = 64 << 10;

/// A table of so many words, zeros to begin with.
pub struct Words {
    /// Begins on a huge page inside the mapping, or on a base page of the heap.
    start: NonNull<u32>,
    len: usize,
    memory: Memory,
    locked: bool,
}

/// Where a table's memory is from.
enum Memory {
    /// A mapping of its own: where it begins, and its bytes.
    Mapping(NonNull<u8>, usize),
    /// The heap, in whole pages: what is locked is nobody else's.
    Heap(Layout),
}

// SAFETY: it owns its memory as a `Box<[u32]>` would, and hands it out only by `&self` and `&mut self`.
unsafe impl Send for Words {}
// SAFETY: as above; nothing changes behind a shared reference.
unsafe impl Sync for Words {}

impl Words {
    /// A table of `len` words. A large one takes no memory yet.
    pub fn new(len: usize) -> Words {
        if len * size_of::<u32>() <= HEAP_BYTES {
            return Words::small(len);
        }
        let bytes = (len * size_of::<u32>()).next_multiple_of(HUGE_BYTES);
        let mapped = bytes + HUGE_BYTES;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new private mapping at an address of the kernel's choice disturbs nobody.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let mapping = base.ok().and_then(|base| NonNull::new(base.cast::<u8>()));
        let Some(mapping) = mapping else {
            handle_alloc_error(Layout::array::<u32>(len).unwrap_or(Layout::new::<u32>()))
        };
        let skip = mapping.as_ptr().align_offset(HUGE_BYTES);
        // SAFETY: `skip < HUGE_BYTES`, and the mapping is that much longer than the table.
        let start = unsafe { mapping.add(skip) }.cast::<u32>();
        Words { start, len, memory: Memory::Mapping(mapping, mapped), locked: false }
    }

    /// One of at most [`HEAP_BYTES`].
    fn small(len: usize) -> Words {
        let bytes = (len * size_of::<u32>()).next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        let layout = Layout::from_size_align(bytes, PAGE_BYTES).expect("a power of two, and few bytes");
        // SAFETY: the layout is of one page at least.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<u32>());
        let Some(start) = start else { handle_alloc_error(layout) };
        Words { start, len, memory: Memory::Heap(layout), locked: false }
    }

    /// The same in huge pages from the beginning: for tables that are filled from end to end.
    pub fn huge(len: usize) -> Words {
        let words = Words::new(len);
        if len >= HUGE_WORDS {
            words.advise(0..len.next_multiple_of(PAGE_WORDS), Advice::LinuxHugepage);
        }
        words
    }

    /// Gives the memory of whole pages back; they are zeros again.
    pub fn release(&mut self, range: Range<usize>) {
        assert!(range.start.is_multiple_of(PAGE_WORDS) && range.end.is_multiple_of(PAGE_WORDS));
        if !self.advise(range.clone(), Advice::LinuxDontNeed) {
            let end = range.end.min(self.len);
            self[range.start..end].fill(0);
        }
    }

    /// Puts the `n`-th stretch of [`HUGE_WORDS`], which was touched in small pages, into a huge one.
    pub fn gather(&mut self, n: usize) {
        let range = n * HUGE_WORDS..(n + 1) * HUGE_WORDS;
        let content = self[range.clone()].to_vec();
        // Without its small pages the stretch gets a huge one at the next touch, if there is one to be had.
        if self.advise(range.clone(), Advice::LinuxHugepage) {
            self.release(range.clone());
            self[range].copy_from_slice(&content);
        }
    }

    /// Takes the memory of all of the table now and keeps it in memory, whatever else the machine needs.
    ///
    /// # Errors
    /// There is not so much memory, or the process may not lock it.
    pub fn lock(&mut self) -> std::io::Result<()> {
        // Where it is filled from end to end anyway, huge pages cost nothing more.
        self.advise(0..self.len.next_multiple_of(PAGE_WORDS), Advice::LinuxHugepage);
        // SAFETY: the range is the table's own, in whole pages, and locking changes no content.
        unsafe { mlock(self.start.as_ptr().cast(), self.len * size_of::<u32>()) }?;
        self.locked = true;
        Ok(())
    }

    /// Its memory is like any other's again.
    pub fn unlock(&mut self) {
        // SAFETY: as above. What was never locked stays as it is.
        let _ = unsafe { munlock(self.start.as_ptr().cast(), self.len * size_of::<u32>()) };
        self.locked = false;
    }

    /// The table byte by byte.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words are the table's own and borrowed, and any byte of theirs is a valid one.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len * size_of::<u32>()) }
    }

    /// The same, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, the table is borrowed for this reference alone, and any bytes make a valid word.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len * size_of::<u32>()) }
    }

    /// Starts to fetch a word into the cache.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        if let Some(word) = self.get(at) {
            prefetch_line(word);
        }
    }

    /// Whether the kernel took the advice about a range of words: about the heap it is given none.
    fn advise(&self, range: Range<usize>, advice: Advice) -> bool {
        if let Memory::Heap(_) = self.memory {
            return false;
        }
        let bytes = range.len() * size_of::<u32>();
        assert!(range.end <= self.len.next_multiple_of(HUGE_WORDS));
        // SAFETY: the range lies in the mapping. Only `release`, which has the table for itself, gives advice that changes
        // content, and pages of zeros are valid words.
        unsafe { madvise(self.start.as_ptr().wrapping_add(range.start).cast(), bytes, advice) }.is_ok()
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if self.locked {
            // The heap gives the memory to others.
            self.unlock();
        }
        match self.memory {
            // SAFETY: this very range was mapped in `new`, and no reference outlives the table.
            Memory::Mapping(base, bytes) => drop(unsafe { munmap(base.as_ptr().cast(), bytes) }),
            // SAFETY: it was allocated in `small` with this layout, and no reference outlives the table.
            Memory::Heap(layout) => unsafe { dealloc(self.start.as_ptr().cast(), layout) },
        }
    }
}

impl Deref for Words {
    type Target = [u32];
    #[inline]
    fn deref(&self) -> &[u32] {
        // SAFETY: `len` words from `start` on are the table's own, readable, and were zeroed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Words {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above, and the table is borrowed for this reference alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Has every page of a table written once, so that it takes its memory now: the system gives pages of zeros none until then.
pub fn touch<T: Copy>(table: &mut [T]) {
    let step = (4096 / size_of::<T>().max(1)).max(1);
    for word in table.iter_mut().step_by(step) {
        // What is written is what stood there, which the compiler may not know.
        *word = std::hint::black_box(*word);
    }
    if let Some(last) = table.last_mut() {
        *last = std::hint::black_box(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_released_is_zero_and_what_is_gathered_stays() {
        let len = 2 * HUGE_WORDS + 5000;
        let mut words = Words::new(len);
        assert!(words.iter().all(|word| *word == 0));
        for at in 0..len {
            words[at] = at as u32 + 1;
        }
        words.release(PAGE_WORDS..3 * PAGE_WORDS);
        words.gather(0);
        words.gather(1);
        for at in 0..len {
            let released = (PAGE_WORDS..3 * PAGE_WORDS).contains(&at);
            assert_eq!(words[at], if released { 0 } else { at as u32 + 1 }, "{at}");
        }
        words.release(0..words.len().next_multiple_of(PAGE_WORDS));
        assert!(words.iter().all(|word| *word == 0));
    }

    #[test]
    fn what_is_locked_stays_and_may_be_released_and_gathered() {
        let mut words = Words::new(2 * HUGE_WORDS);
        words[7] = 1;
        words.lock().expect("memory that may be locked");
        assert_eq!(words[7], 1);
        words.gather(0);
        assert_eq!(words[7], 1);
        words.release(0..PAGE_WORDS);
        assert_eq!(words[7], 0);
        words.unlock();

        let before = locked_kib();
        let mut small = Words::new(PAGE_WORDS);
        small.fill(7);
        small.lock().expect("memory that may be locked");
        assert_eq!(locked_kib(), before + 4);
        small.release(0..PAGE_WORDS);
        assert!(small.iter().all(|word| *word == 0));
        drop(small);
        assert_eq!(locked_kib(), before, "what the heap has back is not locked");
    }

    /// Memory of this process that is locked. One test alone may change it.
    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line of locked memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    #[test]
    fn a_table_may_be_empty() {
        assert!(Words::new(0).is_empty() && Words::huge(0).is_empty());
    }

    #[test]
    fn a_small_table_is_like_a_large_one() {
        for len in [1, HEAP_BYTES / size_of::<u32>(), HEAP_BYTES / size_of::<u32>() + 1] {
            let mut words = Words::huge(len);
            assert!(words.len() == len && words.iter().all(|word| *word == 0));
            words.fill(7);
            words.release(0..len.next_multiple_of(PAGE_WORDS));
            assert!(words.iter().all(|word| *word == 0), "{len}");
        }
    }
}
