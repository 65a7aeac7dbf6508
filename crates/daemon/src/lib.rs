//! The service: it owns attached devices, exports them over NBD and answers an HTTP API on a Unix
//! socket. This is the control plane only; no request of a client ever comes through here.

mod access;
mod alerts;
pub mod api;
mod audit;
mod bounds;
mod clock;
pub mod create;
pub mod exports;
mod failure;
pub mod fields;
mod hosts;
mod jobs;
pub mod logging;
mod monitor;
mod names;
mod net;
pub mod openapi;
mod paths;
mod registry;
mod remote;
mod routes;
pub mod serve;
pub mod settings;
mod state;
mod stored;
mod target;

pub use access::Origins;
pub use failure::{Failure, Kind};
pub use media::ring::without_io_uring;
pub use media::staged::is_in_memory;
pub use paths::Paths;
pub use routes::{Asset, Assets, in_process};
pub use state::{Remembered, remembered};
pub use target::Target;
