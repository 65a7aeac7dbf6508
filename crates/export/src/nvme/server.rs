//! Leads hosts through the handshake, and hands their queues to the device's thread.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nvme::auth::{Keys, Names, Policy, Responder, SystemEntropy};
use nvme::discovery::{Directory, Port};
use nvme::fabrics::{AUTHENTICATE, Connect, DISCOVERY_NQN, subsystem_name};
use nvme::{Cqe, Status};

use super::discovery;
use super::handshake::{Agreed, Ended, answer, authenticate, initialize, read_connect, refuse};
use super::hosts::{Hosts, Secrets};
use super::session::{Host, Session};
use super::{SNAPSHOT, UNKNOWN_SUBSYSTEM};
use crate::WorkerHandle;
use crate::acceptor::{Acceptor, Bounds, Handshake, Stranger, Waiting};
use crate::clients::{Clients, Ticket};
use crate::connection::{NewConnection, Session as AnySession};
use crate::link::Arrival;
use crate::listen::{Address, Listener};
use crate::timed::Timed;
use crate::transport::Transport;

/// Hosts that ask for subsystems at a time, each on a thread.
const DISCOVERIES: usize = 64;

/// How a server treats hosts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which of them may connect.
    pub hosts: Hosts,
    /// How many connections it bears, and for how long in their handshake.
    pub bounds: Bounds,
}

/// A device as a subsystem.
#[derive(Clone)]
pub struct Export {
    /// What people call it.
    pub name: String,
    /// Its identity, from which the subsystem's name is made.
    pub uuid: String,
    /// Refuse writes, whatever the device allows.
    pub read_only: bool,
    /// The device.
    pub device: WorkerHandle,
}

impl Export {
    /// The subsystem's name.
    pub fn subsystem(&self) -> String {
        subsystem_name(&self.uuid)
    }
}

/// An NVMe over TCP server. Dropping its last clone stops accepting; hosts that are connected stay with their device.
#[derive(Clone)]
pub struct Server(Arc<Running>);

struct Running {
    shared: Arc<Shared>,
    acceptor: Acceptor<Shared>,
}

struct Shared {
    options: Options,
    /// By the subsystem's name.
    exports: Mutex<BTreeMap<String, Export>>,
    /// Grows with each change of the above.
    generation: AtomicUsize,
    discoveries: AtomicUsize,
    closed: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics half-way through a change of what these guard.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// A server without exports and listeners, whose hosts share memory with `clients`.
    ///
    /// # Errors
    /// The operating system has no descriptor left.
    pub fn new(options: Options, clients: &Arc<Clients>) -> io::Result<Server> {
        let bounds = options.bounds;
        let shared = Arc::new(Shared {
            options,
            exports: Mutex::default(),
            generation: AtomicUsize::new(1),
            discoveries: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        });
        let acceptor = Acceptor::new("nvme", Arc::clone(&shared), bounds, Arc::clone(clients))?;
        Ok(Server(Arc::new(Running { shared, acceptor })))
    }

