//! Cached volumes: the real state machine of the crate `cache` over real devices on simulated media, one of which loses copies as it
//! pleases.
//!
//! **What it promises.** What [`crate::run`] promises of a device holds of a cached volume, whatever happens to the cache device and
//! the store behind: both lose power, or one of them, in traffic, while the volume is opened or stopped; the service dies. No read gives
//! what was there before, and in the end all of it stands behind.

mod plan;
mod requests;
mod run;

pub(crate) use run::run;
