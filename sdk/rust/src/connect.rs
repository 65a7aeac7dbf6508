//! Connects to a device of a service.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nvme::auth::{Keys, Policy, Secret};
use nvme::fabrics::DISCOVERY_NQN;
use nvme::initiator::{self, Controller, Host, Link, Namespace};
use nvme::namespace::combine;
use uuid::Uuid;

use crate::address::Place;
use crate::{Address, Capabilities, OpenError};

/// How long a service may take for each answer while it is connected to.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests outstanding at a time; more wait here.
pub(crate) const DEPTH: u16 = 128;
/// In a subsystem's kind: one with namespaces, no other discovery service.
const SUBSYSTEM: u8 = 2;
/// The one namespace of a device.
const NAMESPACE: u32 = 1;

/// Who we say we are.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The name (NQN) that the service knows us by; one that nobody else has where there is none.
    pub host: Option<String>,
    /// The secret by which we prove it, where the service asks for that (`vsl up --nvme-hosts`).
    pub secret: Option<Secret>,
    /// The secret by which the service must prove that it is the one.
    pub service_secret: Option<Secret>,
    /// How long a connection that has ended is made anew before requests fail; never where there is none.
    ///
    /// Requests that were under way when it ended fail with [`Error::Disconnected`](crate::Error::Disconnected): they were carried
    /// out as a whole, or not at all. Later ones wait. Where writes had been answered that no flush covers, the next flush fails
    /// with the same error, once: the device may have lost them meanwhile.
    pub reconnect: Option<Duration>,
}

/// How a connection is made, and made anew.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    address: Address,
    options: ConnectOptions,
    /// Who we are to the service. Of two associations of one host only the younger lives, so nothing that was sent over an old
    /// connection is carried out once there is a new one; and each device that is connected to is a host of its own.
    id: Uuid,
}

impl Dial {
    pub(crate) fn new(address: &Address, options: &ConnectOptions) -> Dial {
        Dial { address: address.clone(), options: options.clone(), id: Uuid::new_v4() }
    }

    /// How long to try again.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.options.reconnect
    }
}

pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(place: &Place) -> io::Result<Stream> {
        let stream = match place {
            Place::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        };
        stream.wait_at_most(Some(PATIENCE))?;
        Ok(stream)
    }

    fn wait_at_most(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit)),
            Stream::Tcp(stream) => stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit)),
        }
    }

    fn never_wait(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tcp(stream) => stream.set_nonblocking(true),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(buffer),
            Stream::Tcp(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// A device that is connected to.
pub(crate) struct Connected {
    /// The association lasts as long as its admin queue.
    pub(crate) controller: Controller<Stream>,
    pub(crate) link: Link<Stream>,
    pub(crate) namespace: Namespace,
    pub(crate) capabilities: Capabilities,
}

pub(crate) fn connect(dial: &Dial) -> Result<Connected, OpenError> {
    let Dial { address, options, id } = dial;
    let unreachable = |error| OpenError::Unreachable { address: address.to_string(), error };
    let refused = |error: initiator::Error| match error {
        initiator::Error::Io(error) => unreachable(error),
        error => OpenError::Refused { address: address.to_string(), error },
    };
    let stream = || Stream::connect(&address.place).map_err(unreachable);
    let name = options.host.clone().unwrap_or_else(|| format!("nqn.2014-08.org.nvmexpress:uuid:{id}"));
    let mut host = Host::new(&name, *id.as_bytes());
    if let Some(secret) = &options.secret {
        let keys = Keys { host: secret.clone(), controller: options.service_secret.clone() };
        host = host.with_keys(keys, Policy::default());
    }
    let how = initiator::ConnectOptions::default();
    let subsystem = match &address.subsystem {
        Some(subsystem) => subsystem.clone(),
        None => {
            let mut discovery = host.connect(stream()?, DISCOVERY_NQN, &how).map_err(refused)?;
            let log = discovery.discover().map_err(refused)?;
            let mut names: Vec<String> =
                log.entries.into_iter().filter(|entry| entry.kind == SUBSYSTEM).map(|entry| entry.subsystem).collect();
            names.sort();
            names.dedup();
            match <[String; 1]>::try_from(names) {
                Ok([name]) => name,
                Err(names) => {
                    return Err(OpenError::Ambiguous { address: address.to_string(), count: names.len() });
                }
            }
        }
    };
    let mut controller = host.connect(stream()?, &subsystem, &how).map_err(refused)?;
    let namespace = controller.namespace(NAMESPACE).map_err(refused)?;
    let mut link = controller.io_queue(stream()?, 1, DEPTH).map_err(refused)?.into_link();
    link.stream_mut().never_wait().map_err(unreachable)?;
    let block = u64::from(namespace.block_bytes);
    let atomic = namespace.atomic_blocks.map_or(block, |blocks| u64::from(blocks) * block);
    let transfer = controller.info().max_transfer_bytes.unwrap_or(atomic);
    let capabilities = Capabilities {
        uuid: Uuid::from_bytes(combine(namespace.nguid, namespace.snapshot)).to_string(),
        sector_bytes: namespace.block_bytes,
        sectors: namespace.blocks,
        max_write_bytes: u32::try_from(atomic.min(transfer)).unwrap_or(u32::MAX),
        read_only: namespace.read_only,
        snapshot: namespace.snapshot,
    };
    Ok(Connected { controller, link, namespace, capabilities })
}
