//! Cost-benefit (Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System",
//! 1992, section 3.5): free space gained times its age, over the cost of reading the LEB and writing its live part.
//! Old LEBs are worth grooming at a higher utilisation, since what is still live in them will stay so.

use super::{Candidate, GroomPolicy};

/// The cost-benefit policy.
pub struct CostBenefit;

impl GroomPolicy for CostBenefit {
    fn name(&self) -> &'static str {
        "cost-benefit"
    }

    fn score(&self, candidate: &Candidate) -> f64 {
        let u = candidate.utilisation;
        (1.0 - u) * candidate.age as f64 / (1.0 + u)
    }
}
