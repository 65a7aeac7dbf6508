//! NVMe over TCP: the handshake on threads of its own, queues on the device's thread.
//!
//! What NVMe means stands in the crate `nvme`; here are its bytes on sockets, and what its commands ask of a device. A host's
//! connection is one queue. The handshake ([`server`]) leads it through ICReq and Connect, and asks the device's thread to let
//! the queue in; from then on [`session`] serves it there.

/// Between the name of a device's subsystem and that of a snapshot, in the name of the snapshot's subsystem.
pub(crate) const SNAPSHOT: char = '@';
/// In the refusal of a Connect: there is no subsystem of that name.
pub(crate) const UNKNOWN_SUBSYSTEM: u64 = 1 << 16 | 256;

mod discovery;
mod handshake;
mod hosts;
mod server;
mod session;
mod subject;

pub use hosts::{Hosts, HostsError};
pub use server::{Export, Options, Server};
pub use session::Session;

pub(crate) use handshake::Joined;
pub(crate) use session::collect as collect_events;
pub(crate) use subject::{describe, warnings};
