//! One ring for everything that a device thread waits for: media commands and sockets.
//!
//! Each user of the ring registers as an *owner*; completions are kept apart by owner, so that a
//! file medium and the NBD connections of the same thread share one system call per round.
//!
//! The ring is the kernel's `io_uring`. Where that is refused, as in many containers, [`threads`]
//! carries out the same operations with `poll` and a few threads.

mod entry;
pub mod mailbox;
mod pool;
mod threads;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;

pub use entry::{Entry, Timer};
use threads::Threads;

/// A ring shared by the users of one thread.
pub type SharedRing = Rc<RefCell<Ring>>;

/// A user of the ring, from [`Ring::register`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u16);

/// One completion.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The token that the owner pushed the operation with.
    pub token: u64,
    /// What the system call would have given, or a negative errno.
    pub result: i32,
    /// The operation goes on, and completes again.
    pub more: bool,
}

/// What carries out a ring's operations.
enum Engine {
    Uring(IoUring),
    Threads(Threads),
}

/// Chooses the ring of threads where its value is `threads`, for tests and comparisons.
const CHOICE: &str = "OPENVSL_IO";

/// Whether a filter of system calls holds for this process.
fn is_filtered() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.lines().any(|line| line == "Seccomp:\t2"))
}

/// Why the rings of this process do without `io_uring`, if they do. Asks the kernel once.
pub fn without_io_uring() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        if std::env::var_os(CHOICE).is_some_and(|choice| choice == "threads") {
            return Some(format!("{CHOICE}=threads"));
        }
        let error = IoUring::new(1).err()?;
        match Errno::from_io_error(&error)? {
            // Some container runtimes' filters answer as if the kernel did not have it.
            Errno::NOSYS if !is_filtered() => Some("the kernel has no io_uring".into()),
            Errno::NOSYS | Errno::PERM | Errno::ACCESS => {
                let off = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
                let why = if off.is_ok_and(|off| off.trim() != "0") {
                    "kernel.io_uring_disabled"
                } else {
                    "a system call filter, as container runtimes set one"
                };
                Some(format!("io_uring is forbidden by {why}"))
            }
            // Too little memory or too few descriptors stop an attach, and its message says so.
            _ => None,
        }
    };
    REASON.get_or_init(find).as_deref()
}

/// Bits of `user_data` left to an owner's token.
pub const TOKEN_BITS: u32 = 48;

fn user_data(owner: Owner, token: u64) -> u64 {
    u64::from(owner.0) << TOKEN_BITS | token
}

/// The ring.
pub struct Ring {
    engine: Engine,
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
    /// The operating system has no memory or descriptors for it.
    pub fn new(entries: u32) -> io::Result<SharedRing> {
        match without_io_uring() {
            Some(_) => Ring::of_threads(),
            None => Ok(Ring::on(Engine::Uring(Ring::uring(entries)?))),
        }
    }

    /// A ring that does without `io_uring`.
    ///
    /// # Errors
    /// The operating system has no descriptors for it.
    pub fn of_threads() -> io::Result<SharedRing> {
        Ok(Ring::on(Engine::Threads(Threads::new()?)))
    }

    fn on(engine: Engine) -> SharedRing {
        Rc::new(RefCell::new(Ring { engine, users: Vec::new(), waiting: 0 }))
    }

    fn uring(entries: u32) -> io::Result<IoUring> {
        // One thread submits and reaps, so the kernel can leave completion work to our own
        // system call (Linux 6.1 and later); older kernels get a plain ring.
        IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(entries * 4)
            .build(entries)
            .or_else(|_| IoUring::builder().setup_cqsize(entries * 4).build(entries))
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
    /// Everything the entry points to, and its descriptor, stays valid and obeys the entry's
    /// needs until its last completion came out of [`Ring::next`].
    ///
    /// # Errors
    /// The kernel refused the system call that makes room.
    #[inline]
    pub unsafe fn push(&mut self, owner: Owner, token: u64, entry: Entry) -> io::Result<()> {
        debug_assert!(token < 1 << TOKEN_BITS);
        let data = user_data(owner, token);
        match &mut self.engine {
            Engine::Uring(_) => self.push_sqe(&entry.sqe().user_data(data))?,
            // SAFETY: the caller's promise.
            Engine::Threads(threads) => unsafe { threads.push(data, entry) },
        }
        self.users[usize::from(owner.0)].under_way += 1;
        Ok(())
    }

    fn push_sqe(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            let Engine::Uring(uring) = &mut self.engine else { return Ok(()) };
            // SAFETY: the promise of `push`'s caller; a cancellation points to nothing.
            if unsafe { uring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.submit()?;
        }
    }

    /// Asks the kernel to end what `owner` pushed with `token`: it completes with `ECANCELED` if it had not completed before.
    /// The asking itself completes with `answer`.
    ///
    /// # Errors
    /// The kernel refused the system call that makes room.
    pub fn cancel(&mut self, owner: Owner, token: u64, answer: u64) -> io::Result<()> {
        let (target, data) = (user_data(owner, token), user_data(owner, answer));
        match &mut self.engine {
            Engine::Uring(_) => self.push_sqe(&opcode::AsyncCancel::new(target).build().user_data(data))?,
            Engine::Threads(threads) => threads.cancel(target, data),
        }
        self.users[usize::from(owner.0)].under_way += 1;
        Ok(())
    }

    /// Hands queued entries to the kernel and sorts what is done, never waiting.
    /// Without a system call when there is nothing to hand over and nothing to fetch.
    ///
    /// # Errors
    /// The kernel refused the system call.
    pub fn submit(&mut self) -> io::Result<()> {
        if let Engine::Uring(uring) = &mut self.engine {
            let queue = uring.submission();
            let idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
            drop(queue);
            if idle {
                self.reap();
                return Ok(());
            }
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
        let done = match (&mut self.engine, timeout) {
            (Engine::Threads(threads), _) => threads.enter(want > 0, timeout),
            (Engine::Uring(uring), Some(timeout)) if want > 0 => {
                let spec = io_uring::types::Timespec::from(timeout);
                let args = io_uring::types::SubmitArgs::new().timespec(&spec);
                uring.submitter().submit_with_args(want, &args).map(drop)
            }
            (Engine::Uring(uring), _) => uring.submit_and_wait(want).map(drop),
        };
        match done {
            Ok(()) => {}
            // Nothing came in time, a signal came first, or completions must be taken first.
            Err(error)
                if matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN)
                ) => {}
            Err(error) => return Err(error),
        }
        self.reap();
        Ok(())
    }

    fn reap(&mut self) {
        let Ring { engine, users, waiting } = self;
        let mut sort = |data: u64, result: i32, more: bool| {
            let (owner, token) = (data >> TOKEN_BITS, data & ((1 << TOKEN_BITS) - 1));
            let user = &mut users[owner as usize];
            user.under_way -= u32::from(!more);
            if !user.gone {
                user.queue.push_back(Completion { token, result, more });
                *waiting += 1;
            }
        };
        match engine {
            Engine::Uring(uring) => {
                uring.completion().for_each(|it| sort(it.user_data(), it.result(), cqueue::more(it.flags())));
            }
            Engine::Threads(threads) => threads.done().for_each(|it| sort(it.data, it.result, it.more)),
        }
    }
}
