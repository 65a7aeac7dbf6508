//! Grooming ahead of need, in quiet times, so that the next burst finds room.
//!
//! The groomer makes as much room as the largest burst of late took: what the host wrote between two quiet times. A burst counts for less with
//! all that smaller ones write after it, and is forgotten when they have written a few times as much. So a device whose bursts are small keeps its
//! spare space for what it is there for, that LEBs have time to empty; and a longer pause never leaves less room than a shorter one.
//!
//! At most half of the spare space is made free, so grooming ahead never costs more than half the over-provisioning would, and no LEB is taken
//! that costs much more than that. A LEB that is not finished when requests come waits until they are over.

use crate::layer::Ftl;
use crate::types::LebId;

/// Share of the spare space that is made free, at most.
const SHARE: f64 = 0.5;
/// Moves for each slot that is freed, at most, as a multiple of what uniform traffic costs with all of the spare space. With half of it that is
/// twice as much; LEBs differ.
const DEAREST: f64 = 4.0;
/// A burst counts for a third of what it was when smaller ones have written so many times as much.
const REMEMBERED: f64 = 3.0;

pub(crate) struct Ahead {
    on: bool,
    /// The LEB that was chosen.
    pub leb: Option<LebId>,
    /// No request came since the device said that none come.
    pub quiet: bool,
    /// The LEB at hand waits.
    pub resting: bool,
    /// The largest burst of late, slots; and what smaller ones wrote since.
    largest: f64,
    since: f64,
    /// Sectors that the host had written when that was worked out.
    written: u64,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead { on: true, leb: None, quiet: false, resting: false, largest: 0.0, since: 0.0, written: 0 }
    }
}

impl Ahead {
    /// What the next burst may take, slots.
    fn burst(&self) -> f64 {
        self.largest * (-self.since / (REMEMBERED * self.largest.max(1.0))).exp()
    }

    /// The host wrote so many sectors until now; more than `most` in a burst are as good as those.
    fn learn(&mut self, written: u64, most: f64) {
        let burst = (written.saturating_sub(self.written) as f64).min(most);
        self.written = written;
        if burst >= self.burst() {
            (self.largest, self.since) = (burst, 0.0);
        } else {
            self.since += burst;
        }
    }
}

impl Ftl {
    /// Whether the layer grooms ahead of need when [`Ftl::idle`] is called. Without a word it does.
    pub fn groom_ahead(&mut self, on: bool) {
        self.groomer.ahead.on = on;
    }

    /// Free LEBs up to which the groomer works in quiet times.
    pub(crate) fn lebs_ahead(&self) -> u32 {
        let burst = self.groomer.ahead.burst().min(self.most_ahead());
        self.groomer.pace.start_lebs() + (burst / f64::from(self.config.geometry.slots_per_leb())) as u32
    }

    /// The most that is made free, slots.
    pub(crate) fn most_ahead(&self) -> f64 {
        let start = u64::from(self.groomer.pace.start_lebs());
        let slots = u64::from(self.config.geometry.slots_per_leb());
        let spare = u64::from(self.lebs.len()).saturating_sub(self.config.room().div_ceil(slots) + start);
        (spare * slots) as f64 * SHARE
    }

    /// Chooses a LEB to groom ahead of need. Returns whether there is more to do.
    pub(crate) fn look_ahead(&mut self) -> bool {
        if self.checkpointer.is_closing() || !self.is_started() {
            return false;
        }
        if self.groomer.is_busy() || self.groomer.ahead.resting {
            return true;
        }
        let most = self.most_ahead();
        self.groomer.ahead.learn(self.stats.host_written_sectors, most);
        let coming = self.emptied.len() as u32;
        if !self.groomer.ahead.on || self.free_lebs() + coming >= self.lebs_ahead() {
            return false;
        }
        let leb = self.victim_up_to(self.groomer.pace.uniform_price() * DEAREST);
        let Some(leb) = leb else { return false };
        self.groomer.ahead.leb = Some(leb);
        true
    }

    /// Whether the LEB at hand waits for quieter times; once the last checkpoint begins, for good.
    pub(crate) fn rests(&mut self) -> bool {
        let ahead = &self.groomer.ahead;
        let closing = self.checkpointer.is_closing();
        // What is due by price waits for no quieter times, and so not behind a LEB that does.
        let needed = self.groomer.pace.is_short() || !self.groomer.evacuations.is_empty() || self.groomer.has_due();
        let rests = (closing && ahead.resting) || ((closing || !ahead.quiet) && !needed);
        self.groomer.ahead.resting = rests && self.groomer.victim.as_ref().is_some_and(|victim| victim.ahead);
        self.groomer.ahead.resting
    }
}
