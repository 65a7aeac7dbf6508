//! The NBD protocol: the handshake on threads of its own, the transmission phase on the device's thread.

pub mod arrival;
pub(crate) mod clients;
pub mod connection;
mod input;
pub mod listen;
mod meta;
pub mod negotiate;
pub mod proto;
mod reply;
pub mod request;
mod server;
mod status;
mod stdio;
pub mod stream;
pub mod tls;
pub mod transport;

pub use listen::{Address, Listener, inherited};
pub use server::{Export, Options, Server};
pub use stdio::serve_stdio;
pub use tls::{Tls, TlsError};
