//! How other threads reach a device's thread: a bounded channel, and a bell that the thread's ring listens to.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

use rustix::event::{EventfdFlags, eventfd};

/// Messages waiting at most; a sender beyond that waits.
const CAPACITY: usize = 64;

/// The receiving thread is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// The sending end. When its last clone goes, the receiver is told.
pub struct Sender<T>(Arc<Inner<T>>);

struct Inner<T> {
    channel: Option<SyncSender<T>>,
    bell: Arc<OwnedFd>,
}

/// The receiving end.
pub struct Mailbox<T> {
    channel: Receiver<T>,
    bell: Arc<OwnedFd>,
}

/// A mailbox and its first sender.
///
/// # Errors
/// The operating system has no descriptor left.
pub fn mailbox<T>() -> std::io::Result<(Sender<T>, Mailbox<T>)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, channel) = sync_channel(CAPACITY);
    let inner = Inner { channel: Some(sender), bell: Arc::clone(&bell) };
    Ok((Sender(Arc::new(inner)), Mailbox { channel, bell }))
}

fn ring(bell: &OwnedFd) {
    // It fails only when the counter is full, and then the bell rings already.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Sender<T> {
    /// Sends, waiting for room.
    ///
    /// # Errors
    /// Nobody will ever receive it.
    pub fn send(&self, message: T) -> Result<(), Closed> {
        let channel = self.0.channel.as_ref().ok_or(Closed)?;
        channel.send(message).map_err(|_| Closed)?;
        ring(&self.0.bell);
        Ok(())
    }

    /// Sends without waiting, and gives the message back where there is no room.
    ///
    /// # Errors
    /// Nobody will ever receive it.
    pub fn try_send(&self, message: T) -> Result<Option<T>, Closed> {
        let channel = self.0.channel.as_ref().ok_or(Closed)?;
        match channel.try_send(message) {
            Ok(()) => {
                ring(&self.0.bell);
                Ok(None)
            }
            Err(TrySendError::Full(message)) => Ok(Some(message)),
            Err(TrySendError::Disconnected(_)) => Err(Closed),
        }
    }
}

impl<T> Sender<T> {
    /// Rings the bell without a message: what the receiver is to look at lies elsewhere.
    pub fn ring(&self) {
        ring(&self.0.bell);
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        self.channel = None;
        ring(&self.bell);
    }
}

impl<T> Mailbox<T> {
    /// Readable when there is something to receive.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Silences the bell; receive everything afterwards.
    pub fn answer_bell(&self) {
        // It has nothing to read when it did not ring.
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
    }

    /// The next message, never waiting. `None` when there is none now.
    ///
    /// # Errors
    /// Every sender is gone.
    pub fn receive(&self) -> Result<Option<T>, Closed> {
        match self.channel.try_recv() {
            Ok(message) => Ok(Some(message)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Closed),
        }
    }
}
