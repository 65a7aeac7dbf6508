//! Placement: the host says which of its writes belong together, as with NVMe's flexible data placement.
//!
//! Where the policy is [`Policy::Placement`], a placement is a stream of its own, and its open LEB the reclaim unit that its handle
//! refers to.

use crate::layer::Ftl;
use crate::leb::Stream;
use crate::policy::Policy;
use crate::types::{Admission, Request, Tag};

impl Ftl {
    /// How many placements are told apart: 1 where the policy goes by something else.
    pub fn placements(&self) -> u8 {
        if self.config.policy == Policy::Placement { self.groomer.host_streams } else { 1 }
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
        self.host_left = self.left_for_host();
        self.work();
    }

    /// Sectors that can be written to a placement until it begins another LEB. A whole LEB where none is open.
    pub fn left_in_placement(&self, placement: u8) -> u32 {
        match self.open_leb_of(Stream::Data(placement)) {
            Some(_) => self.left_in_open(Stream::Data(placement)),
            // Its first slot says what it is.
            None => self.narrow.leb_slots - 1,
        }
    }
}
