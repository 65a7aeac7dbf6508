//! The bells of virtual machines: eventfds, which their guests write to when there is something to do.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use media::ring::Entry;
use rustix::event::PollFlags;

use super::{CANCELLED, KICKED, KIND_BITS, Worker};
use crate::vhost;

/// A bell that the ring listens to.
pub(super) struct Kick {
    connection: usize,
    /// Open as long as the kernel listens.
    fd: Arc<OwnedFd>,
    /// Somebody still wants to hear it.
    wanted: bool,
}

impl Worker {
    /// Does something with the session of a virtual machine's disk, then listens to the bells that its queues have now. Nothing
    /// where that session is gone.
    pub(crate) fn with_vhost<R>(&mut self, id: u64, call: impl FnOnce(&mut vhost::Session) -> R) -> Option<R> {
        let (key, session) =
            self.connections.iter_mut().find_map(|(key, one)| one.vhost(id).map(|session| (key, session)))?;
        let result = call(session);
        if let Err(error) = self.listen_to_kicks(key)
            && let Some(connection) = self.connections.get_mut(key)
        {
            connection.link.break_off(&error.to_string());
        }
        self.make_ready(key);
        Some(result)
    }

    /// The front end of a virtual machine is gone.
    pub(crate) fn vhost_gone(&mut self, id: u64) {
        let Some(key) = self.connections.iter_mut().find_map(|(key, one)| one.vhost(id).map(|_| key)) else { return };
        if let Some(connection) = self.connections.get_mut(key) {
            connection.link.break_off("its front end is gone");
        }
        self.make_ready(key);
    }

    fn listen_to_kicks(&mut self, key: usize) -> io::Result<()> {
        let Some((rings, unheard)) = self.connections.get_mut(key).and_then(|connection| connection.queues()) else {
            return Ok(());
        };
        let mut unheard = std::mem::take(unheard);
        let mut fresh = Vec::new();
        for ring in rings {
            match &ring.kick {
                Some(fd) if ring.is_running() && ring.armed.is_none() => {
                    let kick = self.kicks.insert(Kick { connection: key, fd: Arc::clone(fd), wanted: true });
                    ring.armed = Some(kick);
                    fresh.push(kick);
                }
                None => unheard.extend(ring.armed.take()),
                Some(_) => {}
            }
        }
        unheard.into_iter().try_for_each(|kick| self.silence(kick))?;
        fresh.into_iter().try_for_each(|kick| self.listen(kick))
    }

    fn listen(&mut self, kick: usize) -> io::Result<()> {
        let Some(Kick { fd, .. }) = self.kicks.get(kick) else { return Ok(()) };
        // Once for all its rings: nobody reads the counter, so each write to it, and nothing else, makes a completion.
        let entry = Entry::Poll { fd: fd.as_raw_fd(), events: PollFlags::IN, multi: true };
        // SAFETY: the entry points to nothing; the descriptor stays open until the last completion is taken.
        unsafe { self.ring.borrow_mut().push(self.owner, KICKED | (kick as u64) << KIND_BITS, entry) }
    }

    fn silence(&mut self, kick: usize) -> io::Result<()> {
        let Some(bell) = self.kicks.get_mut(kick) else { return Ok(()) };
        bell.wanted = false;
        self.ring.borrow_mut().cancel(self.owner, KICKED | (kick as u64) << KIND_BITS, CANCELLED)
    }

    /// A bell rang, or the kernel listens to it no more.
    pub(super) fn kicked(&mut self, kick: usize, result: i32, more: bool) -> io::Result<()> {
        let Some(Kick { connection, wanted, .. }) = self.kicks.get(kick) else { return Ok(()) };
        let (connection, wanted, over) = (*connection, *wanted, !more);
        if wanted {
            self.make_ready(connection);
        }
        if !over {
            return Ok(());
        }
        if wanted && result >= 0 {
            return self.listen(kick);
        }
        self.kicks.remove(kick);
        if wanted && let Some(connection) = self.connections.get_mut(connection) {
            connection.link.break_off("its kicks cannot be listened to");
        }
        Ok(())
    }

    /// A connection is forgotten: the next one of its number must not hear its bells.
    pub(super) fn hear_no_more(&mut self, connection: usize) {
        let its = self.kicks.iter().filter(|(_, kick)| kick.connection == connection && kick.wanted);
        for kick in its.map(|(kick, _)| kick).collect::<Vec<_>>() {
            // Where the kernel takes nothing any more the thread is about to end.
            let _ = self.silence(kick);
        }
    }
}
