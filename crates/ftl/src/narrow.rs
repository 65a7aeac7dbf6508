//! A layout that shrinks: from some moment on, stripes have fewer data lanes, and everything that stands in wider ones is written anew.
//!
//! A card that loses a chip for good goes on like this. The last lanes of each stripe are left empty in every LEB that is opened from
//! then on; which dies serve the others is the medium's business. Slots keep their numbers. The groomer moves everything out of the LEBs that
//! were opened before, whatever they hold, and the next checkpoint takes the place of the one that lies there.

use crate::checkpoint::further_lebs;
use crate::geometry::Geometry;
use crate::layer::{Config, Ftl};
use crate::leb::{Leb, LebState, Stream};
use crate::space::{max_sectors, room_beside};
use crate::types::LebId;

/// How far the layout has shrunk.
pub(crate) struct Narrow {
    /// Data lanes at the end of each stripe that stay empty in LEBs that are opened.
    lanes: u32,
    /// Slots that such a LEB has.
    pub leb_slots: u32,
    /// LEBs opened before this number have more lanes.
    before: u64,
    /// How many of them there were, and how many are still in use.
    wide: u32,
    left: u32,
}

impl Narrow {
    /// All lanes are in use.
    pub fn new(geometry: &Geometry) -> Narrow {
        Narrow { lanes: 0, leb_slots: geometry.slots_per_leb(), before: 0, wide: 0, left: 0 }
    }

    /// The data page of a LEB that is filled after this one.
    #[inline]
    pub fn page_after(&self, geometry: &Geometry, page: u32) -> u32 {
        let next = page + 1;
        match self.lanes {
            0 => next,
            lanes if next % geometry.data_dies() == geometry.data_dies() - lanes => next + lanes,
            _ => next,
        }
    }

    /// Slots of a LEB in use before a data page.
    #[inline]
    pub fn slots_before(&self, geometry: &Geometry, page: u32) -> u32 {
        let left_out = if self.lanes == 0 { 0 } else { page / geometry.data_dies() * self.lanes };
        (page - left_out) * geometry.slots_per_page
    }

    /// A LEB that was in use, opened at this number, is not any more.
    pub fn freed(&mut self, opened: u64) {
        if opened < self.before {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Whether a LEB is in use that was opened with more lanes.
    fn is_wide(&self, leb: &Leb) -> bool {
        leb.opened < self.before && holds(leb)
    }
}

/// Whether something stands in a LEB that may be needed.
fn holds(leb: &Leb) -> bool {
    matches!(leb.state, LebState::Open | LebState::Closed | LebState::Grooming | LebState::Emptied)
}

impl Ftl {
    /// What it would be made with if no stripe had ever had more lanes than new ones have. Slots are numbered as ever.
    pub(crate) fn narrowed(&self) -> Config {
        self.narrowed_by(self.narrow.lanes)
    }

    fn narrowed_by(&self, lanes: u32) -> Config {
        let geometry = self.config.geometry;
        Config { geometry: Geometry { parity: geometry.parity + lanes, ..geometry }, ..self.config.clone() }
    }

    /// Whether what the device holds, and what its host may write, has room in stripes with so many data lanes less than they were made
    /// with.
    pub fn can_narrow(&self, lanes: u32) -> bool {
        let geometry = self.config.geometry;
        if lanes >= geometry.data_dies() {
            return false;
        }
        let config = self.narrowed_by(lanes);
        let largest = config.geometry.slots_per_leb();
        let has_room = !self.has_views || self.live_sectors() <= room_beside(&config, self.views.bytes());
        self.map.sectors() <= max_sectors(&config.geometry) && self.config.max_request + 1 < largest / 2 && has_room
    }

    /// From now on LEBs that are opened leave the last `lanes` data lanes of each stripe empty, and what stands in LEBs that were opened
    /// before number `before` is moved away. To be called while no LEB is open, see [`Ftl::close_open_lebs`]; with the same once more, what
    /// could not be moved is tried again.
    pub fn narrow(&mut self, lanes: u32, before: u64) {
        let leb_slots = self.narrowed_by(lanes).geometry.slots_per_leb();
        self.narrow = Narrow { lanes, leb_slots, before, wide: 0, left: 0 };
        let wide: Vec<(LebId, bool)> = (self.lebs.iter())
            .filter(|(_, leb)| self.narrow.is_wide(leb))
            .map(|(id, leb)| (id, leb.state == LebState::Closed && leb.stream != Stream::Checkpoint))
            .collect();
        (self.narrow.wide, self.narrow.left) = (wide.len() as u32, wide.len() as u32);
        for (leb, _) in wide.into_iter().filter(|(_, to_move)| *to_move) {
            // What could not be read may be readable again.
            (self.lebs[leb].unsound, self.lebs[leb].damaged) = (true, false);
            self.groomer.evacuations.push(leb);
        }
        if let Some(victim) = &mut self.groomer.victim {
            victim.ahead = false;
        }
        let config = self.narrowed();
        self.groomer.pace.set_further(&config, further_lebs(&config, self.views.bytes()));
        self.resize();
        self.renew_checkpoint();
    }

    /// Asks for another checkpoint where a part of the last one lies in stripes with too many lanes.
    pub(crate) fn renew_checkpoint(&mut self) {
        let wide = |leb: &LebId| self.lebs[*leb].opened < self.narrow.before;
        if self.checkpointer.lebs().iter().any(wide) {
            self.checkpointer.want();
        }
    }

    /// While LEBs are in use that have more lanes than new ones: how many are left of how many.
    pub fn narrowing(&self) -> Option<(u32, u32)> {
        let Narrow { left, wide, .. } = self.narrow;
        (left > 0).then_some((left, wide))
    }

    /// Whether a LEB holds something and was opened before a number.
    pub fn is_from_before(&self, leb: LebId, number: u64) -> bool {
        let leb = &self.lebs[leb];
        leb.opened < number && holds(leb)
    }
}
