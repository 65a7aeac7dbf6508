//! Leads NBD clients through the handshake, and hands them to their device's thread.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use device::SnapshotId;

use super::negotiate::{Catalogue, Ended, Offer, negotiate};
use super::session::Session;
use super::stream::Socket;
use super::tls::Tls;
use crate::acceptor::{Acceptor, Bounds, Handshake, Stranger, Waiting};
use crate::clients::Clients;
use crate::connection::{NewConnection, Session as AnySession};
use crate::link::Arrival;
use crate::listen::{Address, Listener};
use crate::timed::Timed;
use crate::transport::Transport;
use crate::{Seat, WorkerHandle};

/// How a server treats its clients.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// TLS.
    pub tls: Tls,
    /// How many clients it bears, and for how long in their handshake.
    pub bounds: Bounds,
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
    clients: Arc<Clients>,
    acceptor: Acceptor<Shared>,
}

struct Shared {
    options: Options,
    exports: Mutex<BTreeMap<String, Export>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics half-way through a change of what these guard.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Export {
    fn offer(&self) -> Offer {
        let shape = self.device.shape();
        Offer { description: self.description.clone(), read_only: self.read_only || shape.read_only, view: None, shape }
    }

    /// The device's snapshots, from the oldest to the newest; none of a device that is gone.
    fn snapshots(&self) -> Vec<(String, SnapshotId)> {
        let named = |snapshot: &device::Snapshot| (snapshot.name.clone(), snapshot.id);
        self.device.with_served(move |served| served.snapshots().iter().map(named).collect()).unwrap_or_default()
    }

    /// A snapshot of the device, to be read, or a clone.
    fn offer_view(&self, name: &str) -> Option<Offer> {
        let wanted = name.to_owned();
        let found = self.device.with_served(move |served| served.view_named(&wanted)).ok()??;
        let offer = self.offer();
        Some(match found.is_clone {
            true => {
                let description = format!("{}, its clone {name}", offer.description);
                Offer { description, view: Some(found.id), ..offer }
            }
            false => {
                let description = format!("{} as it was at the snapshot {name}", offer.description);
                Offer { description, read_only: true, view: Some(found.id), ..offer }
            }
        })
    }
}

impl Shared {
    /// The export of a name, or the one of whose device a name behind `@` is a snapshot or a clone.
    fn find<'a>(&self, name: &'a str) -> Option<(Export, Option<&'a str>)> {
        // Nobody waits for a device while the list is locked.
        let exports = lock(&self.exports);
        if let Some(export) = exports.get(name) {
            return Some((export.clone(), None));
        }
        let (device, snapshot) = name.rsplit_once('@')?;
        Some((exports.get(device)?.clone(), Some(snapshot)))
    }
}

impl Catalogue for Shared {
    type Claim = (WorkerHandle, Seat);

    fn names(&self) -> Vec<String> {
        lock(&self.exports).keys().cloned().collect()
    }

    fn offer(&self, name: &str) -> Option<Offer> {
        let (export, snapshot) = self.find(name)?;
        snapshot.map_or_else(|| Some(export.offer()), |view| export.offer_view(view))
    }

    fn older_snapshots(&self, name: &str) -> Vec<(String, SnapshotId)> {
        let Some((export, shown)) = self.find(name) else { return Vec::new() };
        let all = export.snapshots();
        let is_shown = |(name, _): &(String, SnapshotId)| shown == Some(name);
        // What a clone wrote is not compared with a snapshot.
        let end = if shown.is_none() { Some(all.len()) } else { all.iter().position(is_shown) };
        all.into_iter().take(end.unwrap_or(0)).collect()
    }

    fn claim(&self, name: &str) -> Option<(Offer, Self::Claim)> {
        let (export, _) = self.find(name)?;
        let seat = export.device.reserve().ok()?;
        Some((self.offer(name)?, (export.device, seat)))
    }
}

impl Server {
    /// A server without exports and listeners, whose clients share memory with `clients`.
    ///
    /// # Errors
    /// The operating system has no descriptor left.
    pub fn new(options: Options, clients: &Arc<Clients>) -> io::Result<Server> {
        let shared = Arc::new(Shared { options, exports: Mutex::default() });
        let bounds = shared.options.bounds;
        let acceptor = Acceptor::new("nbd", Arc::clone(&shared), bounds, Arc::clone(clients))?;
        Ok(Server(Arc::new(Running { shared, clients: Arc::clone(clients), acceptor })))
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
        self.0.clients.count()
    }

    /// Accepts clients from a listener, on a thread of its own.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn listen(&self, listener: Listener) -> io::Result<Address> {
        self.0.acceptor.listen(listener)
    }

    /// Serves one socket that is connected already, and waits until its client is gone.
    pub fn serve_connected(&self, fd: OwnedFd, peer: &str) {
        self.0.acceptor.serve_connected(fd, peer);
    }
}

impl Handshake for Shared {
    fn handshake(&self, Stranger { fd, peer, ticket }: Stranger, _: &Waiting) {
        let mut socket = Socket::new(Timed::new(fd, Instant::now() + self.options.bounds.handshake_timeout));
        let agreed = match negotiate(&mut socket, self, &self.options.tls) {
            Ok(agreed) => agreed,
            Err(Ended::Aborted) => return,
            Err(error) => {
                tracing::debug!(peer, %error, "handshake failed");
                return;
            }
        };
        let (device, seat) = agreed.claim;
        let (fd, tls) = socket.into_parts();
        let arrival = Arrival { transport: Transport::new(fd, tls), peer, export: agreed.export, ticket, seat };
        let session = AnySession::Nbd(Session::new(agreed.limits, agreed.contexts));
        if let Err(gone) = device.add_connection(NewConnection { arrival, session }) {
            tracing::debug!(error = %gone, "a client came too late");
        }
    }
}
