//! A client on its way from the handshake to its device's thread.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::request::Limits;
use super::transport::Transport;
use crate::seats::Seat;

/// What the worker is told when a client comes out of the handshake.
pub struct NewConnection {
    /// The socket.
    pub transport: Transport,
    /// What its requests are measured against.
    pub limits: Limits,
    /// Who it is, for people.
    pub peer: String,
    /// The export it chose.
    pub export: String,
    /// Given back when the connection ends.
    pub ticket: Ticket,
    /// What makes the device wait for it, from [`crate::WorkerHandle::reserve`].
    pub seat: Seat,
}

/// Counts a connection for as long as it lives.
pub struct Ticket {
    count: Arc<AtomicUsize>,
    /// Dropped with the connection, for one who waits for that.
    _gone: Option<std::sync::mpsc::Sender<()>>,
}

impl Ticket {
    /// Counts one more.
    pub fn new(count: &Arc<AtomicUsize>) -> Ticket {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ticket { count: Arc::clone(count), _gone: None }
    }

    /// Lets somebody wait for the connection's end: the channel's other end then hangs up.
    pub fn until_dropped(mut self, gone: std::sync::mpsc::Sender<()>) -> Ticket {
        self._gone = Some(gone);
        self
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.count.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}
