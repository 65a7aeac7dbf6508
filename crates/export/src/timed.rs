//! A socket of a client whose handshake is under way: blocking, but never beyond a deadline.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

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

    /// The socket.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Waits until there is something to read; false at the deadline.
    ///
    /// # Errors
    /// The socket failed.
    pub fn is_readable(&self) -> io::Result<bool> {
        match self.wait(PollFlags::IN) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Puts the deadline off.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// The socket, for what has no deadline any more.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
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
