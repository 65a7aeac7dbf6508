//! The routes, by what they are about.

pub mod accounts;
pub mod alerts;
pub mod arrays;
pub mod assets;
pub mod bugreport;
pub mod caches;
pub mod clones;
pub mod demo;
pub mod devices;
pub mod history;
pub mod hosts;
pub mod jobs;
pub mod lab;
pub mod lifetime;
pub mod media;
pub mod moves;
pub mod prometheus;
pub mod session;
pub mod snapshots;
pub mod stream;
pub mod telemetry;
