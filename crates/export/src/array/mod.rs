//! Arrays: devices that have threads of their own, served together by one more.
//!
//! The array's thread is a [`crate::Worker`] like a device's. It drives the state machine of the crate `array`, and reaches each member
//! over a [`lane::Lane`].

mod assemble;
mod error;
mod joined;
pub(crate) mod lane;
pub(crate) mod member;

pub(crate) use assemble::Claimant;
pub use assemble::{ArrayMember, ArrayPlan};
pub use error::ArrayError;
pub use joined::Joined;
