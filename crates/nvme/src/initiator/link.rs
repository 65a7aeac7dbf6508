//! Drives a queue over a stream: the one place of the initiator that reads and writes.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

use super::{Broken, Command, Completion, Queue, QueueOptions};
use crate::Status;
use crate::auth::Failure;

/// What is read at a time, bytes.
const READ_BYTES: usize = 256 << 10;

/// What may go wrong between a host and a controller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream failed. `WouldBlock` and timeouts leave the link as it was: the call may be made again.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The controller closed the stream.
    #[error("the controller closed the connection")]
    Closed,
    /// The protocol was not kept, or the controller gave up.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// All commands of the queue are outstanding: take a completion first.
    #[error("all commands of the queue are outstanding")]
    Full,
    /// The controller did not carry a command out.
    #[error("{command}: the controller answers with status {:#05x}", status.0)]
    Refused {
        /// The command.
        command: &'static str,
        /// The controller's answer.
        status: Status,
    },
    /// The controller answered with what cannot be.
    #[error("the controller's answer makes no sense: {0}")]
    Answer(&'static str),
    /// The host or the controller did not prove who it is.
    #[error("authentication failed: {0}")]
    Unauthenticated(Failure),
    /// A name that fits into no command.
    #[error("\"{0}\" is no NQN: it begins with \"nqn.\" and has 223 bytes at most")]
    Name(String),
}

/// A queue and the stream that it is connected over.
///
/// With a stream that blocks, calls wait for what they are about. With one that does not, they fail with `WouldBlock` instead, and
/// may be made again once the stream is readable, or writable where [`Link::has_output`]. Reads of a blocking stream that are to
/// end must have a timeout of the stream's own. A blocking stream can stall where neither side reads because both write: keep what
/// is outstanding below what sockets buffer, or do not block.
pub struct Link<S> {
    queue: Queue,
    stream: S,
    buffer: Box<[u8]>,
    /// Ended while another command was waited for.
    kept: VecDeque<Completion>,
}

impl<S: Read + Write> Link<S> {
    /// Connects a queue: sends ICReq and waits for the answer. The stream must block meanwhile.
    ///
    /// # Errors
    /// The stream fails, or the other side is no controller.
    pub fn connect(stream: S, options: &QueueOptions) -> Result<Link<S>, Error> {
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        let mut link = Link { queue: Queue::new(options), stream, buffer, kept: VecDeque::new() };
        while link.queue.agreed().is_none() {
            link.advance()?;
        }
        Ok(link)
    }

    /// The queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The queue, to be configured.
    pub fn queue_mut(&mut self) -> &mut Queue {
        &mut self.queue
    }

    /// The stream: to wait for it, to set its timeouts, or to send what no queue would.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Commands that were submitted, and whose completion was not taken yet.
    pub fn outstanding(&self) -> usize {
        self.queue.outstanding() + self.kept.len()
    }

    /// Whether so many more commands may be submitted.
    pub fn has_room(&self, commands: usize) -> bool {
        self.outstanding() + commands <= self.queue.depth()
    }

    /// Whether bytes wait to be written.
    pub fn has_output(&self) -> bool {
        !self.queue.output().is_empty()
    }

    /// Puts a command into the output, and gives its identifier. [`Link::send`] or any wait writes it.
    ///
    /// # Errors
    /// The queue has no room.
    pub fn submit(&mut self, command: Command) -> Result<u16, Error> {
        if !self.has_room(1) {
            return Err(Error::Full);
        }
        self.queue.submit(command).map_err(|_| Error::Full)
    }

    /// Two commands that the controller carries out as one, or not at all.
    ///
    /// # Errors
    /// The queue has no room for both.
    pub fn submit_fused(&mut self, first: Command, second: Command) -> Result<(u16, u16), Error> {
        if !self.has_room(2) {
            return Err(Error::Full);
        }
        self.queue.submit_fused(first, second).map_err(|_| Error::Full)
    }

    /// Writes what waits to be written.
    ///
    /// # Errors
    /// The stream fails.
    pub fn send(&mut self) -> Result<(), Error> {
        while self.has_output() {
            match self.stream.write(self.queue.output()) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => self.queue.sent(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes what it can, then reads once.
    fn advance(&mut self) -> Result<(), Error> {
        match self.send() {
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            other => other?,
        }
        let count = loop {
            match self.stream.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if count == 0 {
            return Err(Error::Closed);
        }
        self.queue.receive(&self.buffer[..count]).map_err(|broken| {
            // Tells the controller; whether it still listens is its own matter.
            let _ = self.send();
            broken.into()
        })
    }

    /// Waits until any command ends.
    ///
    /// # Errors
    /// The connection is at an end, or does not block and has nothing.
    pub fn wait(&mut self) -> Result<Completion, Error> {
        if let Some(kept) = self.kept.pop_front() {
            return Ok(kept);
        }
        loop {
            if let Some(completion) = self.queue.completion() {
                return Ok(completion);
            }
            self.advance()?;
        }
    }

    /// Waits until one of these commands ends. What ends meanwhile is kept for later waits.
    ///
    /// # Errors
    /// The connection is at an end, or does not block and has nothing.
    pub fn wait_for(&mut self, any_of: &[u16]) -> Result<Completion, Error> {
        if let Some(at) = self.kept.iter().position(|kept| any_of.contains(&kept.cid))
            && let Some(kept) = self.kept.remove(at)
        {
            return Ok(kept);
        }
        loop {
            match self.queue.completion() {
                Some(completion) if any_of.contains(&completion.cid) => return Ok(completion),
                Some(other) => self.kept.push_back(other),
                None => self.advance()?,
            }
        }
    }

    /// Sends a command and waits for its end, however it ends.
    ///
    /// # Errors
    /// The connection is at an end, or the queue has no room.
    pub fn execute(&mut self, command: Command) -> Result<Completion, Error> {
        let cid = self.submit(command)?;
        self.wait_for(&[cid])
    }

    /// Sends a command that has to succeed.
    pub(super) fn succeed(&mut self, name: &'static str, command: Command) -> Result<Completion, Error> {
        let completion = self.execute(command)?;
        completion.succeeded(name)
    }
}

impl Completion {
    /// The completion of a command that succeeded; otherwise an error that has the command's name.
    ///
    /// # Errors
    /// It did not.
    #[inline]
    pub fn succeeded(self, command: &'static str) -> Result<Completion, Error> {
        if self.status.is_success() { Ok(self) } else { Err(Error::Refused { command, status: self.status }) }
    }
}
