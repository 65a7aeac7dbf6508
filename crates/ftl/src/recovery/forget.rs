//! A log that can be forgotten, because it says nothing that the checkpoint does not: see `stake.rs`.

use super::Recovery;
use crate::checkpoint::further_lebs;
use crate::leb::LebState;
use crate::types::LebId;

impl Recovery {
    /// The LEBs out of which sectors were moved, where the log holds nothing else that counts.
    pub(super) fn only_moves(&self) -> Option<Vec<LebId>> {
        let mut from = Vec::new();
        if !self.entries.is_empty() {
            return None;
        }
        for event in &self.events {
            from.push(event.moved_from()? / self.config.geometry.slots_per_leb());
        }
        from.sort_unstable();
        from.dedup();
        Some(from)
    }

    /// Whether there is too little room for the checkpoint of this recovery, and the log can be forgotten: then a recovery of an anchor that
    /// is clean, but otherwise the same, takes its place. To be asked behind [`Recovery::replay`].
    ///
    /// A LEB out of which everything durable was moved may hold something else by now.
    pub fn should_forget_moves(&self) -> bool {
        let needed = 1 + further_lebs(&self.config, self.views.bytes() + self.clones.bytes());
        let free = self.lebs.iter().filter(|(_, leb)| leb.state == LebState::Free).count();
        let Some(from) = &self.moved_from else { return false };
        free < needed as usize && from.iter().all(|leb| self.lebs[*leb].live > 0)
    }
}
