//! Placement: the host says what belongs together, and that has a stream of its own. In the terms of NVMe's flexible data placement
//! (Base Specification 2.1, 3.2.4) its handles are isolated in one of two ways:
//!
//! - **Persistently**: what the groomer moves stays in its stream, but that it is no promise: when erase blocks are scarce the groomer moves
//!   sectors to whichever is open. Victims by cost and benefit: streams of different lives have different ages.
//! - **Initially**: what the groomer moves lies together, apart from all that the host writes, and the emptiest LEB is groomed next. So do
//!   the drives that can be bought, which is what this is for: their models. So do devices of zones, whose handles are their active zones.

use super::{Destination, GroomPolicy, LebView, Moved, Shape, Write, cost_benefit};

/// The placement policies.
pub struct Placement {
    streams: u8,
    initially: bool,
    name: &'static str,
}

impl Placement {
    /// Isolated persistently.
    pub(super) fn new(shape: &Shape) -> Placement {
        Placement { streams: shape.streams, initially: false, name: "placement" }
    }

    /// Isolated initially.
    pub(super) fn initial(shape: &Shape) -> Placement {
        Placement { initially: true, name: "placement-initial", ..Placement::new(shape) }
    }

    /// The same, for zones.
    pub(super) fn zones(shape: &Shape) -> Placement {
        Placement { name: "zones", ..Placement::initial(shape) }
    }
}

impl GroomPolicy for Placement {
    fn name(&self) -> &'static str {
        self.name
    }

    fn host_streams(&self) -> u8 {
        self.streams - u8::from(self.initially)
    }

    fn streams(&self) -> u8 {
        self.streams
    }

    fn learns(&self) -> bool {
        true
    }

    fn place(&mut self, write: &Write) -> u8 {
        write.placement.min(self.host_streams() - 1)
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        let last = self.streams - 1;
        Destination::of(if self.initially { last } else { moved.stream.min(last) })
    }

    fn score(&self, leb: &LebView) -> f64 {
        if self.initially { -f64::from(leb.live) } else { cost_benefit::worth(leb) }
    }
}