    /// Offers a device as a subsystem; replaces one of the same identity.
    pub fn add_export(&self, export: Export) {
        lock(&self.0.shared.exports).insert(export.subsystem(), export);
        self.0.shared.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Offers the device of this name no longer; its hosts stay connected.
    pub fn remove_export(&self, name: &str) {
        lock(&self.0.shared.exports).retain(|_, export| export.name != name);
        self.0.shared.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Accepts hosts from a listener, on a thread of its own.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn listen(&self, listener: Listener) -> io::Result<Address> {
        self.0.acceptor.listen(listener)
    }

    /// Serves one socket that is connected already, and waits until its host is gone.
    pub fn serve_connected(&self, fd: OwnedFd, peer: &str) {
        self.0.acceptor.serve_connected(fd, peer);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
    }
}

impl Handshake for Shared {
    fn handshake(&self, Stranger { fd, peer, ticket }: Stranger, waiting: &Waiting) {
        let ended =
            self.lead(Timed::new(fd, Instant::now() + self.options.bounds.handshake_timeout), &peer, ticket, waiting);
        if let Err(error) = ended {
            tracing::debug!(peer, %error, "handshake failed");
        }
    }
}

impl Shared {
    fn lead(&self, mut socket: Timed, peer: &str, ticket: Ticket, waiting: &Waiting) -> Result<(), Ended> {
        let agreed = initialize(&mut socket)?;
        let (cid, connect) = read_connect(&mut socket, &agreed)?;
        let Some(secrets) = self.options.hosts.find(&connect.host) else {
            tracing::warn!(peer, host = connect.host, "a host that is not listed was refused");
            return Err(refuse(&mut socket, &agreed, Cqe::new(cid, Status::CONNECT_HOST)));
        };
        if connect.subsystem == DISCOVERY_NQN {
            waiting.done();
            return self.discover(socket, &agreed, (cid, &connect));
        }
        let device = connect.subsystem.split(SNAPSHOT).next().unwrap_or_default();
        let export = lock(&self.exports).get(device).cloned();
        // One that is not there may be there soon: no word that would keep the host from coming again.
        let unknown = Cqe { result: UNKNOWN_SUBSYSTEM, ..Cqe::new(cid, Status::CONNECT_INVALID) };
        let Some(export) = export else { return Err(refuse(&mut socket, &agreed, unknown)) };
        let Ok(seat) = export.device.reserve() else { return Err(refuse(&mut socket, &agreed, unknown)) };
        let at = local_address(&socket);
        let joined = match export.device.join(cid, connect.clone(), export.read_only, at) {
            Ok(Ok(joined)) => joined,
            Ok(Err(refused)) => return Err(refuse(&mut socket, &agreed, refused)),
            Err(_) => return Err(refuse(&mut socket, &agreed, unknown)),
        };
        let (controller, queue) = (joined.admitted.controller, joined.admitted.queue);
        let taken = match prove(&mut socket, &agreed, (cid, &connect), secrets, controller) {
            Ok(taken) => taken,
            Err(ended) => {
                if queue == 0 {
                    export.device.leave(controller);
                }
                return Err(ended);
            }
        };
        let shown = connect.subsystem.find(SNAPSHOT).map(|at| &connect.subsystem[at..]).unwrap_or_default();
        let export_name = export.name + shown;
        let host = Host { name: connect.host, subsystem: connect.subsystem, agreed };
        let session = Session::new(joined, host, taken);
        let arrival = Arrival {
            transport: Transport::new(socket.into_fd(), None),
            peer: peer.to_owned(),
            export: export_name,
            ticket,
            seat,
        };
        let connection = NewConnection { arrival, session: AnySession::Nvme(Box::new(session)) };
        if let Err(gone) = export.device.add_connection(connection) {
            tracing::debug!(error = %gone, "a host came too late");
        }
        Ok(())
    }

    fn discover(&self, socket: Timed, agreed: &Agreed, connect: (u16, &Connect)) -> Result<(), Ended> {
        if self.discoveries.fetch_add(1, Ordering::Relaxed) >= DISCOVERIES {
            self.discoveries.fetch_sub(1, Ordering::Relaxed);
            let mut socket = socket;
            return Err(refuse(&mut socket, agreed, Cqe::new(connect.0, Status::CONNECT_BUSY)));
        }
        let at = rustix::net::getsockname(socket.fd()).ok().and_then(|address| SocketAddr::try_from(address).ok());
        let served = discovery::serve(socket, agreed, connect, || self.directory(at));
        self.discoveries.fetch_sub(1, Ordering::Relaxed);
        served
    }

    /// What there is, at the address where the host asks; nothing once the server is closed.
    fn directory(&self, at: Option<SocketAddr>) -> Option<Directory> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let ports = at.map(|at| Port { address: canonical(at.ip()), port: at.port() }).into_iter().collect();
        Some(Directory {
            generation: self.generation.load(Ordering::Relaxed) as u64,
            subsystems: lock(&self.exports).keys().cloned().collect(),
            ports,
            firmware: env!("CARGO_PKG_VERSION").into(),
        })
    }
}

fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Answers Connect, and has the host prove who it is where it has a secret. How many commands that took.
fn prove(
    socket: &mut Timed,
    agreed: &Agreed,
    (cid, connect): (u16, &Connect),
    secrets: Secrets,
    controller: u16,
) -> Result<u16, Ended> {
    let asked = if secrets.host.is_some() { AUTHENTICATE } else { 0 };
    let joined = Cqe { result: asked | u64::from(controller), sq_head: 1, ..Cqe::new(cid, Status::SUCCESS) };
    answer(socket, agreed, &joined, &[])?;
    let Some(host) = secrets.host else { return Ok(1) };
    let names = Names { host: connect.host.clone(), subsystem: connect.subsystem.clone() };
    let keys = Keys { host, controller: secrets.controller };
    authenticate(socket, agreed, Responder::new(keys, names, Policy::default(), Box::new(SystemEntropy::default())))
}

/// Where the host reached us: an association that comes again at the same place takes the place of the one before.
fn local_address(socket: &Timed) -> String {
    let address = rustix::net::getsockname(socket.fd()).ok();
    match address.as_ref().and_then(|address| SocketAddr::try_from(address.clone()).ok()) {
        Some(tcp) => tcp.to_string(),
        None => address.map(|address| format!("{address:?}")).unwrap_or_default(),
    }
}
