//! Which LEB is groomed next: for the sake of its redundancy, of even wear, or of the space in it; and when none may be, what is done about it.

use crate::layer::Ftl;
use crate::leb::{LebState, Stream};
use crate::policy::{Eligible, LebView};
use crate::types::LebId;

/// Where a policy knows nothing of lifetimes, a LEB with no more than this share of its slots live is groomed ahead before its turn.
const BARGAIN: f64 = 0.125;

impl Ftl {
    /// Grooms a LEB for the sake of its redundancy, as soon as it may be groomed.
    pub fn evacuate(&mut self, leb: LebId) {
        if let Some(victim) = self.groomer.victim.as_mut().filter(|victim| victim.leb == leb) {
            // It waits no longer.
            victim.ahead = false;
            return self.work();
        }
        let entry = &mut self.lebs[leb];
        if entry.state != LebState::Closed || entry.unsound {
            return;
        }
        entry.unsound = true;
        if entry.stream == Stream::Checkpoint {
            // The next one takes its place.
            self.checkpointer.want();
        } else {
            self.groomer.evacuations.push(leb);
        }
        self.work();
    }

    /// The next LEB to be groomed for the sake of its redundancy; asks for a checkpoint where one must come first.
    fn next_evacuation(&mut self) -> Option<LebId> {
        let lebs = &self.lebs;
        self.groomer.evacuations.retain(|leb| {
            let leb = &lebs[*leb];
            leb.unsound && leb.state == LebState::Closed && !leb.damaged
        });
        let begin = self.groomable_before();
        if !self.has_spare_lebs() {
            return None;
        }
        let ready = self.groomer.evacuations.iter().position(|leb| lebs[*leb].closed <= begin);
        if ready.is_none() && !self.groomer.evacuations.is_empty() {
            self.checkpointer.want();
        }
        ready.map(|at| self.groomer.evacuations.swap_remove(at))
    }

    /// One round in quiet times: when the log takes much more room than its data needs, groom a LEB to give
    /// the space back to whoever lent it.
    pub(crate) fn idle_round(&mut self) -> bool {
        let geometry = &self.config.geometry;
        let used = self.lebs.len() - self.free_lebs();
        let share = geometry.slots() as f64 / self.map.sectors() as f64;
        let fair = (self.map.mapped() as f64 * share / f64::from(geometry.slots_per_leb())).ceil() as u32 + 8;
        // Flash belongs to nobody else.
        if used <= fair || self.config.erase_before_program {
            return self.look_ahead();
        }
        if self.eligible().iter().next().is_some() {
            self.groomer.idle_lebs = 1;
            return true;
        }
        self.want_eligible()
    }

    /// The LEBs that may be groomed.
    pub(crate) fn eligible(&self) -> Eligible<'_> {
        let (slots, before) = (self.config.geometry.slots_per_leb(), self.groomable_before());
        Eligible::new(&self.lebs, slots, self.seq, self.stats.host_written_sectors, before)
    }

    /// The LEB that the policy wants most; none when nothing can be gained.
    fn best_victim(&mut self) -> Option<LebId> {
        let (slots, before) = (self.config.geometry.slots_per_leb(), self.groomable_before());
        let eligible = Eligible::new(&self.lebs, slots, self.seq, self.stats.host_written_sectors, before);
        let best = self.groomer.policy.choose(&eligible)?;
        if let Some(view) = eligible.get(best) {
            self.groomer.policy.took(&view);
        }
        Some(best)
    }

    /// The LEB that the policy wants most if that costs so many moves at the most, where a freed slot is worth so many; where the policy
    /// knows nothing of lifetimes the emptiest may go before it.
    pub(crate) fn cheap_victim(&mut self, worth: f64, most: f64) -> Option<(LebId, f64)> {
        let (slots, before) = (self.config.geometry.slots_per_leb(), self.groomable_before());
        let eligible = Eligible::new(&self.lebs, slots, self.seq, self.stats.host_written_sectors, before);
        let cost = |leb: &LebView| f64::from(leb.live) - worth * f64::from(leb.slots - leb.live);
        let wanted = self.groomer.policy.choose(&eligible).and_then(|leb| eligible.get(leb));
        let mut found = wanted.filter(|leb| cost(leb) <= most);
        if found.is_none() && !self.groomer.learns {
            let bargain = |leb: &LebView| leb.utilisation() <= BARGAIN;
            found = eligible.iter().min_by_key(|leb| leb.live).filter(bargain);
        }
        let found = found?;
        self.groomer.policy.took(&found);
        self.groomer.pace.took(found.live, slots);
        Some((found.id, cost(&found)))
    }

    /// The LEB that is groomed next: for the sake of its redundancy, of wear, or of the space in it.
    pub(crate) fn next_victim(&mut self) -> Option<LebId> {
        if let Some(leb) = self.next_evacuation() {
            return Some(leb);
        }
        if self.groomer.pace.is_short() || self.groomer.idle_lebs > 0 {
            if let Some(leb) = self.laggard() {
                return Some(leb);
            }
            let leb = self.best_victim()?;
            self.groomer.pace.took(self.lebs[leb].live, self.config.geometry.slots_per_leb());
            return Some(leb);
        }
        // It was chosen just now, and nothing happened since.
        self.groomer.ahead.leb
    }

    /// What could be groomed is newer than the last checkpoint: asks for one. Returns whether that helps.
    pub(crate) fn want_eligible(&mut self) -> bool {
        let begin = self.groomable_before();
        let slots = self.config.geometry.slots_per_leb();
        let newer = |leb: &crate::leb::Leb| {
            leb.state == LebState::Closed && leb.closed > begin && leb.live < slots - slots / 128 - 2
        };
        let any = self.lebs.iter().any(|(_, leb)| newer(leb));
        if any {
            self.checkpointer.want();
        }
        any
    }
}
