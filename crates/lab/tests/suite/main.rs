//! Workloads, protocols and runs, held against theory and against data sheets.

mod common;
mod protocols;
mod queueing;
mod runs;
mod sheets;
mod traces;
mod trust;
mod waf;
