//! Greedy: the LEB with the fewest live slots. Best when all sectors are written equally often.

use super::{Destination, GroomPolicy, LebView, Moved};

/// The greedy policy.
pub struct Greedy {
    /// 2: what the groomer moves lies apart from what the host writes; 1: it does not.
    pub streams: u8,
}

impl GroomPolicy for Greedy {
    fn name(&self) -> &'static str {
        if self.streams == 1 { "greedy-one-stream" } else { "greedy" }
    }

    fn streams(&self) -> u8 {
        self.streams
    }

    fn place_moved(&mut self, _: &Moved) -> Destination {
        Destination::of(self.streams - 1)
    }

    fn score(&self, leb: &LebView) -> f64 {
        -f64::from(leb.live)
    }
}
