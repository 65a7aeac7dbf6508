//! Grooming ahead of need, in quiet times, so that the next burst finds room.
//!
//! What is groomed before it must be has had less time to empty, and whatever dies later was moved for nothing. So LEBs are taken only as long as they cost
//! no more moves in the mean than those that were groomed over the last drive write, give or take a little for each sector that the host writes, and
//! only until a share of the spare space is free. A LEB that is not finished when requests come waits until they are over.

use crate::layer::Ftl;
use crate::types::LebId;

/// Share of the spare space that is made free.
const SHARE: f64 = 0.25;
/// For each sector that the host writes, so many moves may be made beyond that,
const EXTRA: f64 = 0.02;
/// of which as many can be saved up as this share of the host's sectors.
const SAVED: f64 = 0.02;

pub(crate) struct Ahead {
    on: bool,
    /// The LEB that was chosen.
    pub leb: Option<LebId>,
    /// No request came since the device said that none come.
    pub quiet: bool,
    /// The LEB at hand waits.
    pub resting: bool,
    /// Moves that may still be made beyond what is usual.
    balance: f64,
    /// Sectors that the host had written when that was worked out.
    looked: u64,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead { on: true, leb: None, quiet: false, resting: false, balance: 0.0, looked: 0 }
    }
}

impl Ftl {
    /// Whether the layer grooms ahead of need when [`Ftl::idle`] is called. Without a word it does.
    pub fn groom_ahead(&mut self, on: bool) {
        self.groomer.ahead.on = on;
    }

    /// Free LEBs up to which the groomer works in quiet times.
    pub(crate) fn lebs_ahead(&self) -> u32 {
        let start = self.groomer.pace.start_lebs();
        let slots = u64::from(self.config.geometry.slots_per_leb());
        let spare = u64::from(self.lebs.len()).saturating_sub(self.config.room().div_ceil(slots) + u64::from(start));
        start + (spare as f64 * SHARE) as u32
    }

    /// Chooses a LEB to groom ahead of need. Returns whether there is more to do.
    pub(crate) fn look_ahead(&mut self) -> bool {
        if self.checkpointer.is_closing() || !self.is_started() {
            return false;
        }
        if self.groomer.is_busy() || self.groomer.ahead.resting {
            return true;
        }
        let coming = self.emptied.len() as u32;
        if !self.groomer.ahead.on || self.free_lebs() + coming >= self.lebs_ahead() {
            return false;
        }
        let saved = self.config.room() as f64 * SAVED;
        let written = self.stats.host_written_sectors;
        let ahead = &mut self.groomer.ahead;
        ahead.balance = (ahead.balance + written.saturating_sub(ahead.looked) as f64 * EXTRA).min(saved);
        ahead.looked = written;
        let worth = self.groomer.pace.usual_price();
        let most = self.groomer.ahead.balance;
        let Some((leb, cost)) = self.cheap_victim(worth, most) else { return false };
        self.groomer.ahead.balance = (self.groomer.ahead.balance - cost).min(saved);
        self.groomer.ahead.leb = Some(leb);
        true
    }

    /// Whether the LEB at hand waits for quieter times; once the last checkpoint begins, for good.
    pub(crate) fn rests(&mut self) -> bool {
        let ahead = &self.groomer.ahead;
        let closing = self.checkpointer.is_closing();
        let needed = self.groomer.pace.is_short() || !self.groomer.evacuations.is_empty();
        let rests = (closing && ahead.resting) || ((closing || !ahead.quiet) && !needed);
        self.groomer.ahead.resting = rests && self.groomer.victim.as_ref().is_some_and(|victim| victim.ahead);
        self.groomer.ahead.resting
    }
}
