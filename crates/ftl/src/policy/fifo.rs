//! First in, first out: the LEB that was closed first. What the first log-structured cards did; it wears all LEBs alike.

use super::{GroomPolicy, LebView};

/// The first-in-first-out policy.
pub struct Fifo;

impl GroomPolicy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn score(&self, leb: &LebView) -> f64 {
        leb.age() as f64
    }
}
