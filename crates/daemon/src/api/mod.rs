//! The types of the HTTP API, shared by the service and everyone who talks to it.

mod access;
mod alerts;
mod devices;
mod hosts;
mod jobs;
mod telemetry;

pub use access::*;
pub use alerts::*;
pub use devices::*;
pub use hosts::*;
pub use jobs::*;
pub use telemetry::*;

/// Where the API's paths begin.
pub const PREFIX: &str = "/api/v1";
