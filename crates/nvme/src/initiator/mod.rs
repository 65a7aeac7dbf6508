//! The host's side: connects to a controller and sends it commands.
//!
//! Two layers, to be used as they fit:
//! - [`Queue`] is one queue pair without I/O: commands and bytes go in, bytes and completions come out. A program with its own
//!   event loop drives it.
//! - [`Link`] drives a queue over anything that reads and writes, a socket for example; [`Host`], [`Controller`] and [`IoQueue`]
//!   connect, enable and use a controller over links, one call a command or many commands at a time.
//!
//! A command is a [`Command`]: `Command::read`, `Command::identify` and so on build them.
//!
//! ```no_run
//! use nvme::initiator::{ConnectOptions, Host};
//! use std::net::TcpStream;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::new("nqn.2014-08.org.nvmexpress:uuid:8b6a4d0e-0c1f-4d5e-9a57-b1f3f3b8a001", [7; 16]);
//! let subsystem = "nqn.2026-11.org.openvsl:uuid:3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11";
//! let mut controller = host.connect(TcpStream::connect("127.0.0.1:4420")?, subsystem, &ConnectOptions::default())?;
//! let namespace = controller.namespace(1)?;
//! let mut queue = controller.io_queue(TcpStream::connect("127.0.0.1:4420")?, 1, 32)?;
//! queue.write(&namespace, 0, vec![7; 4096])?;
//! queue.flush(&namespace)?;
//! assert_eq!(queue.read(&namespace, 0, 4096 / namespace.block_bytes)?, [7; 4096]);
//! controller.disconnect()?;
//! # Ok(())
//! # }
//! ```
//!
//! The same without sockets, to see what travels:
//!
//! ```
//! use nvme::initiator::{Command, Queue, QueueOptions};
//! use nvme::pdu::{self, Digests, Init};
//! use nvme::{Cqe, Status};
//!
//! let mut queue = Queue::new(&QueueOptions::new(4));
//! assert_eq!(queue.output().len(), pdu::INIT_BYTES); // ICReq
//! queue.sent(pdu::INIT_BYTES);
//! let answer = Init { align: 4, digests: Digests::default(), limit: 128 << 10 };
//! queue.receive(answer.response().as_bytes()).unwrap();
//!
//! let cid = queue.submit(Command::flush(1)).unwrap();
//! assert_eq!(queue.output().len(), pdu::COMMAND_BYTES);
//! let done = pdu::response(&Cqe::new(cid, Status::SUCCESS), Digests::default());
//! queue.receive(done.as_bytes()).unwrap();
//! assert_eq!(queue.completion().unwrap().cid, cid);
//! ```

mod admin;
mod authentication;
mod describe;
mod host;
mod io;
mod io_queue;
mod link;
mod queue;
mod unit;

pub use admin::LogPage;
pub use describe::{ControllerInfo, DiscoveryEntry, DiscoveryLog, Namespace};
pub use host::{ConnectOptions, Controller, Host};
pub use io::Range;
pub use io_queue::IoQueue;
pub use link::{Error, Link};
pub use queue::{Completion, Full, MAX_DEPTH, Queue, QueueOptions};

use crate::Sqe;
use crate::pdu::Fatal;

/// A command, whose identifier the queue fills in, and what goes with it.
#[derive(Debug)]
pub struct Command {
    /// The entry.
    pub entry: Sqe,
    /// Its data.
    pub payload: Payload,
}

impl Command {
    /// A command without data.
    pub fn bare(entry: Sqe) -> Command {
        Command { entry, payload: Payload::None }
    }

    /// A command with data for the controller.
    #[inline]
    pub fn sending(entry: Sqe, data: Vec<u8>) -> Command {
        Command { entry, payload: Payload::Out(data) }
    }

    /// A command with so many bytes of data from the controller.
    pub fn receiving(entry: Sqe, len: u32) -> Command {
        Command { entry, payload: Payload::In(vec![0; len as usize]) }
    }
}

/// A command's data, at most 4 GiB less a byte.
#[derive(Debug, PartialEq, Eq)]
pub enum Payload {
    /// None.
    None,
    /// To the controller.
    Out(Vec<u8>),
    /// From the controller, as many bytes as the buffer has: it is an error when it sends fewer.
    In(Vec<u8>),
    /// From the controller, at most as many bytes as the buffer has.
    UpTo(Vec<u8>),
}

impl Payload {
    /// Bytes.
    pub fn bytes(&self) -> u32 {
        match self {
            Payload::None => 0,
            Payload::Out(data) | Payload::In(data) | Payload::UpTo(data) => {
                u32::try_from(data.len()).unwrap_or(u32::MAX)
            }
        }
    }

    /// Bytes that the controller may send; nothing where it may send none.
    fn room(&self) -> Option<u32> {
        match self {
            Payload::None | Payload::Out(_) => None,
            Payload::In(_) | Payload::UpTo(_) => Some(self.bytes()),
        }
    }

    fn space(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        match self {
            Payload::None | Payload::Out(_) => None,
            Payload::In(data) | Payload::UpTo(data) => data.get_mut(at..at.checked_add(len)?),
        }
    }
}

/// Why a connection is at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The controller sent what it must not: why, and the offset of the field that is wrong.
    #[error("the controller does not keep to the protocol: {0} (field at byte {1})")]
    Protocol(Fatal, u32),
    /// A command succeeded, but its data did not come.
    #[error("the controller sent less data than the command asked for")]
    Short,
    /// The controller ended the connection.
    #[error("the controller ended the connection (fatal error status {why:#x}, field at byte {field})")]
    Terminated {
        /// Fatal error status; see [`Fatal`].
        why: u16,
        /// The offset of the field of ours that it found wrong.
        field: u32,
    },
}

impl From<(Fatal, u32)> for Broken {
    fn from((why, field): (Fatal, u32)) -> Broken {
        Broken::Protocol(why, field)
    }
}
