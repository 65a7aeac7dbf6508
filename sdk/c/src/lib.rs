//! The C library: the names of the published NVM primitives, and a few of our own for what those left to the kernel.
//!
//! Programs hold devices by numbers. Every function checks its pointers for null; what a pointer that is not null points to is the
//! caller's promise, as in any C library. Nothing panics.

#![allow(non_camel_case_types)]

mod capability;
mod handles;
mod ours;
mod primitives;
mod range;
mod types;

pub use capability::*;
pub use ours::*;
pub use primitives::*;
pub use range::*;
pub use types::*;
