//! What a policy sees of the LEBs.

use std::ops::Deref;

use crate::leb::{Leb, LebState, Lebs, Stream};
use crate::owners::Owners;
use crate::types::LebId;

/// A LEB that may be groomed.
#[derive(Clone, Copy)]
pub struct LebView<'a> {
    /// Its number.
    pub id: LebId,
    leb: &'a Leb,
    /// Its slots.
    pub slots: u32,
    /// The next sequence number.
    pub seq: u64,
    /// The host's clock: sectors that the host wrote.
    pub now: u64,
}

impl Deref for LebView<'_> {
    type Target = Leb;
    fn deref(&self) -> &Leb {
        self.leb
    }
}

impl LebView<'_> {
    /// Share of its slots that are live, 0 to 1.
    #[inline]
    pub fn utilisation(&self) -> f64 {
        f64::from(self.leb.live) / f64::from(self.slots)
    }

    /// Slots appended on the module since it was closed.
    #[inline]
    pub fn age(&self) -> u64 {
        self.seq.saturating_sub(self.leb.closed)
    }

    /// Sectors that the host wrote since it was closed, and one.
    #[inline]
    pub fn host_age(&self) -> u64 {
        self.now.saturating_sub(self.leb.times.closed) + 1
    }

    /// The number of its stream of host sectors.
    #[inline]
    pub fn data_stream(&self) -> u8 {
        match self.leb.stream {
            Stream::Data(n) => n,
            Stream::Checkpoint => 0,
        }
    }
}

/// The LEBs that may be groomed now.
pub struct Eligible<'a> {
    lebs: &'a Lebs,
    slots: u32,
    seq: u64,
    now: u64,
    /// What was closed later may not be groomed.
    closed_before: u64,
    /// What is live may be left behind: full LEBs are worth it, too.
    evicts: bool,
    /// Only what volumes hold beyond their limits is to go.
    roomy: bool,
}

impl<'a> Eligible<'a> {
    pub(crate) fn new(lebs: &'a Lebs, slots: u32, seq: u64, now: u64, closed_before: u64) -> Eligible<'a> {
        Eligible { lebs, slots, seq, now, closed_before, evicts: false, roomy: false }
    }

    /// The same, where what is live may be left behind or not.
    pub(crate) fn where_it_evicts(self, evicts: bool) -> Eligible<'a> {
        Eligible { evicts, ..self }
    }

    /// The same, where there is room or not.
    pub(crate) fn where_there_is_room(self, roomy: bool) -> Eligible<'a> {
        Eligible { roomy, ..self }
    }

    /// Whether only what volumes hold beyond their limits is to go.
    pub(crate) fn is_roomy(&self) -> bool {
        self.roomy
    }

    /// Whose the sectors are, where volumes share a cache.
    pub(crate) fn owners(&self) -> Option<&'a Owners> {
        self.lebs.owners.as_deref()
    }

    /// The LEB, if it may be groomed.
    #[inline]
    pub fn get(&self, id: LebId) -> Option<LebView<'a>> {
        self.check(id, &self.lebs[id])
    }

    /// All of them, by number.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = LebView<'a>> + '_ {
        self.lebs.iter().filter_map(|(id, leb)| self.check(id, leb))
    }

    /// One without live sectors, or else the one of the highest score.
    pub fn best(&self, score: impl Fn(&LebView) -> f64) -> Option<LebId> {
        let mut best = None;
        let mut best_score = f64::NEG_INFINITY;
        for leb in self.iter() {
            if leb.live == 0 {
                return Some(leb.id);
            }
            let score = score(&leb);
            if score > best_score {
                (best, best_score) = (Some(leb.id), score);
            }
        }
        best
    }

    /// The host's clock: sectors that the host wrote.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How many LEBs there are, whether they may be groomed or not.
    pub fn lebs(&self) -> u32 {
        self.lebs.len()
    }

    /// All that could be groomed for another reason than the space in them: also full ones.
    pub(crate) fn movable(&self) -> impl Iterator<Item = LebView<'a>> + '_ {
        let may = |leb: &Leb| {
            leb.state == LebState::Closed
                && leb.closed <= self.closed_before
                && leb.stream != Stream::Checkpoint
                && !leb.damaged
        };
        let lebs = self.lebs.iter().filter(move |(_, leb)| may(leb));
        lebs.map(|(id, leb)| LebView { id, leb, slots: self.slots, seq: self.seq, now: self.now })
    }

    #[inline]
    fn check(&self, id: LebId, leb: &'a Leb) -> Option<LebView<'a>> {
        let may = leb.state == LebState::Closed
            && leb.closed <= self.closed_before
            && leb.stream != Stream::Checkpoint
            && (self.evicts || gains(leb, self.slots))
            && (!leb.damaged || leb.live == 0);
        may.then_some(LebView { id, leb, slots: self.slots, seq: self.seq, now: self.now })
    }
}

/// Whether a LEB of so many slots is worth grooming for space: moving nearly all of one to gain a handful of slots would go on for ever.
#[inline]
pub(crate) fn gains(leb: &Leb, slots: u32) -> bool {
    leb.live < spare(slots)
}

/// Live slots from which on a LEB of so many is as good as full: its header, and a little that is lost with every LEB.
#[inline]
pub(crate) fn spare(slots: u32) -> u32 {
    slots.saturating_sub(slots / 128 + 1)
}
