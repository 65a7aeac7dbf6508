//! Arrays: the real state machine of the crate `array` over real devices on simulated media.
//!
//! **What it promises.** What [`crate::run`] promises of a device holds of an array, whatever happens to its members: all lose power
//! at once, in traffic, while they are assembled or copied; one loses power alone, fails, comes back, is replaced. No member that
//! missed something is taken for one that has everything, and copies are the same when the array says so. Arrays grow in the middle of all
//! that: they have the new member or not, and lose nothing.

mod growth;
mod member;
mod plan;
mod requests;
mod run;
mod snapshots;

pub(crate) use member::Node;
pub(crate) use plan::{MemberPlan, SECTOR};
pub(crate) use run::run;
