//! A socket during the handshake, plain or under TLS.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use crate::timed::Timed;

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
        (self.timed.into_fd(), self.tls)
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
