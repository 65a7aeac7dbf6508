//! The types of the HTTP API, shared by the service and everyone who talks to it.

mod access;
mod alerts;
mod arrays;
mod caches;
mod card;
mod clones;
mod devices;
mod fleet;
mod hosts;
mod jobs;
mod media;
mod moves;
mod snapshots;
mod telemetry;
mod view;

pub use access::*;
pub use alerts::*;
pub use arrays::*;
pub use caches::*;
pub use clones::*;
pub use devices::*;
pub use fleet::*;
pub use hosts::*;
pub use jobs::*;
pub use media::*;
pub use moves::*;
pub use snapshots::*;
pub use telemetry::*;
pub use view::*;

/// Where the API's paths begin.
pub const PREFIX: &str = "/api/v1";
