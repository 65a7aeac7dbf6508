//! Accepts clients of every protocol and gives each handshake a thread and a deadline, because a client may be slow or hostile
//! there.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{Shutdown, shutdown};

use crate::clients::{Clients, Ticket};
use crate::listen::{Address, Listener};

/// How many strangers a server bears.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Time for a whole handshake.
    pub handshake_timeout: Duration,
    /// Handshakes at a time; beyond that the oldest is given up.
    pub max_handshakes: usize,
    /// Connections at a time, over all protocols; beyond that new ones are closed.
    pub max_connections: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { handshake_timeout: Duration::from_secs(10), max_handshakes: 64, max_connections: 1024 }
    }
}

/// A client that was accepted and has said nothing yet.
pub struct Stranger {
    /// Its socket.
    pub fd: OwnedFd,
    /// Where it comes from, for people.
    pub peer: String,
    /// Its part in what clients may hold.
    pub ticket: Ticket,
}

/// Leads one client through its handshake and hands it on.
pub trait Handshake: Send + Sync + 'static {
    /// Runs on a thread of its own. [`Waiting::done`] is called when the handshake is over and the connection goes on.
    fn handshake(&self, stranger: Stranger, waiting: &Waiting);
}

/// Accepts for one protocol. Dropping it stops accepting and ends handshakes; clients that are connected stay with their device.
pub struct Acceptor<H> {
    shared: Arc<Shared<H>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared<H> {
    protocol: &'static str,
    handshake: Arc<H>,
    bounds: Bounds,
    clients: Arc<Clients>,
    waiting: Arc<Handshakes>,
    /// Readable once the server closes.
    stop: OwnedFd,
}

/// Handshakes under way, the oldest first.
#[derive(Default)]
struct Handshakes {
    sockets: Mutex<VecDeque<(u64, OwnedFd)>>,
    next: AtomicU64,
}

/// One client's place among the handshakes.
pub struct Waiting {
    handshakes: Arc<Handshakes>,
    number: u64,
}

impl Waiting {
    /// The handshake is over: from here on the client makes room for nobody.
    pub fn done(&self) {
        lock(&self.handshakes.sockets).retain(|(other, _)| *other != self.number);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.done();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics half-way through a change of what these guard.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<H: Handshake> Acceptor<H> {
    /// Without listeners. `protocol` names its threads.
    ///
    /// # Errors
    /// The operating system has no descriptor left.
    pub fn new(protocol: &'static str, handshake: Arc<H>, bounds: Bounds, clients: Arc<Clients>) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Shared { protocol, handshake, bounds, clients, waiting: Arc::default(), stop };
        Ok(Acceptor { shared: Arc::new(shared), threads: Mutex::default() })
    }

    /// Accepts clients from a listener, on a thread of its own.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn listen(&self, listener: Listener) -> io::Result<Address> {
        let address = listener.address().clone();
        let shared = Arc::clone(&self.shared);
        let name = format!("{}-accept", shared.protocol);
        let thread = std::thread::Builder::new().name(name).spawn(move || shared.accept_all(&listener))?;
        lock(&self.threads).push(thread);
        Ok(address)
    }

    /// Serves one socket that is connected already, and waits until its client is gone.
    pub fn serve_connected(&self, fd: OwnedFd, peer: &str) {
        let (gone, wait) = std::sync::mpsc::channel::<()>();
        let ticket = Ticket::new(&self.shared.clients).until_dropped(gone);
        let waiting = self.shared.wait();
        self.shared.handshake.handshake(Stranger { fd, peer: peer.to_owned(), ticket }, &waiting);
        // Nothing is ever sent: the other end goes with the connection.
        let _ = wait.recv();
    }
}

impl<H> Drop for Acceptor<H> {
    fn drop(&mut self) {
        // The counter cannot be full.
        let _ = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
        for (_, fd) in lock(&self.shared.waiting.sockets).drain(..) {
            // It may be gone already.
            let _ = shutdown(&fd, Shutdown::Both);
        }
        for thread in lock(&self.threads).drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl<H: Handshake> Shared<H> {
    fn wait(&self) -> Waiting {
        let number = self.waiting.next.fetch_add(1, Ordering::Relaxed);
        Waiting { handshakes: Arc::clone(&self.waiting), number }
    }

    fn accept_all(self: &Arc<Self>, listener: &Listener) {
        tracing::info!(protocol = self.protocol, address = %listener.address(), "listening");
        loop {
            let mut polled =
                [PollFd::from_borrowed_fd(listener.fd(), PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, address = %listener.address(), "cannot wait for clients");
                    return;
                }
            }
            if !polled[1].revents().is_empty() {
                return;
            }
            match listener.accept() {
                Ok((fd, peer)) => self.admit(fd, peer),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(error) => {
                    tracing::warn!(%error, address = %listener.address(), "cannot accept a client");
                    // No descriptor left, most likely: it does not help to ask again at once.
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    /// Starts a client's handshake, if there is room for one more client.
    fn admit(self: &Arc<Self>, fd: OwnedFd, peer: String) {
        if self.clients.count() >= self.bounds.max_connections {
            tracing::warn!(peer, limit = self.bounds.max_connections, "too many connections: closed a new one");
            return;
        }
        let ticket = Ticket::new(&self.clients);
        let Ok(copy) = fd.as_fd().try_clone_to_owned() else { return };
        let waiting = self.wait();
        {
            let mut sockets = lock(&self.waiting.sockets);
            sockets.push_back((waiting.number, copy));
            if sockets.len() > self.bounds.max_handshakes
                && let Some((_, oldest)) = sockets.pop_front()
            {
                // A stranger that dawdles makes room for one that may not.
                let _ = shutdown(&oldest, Shutdown::Both);
            }
        }
        let shared = Arc::clone(self);
        let name = format!("{}-handshake", self.protocol);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || shared.handshake.handshake(Stranger { fd, peer, ticket }, &waiting));
        if let Err(error) = thread {
            tracing::warn!(%error, "no thread for a handshake: closed a new connection");
        }
    }
}
