//! The LEBs that are kept for the checkpoint of a recovery, where nothing but the groomer can free others: it stakes one of them.
//!
//! Each power cut closes the LEBs that were open, however little stands in them. Several in a row, each before the groomer has moved a whole
//! LEB, leave nothing free but what the checkpoint of the next recovery takes, and a device full of garbage that takes no write. So the
//! groomer opens one of those LEBs all the same, under these conditions:
//!
//! - nothing was appended since the checkpoint that counts, and nothing is open;
//! - until as much is free again, nobody else appends, no checkpoint begins, and what the groomer appends says where
//!   it was moved from ([`crate::Kind::Moved`]).
//!
//! Should the power fail meanwhile, a recovery finds too little room for its checkpoint and a log that holds nothing but
//! moves, each out of a LEB that still is as it was. Then all of it can be forgotten: the checkpoint by itself says everything, as
//! after a clean detach, and what was staked is free ([`crate::Recovery::should_forget_moves`]).

use crate::layer::Ftl;
use crate::leb::Stream;
use crate::types::LebId;

impl Ftl {
    /// Whether the groomer may open a LEB of those that are kept for a recovery.
    #[cold]
    pub(crate) fn may_stake(&self) -> bool {
        let kept = self.checkpointer.groom_reserve();
        self.staked.is_none()
            && self.checkpointer.rests()
            && self.is_started()
            && self.no_space.is_none()
            && self.emptied.is_empty()
            && self.preparing == 0
            && self.free_lebs() as usize == kept
            && Stream::data().all(|stream| self.open_leb_of(stream).is_none())
            && self.checkpointer.says_everything(self.seq)
    }

    /// The groomer opened a LEB, which [`Ftl::may_stake`] allowed where nothing else did.
    pub(crate) fn note_stake(&mut self, leb: LebId) {
        let kept = self.checkpointer.groom_reserve();
        self.staked = ((self.free_lebs() as usize) < kept).then_some(leb);
    }

    /// Whether a LEB is staked: nothing is appended but what the groomer moves.
    #[inline]
    pub(crate) fn has_stake(&self) -> bool {
        self.staked.is_some()
    }

    /// LEBs were freed: what was staked may be there again.
    pub(crate) fn end_stake(&mut self) {
        if self.has_stake() && self.free_lebs() as usize >= self.checkpointer.groom_reserve() {
            self.staked = None;
        }
    }
}
