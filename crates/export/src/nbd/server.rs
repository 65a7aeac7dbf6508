//! Accepts clients, leads them through the handshake, and hands them to their device's thread.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{Shutdown, shutdown};

use super::arrival::NewConnection;
use super::clients::{self, Clients, Ticket};
use super::listen::{Address, Listener};
use super::negotiate::{Catalogue, Ended, Offer, negotiate};
use super::stream::{Socket, Timed};
use super::tls::Tls;
use super::transport::Transport;
use crate::{Seat, WorkerHandle};

/// How a server treats its clients.
#[derive(Clone, Debug)]
pub struct Options {
    /// TLS.
    pub tls: Tls,
    /// Time for a whole handshake.
    pub handshake_timeout: Duration,
    /// Handshakes at a time; beyond that the oldest is given up.
    pub max_handshakes: usize,
    /// Connections at a time; beyond that new ones are closed.
    pub max_connections: usize,
    /// Memory that clients may share beyond what each has of its own, bytes; and as much again for large reads.
    pub client_memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tls: Tls::Off,
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 64,
            max_connections: 1024,
            client_memory: clients::BYTES,
        }
    }
}

/// A device under a name.
#[derive(Clone)]
pub struct Export {
    /// What clients call it; the empty name is what they get when they do not say.
    pub name: String,
    /// For people.
    pub description: String,
    /// Refuse writes, whatever the device allows.
    pub read_only: bool,
    /// The device.
    pub device: WorkerHandle,
}

/// An NBD server. Dropping its last clone stops accepting; clients that are connected stay with their device.
#[derive(Clone)]
pub struct Server(Arc<Running>);

struct Running {
    shared: Arc<Shared>,
    acceptors: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    options: Options,
    exports: Mutex<BTreeMap<String, Export>>,
    clients: Arc<Clients>,
    handshakes: Mutex<VecDeque<(u64, OwnedFd)>>,
    next_handshake: AtomicUsize,
    /// Readable once the server closes.
    stop: OwnedFd,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics half-way through a change of what these guard.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Export {
    fn offer(&self) -> Offer {
        let shape = self.device.shape();
        Offer { description: self.description.clone(), read_only: self.read_only || shape.read_only, shape }
    }
}

impl Catalogue for Shared {
    type Claim = (WorkerHandle, Seat);

    fn names(&self) -> Vec<String> {
        lock(&self.exports).keys().cloned().collect()
    }

    fn offer(&self, name: &str) -> Option<Offer> {
        lock(&self.exports).get(name).map(Export::offer)
    }

    fn claim(&self, name: &str) -> Option<(Offer, Self::Claim)> {
        let exports = lock(&self.exports);
        let export = exports.get(name)?;
        let seat = export.device.reserve().ok()?;
        Some((export.offer(), (export.device.clone(), seat)))
    }
}

impl Server {
    /// A server without exports and listeners.
    ///
    /// # Errors
    /// The operating system has no descriptor left.
    pub fn new(options: Options) -> io::Result<Server> {
        let shared = Shared {
            clients: Arc::new(Clients::new(options.client_memory)),
            options,
            exports: Mutex::default(),
            handshakes: Mutex::default(),
            next_handshake: AtomicUsize::new(0),
            stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        Ok(Server(Arc::new(Running { shared: Arc::new(shared), acceptors: Mutex::default() })))
    }

    /// Offers a device; replaces an export of the same name. True if there was one.
    pub fn add_export(&self, export: Export) -> bool {
        lock(&self.0.shared.exports).insert(export.name.clone(), export).is_some()
    }

    /// Offers an export no longer; its clients stay connected. True if there was one.
    pub fn remove_export(&self, name: &str) -> bool {
        lock(&self.0.shared.exports).remove(name).is_some()
    }

    /// What is offered, by name.
    pub fn exports(&self) -> Vec<Export> {
        lock(&self.0.shared.exports).values().cloned().collect()
    }

    /// Clients connected or in their handshake.
    pub fn connections(&self) -> usize {
        self.0.shared.clients.count()
    }

    /// Accepts clients from a listener, on a thread of its own.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn listen(&self, listener: Listener) -> io::Result<Address> {
        let address = listener.address().clone();
        let shared = Arc::clone(&self.0.shared);
        let thread =
            std::thread::Builder::new().name("nbd-accept".into()).spawn(move || accept_all(&listener, &shared))?;
        lock(&self.0.acceptors).push(thread);
        Ok(address)
    }

    /// Serves one socket that is connected already, and waits until its client is gone.
    pub fn serve_connected(&self, fd: OwnedFd, peer: &str) {
        let shared = &self.0.shared;
        let ticket = Ticket::new(&shared.clients);
        let (gone, wait) = std::sync::mpsc::channel::<()>();
        handshake(shared, fd, peer.to_owned(), ticket.until_dropped(gone));
        // Nothing is ever sent: the other end goes with the connection.
        let _ = wait.recv();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The counter cannot be full.
        let _ = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
        for (_, fd) in lock(&self.shared.handshakes).drain(..) {
            // It may be gone already.
            let _ = shutdown(&fd, Shutdown::Both);
        }
        for thread in lock(&self.acceptors).drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn accept_all(listener: &Listener, shared: &Arc<Shared>) {
    tracing::info!(address = %listener.address(), "listening");
    loop {
        let mut polled =
            [PollFd::from_borrowed_fd(listener.fd(), PollFlags::IN), PollFd::new(&shared.stop, PollFlags::IN)];
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
            Ok((fd, peer)) => admit(shared, fd, peer),
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
fn admit(shared: &Arc<Shared>, fd: OwnedFd, peer: String) {
    if shared.clients.count() >= shared.options.max_connections {
        tracing::warn!(peer, limit = shared.options.max_connections, "too many connections: closed a new one");
        return;
    }
    let ticket = Ticket::new(&shared.clients);
    let Ok(copy) = fd.as_fd().try_clone_to_owned() else { return };
    let number = shared.next_handshake.fetch_add(1, Ordering::Relaxed) as u64;
    {
        let mut handshakes = lock(&shared.handshakes);
        handshakes.push_back((number, copy));
        if handshakes.len() > shared.options.max_handshakes
            && let Some((_, oldest)) = handshakes.pop_front()
        {
            // A stranger that dawdles makes room for one that may not.
            let _ = shutdown(&oldest, Shutdown::Both);
        }
    }
    let in_thread = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("nbd-handshake".into()).spawn(move || {
        handshake(&in_thread, fd, peer, ticket);
        forget(&in_thread, number);
    });
    if let Err(error) = thread {
        tracing::warn!(%error, "no thread for a handshake: closed a new connection");
        forget(shared, number);
    }
}

fn forget(shared: &Shared, number: u64) {
    lock(&shared.handshakes).retain(|(other, _)| *other != number);
}

fn handshake(shared: &Shared, fd: OwnedFd, peer: String, ticket: Ticket) {
    let mut socket = Socket::new(Timed::new(fd, Instant::now() + shared.options.handshake_timeout));
    let agreed = match negotiate(&mut socket, shared, &shared.options.tls) {
        Ok(agreed) => agreed,
        Err(Ended::Aborted) => return,
        Err(error) => {
            tracing::debug!(peer, %error, "handshake failed");
            return;
        }
    };
    let (device, seat) = agreed.claim;
    let (fd, tls) = socket.into_parts();
    let transport = Transport::new(fd, tls);
    let connection = NewConnection { transport, limits: agreed.limits, peer, export: agreed.export, ticket, seat };
    if let Err(gone) = device.add_connection(connection) {
        tracing::debug!(error = %gone, "a client came too late");
    }
}
