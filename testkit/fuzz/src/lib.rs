//! Hostile input: every server and parser of OpenVSL, fed with bytes that nobody well-meaning would send.
//!
//! **What it is for.** Each [`Target`] takes any bytes at all and must come through: no panic on any thread, no endless loop, no
//! large allocation, no answer that breaks its protocol. A target that is about structure (a handshake, a medium) reads its
//! input as a series of choices and builds something almost valid from them, with lengths and checksums that fit, so that the
//! code behind the first check is reached. A target that is about text takes the bytes as they are.
//!
//! **Where to start.** [`runner::run`] feeds one target; `targets/` holds them. `vsl-fuzz` is both on the command line. What was
//! found stands in `regressions/`, one input a file, and is replayed by the tests.

mod choices;
mod memory;
mod mutate;
pub mod runner;
mod targets;

pub use targets::{TARGETS, Target, find};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;
