//! The NBD protocol: the handshake on threads of its own, the transmission phase on the device's thread; and a client of other servers.

pub mod client;
mod meta;
pub mod negotiate;
pub mod proto;
mod reply;
pub mod request;
mod server;
mod session;
mod status;
mod stdio;
pub mod stream;
pub mod tls;

pub use server::{Export, Options, Server};
pub use session::Session;
pub use status::Context;
pub use stdio::serve_stdio;
pub use tls::{Tls, TlsError};
