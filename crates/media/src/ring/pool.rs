//! The threads that carry out file operations where there is no `io_uring`.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::EventfdFlags;
use rustix::io::Errno;

use super::Entry;

/// Threads of one pool: more operations than these wait for their turn.
const MOST_THREADS: usize = 32;
/// They do nothing but system calls.
const STACK_BYTES: usize = 64 << 10;

/// What became of an operation.
#[derive(Clone, Copy)]
pub(super) struct Finished {
    pub data: u64,
    pub result: i32,
    pub more: bool,
}

/// A pool; its threads end after it, when they have done what they were given.
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    done: Mutex<Vec<Finished>>,
    /// Counts up when the first one is done that was not fetched.
    bell: OwnedFd,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

struct Job {
    data: u64,
    entry: Entry,
}

// SAFETY: what the entry points to stays valid until its completion is taken, and nobody else touches it meanwhile but as the
// kernel would allow it: the promise of whoever pushed it.
unsafe impl Send for Job {}

/// A panic of another thread leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(super) fn new() -> io::Result<Pool> {
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (queue, work, done) = (Mutex::default(), Condvar::new(), Mutex::default());
        Ok(Pool(Arc::new(Shared { queue, work, done, bell })))
    }

    /// Readable when [`Pool::fetch`] has something.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }

    /// Hands an operation to a thread.
    ///
    /// # Safety
    /// As for [`super::Ring::push`].
    pub(super) unsafe fn push(&self, data: u64, entry: Entry) -> io::Result<()> {
        let mut queue = lock(&self.0.queue);
        if queue.jobs.len() >= queue.idle && queue.threads < MOST_THREADS {
            let shared = Arc::clone(&self.0);
            let started = std::thread::Builder::new()
                .name("file I/O".into())
                .stack_size(STACK_BYTES)
                .spawn(move || shared.work());
            match started {
                Ok(_) => queue.threads += 1,
                // Those that are there do it.
                Err(_) if queue.threads > 0 => {}
                Err(error) => return Err(error),
            }
        }
        queue.jobs.push_back(Job { data, entry });
        drop(queue);
        self.0.work.notify_one();
        Ok(())
    }

    /// What was done since the last call.
    pub(super) fn fetch(&self) -> Vec<Finished> {
        // Before they are taken: one that comes later rings again.
        let _ = rustix::io::read(&self.0.bell, &mut [0; 8]);
        std::mem::take(&mut lock(&self.0.done))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.0.queue).closed = true;
        self.0.work.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        while let Some(Job { data, entry }) = self.next() {
            // SAFETY: the promise of whoever pushed it.
            let result = match unsafe { carry_out(entry) } {
                Ok(moved) => i32::try_from(moved).unwrap_or(i32::MAX),
                Err(error) => -error.raw_os_error(),
            };
            let mut done = lock(&self.done);
            done.push(Finished { data, result, more: false });
            if done.len() == 1 {
                // It fails only when the counter is full, and then it is readable anyway.
                let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

/// # Safety
/// As for [`super::Ring::push`].
unsafe fn carry_out(entry: Entry) -> Result<usize, Errno> {
    // SAFETY: the descriptor stays open until the completion is taken.
    let borrowed = |fd: RawFd| unsafe { BorrowedFd::borrow_raw(fd) };
    match entry {
        Entry::Read { fd, address, bytes, position } => {
            // SAFETY: the buffer is ours until the completion is taken.
            let buffer = unsafe { std::slice::from_raw_parts_mut(address.cast::<MaybeUninit<u8>>(), bytes as usize) };
            rustix::io::pread(borrowed(fd), buffer, position).map(|(read, _)| read.len())
        }
        Entry::Write { fd, address, bytes, position } => {
            // SAFETY: these bytes are initialised and stay as they are until the completion is taken.
            let buffer = unsafe { std::slice::from_raw_parts(address, bytes as usize) };
            rustix::io::pwrite(borrowed(fd), buffer, position)
        }
        Entry::SyncData { fd } => rustix::fs::fdatasync(borrowed(fd)).map(|()| 0),
        Entry::Allocate { fd, position, bytes, mode } => {
            rustix::fs::fallocate(borrowed(fd), mode, position, bytes).map(|()| 0)
        }
        Entry::Receive { .. } | Entry::Poll { .. } | Entry::Timeout(_) => Err(Errno::INVAL),
    }
}
