//! Accepts the front ends of one device on a Unix socket and leads a thread for each.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use device::Durability;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use vhost::vhost_user::BackendReqHandler;

use super::back::{Back, HEADER_BYTES, Header};
use super::config::{Facts, id};
use super::control::Control;
use super::request::Limits;
use super::session::Session;
use crate::acceptor::{Acceptor, Bounds, Handshake, Stranger, Waiting};
use crate::clients::Clients;
use crate::connection::{NewConnection, Session as AnySession};
use crate::link::Arrival;
use crate::listen::{Address, Listener};
use crate::transport::Transport;
use crate::{Gone, WorkerHandle};

/// How often a message that has begun is looked at again.
const PAUSE: Duration = Duration::from_millis(2);

/// How a server treats its front ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How many it bears, and how long one may take to begin, or for a message that it has begun.
    pub bounds: Bounds,
    /// Refuse writes, whatever the device allows.
    pub read_only: bool,
}

/// A vhost-user-blk server of one device. It serves one front end at a time: two virtual machines that mount the same disk destroy
/// it. Dropping it stops accepting; who is connected stays with the device.
pub struct Server {
    acceptor: Acceptor<Shared>,
}

struct Shared {
    name: String,
    device: WorkerHandle,
    options: Options,
    /// Somebody is served.
    taken: Mutex<bool>,
    free: Condvar,
}

/// The place of the one who is served; free again when it is dropped.
struct Place<'a>(&'a Shared);

impl Server {
    /// A server of a device, without listeners, whose front ends share memory with `clients`.
    ///
    /// # Errors
    /// The operating system has no descriptor left.
    pub fn new(name: &str, device: WorkerHandle, options: Options, clients: &Arc<Clients>) -> io::Result<Server> {
        let shared = Shared { name: name.into(), device, options, taken: Mutex::new(false), free: Condvar::new() };
        let acceptor = Acceptor::new("vhost", Arc::new(shared), options.bounds, Arc::clone(clients))?;
        Ok(Server { acceptor })
    }

    /// Accepts front ends from a listener, on a thread of its own.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn listen(&self, listener: Listener) -> io::Result<Address> {
        self.acceptor.listen(listener)
    }

    /// Serves one socket that is connected already, and waits until its front end is gone.
    pub fn serve_connected(&self, fd: OwnedFd, peer: &str) {
        self.acceptor.serve_connected(fd, peer);
    }
}

impl Shared {
    /// Waits until nobody else is served: when a virtual machine is started again, its last front end may still be going.
    fn take(&self, deadline: Instant) -> Option<Place<'_>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, _) =
            self.free.wait_timeout_while(taken, left, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return None;
        }
        *taken = true;
        Some(Place(self))
    }

    fn facts(&self) -> Result<(Facts, bool), Gone> {
        let shape = self.device.shape();
        let (uuid, durability) =
            self.device.with_device(|device| (device.info().uuid.to_string(), device.settings().durability))?;
        let limits = Limits {
            bytes: shape.bytes,
            sector_bytes: shape.sector_bytes,
            read_only: shape.read_only || self.options.read_only,
            write_through: false,
        };
        Ok((Facts { limits, id: id(&uuid) }, durability != Some(Durability::WriteThrough)))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.free.notify_one();
    }
}

impl Handshake for Shared {
    fn handshake(&self, Stranger { fd, peer, ticket }: Stranger, waiting: &Waiting) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let patience = self.options.bounds.handshake_timeout;
        let deadline = Instant::now() + patience;
        // Whoever says nothing keeps nobody else out.
        if let Err(error) = message(&fd, Some(deadline), patience) {
            tracing::debug!(peer, %error, "vhost: a front end that said nothing");
            return;
        }
        let Some(_place) = self.take(deadline) else {
            tracing::warn!(peer, device = self.name, "vhost: closed a second front end: the device has one already");
            return;
        };
        let (Ok(seat), Ok((facts, write_back))) = (self.device.reserve(), self.facts()) else { return };
        let Ok(socket) = fd.as_fd().try_clone_to_owned() else { return };
        waiting.done();
        let session = NEXT.fetch_add(1, Ordering::Relaxed);
        let (gone, wait) = std::sync::mpsc::channel::<()>();
        let arrival = Arrival {
            transport: Transport::new(socket, None),
            peer: peer.clone(),
            export: self.name.clone(),
            ticket: ticket.until_dropped(gone),
            seat,
        };
        let new =
            NewConnection { arrival, session: AnySession::Vhost(Box::new(Session::new(session, facts, write_back))) };
        if self.device.add_connection(new).is_err() {
            return;
        }
        let control = Arc::new(Mutex::new(Control::new(self.device.clone(), session, facts)));
        let Ok(watched) = fd.as_fd().try_clone_to_owned() else { return };
        let mut handler = BackendReqHandler::from_stream(UnixStream::from(fd), control);
        let why = loop {
            match message(&watched, None, patience) {
                Ok(Some(header)) if header.brings_socket() => {
                    let back = match Back::receive(&watched) {
                        Ok(back) => back,
                        Err(error) => break error.to_string(),
                    };
                    let told =
                        self.device.ask(move |worker| worker.with_vhost(session, |session| session.set_back(back)));
                    match told {
                        Ok(Some(())) => continue,
                        _ => break "the device let go of it".to_owned(),
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => break "it closed the connection".to_owned(),
                Err(error) => break error.to_string(),
            }
            if let Err(error) = handler.handle_request() {
                break error.to_string();
            }
        };
        tracing::debug!(peer, device = self.name, why, "vhost: the front end is gone");
        // Where the device is gone, so is the session.
        let _ = self.device.ask(move |worker| worker.vhost_gone(session));
        // Its last requests end before the next front end's first one begins.
        let _ = wait.recv();
    }
}

/// Waits for a whole message, so that reading it waits for nothing: until the deadline for its first byte, if there is one, and
/// no longer than `patience` from there on. Gives its header, and nothing at the end of the stream.
fn message(fd: &OwnedFd, deadline: Option<Instant>, patience: Duration) -> io::Result<Option<Header>> {
    let late = || io::Error::from(io::ErrorKind::TimedOut);
    loop {
        let left = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(left) if left.is_zero() => return Err(late()),
            left => {
                left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
            }
        };
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], left.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let begun = Instant::now();
    loop {
        let there = rustix::io::ioctl_fionread(fd)?;
        if there == 0 {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES];
        let (count, _) = recv(fd, &mut header, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        let header = Header::decode(&header);
        // One that is too long is refused when it is read.
        if count == HEADER_BYTES && there >= HEADER_BYTES as u64 + u64::from(header.size).min(4096) {
            return Ok(Some(header));
        }
        let mut polled = [PollFd::new(fd, PollFlags::IN)];
        if poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().contains(PollFlags::HUP) {
            // The rest of it will never come.
            return Ok(None);
        }
        if begun.elapsed() > patience {
            return Err(late());
        }
        std::thread::sleep(PAUSE);
    }
}
