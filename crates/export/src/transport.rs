//! A connected socket, plain or under TLS, as the device thread uses it: it never waits.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SendAncillaryBuffer, SendFlags, Shutdown, send, sendmsg, shutdown, sockopt};
use rustls::ServerConnection;

use crate::input::Input;
use crate::output::{Output, SEGMENTS};
use crate::pool::Pool;

/// What a Unix socket may hold of replies that its client did not take yet.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// Encrypted bytes received at a time.
const SEALED_BYTES: usize = 64 << 10;
/// The most plain text that one TLS record may hold back from earlier bytes.
const RECORD_BYTES: usize = 18 << 10;
/// Encrypted bytes waiting to be sent beyond which no more are made.
const SEALED_LIMIT: usize = 256 << 10;

/// The socket.
pub struct Transport {
    fd: OwnedFd,
    tls: Option<Tls>,
}

struct Tls {
    session: Box<ServerConnection>,
    incoming: Input,
    outgoing: Vec<u8>,
    outgoing_sent: usize,
}

impl Transport {
    /// Takes over a socket after the handshake.
    pub fn new(fd: OwnedFd, tls: Option<Box<ServerConnection>>) -> Transport {
        // A Unix socket's default holds hardly more than one large read, and each time it is full costs two wake-ups. TCP
        // sizes its own buffer. The system may grant less.
        if sockopt::socket_domain(&fd) == Ok(AddressFamily::UNIX) {
            let _ = sockopt::set_socket_send_buffer_size(&fd, SEND_BUFFER_BYTES);
        }
        let tls = tls.map(|mut session| {
            session.set_buffer_limit(None);
            Tls { session, incoming: Input::new(), outgoing: Vec::new(), outgoing_sent: 0 }
        });
        Transport { fd, tls }
    }

    /// The socket, for the ring.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether TLS is on.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Where the kernel shall receive, see [`Input::lend`].
    pub fn lend(&mut self, input: &mut Input, need: usize, wait: bool) -> (*mut u8, usize, bool) {
        match &mut self.tls {
            None => input.lend(need, wait),
            Some(tls) => {
                let (start, len, _) = tls.incoming.lend(1, wait);
                (start, len.min(SEALED_BYTES), false)
            }
        }
    }

    /// What [`Transport::lend`] lent was not used.
    pub fn unlend(&mut self, input: &mut Input) {
        match &mut self.tls {
            None => input.received(0),
            Some(tls) => tls.incoming.received(0),
        }
    }

    /// The kernel received `count` bytes.
    ///
    /// # Errors
    /// The peer broke TLS.
    pub fn received(&mut self, input: &mut Input, count: usize) -> io::Result<()> {
        match &mut self.tls {
            None => {
                input.received(count);
                Ok(())
            }
            Some(tls) => {
                tls.incoming.received(count);
                tls.open(input)
            }
        }
    }

    /// Moves what TLS decrypted already during the handshake into `input`.
    ///
    /// # Errors
    /// The peer broke TLS.
    pub fn start(&mut self, input: &mut Input) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.open(input))
    }

    /// Sends what the socket takes now. True when nothing is left.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, output: &mut Output, pool: &mut Pool) -> io::Result<bool> {
        match &mut self.tls {
            None => send_plain(&self.fd, output, pool),
            Some(tls) => tls.send(&self.fd, output, pool),
        }
    }

    /// Says goodbye under TLS, as far as the socket takes it.
    pub fn close_notify(&mut self, pool: &mut Pool) {
        if let Some(tls) = &mut self.tls {
            tls.session.send_close_notify();
            // The connection ends either way.
            let _ = tls.send(&self.fd, &mut Output::default(), pool);
        }
    }

    /// Memory that TLS takes of its own, bytes.
    pub fn memory(&self) -> usize {
        self.tls.as_ref().map_or(0, |tls| tls.incoming.memory() + tls.outgoing.capacity())
    }

    /// How much of that [`Transport::shrink`] would give back, bytes.
    pub fn idle_memory(&self) -> usize {
        let idle = self.tls.as_ref().filter(|tls| tls.incoming.bytes().is_empty() && tls.outgoing.is_empty());
        idle.map_or(0, |tls| tls.incoming.memory() + tls.outgoing.capacity())
    }

    /// Gives back what it keeps for bytes to come, if there are none now.
    pub fn shrink(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.incoming.shrink();
            if tls.outgoing.is_empty() {
                tls.outgoing = Vec::new();
            }
        }
    }

    /// Ends the connection both ways; a receive under way then finishes.
    pub fn shutdown(&self) {
        // It may be gone already.
        let _ = shutdown(&self.fd, Shutdown::Both);
    }
}

fn send_plain(fd: &OwnedFd, output: &mut Output, pool: &mut Pool) -> io::Result<bool> {
    while !output.is_empty() {
        let mut slices = [IoSlice::new(&[]); SEGMENTS];
        let count = output.slices(&mut slices);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        // One segment needs no message header.
        let sent = match &slices[..count] {
            [single] => send(fd, single, flags),
            several => sendmsg(fd, several, &mut SendAncillaryBuffer::default(), flags),
        };
        match sent {
            Ok(sent) => output.advance(sent, pool),
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

impl Tls {
    /// Decrypts what arrived.
    fn open(&mut self, input: &mut Input) -> io::Result<()> {
        loop {
            let mut sealed = self.incoming.bytes();
            if !sealed.is_empty() {
                let before = sealed.len();
                self.session.read_tls(&mut sealed)?;
                let taken = before - sealed.len();
                self.incoming.consume(taken);
            }
            let state = self.session.process_new_packets().map_err(io::Error::other)?;
            let mut left = state.plaintext_bytes_to_read();
            input.reserve(0, left.max(RECORD_BYTES));
            while left > 0 {
                let count = self.session.reader().read(input.spare())?;
                if count == 0 {
                    break;
                }
                input.received(count);
                left -= count.min(left);
            }
            if self.incoming.bytes().is_empty() {
                return Ok(());
            }
        }
    }

    fn send(&mut self, fd: &OwnedFd, output: &mut Output, pool: &mut Pool) -> io::Result<bool> {
        loop {
            self.seal(output, pool)?;
            let unsent = &self.outgoing[self.outgoing_sent..];
            if unsent.is_empty() {
                self.outgoing.clear();
                self.outgoing_sent = 0;
                return Ok(output.is_empty());
            }
            match send(fd, unsent, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => self.outgoing_sent += sent,
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Encrypts replies, but not more than the socket may take soon.
    fn seal(&mut self, output: &mut Output, pool: &mut Pool) -> io::Result<()> {
        while !output.is_empty() && self.outgoing.len() - self.outgoing_sent < SEALED_LIMIT {
            let mut slices = [IoSlice::new(&[]); SEGMENTS];
            let count = output.slices(&mut slices);
            let mut sealed = 0;
            for slice in &slices[..count] {
                let now = slice.len().min(SEALED_LIMIT - sealed);
                self.session.writer().write_all(&slice[..now])?;
                sealed += now;
            }
            output.advance(sealed, pool);
            self.drain()?;
        }
        self.drain()
    }

    fn drain(&mut self) -> io::Result<()> {
        if self.session.wants_write() && self.outgoing_sent > SEALED_LIMIT {
            self.outgoing.drain(..self.outgoing_sent);
            self.outgoing_sent = 0;
        }
        while self.session.wants_write() {
            self.session.write_tls(&mut self.outgoing)?;
        }
        Ok(())
    }
}
