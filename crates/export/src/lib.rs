//! How others reach a device: over NBD, or as the disk of a virtual machine (vhost-user-blk).
//!
//! A device has one thread, a [`Worker`], that does everything for it: the medium's I/O, and the sockets of all its
//! clients, on one `io_uring`. A client begins elsewhere: [`nbd::Server`] accepts it and haggles over options on a
//! thread of its own, because that part may be slow or hostile. Then it hands the socket to the device's thread.
//!
//! A request's way, all on the device thread: the ring finishes a receive, the protocol's session ([`nbd::Session`]) takes
//! the request from the buffer it arrived in, [`jobs`] submits it to the device; the answer, at once or from the ring later, goes
//! into the connection's output; the round ends with one send per client and one system call that waits for more.
//!
//! Promises:
//! - errors exactly as the NBD specification names them; hostile bytes close their own connection at worst;
//! - a flush covers what was answered on every connection of the device, because they share it;
//! - memory per client is bounded; a client that does not read its answers holds up only itself;
//! - a client that the device refuses for now is served in turn, so none starves.

mod acceptor;
mod array;
mod cached;
mod clients;
mod composite;
mod connection;
mod handle;
mod input;
mod jobs;
mod link;
mod listen;
mod moving;
pub mod nbd;
pub mod nvme;
mod observe;
mod output;
mod pool;
mod reading;
mod recording;
mod request;
mod seats;
mod served;
mod slow;
mod timed;
mod transport;
pub mod vhost;
mod worker;

pub use crate::array::{ArrayError, ArrayMember, ArrayPlan};
pub use crate::cached::{
    Behind, CacheError, CachePlan, CacheShare, FileStore, NbdStore, Store, witness_of, write_zeros,
};
pub use crate::composite::Composite;
pub use acceptor::Bounds;
pub use clients::Clients;
pub use handle::{ClientInfo, DetachError, FlushError, Gone, Look, Newcomer, NvmeInfo, Shape, View, WorkerHandle};
pub use listen::{Address, Listener, inherited};
pub use moving::{HandOverError, MoveError};
pub use observe::{Observed, Sort};
pub use recording::Recording;
pub use seats::Seat;
pub use served::Served;
pub use worker::Worker;
