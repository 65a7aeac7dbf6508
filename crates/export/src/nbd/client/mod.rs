//! A client of NBD servers, for whoever stores something on one: any number of threads, any number of requests under way.
//!
//! Requests leave on the thread that asks, and one more thread hears the answers. Once the connection has ended every request fails, with
//! an error that [`is_gone`] knows.

mod address;
mod handshake;
mod stream;

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use address::{Address, BadAddress};
pub use handshake::{ExportInfo, choose};
use handshake::{number, wrong};
use stream::Stream;

use super::proto::{REQUEST_BYTES, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC, command};

/// How long an answer may take before the server counts as gone.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether one takes too long.
const LOOK: Duration = Duration::from_secs(1);
/// How long the handshake may wait for each answer.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What is asked for, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// So many bytes.
    Read(u32),
    /// These bytes are written.
    Write(&'a [u8]),
    /// So many bytes become zeros, with holes if the server likes.
    Zeroes(u32),
    /// What was answered becomes durable.
    Flush,
}

/// A request under way.
#[derive(Debug)]
#[must_use = "the answer is lost"]
pub struct Pending(Receiver<io::Result<Vec<u8>>>);

impl Pending {
    /// Waits for the answer: the bytes of a read, nothing of anything else.
    ///
    /// # Errors
    /// The server's error, or the connection has ended.
    pub fn wait(self) -> io::Result<Vec<u8>> {
        self.0.recv().unwrap_or_else(|_| Err(ErrorKind::NotConnected.into()))
    }
}

/// Who waits for an answer, and into which buffer it goes.
struct Waiting {
    buffer: Vec<u8>,
    answer: SyncSender<io::Result<Vec<u8>>>,
    since: Instant,
}

#[derive(Default)]
struct Table {
    next: u64,
    waiting: HashMap<u64, Waiting>,
    /// Why the connection has ended.
    ended: Option<(ErrorKind, String)>,
}

/// What its threads share.
struct Shared(Mutex<Table>);

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is answered any more.
    fn end(&self, error: &io::Error) {
        let mut table = self.table();
        let (kind, why) = table.ended.get_or_insert((ErrorKind::NotConnected, error.to_string())).clone();
        for (_, waiting) in table.waiting.drain() {
            // Somebody who went away needs no answer.
            let _ = waiting.answer.send(Err(io::Error::new(kind, why.clone())));
        }
    }

    fn waits_too_long(&self) -> bool {
        self.table().waiting.values().any(|waiting| waiting.since.elapsed() > PATIENCE)
    }
}

/// Whether an error says that the connection has ended, and not only that a request failed.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotConnected
}

/// A connection to an export. It ends with the client.
pub struct Client {
    /// What is sent, one request after another.
    sender: Mutex<Stream>,
    shared: Arc<Shared>,
    export: ExportInfo,
}

impl Client {
    /// Connects to an export.
    ///
    /// # Errors
    /// Nobody listens, the server says no, or something else than NBD.
    pub fn connect(address: &Address) -> io::Result<Client> {
        let mut stream = address.connect()?;
        stream.wait_at_most(HANDSHAKE, HANDSHAKE)?;
        let export = choose(&mut stream, &address.export)?;
        stream.wait_at_most(LOOK, PATIENCE)?;
        let (hears, shared) = (stream.share()?, Arc::new(Shared(Mutex::default())));
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("nbd-client".into()).spawn(move || {
            let mut answers = Answers { stream: hears, shared: theirs };
            let Err(error) = answers.hear_all();
            answers.shared.end(&error);
            answers.stream.hang_up();
        })?;
        Ok(Client { sender: Mutex::new(stream), shared, export })
    }

    /// What the server says of the export.
    pub fn export(&self) -> ExportInfo {
        self.export
    }

    /// Sends a request. `flags` are [`command_flag`](super::proto::command_flag)s that the export knows.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn begin(&self, ask: Ask<'_>, offset: u64, flags: u16) -> io::Result<Pending> {
        let (kind, length, data): (_, _, &[u8]) = match ask {
            Ask::Read(length) => (command::READ, length, &[]),
            Ask::Write(data) => (command::WRITE, data.len() as u32, data),
            Ask::Zeroes(length) => (command::WRITE_ZEROES, length, &[]),
            Ask::Flush => (command::FLUSH, 0, &[]),
        };
        let buffer = if kind == command::READ { vec![0; length as usize] } else { Vec::new() };
        let (answer, waits) = sync_channel(1);
        let cookie = {
            let mut table = self.shared.table();
            if let Some((kind, why)) = &table.ended {
                return Err(io::Error::new(*kind, why.clone()));
            }
            table.next += 1;
            let cookie = table.next;
            table.waiting.insert(cookie, Waiting { buffer, answer, since: Instant::now() });
            cookie
        };
        let sent = self.send((kind, flags), cookie, (offset, length), data);
        if let Err(error) = sent {
            self.shared.end(&error);
            self.hang_up();
        }
        Ok(Pending(waits))
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// The server's error, or the connection has ended.
    pub fn request(&self, ask: Ask<'_>, offset: u64, flags: u16) -> io::Result<Vec<u8>> {
        self.begin(ask, offset, flags)?.wait()
    }

    fn sender(&self) -> MutexGuard<'_, Stream> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(
        &self,
        (kind, flags): (u16, u16),
        cookie: u64,
        (offset, length): (u64, u32),
        data: &[u8],
    ) -> io::Result<()> {
        let mut header = Vec::with_capacity(REQUEST_BYTES);
        header.extend(REQUEST_MAGIC.to_be_bytes());
        header.extend(flags.to_be_bytes());
        header.extend(kind.to_be_bytes());
        header.extend(cookie.to_be_bytes());
        header.extend(offset.to_be_bytes());
        header.extend(length.to_be_bytes());
        let mut stream = self.sender();
        stream.write_all(&header)?;
        stream.write_all(data)
    }

    fn hang_up(&self) {
        self.sender().hang_up();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The server goes in either case, and nothing is under way.
        let _ = self.send((command::DISC, 0), 0, (0, 0), &[]);
        self.hang_up();
    }
}

/// Hears the answers.
struct Answers {
    stream: Stream,
    shared: Arc<Shared>,
}

impl Answers {
    fn hear_all(&mut self) -> io::Result<std::convert::Infallible> {
        loop {
            if number::<4>(self)? != u64::from(SIMPLE_REPLY_MAGIC) {
                return Err(wrong("its answer is none"));
            }
            let (error, cookie) = (number::<4>(self)?, number::<8>(self)?);
            let found = self.shared.table().waiting.remove(&cookie);
            let Some(Waiting { mut buffer, answer, .. }) = found else {
                return Err(wrong("it answers what was not asked"));
            };
            let result = match error {
                0 => self.read_exact(&mut buffer).map(|()| buffer),
                error => {
                    // Nobody may wait for it any more.
                    let _ = answer.send(Err(io::Error::from_raw_os_error(error as i32)));
                    continue;
                }
            };
            let ended = result.as_ref().err().map(|error| io::Error::new(ErrorKind::NotConnected, error.to_string()));
            let _ = answer.send(result.map_err(|error| io::Error::new(ErrorKind::NotConnected, error.to_string())));
            if let Some(error) = ended {
                return Err(error);
            }
        }
    }
}

impl Read for Answers {
    /// Waits for as long as nobody waits too long.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.shared.waits_too_long() {
                        let seconds = PATIENCE.as_secs();
                        return Err(wrong(&format!("it did not answer within {seconds} s")));
                    }
                }
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests;
