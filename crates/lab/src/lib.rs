//! The lab: descriptions of workloads, the engines that run them, test protocols, statistics and results.
//!
//! **What it is for.** Asking a device the same thing again and again, and saying honestly how it answered. The device is a
//! model in virtual time, or through fio any file, block device or NBD export.
//!
//! **What it promises.** The same workload, device and seed give the same results, byte for byte. Every request that is
//! submitted completes and is counted once; if a device loses one, the run fails and says so. Percentiles come from histograms of
//! single requests, and are shown only when enough samples stand behind them.
//!
//! **Where to start.** [`workload::Workload`] says what to do, [`engine::virtual_time::run`] does it, [`results::Results`] is what comes
//! out. [`simulation::Simulation`] does so on the device of a data sheet. [`protocol::Protocol`] is a whole test protocol, [`run::conduct()`] runs it on a [`target::Target`], [`run::Run`] is what comes
//! out.

pub mod cached;
pub mod engine;
pub mod fio_job;
pub mod generate;
pub mod host;
pub mod protocol;
pub mod published;
pub mod results;
pub mod run;
pub mod simulation;
pub mod stats;
pub mod steady;
pub mod target;
pub mod waf;
pub mod workload;
