//! The types of the HTTP API, shared by the service and everyone who talks to it.

mod access;
mod alerts;
mod devices;
mod hosts;
mod jobs;
mod media;
mod telemetry;

pub use access::*;
pub use alerts::*;
pub use devices::*;
pub use hosts::*;
pub use jobs::*;
pub use media::*;
pub use telemetry::*;

/// Where the API's paths begin.
pub const PREFIX: &str = "/api/v1";

/// A plain value of an enumeration as the word that JSON has for it.
pub(crate) fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_string)).unwrap_or_default()
}
