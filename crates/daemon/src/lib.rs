//! The service: it owns attached devices, exports them over NBD and answers an HTTP API on a Unix
//! socket. This is the control plane only; no request of a client ever comes through here. `web` answers requests, and everything
//! else is the service, which knows nothing of `web`.

mod access;
mod alerts;
pub mod api;
mod audit;
mod behind;
mod clock;
pub mod create;
pub mod exports;
mod failure;
pub mod fields;
pub mod handle;
mod hosts;
mod jobs;
pub mod logging;
mod monitor;
mod names;
mod net;
mod paths;
mod program;
mod registry;
mod remote;
mod schedule;
pub mod serve;
mod service;
pub mod settings;
mod state;
mod stored;
mod target;
mod ticker;
mod web;

pub use access::Origins;
pub use failure::{Failure, Kind};
pub use jobs::prediction;
pub use media::ring::without_io_uring;
pub use media::staged::is_in_memory;
pub use paths::Paths;
pub use program::{Asset, Program};
pub use state::{Remembered, remembered};
pub use target::Target;
pub use web::in_process;
