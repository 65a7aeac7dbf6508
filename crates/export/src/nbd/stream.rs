//! A socket during the handshake: blocking, but never beyond a deadline, and plain or under TLS.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::{ServerConfig, ServerConnection};

/// A socket that gives up at a deadline.
pub struct Timed {
    fd: OwnedFd,
    deadline: Instant,
}

impl Timed {
    /// Wraps a socket; its own blocking mode does not matter.
    pub fn new(fd: OwnedFd, deadline: Instant) -> Timed {
        Timed { fd, deadline }
    }

    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(&self.fd, flags)], Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN)?;
            match recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(count),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::OUT)?;
            match send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A byte stream that can begin TLS.
pub trait Stream: Read + Write {
    /// Does the server's part of a TLS handshake. From here on everything read was encrypted.
    ///
    /// # Errors
    /// The peer speaks no TLS, or not ours.
    fn start_tls(&mut self, config: &Arc<ServerConfig>) -> io::Result<()>;
}

/// The handshake's stream.
pub struct Socket {
    timed: Timed,
    tls: Option<Box<ServerConnection>>,
}

impl Socket {
    /// A plain stream.
    pub fn new(timed: Timed) -> Socket {
        Socket { timed, tls: None }
    }

    /// The socket and its TLS session, for the transmission phase.
    pub fn into_parts(self) -> (OwnedFd, Option<Box<ServerConnection>>) {
        (self.timed.fd, self.tls)
    }
}

impl Stream for Socket {
    fn start_tls(&mut self, config: &Arc<ServerConfig>) -> io::Result<()> {
        let mut session = Box::new(ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?);
        while session.is_handshaking() {
            session.complete_io(&mut self.timed)?;
        }
        self.tls = Some(session);
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.timed.read(buffer),
            Some(session) => rustls::Stream::new(&mut **session, &mut self.timed).read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.timed.write(bytes),
            Some(session) => rustls::Stream::new(&mut **session, &mut self.timed).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(session) => rustls::Stream::new(&mut **session, &mut self.timed).flush(),
        }
    }
}
