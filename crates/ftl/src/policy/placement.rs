//! Placement: the host says what belongs together, and that has a stream of its own. In the terms of NVMe's flexible data placement
//! (Base Specification 2.1, 3.2.4) its handles are initially isolated: what the groomer moves lies apart from what the host writes.
//!
//! The layer's own policy has several streams for what is moved, so that what was written to different handles lies apart as far as these go round. Which LEB
//! to groom is decided by how fast it empties by itself, as LEBs did that were filled by the same stream: logs and rounds, which die all at once, are waited for.
//!
//! The other one is that of the drives that can be bought, which is what it is for: their models. All that is moved lies together, and the emptiest LEB is groomed
//! next. So do devices of zones, whose handles are their active zones.

use super::victims::{Row, Victims};
use super::{Destination, Eligible, GroomPolicy, LebView, Moved, Shape, Write};
use crate::types::LebId;

/// The placement policies.
pub struct Placement {
    streams: u8,
    /// Of what is moved, behind those of the handles. Where there is none it stays with its handle.
    moved: u8,
    /// None where the emptiest LEB is groomed next.
    victims: Option<Victims>,
    name: &'static str,
}

impl Placement {
    /// The layer's own.
    pub(super) fn new(shape: &Shape) -> Placement {
        let Shape { sectors, streams, .. } = *shape;
        let said = vec![(sectors as f32).max(1.0); streams.into()];
        let victims = Some(Victims::new(shape, said, Row(0)));
        Placement { streams, moved: streams / 3, victims, name: "placement" }
    }

    /// That of drives.
    pub(super) fn initial(shape: &Shape) -> Placement {
        Placement { streams: shape.streams, moved: 1, victims: None, name: "placement-initial" }
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

    fn reshaped(&mut self, shape: &Shape) {
        if let Some(victims) = &mut self.victims {
            victims.grow(shape.lebs);
        }
    }

    fn host_streams(&self) -> u8 {
        self.streams - self.moved
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
        let handles = self.host_streams();
        Destination::of(match self.moved {
            // What was moved before stays where it is, unless it was by another policy.
            count if moved.stream < handles && count > 0 => handles + moved.stream % count,
            _ => moved.stream.min(self.streams - 1),
        })
    }

    fn opened(&mut self, leb: LebId, _: u8) {
        if let Some(victims) = &mut self.victims {
            victims.opened(leb);
        }
    }

    fn closed(&mut self, leb: LebId, stream: u8) {
        if let Some(victims) = &mut self.victims {
            victims.closed(leb, Row(stream.min(self.streams - 1)), None);
        }
    }

    fn took(&mut self, victim: &LebView) {
        if let Some(victims) = &mut self.victims {
            victims.took(victim);
        }
    }

    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        if let Some(victims) = &mut self.victims {
            victims.survey(eligible);
        }
        eligible.best(|leb| self.score(leb))
    }

    fn score(&self, leb: &LebView) -> f64 {
        match &self.victims {
            Some(victims) => victims.score(leb).into(),
            None => -f64::from(leb.live),
        }
    }

    fn memory(&self) -> usize {
        self.victims.as_ref().map_or(0, Victims::memory)
    }
}
