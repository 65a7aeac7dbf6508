//! One `io_uring` for everything that a device thread waits for: media commands and sockets.
//!
//! Each user of the ring registers as an *owner*; completions are kept apart by owner, so that a
//! file medium and the NBD connections of the same thread share one system call per round.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue};

/// A ring shared by the users of one thread.
pub type SharedRing = Rc<RefCell<Ring>>;

/// A user of the ring, from [`Ring::register`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u16);

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
pub const TOKEN_BITS: u32 = 48;

fn user_data(owner: Owner, token: u64) -> u64 {
    u64::from(owner.0) << TOKEN_BITS | token
}

/// The ring.
pub struct Ring {
    uring: IoUring,
    users: Vec<User>,
    /// Completions that no owner has taken yet.
    waiting: usize,
}

/// What the ring knows of one owner.
#[derive(Default)]
struct User {
    queue: VecDeque<Completion>,
    /// Entries whose last completion has not come yet.
    under_way: u32,
    /// Nobody takes its completions any more; the number is free again when nothing is under way.
    gone: bool,
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
            .setup_taskrun_flag()
            .setup_cqsize(entries * 4)
            .build(entries)
            .or_else(|_| IoUring::builder().setup_cqsize(entries * 4).build(entries))?;
        Ok(Rc::new(RefCell::new(Ring { uring, users: Vec::new(), waiting: 0 })))
    }

    /// Adds a user.
    ///
    /// # Panics
    /// When 65536 users are registered at once: far above any limit on open files.
    pub fn register(&mut self) -> Owner {
        let free = self.users.iter().position(|user| user.gone && user.under_way == 0);
        let number = free.unwrap_or(self.users.len());
        let owner = Owner(u16::try_from(number).expect("fewer users than file descriptors"));
        match free {
            Some(number) => self.users[number] = User::default(),
            None => self.users.push(User::default()),
        }
        owner
    }

    /// Removes a user; completions it did not take are dropped, also those still to come.
    /// What entries under way point to must stay valid all the same: wait for them first
    /// ([`Ring::under_way`]), or let each hold what it needs.
    pub fn unregister(&mut self, owner: Owner) {
        let user = &mut self.users[usize::from(owner.0)];
        self.waiting -= user.queue.len();
        user.queue.clear();
        user.gone = true;
    }

    /// How many entries of an owner the kernel is not done with, a multishot entry counting as one.
    pub fn under_way(&self, owner: Owner) -> u32 {
        self.users[usize::from(owner.0)].under_way
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
        let entry = entry.user_data(user_data(owner, token));
        // SAFETY: the caller's promise.
        while unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.submit()?;
        }
        self.users[usize::from(owner.0)].under_way += 1;
        Ok(())
    }

    /// Asks the kernel to end what `owner` pushed with `token`: it completes with `ECANCELED` if it had not completed before.
    /// The asking itself completes with `answer`.
    ///
    /// # Errors
    /// The kernel refused the system call that makes room.
    pub fn cancel(&mut self, owner: Owner, token: u64, answer: u64) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(user_data(owner, token)).build();
        // SAFETY: the entry points to nothing.
        unsafe { self.push(owner, answer, entry) }
    }

    /// Hands queued entries to the kernel and sorts what is done, never waiting.
    /// Without a system call when there is nothing to hand over and nothing to fetch.
    ///
    /// # Errors
    /// The kernel refused the system call.
    pub fn submit(&mut self) -> io::Result<()> {
        let queue = self.uring.submission();
        let idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
        drop(queue);
        if idle {
            self.reap();
            return Ok(());
        }
        self.enter(0, None)
    }

    /// Like [`Ring::submit`], then waits for at least one completion, or until `timeout`.
    /// Returns at once when a completion is waiting to be taken, by whichever owner.
    ///
    /// # Errors
    /// The kernel refused the system call.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.reap();
        let want = usize::from(self.waiting == 0);
        self.enter(want, timeout)
    }

    /// Like [`Ring::submit`], then waits until a completion of this owner is waiting to be taken.
    /// Returns at once when the owner has nothing under way.
    ///
    /// # Errors
    /// The kernel refused the system call.
    pub fn wait_for(&mut self, owner: Owner) -> io::Result<()> {
        self.submit()?;
        loop {
            let user = &self.users[usize::from(owner.0)];
            if !user.queue.is_empty() || user.under_way == 0 {
                return Ok(());
            }
            self.enter(1, None)?;
        }
    }

    /// The next completion of one owner.
    #[inline]
    pub fn next(&mut self, owner: Owner) -> Option<Completion> {
        let completion = self.users[usize::from(owner.0)].queue.pop_front();
        self.waiting -= usize::from(completion.is_some());
        completion
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
            let user = &mut self.users[owner as usize];
            user.under_way -= u32::from(!cqueue::more(entry.flags()));
            if !user.gone {
                user.queue.push_back(Completion { token, result: entry.result(), flags: entry.flags() });
                self.waiting += 1;
            }
        }
    }
}
