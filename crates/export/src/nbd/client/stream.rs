//! The socket of a client, of either kind.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Takes the answer from whichever it is.
macro_rules! either {
    ($stream:expr, $one:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($one) => $call,
            Stream::Unix($one) => $call,
        }
    };
}

impl Stream {
    /// The same connection once more.
    pub fn share(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// How long one read and one write may take.
    pub fn wait_at_most(&self, reads: Duration, writes: Duration) -> io::Result<()> {
        either!(self, one => one.set_read_timeout(Some(reads)).and_then(|()| one.set_write_timeout(Some(writes))))
    }

    /// Ends it for everybody who shares it.
    pub fn hang_up(&self) {
        // It may be over already.
        let _ = either!(self, one => one.shutdown(Shutdown::Both));
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, one => one.read(buffer))
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        either!(self, one => one.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
