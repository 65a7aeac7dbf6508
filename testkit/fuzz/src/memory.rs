//! The allocator of this crate's programs: the system's, with an eye on what hostile input makes us ask of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// One allocation larger than this is a finding: a payload of 32 MiB is received into twice its size and a header.
const LARGEST: usize = 80 << 20;
/// More than this in use at a time, beyond what was in use when the run began, is a finding.
const MOST: isize = 512 << 20;

static IN_USE: AtomicIsize = AtomicIsize::new(0);
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
static LARGEST_ALLOWED: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Counts, and ends the program when a limit is passed: to panic is forbidden here.
pub struct Counting;

fn count(layout: Layout) {
    let size = layout.size();
    let in_use = IN_USE.fetch_add(size as isize, Relaxed) + size as isize;
    if size > LARGEST_ALLOWED.load(Relaxed) || in_use > LIMIT.load(Relaxed) {
        disarm();
        crate::runner::give_up(&format!("an allocation of {size} bytes, with {in_use} in use"));
    }
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// From now on no single allocation may be larger than it should be.
pub fn watch() {
    LARGEST_ALLOWED.store(LARGEST, Relaxed);
}

/// Limits what is in use, from what is in use now.
pub fn arm() {
    LIMIT.store(IN_USE.load(Relaxed) + MOST, Relaxed);
}

/// Lifts the limits, for one that was passed: saying so takes memory too.
fn disarm() {
    LIMIT.store(isize::MAX, Relaxed);
    LARGEST_ALLOWED.store(usize::MAX, Relaxed);
}

/// Bytes of this process in memory.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kib << 10
}
