//! Placement: the host says what belongs together, and that has a stream of its own; what the groomer moves stays in it. Victims by cost and
//! benefit: streams of different lives have different ages.
//!
//! NVMe's flexible data placement would call its handles persistently isolated (Base Specification 2.1, 3.2.4), but that it is no promise:
//! when erase blocks are scarce the groomer moves sectors to whichever is open.

use super::{Destination, GroomPolicy, LebView, Moved, Shape, Write, cost_benefit};

/// The placement policy.
pub struct Placement {
    streams: u8,
}

impl Placement {
    pub(super) fn new(shape: &Shape) -> Placement {
        Placement { streams: shape.streams }
    }
}

impl GroomPolicy for Placement {
    fn name(&self) -> &'static str {
        "placement"
    }

    fn host_streams(&self) -> u8 {
        self.streams
    }

    fn streams(&self) -> u8 {
        self.streams
    }

    fn learns(&self) -> bool {
        true
    }

    fn place(&mut self, write: &Write) -> u8 {
        write.placement.min(self.streams - 1)
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        Destination::of(moved.stream.min(self.streams - 1))
    }

    fn score(&self, leb: &LebView) -> f64 {
        cost_benefit::worth(leb)
    }
}
