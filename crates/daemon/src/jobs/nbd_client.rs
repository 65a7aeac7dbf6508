//! A client of our own NBD server, as any other: the fixed newstyle handshake, then requests on a Unix socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use export::nbd::proto::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, IHAVEOPT, NBDMAGIC, OPTION_REPLY_MAGIC, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC,
    command, info, option, reply,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest option's reply that is read, bytes.
const REPLY: u32 = 64 << 10;

/// A connection to an export.
pub struct NbdClient {
    stream: UnixStream,
    /// Its size.
    pub bytes: u64,
    cookie: u64,
    buffer: Vec<u8>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Read so many bytes.
    Read,
    /// Write so many bytes.
    Write,
    /// Make what is written durable.
    Flush,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the NBD server: {what}"))
}

impl NbdClient {
    /// Connects to an export of the server on a socket.
    ///
    /// # Errors
    /// The server says no, or something else than NBD.
    pub fn connect(socket: &Path, export: &str) -> io::Result<NbdClient> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        if number::<8>(&mut stream)? != NBDMAGIC || number::<8>(&mut stream)? != IHAVEOPT {
            return Err(wrong("it is none"));
        }
        let flags = number::<2>(&mut stream)? as u16 & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        stream.write_all(&u32::from(flags).to_be_bytes())?;
        let mut go = Vec::new();
        go.extend(IHAVEOPT.to_be_bytes());
        go.extend(option::GO.to_be_bytes());
        go.extend((export.len() as u32 + 6).to_be_bytes());
        go.extend((export.len() as u32).to_be_bytes());
        go.extend(export.as_bytes());
        go.extend(0u16.to_be_bytes());
        stream.write_all(&go)?;
        let mut bytes = 0;
        loop {
            if number::<8>(&mut stream)? != OPTION_REPLY_MAGIC {
                return Err(wrong("its reply to an option is none"));
            }
            let (_, kind, length) =
                (number::<4>(&mut stream)?, number::<4>(&mut stream)? as u32, number::<4>(&mut stream)? as u32);
            if length > REPLY {
                return Err(wrong("its reply to an option is too long"));
            }
            let mut body = vec![0; length as usize];
            stream.read_exact(&mut body)?;
            match kind {
                reply::ACK => break,
                reply::INFO if body.starts_with(&info::EXPORT.to_be_bytes()) => {
                    let size = body.get(2..10).and_then(|size| size.try_into().ok());
                    bytes = size.map_or(0, u64::from_be_bytes);
                }
                reply::INFO => {}
                other => return Err(wrong(&format!("it refuses the export (reply {other:#x})"))),
            }
        }
        Ok(NbdClient { stream, bytes, cookie: 0, buffer: Vec::new() })
    }

    /// Sends some requests at once, and waits for all their answers. Bytes to be written are made by `fill`.
    ///
    /// # Errors
    /// A request failed, or the connection is over.
    pub fn exchange(&mut self, asks: &[(Ask, u64, u32)], mut fill: impl FnMut(&mut [u8])) -> io::Result<()> {
        self.buffer.clear();
        let mut sizes = Vec::with_capacity(asks.len());
        for (ask, offset, length) in asks {
            let kind = match ask {
                Ask::Read => command::READ,
                Ask::Write => command::WRITE,
                Ask::Flush => command::FLUSH,
            };
            self.buffer.extend(REQUEST_MAGIC.to_be_bytes());
            self.buffer.extend(0u16.to_be_bytes());
            self.buffer.extend(kind.to_be_bytes());
            self.buffer.extend((self.cookie + sizes.len() as u64).to_be_bytes());
            self.buffer.extend(offset.to_be_bytes());
            self.buffer.extend(length.to_be_bytes());
            if *ask == Ask::Write {
                let begin = self.buffer.len();
                self.buffer.resize(begin + *length as usize, 0);
                fill(&mut self.buffer[begin..]);
            }
            sizes.push(if *ask == Ask::Read { *length as usize } else { 0 });
        }
        self.stream.write_all(&self.buffer)?;
        for _ in asks {
            if number::<4>(&mut self.stream)? != u64::from(SIMPLE_REPLY_MAGIC) {
                return Err(wrong("its answer is none"));
            }
            let error = number::<4>(&mut self.stream)?;
            let cookie = number::<8>(&mut self.stream)?;
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error as i32));
            }
            let at = usize::try_from(cookie.wrapping_sub(self.cookie)).ok();
            let size =
                at.and_then(|at| sizes.get(at)).copied().ok_or_else(|| wrong("it answers what was not asked"))?;
            self.buffer.resize(size, 0);
            self.stream.read_exact(&mut self.buffer)?;
        }
        self.cookie += asks.len() as u64;
        Ok(())
    }
}

/// A number of so many bytes, the most significant first.
fn number<const BYTES: usize>(stream: &mut UnixStream) -> io::Result<u64> {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
