//! The disk of a virtual machine: a vhost-user-blk back end.
//!
//! A front end (QEMU, cloud-hypervisor, libblkio) connects to a Unix socket and hands over the guest's memory, the queues' places
//! in it, and eventfds by which both sides wake each other. Each front end has a thread for these messages ([`Server`]), which
//! may wait as long as it likes. Requests themselves never pass through it: the device's thread finds them in the guest's
//! memory, carries them out, and answers there ([`Session`]).
//!
//! Whatever stands in a guest's memory may be hostile and may change at any moment: what is checked is copied first. Requests
//! under way keep the memory mapped that they were found in. What was taken and not answered stands in a region that the front
//! end keeps ([`inflight`]), so that the next process carries it out when this one dies.

mod back;
pub mod chain;
pub mod config;
mod control;
pub mod inflight;
pub mod memory;
pub mod proto;
pub mod request;
mod ring;
mod server;
mod session;

pub use ring::{Places, Ring, RingError};
pub use server::{Options, Server};
pub use session::{Refused, Session};
