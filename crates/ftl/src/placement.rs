//! Placement: the host says which of its writes belong together, as with NVMe's flexible data placement.
//!
//! Where the policy goes by placements ([`Policy::goes_by_placements`](crate::Policy::goes_by_placements)), a placement is a stream of its own, and its open LEB the reclaim unit that its handle
//! refers to.

use crate::groom::Victim;
use crate::layer::Ftl;
use crate::leb::Stream;
use crate::snapshot::clones::sector_of;
use crate::types::{Admission, Request, Tag};

/// So many LEBs that were groomed are kept until they are asked for: as many as a log of events has room for.
const RECLAIMED_MAX: usize = 63;

/// A LEB whose live sectors the groomer wrote elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reclaimed {
    /// The placement that it was written by; none where the groomer had filled it.
    pub placement: Option<u8>,
    /// How many sectors were moved.
    pub sectors: u32,
    /// The first of them: where it stands on the device, or on the clone that it is of.
    pub lba: u64,
}

impl Ftl {
    /// How many placements are told apart: 1 where the policy goes by something else.
    pub fn placements(&self) -> u8 {
        if self.config.policy.goes_by_placements() { self.groomer.host_streams } else { 1 }
    }

    /// [`Ftl::submit`]: what is written belongs together with other writes of the same placement. 0 for those of which nothing is said.
    pub fn submit_placed(&mut self, placement: u8, tag: Tag, request: Request<'_>) -> Admission {
        self.placement = placement;
        let admission = self.submit(tag, request);
        self.placement = 0;
        admission
    }

    /// What is written to a placement from now on goes to another LEB than what was written to it before.
    pub fn renew_placement(&mut self, placement: u8) {
        let stream = Stream::Data(placement);
        if placement >= self.placements() || self.open_leb_of(stream).is_none() {
            return;
        }
        self.give_up(stream);
        self.work();
    }

    /// What the groomer moved out of a LEB since this was asked last, the oldest first: the latest [`RECLAIMED_MAX`] are known. None where
    /// placements count for nothing.
    pub fn next_reclaimed(&mut self) -> Option<Reclaimed> {
        self.groomer.reclaimed.pop_front()
    }

    /// The groomer is done with a LEB.
    pub(crate) fn note_reclaimed(&mut self, victim: &Victim) {
        let placements = self.placements();
        if placements == 1 || victim.moved == 0 {
            return;
        }
        let placement = match self.lebs[victim.leb].stream {
            Stream::Data(placement) if placement < placements => Some(placement),
            _ => None,
        };
        let reclaimed = &mut self.groomer.reclaimed;
        if reclaimed.len() == RECLAIMED_MAX {
            reclaimed.pop_front();
        }
        reclaimed.push_back(Reclaimed { placement, sectors: victim.moved, lba: sector_of(victim.first) });
    }

    /// Whether a write rather waits for a LEB that is being made ready than go where it does not belong. Other policies guess where it
    /// belongs, and lose little.
    pub(crate) fn waits_for_leb(&self) -> bool {
        let coming = self.preparing as usize + self.cleaning.len();
        let can_open_then = coming + self.ready.len() + self.free.len() > self.host_reserve();
        self.config.policy.goes_by_placements() && self.no_space.is_none() && coming > 0 && can_open_then
    }

    /// Sectors that can be written to a placement until it begins another LEB: a whole LEB where none is open, and none to a placement that
    /// is not told apart.
    pub fn left_in_placement(&self, placement: u8) -> u32 {
        if placement >= self.placements() {
            return 0;
        }
        match self.open_leb_of(Stream::Data(placement)) {
            Some(_) => self.left_in_open(Stream::Data(placement)),
            // Its first slot says what it is.
            None => self.narrow.leb_slots - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Config, small};
    use crate::policy::Policy;

    #[test]
    fn a_write_waits_for_an_erase_block_rather_than_be_mixed_with_others() {
        let mut layer = small::attached(Config { policy: Policy::Placement, ..small::config() });
        assert!(layer.placements() > 4);
        layer.work();
        small::make_ready(&mut layer);
        let place = |layer: &mut Ftl, placement: u8| {
            layer.submit_placed(placement, 0, Request::Write { lba: placement.into(), count: 1, fua: false })
        };
        // There are as many ready as the first ones take.
        let taken = (0..layer.placements()).take_while(|placement| place(&mut layer, *placement) == Admission::Done);
        let taken = taken.count() as u8;
        assert!(0 < taken && taken < layer.placements(), "{taken}");
        assert_eq!(layer.open_leb_of(Stream::Data(taken)), None);
        small::make_ready(&mut layer);
        assert_eq!(place(&mut layer, taken), Admission::Done);
        assert!(layer.open_leb_of(Stream::Data(taken)).is_some());
        layer.verify().expect("sound");
    }
}
