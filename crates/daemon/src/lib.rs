//! The service: it owns attached devices, exports them over NBD and answers an HTTP API on a Unix
//! socket. This is the control plane only; no request of a client ever comes through here.

pub mod api;
pub mod exports;
mod failure;
pub mod fields;
pub mod logging;
mod paths;
mod peer;
mod registry;
mod routes;
pub mod serve;
pub mod settings;
mod state;
mod target;

pub use failure::{Failure, Kind};
pub use paths::Paths;
pub use routes::in_process;
pub use state::{Remembered, remembered};
pub use target::Target;
