//! One `io_uring` for everything that a device thread waits for: media commands and sockets.
//!
//! Each user of the ring registers as an *owner*; completions are kept apart by owner, so that a
//! file medium and the NBD connections of the same thread share one system call per round.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use io_uring::{IoUring, squeue};

/// A ring shared by the users of one thread.
pub type SharedRing = Rc<RefCell<Ring>>;

/// A user of the ring, from [`Ring::register`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u8);

/// One completion: the token it was pushed with, and the kernel's result (negative errno on error).
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// What the owner pushed it with.
    pub token: u64,
    /// The kernel's result.
    pub result: i32,
    /// `IORING_CQE_F_*`.
    pub flags: u32,
}

/// Bits of `user_data` left to an owner's token.
const TOKEN_BITS: u32 = 56;

/// The ring.
pub struct Ring {
    uring: IoUring,
    queues: Vec<VecDeque<Completion>>,
}

impl Ring {
    /// A ring with room for `entries` submissions between two system calls.
    ///
    /// # Errors
    /// The kernel has no `io_uring`, or a container forbids it.
    pub fn new(entries: u32) -> io::Result<SharedRing> {
        // One thread submits and reaps, so the kernel can leave completion work to our own
        // system call (Linux 6.1 and later); older kernels get a plain ring.
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(entries * 4)
            .build(entries)
            .or_else(|_| IoUring::builder().setup_cqsize(entries * 4).build(entries))?;
        Ok(Rc::new(RefCell::new(Ring { uring, queues: Vec::new() })))
    }

    /// Adds a user.
    pub fn register(&mut self) -> Owner {
        let owner = Owner(u8::try_from(self.queues.len()).expect("a thread has few ring users"));
        self.queues.push(VecDeque::new());
        owner
    }

    /// Queues an entry; it goes to the kernel with the next [`Ring::submit`] or [`Ring::wait`],
    /// or at once when the submission queue is full.
    ///
    /// # Safety
    /// Everything the entry points to stays valid and obeys the entry's needs until its completion
    /// came out of [`Ring::next`].
    ///
    /// # Errors
    /// The kernel refused the system call that makes room.
    pub unsafe fn push(&mut self, owner: Owner, token: u64, entry: squeue::Entry) -> io::Result<()> {
        debug_assert!(token < 1 << TOKEN_BITS);
        let entry = entry.user_data(u64::from(owner.0) << TOKEN_BITS | token);
        // SAFETY: the caller's promise.
        while unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Hands queued entries to the kernel and sorts what is done, never waiting.
    ///
    /// # Errors
    /// The kernel refused the system call.
    pub fn submit(&mut self) -> io::Result<()> {
        self.enter(0, None)
    }

    /// Like [`Ring::submit`], then waits for at least one completion, or until `timeout`.
    /// Returns at once when a completion is waiting to be taken.
    ///
    /// # Errors
    /// The kernel refused the system call.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.reap();
        let want = usize::from(self.queues.iter().all(VecDeque::is_empty));
        self.enter(want, timeout)
    }

    /// The next completion of one owner.
    pub fn next(&mut self, owner: Owner) -> Option<Completion> {
        self.queues[owner.0 as usize].pop_front()
    }

    fn enter(&mut self, want: usize, timeout: Option<Duration>) -> io::Result<()> {
        let done = match timeout {
            Some(timeout) if want > 0 => {
                let spec = io_uring::types::Timespec::from(timeout);
                let args = io_uring::types::SubmitArgs::new().timespec(&spec);
                self.uring.submitter().submit_with_args(want, &args)
            }
            _ => self.uring.submit_and_wait(want),
        };
        match done {
            Ok(_) => {}
            // Nothing came in time, a signal came first, or completions must be taken first.
            Err(error)
                if matches!(
                    error.raw_os_error().map(rustix::io::Errno::from_raw_os_error),
                    Some(
                        rustix::io::Errno::TIME
                            | rustix::io::Errno::INTR
                            | rustix::io::Errno::BUSY
                            | rustix::io::Errno::AGAIN
                    )
                ) => {}
            Err(error) => return Err(error),
        }
        self.reap();
        Ok(())
    }

    fn reap(&mut self) {
        for entry in self.uring.completion() {
            let (owner, token) = (entry.user_data() >> TOKEN_BITS, entry.user_data() & ((1 << TOKEN_BITS) - 1));
            self.queues[owner as usize].push_back(Completion { token, result: entry.result(), flags: entry.flags() });
        }
    }
}
