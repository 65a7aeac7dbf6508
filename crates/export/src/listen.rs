//! Listening sockets: made here, or inherited from a service manager.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::{SocketFlags, accept_with, acceptfrom_with, sockopt};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket at a path.
    Unix(PathBuf),
    /// A TCP address and port.
    Tcp(SocketAddr),
    /// A socket that was there before us.
    Inherited,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Inherited => f.write_str("inherited socket"),
        }
    }
}

/// A listening socket. A Unix socket's file goes with it.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: Address,
    /// What the service manager calls it; empty for one that was made here.
    name: String,
}

impl Listener {
    /// Listens on a Unix socket. A socket file that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// The path is in use, or the operating system refused.
    pub fn unix(path: &Path) -> io::Result<Listener> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_dead(path) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            other => other,
        };
        let listener = listener.map_err(|error| named(&path.display().to_string(), &error))?;
        Listener::made(listener.into(), Address::Unix(path.to_owned()))
    }

    /// Listens on a TCP address; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is in use, or the operating system refused.
    pub fn tcp(address: SocketAddr) -> io::Result<Listener> {
        let listener = TcpListener::bind(address).map_err(|error| named(&address.to_string(), &error))?;
        let address = listener.local_addr()?;
        Listener::made(listener.into(), Address::Tcp(address))
    }

    /// Where it listens, if that is TCP; also of one that was inherited.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        rustix::net::getsockname(&self.fd).ok().and_then(|address| SocketAddr::try_from(address).ok())
    }

    fn made(fd: OwnedFd, address: Address) -> io::Result<Listener> {
        // The accepting thread also waits for its end, so a client that is gone again must not hold it.
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Listener { fd, address, name: String::new() })
    }

    /// What the service manager that handed it over calls it (`FileDescriptorName=` of a systemd socket unit).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// For waiting.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next client and where it comes from, never waiting.
    pub(crate) fn accept(&self) -> rustix::io::Result<(OwnedFd, String)> {
        if matches!(self.address, Address::Unix(_)) {
            let fd = accept_with(&self.fd, SocketFlags::CLOEXEC)?;
            let peer = process(&fd);
            return Ok((fd, peer));
        }
        let (fd, peer) = acceptfrom_with(&self.fd, SocketFlags::CLOEXEC)?;
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        if peer.is_some() {
            // A small reply must not wait for the next one. Not every inherited socket is TCP.
            let _ = sockopt::set_tcp_nodelay(&fd, true);
        }
        let peer = peer.map_or_else(|| process(&fd), |peer| peer.to_string());
        Ok((fd, peer))
    }
}

/// The process at the other end of a Unix socket, in words: which it is and whose.
fn process(fd: &OwnedFd) -> String {
    let Ok(peer) = sockopt::socket_peercred(fd) else { return "unix socket".into() };
    let (pid, uid) = (peer.pid.as_raw_nonzero(), peer.uid.as_raw());
    // It may be gone already, or hidden from us.
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim_end() {
        "" => format!("process {pid}, user {uid}"),
        name => format!("process {pid} ({name}), user {uid}"),
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // Somebody may have taken it away.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: cannot listen: {error}"))
}

/// Whether a path is a socket that nobody listens on.
fn is_dead(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
        && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The first descriptor that a service manager hands over.
const FIRST_INHERITED: i32 = 3;
/// More than anybody hands over.
const MAX_INHERITED: i32 = 64;

/// The listening sockets that a service manager handed to this process (`LISTEN_PID`, `LISTEN_FDS`).
/// Empty when there are none. Call it once, early, before any other descriptor is opened.
///
/// # Errors
/// The variables are malformed, or a descriptor is no listening socket.
pub fn inherited() -> io::Result<Vec<Listener>> {
    let (pid, count) = (std::env::var("LISTEN_PID"), std::env::var("LISTEN_FDS"));
    let (Ok(pid), Ok(count)) = (pid, count) else { return Ok(Vec::new()) };
    if pid.parse() != Ok(std::process::id()) {
        return Ok(Vec::new());
    }
    let count = match count.parse() {
        Ok(count @ 0..=MAX_INHERITED) => count,
        _ => {
            let message = format!("LISTEN_FDS={count}: expected a number from 0 to {MAX_INHERITED}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    };
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    (FIRST_INHERITED..FIRST_INHERITED + count)
        .map(|raw| {
            let name = names.next().unwrap_or_default().to_owned();
            // SAFETY: the service manager's protocol says that these descriptors are open and ours;
            // if one is not, its first use fails and it is leaked, not closed.
            let fd = std::mem::ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(raw) });
            match sockopt::socket_acceptconn(&*fd) {
                Ok(true) => {}
                _ => {
                    let message = format!("descriptor {raw} (from LISTEN_FDS={count}) is no listening socket");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
                }
            }
            let fd = std::mem::ManuallyDrop::into_inner(fd);
            rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
            let mut listener = Listener::made(fd, Address::Inherited)?;
            listener.name = name;
            Ok(listener)
        })
        .collect()
}
