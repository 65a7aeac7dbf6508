//! Greedy: the LEB with the fewest live slots. Best when all sectors are written equally often.

use super::{Candidate, GroomPolicy};

/// The greedy policy.
pub struct Greedy;

impl GroomPolicy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn score(&self, candidate: &Candidate) -> f64 {
        1.0 - candidate.utilisation
    }
}
