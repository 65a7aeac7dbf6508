//! A client on its way from the handshake to its device's thread.

use super::clients::Ticket;
use super::request::Limits;
use super::transport::Transport;
use crate::seats::Seat;

/// What the worker is told when a client comes out of the handshake.
pub struct NewConnection {
    /// The socket.
    pub transport: Transport,
    /// What its requests are measured against.
    pub limits: Limits,
    /// Who it is, for people.
    pub peer: String,
    /// The export it chose.
    pub export: String,
    /// Given back when the connection ends.
    pub ticket: Ticket,
    /// What makes the device wait for it, from [`crate::WorkerHandle::reserve`].
    pub seat: Seat,
}
