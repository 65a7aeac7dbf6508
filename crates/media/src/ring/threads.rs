//! A ring without `io_uring`: sockets by `poll`, files by a pool of threads, timers by the wait.
//!
//! It is slower: each file operation changes threads twice, each socket is looked at in each round.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Entry;
use super::pool::{Finished, Pool};

/// The ring's parts.
pub(super) struct Threads {
    pool: Pool,
    /// Descriptors that are listened to again and again, edge by edge: nobody reads their counters.
    edges: OwnedFd,
    listening: Vec<(u64, RawFd)>,
    /// Sockets.
    waits: Vec<Wait>,
    timers: Vec<(Instant, u64)>,
    done: Vec<Finished>,
}

/// A socket that is waited for.
struct Wait {
    data: u64,
    fd: RawFd,
    events: PollFlags,
    receive: Option<Receive>,
}

/// What is to be received there.
struct Receive {
    address: *mut u8,
    bytes: usize,
    received: usize,
    whole: bool,
}

impl Threads {
    pub(super) fn new() -> io::Result<Threads> {
        let (pool, edges) = (Pool::new()?, epoll::create(CreateFlags::CLOEXEC)?);
        Ok(Threads { pool, edges, listening: Vec::new(), waits: Vec::new(), timers: Vec::new(), done: Vec::new() })
    }

    fn finish(&mut self, data: u64, result: Result<usize, Errno>) {
        let result = result.map_or_else(|error| -error.raw_os_error(), |count| count as i32);
        self.done.push(Finished { data, result, more: false });
    }

    /// Begins an operation.
    ///
    /// # Safety
    /// As for [`super::Ring::push`].
    pub(super) unsafe fn push(&mut self, data: u64, entry: Entry) {
        match entry {
            Entry::Timeout(timer) => self.timers.push((Instant::now() + timer.after, data)),
            Entry::Receive { fd, address, bytes, whole } => {
                let receive = Some(Receive { address, bytes: bytes as usize, received: 0, whole });
                self.waits.push(Wait { data, fd, events: PollFlags::IN, receive });
            }
            Entry::Poll { fd, events, multi: false } => self.waits.push(Wait { data, fd, events, receive: None }),
            Entry::Poll { fd, events, multi: true } => {
                // SAFETY: the descriptor is open: the caller's promise.
                let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
                let events = EventFlags::from_bits_retain(u32::from(events.bits())) | EventFlags::ET;
                match epoll::add(&self.edges, borrowed, EventData::new_u64(data), events) {
                    Ok(()) => self.listening.push((data, fd)),
                    Err(error) => self.finish(data, Err(error)),
                }
            }
            file => {
                // SAFETY: the caller's promise.
                if let Err(error) = unsafe { self.pool.push(data, file) } {
                    self.finish(data, Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)));
                }
            }
        }
    }

    /// Ends what was pushed with `target`, unless a thread has it.
    pub(super) fn cancel(&mut self, target: u64, answer: u64) {
        let found = if let Some(at) = self.waits.iter().position(|wait| wait.data == target) {
            let received = self.waits.swap_remove(at).receive.map_or(0, |receive| receive.received);
            self.finish(target, if received > 0 { Ok(received) } else { Err(Errno::CANCELED) });
            true
        } else if let Some(at) = self.listening.iter().position(|(data, _)| *data == target) {
            let (_, fd) = self.listening.swap_remove(at);
            // SAFETY: the descriptor stays open until the completion that follows is taken.
            let _ = epoll::delete(&self.edges, unsafe { BorrowedFd::borrow_raw(fd) });
            self.finish(target, Err(Errno::CANCELED));
            true
        } else if let Some(at) = self.timers.iter().position(|(_, data)| *data == target) {
            self.timers.swap_remove(at);
            self.finish(target, Err(Errno::CANCELED));
            true
        } else {
            false
        };
        self.finish(answer, if found { Ok(0) } else { Err(Errno::NOENT) });
    }

    /// Looks at everything; waits first, for no longer than `timeout`, if it should and nothing is done.
    pub(super) fn enter(&mut self, wait: bool, timeout: Option<Duration>) -> io::Result<()> {
        let now = Instant::now();
        let next = self.timers.iter().map(|(at, _)| at.saturating_duration_since(now)).min();
        let limit = match wait && self.done.is_empty() {
            true => timeout.into_iter().chain(next).min(),
            false => Some(Duration::ZERO),
        };
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut looked = vec![
            PollFd::from_borrowed_fd(self.pool.bell(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.edges.as_fd(), PollFlags::IN),
        ];
        // SAFETY: the descriptors stay open until their completions are taken.
        looked.extend(
            self.waits
                .iter()
                .map(|wait| unsafe { PollFd::from_borrowed_fd(BorrowedFd::borrow_raw(wait.fd), wait.events) }),
        );
        rustix::event::poll(&mut looked, limit.as_ref())?;
        let found: Vec<PollFlags> = looked.iter().map(PollFd::revents).collect();
        if !found[0].is_empty() {
            self.done.extend(self.pool.fetch());
        }
        if !found[1].is_empty() {
            self.take_edges()?;
        }
        self.take_waits(&found[2..]);
        self.take_timers();
        Ok(())
    }

    fn take_edges(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(64);
        epoll::wait(&self.edges, rustix::buffer::spare_capacity(&mut events), Some(&Timespec::default()))?;
        for event in events {
            let (data, flags) = (event.data.u64(), event.flags);
            self.done.push(Finished { data, result: flags.bits() as i32, more: true });
        }
        Ok(())
    }

    /// Backwards, so that those which are still to be looked at keep their places.
    fn take_waits(&mut self, found: &[PollFlags]) {
        for (at, found) in found.iter().enumerate().rev().filter(|(_, found)| !found.is_empty()) {
            let wait = &mut self.waits[at];
            let result = match &mut wait.receive {
                None => Some(Ok(usize::from(found.bits()))),
                // SAFETY: the descriptor is open and the buffer ours until the completion is taken.
                Some(receive) => unsafe { receive.go_on(wait.fd) },
            };
            if let Some(result) = result {
                let data = self.waits.swap_remove(at).data;
                self.finish(data, result);
            }
        }
    }

    fn take_timers(&mut self) {
        let now = Instant::now();
        let done = &mut self.done;
        self.timers.retain(|(at, data)| {
            let over = *at <= now;
            if over {
                done.push(Finished { data: *data, result: -Errno::TIME.raw_os_error(), more: false });
            }
            !over
        });
    }

    /// What was done since the last call.
    pub(super) fn done(&mut self) -> impl Iterator<Item = Finished> {
        self.done.drain(..)
    }
}

impl Receive {
    /// Takes what is there; the result if that is enough, or all there will be.
    ///
    /// # Safety
    /// The descriptor is an open one, and the buffer may be written.
    unsafe fn go_on(&mut self, fd: RawFd) -> Option<Result<usize, Errno>> {
        loop {
            let left = self.bytes - self.received;
            // SAFETY: the caller's promise; `received` is never more than `bytes`.
            let (socket, buffer) = unsafe {
                let start = self.address.add(self.received).cast::<MaybeUninit<u8>>();
                (BorrowedFd::borrow_raw(fd), std::slice::from_raw_parts_mut(start, left))
            };
            match rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Some(Ok(self.received)),
                Ok((_, count)) => {
                    self.received += count;
                    if !self.whole || self.received == self.bytes {
                        return Some(Ok(self.received));
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(_) if self.received > 0 => return Some(Ok(self.received)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
