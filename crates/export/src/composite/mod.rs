//! What one thread makes of devices that have threads of their own: an array, or a cached volume.
//!
//! The thread is a [`crate::Worker`] like a device's. It drives the state machine (`machine.rs`), and reaches each member over a
//! [`lane::Lane`]; a member's thread knows whose it is by a [`claim::Claim`].

pub(crate) mod claim;
#[allow(clippy::module_inception, reason = "the thing itself, beside what it is made of")]
mod composite;
pub(crate) mod lane;
mod machine;

pub use composite::Composite;
pub(crate) use composite::composite_info;
pub(crate) use machine::Machine;
