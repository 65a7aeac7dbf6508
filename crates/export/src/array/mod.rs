//! Arrays: devices that have threads of their own, served together by one more.
//!
//! An array is a [`crate::Composite`] that drives the state machine of the crate `array`; here is how its thread begins.

mod assemble;
mod error;

pub use assemble::{ArrayMember, ArrayPlan};
pub(crate) use assemble::{Claimant, Part};
pub use error::ArrayError;
