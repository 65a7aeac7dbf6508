//! Page buffers: aligned memory that the kernel may read while its owner fills another part.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ops::Range;
use std::ptr::NonNull;
use std::rc::Rc;

use crate::{arena, staged};

/// Alignment of every buffer: what direct I/O asks for on any disk, bytes.
pub const ALIGN: usize = 4096;

/// A shared page buffer. The medium holds one of the references while a command uses it.
pub type Page = Rc<PageBuf>;

/// Aligned memory of a fixed length, zeroed at first.
///
/// Not `Sync`: a module and its buffers live on one thread.
pub struct PageBuf {
    start: NonNull<u8>,
    len: usize,
    home: Home,
    // Keeps the type `!Sync` also if the pointer should ever be wrapped.
    _single_thread: Cell<()>,
}

/// Where a buffer's memory goes back to.
enum Home {
    Allocator,
    Arena(Rc<arena::Shared>),
    Stage(Rc<staged::Shared>),
}

impl PageBuf {
    /// A new buffer.
    pub fn new(len: usize) -> Page {
        assert!(len > 0);
        let layout = Layout::from_size_align(len, ALIGN).expect("a buffer's length fits isize");
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Rc::new(PageBuf { start, len, home: Home::Allocator, _single_thread: Cell::new(()) })
    }

    /// A buffer in an arena's memory: `len` initialised bytes at `start` that nobody else uses.
    pub(crate) fn from_arena(start: NonNull<u8>, len: usize, arena: Rc<arena::Shared>) -> Page {
        Rc::new(PageBuf { start, len, home: Home::Arena(arena), _single_thread: Cell::new(()) })
    }

    /// The same in memory that outlives the process.
    pub(crate) fn from_stage(start: NonNull<u8>, len: usize, stage: Rc<staged::Shared>) -> Page {
        Rc::new(PageBuf { start, len, home: Home::Stage(stage), _single_thread: Cell::new(()) })
    }

    /// Its length, bytes.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where it begins, for the kernel.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Some of its bytes.
    ///
    /// # Panics
    /// When the range is not inside the buffer.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: inside the allocation, which is initialised; writers promise in `bytes_mut` and
        // in `Media` that nobody changes bytes that are lent out.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(range.start), range.len()) }
    }

    /// Some of its bytes, to fill.
    ///
    /// # Safety
    /// While the returned slice lives nobody else may read or write these bytes: no other slice of them, and
    /// no media command that covers them.
    ///
    /// # Panics
    /// When the range is not inside the buffer.
    #[allow(clippy::mut_from_ref)] // the point of the type; see the contract above
    pub unsafe fn bytes_mut(&self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: inside the allocation; the caller promises that nobody else uses these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(range.start), range.len()) }
    }
}

impl Drop for PageBuf {
    fn drop(&mut self) {
        match &self.home {
            Home::Allocator => {}
            Home::Arena(arena) => return arena.give_back(self.start),
            Home::Stage(stage) => return stage.give_back(self.start),
        }
        let layout = Layout::from_size_align(self.len, ALIGN).expect("the layout it was made with");
        // SAFETY: without an arena it was allocated in `new`, with this very layout.
        unsafe { dealloc(self.start.as_ptr(), layout) }
    }
}

impl std::fmt::Debug for PageBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PageBuf({} bytes)", self.len)
    }
}
