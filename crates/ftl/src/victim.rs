//! Which LEB is groomed next: for the sake of its redundancy, of even wear, or of the space in it; and when none may be, what is done about it.

use crate::groom::Groomer;
use crate::layer::Ftl;
use crate::leb::{Leb, LebState, Stream};
use crate::policy::{Eligible, LebView, gains};
use crate::rent::cheaper;
use crate::types::LebId;

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
        if self.evicts() {
            // What is cached may be needed yet.
            return false;
        }
        let geometry = &self.config.geometry;
        let used = self.lebs.len() - self.free_lebs();
        let share = geometry.slots() as f64 / self.map.sectors() as f64;
        let fair = (self.live_sectors() as f64 * share / f64::from(geometry.slots_per_leb())).ceil() as u32 + 8;
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
        let (slots, before) = (self.narrow.leb_slots, self.groomable_before());
        Eligible::new(&self.lebs, slots, self.seq, self.stats.host_written_sectors, before)
            .where_it_evicts(self.evicts())
    }

    /// Takes the one that is chosen of the LEBs that may be groomed, which policy and pace learn of. Gives its live slots, too.
    pub(crate) fn pick(
        &mut self,
        choose: impl for<'a> FnOnce(&mut Groomer, &'a Eligible<'a>) -> Option<LebView<'a>>,
    ) -> Option<(LebId, u32)> {
        let (slots, before) = (self.narrow.leb_slots, self.groomable_before());
        // The fields by themselves: the groomer is borrowed, too.
        let evicts = self.evicts();
        let eligible =
            Eligible::new(&self.lebs, slots, self.seq, self.stats.host_written_sectors, before).where_it_evicts(evicts);
        let roomy = self.lebs.owners.is_some() && self.is_for_limits_only();
        let eligible = eligible.where_there_is_room(roomy);
        let found = choose(&mut self.groomer, &eligible)?;
        self.groomer.policy.took(&found);
        if !evicts {
            self.groomer.pace.took(found.live, slots);
        }
        Some((found.id, found.live))
    }

    /// Whether a victim is taken only for the sake of what a volume holds beyond its limit.
    fn is_for_limits_only(&self) -> bool {
        self.evicts() && !self.groomer.pace.is_short() && self.groomer.idle_lebs == 0 && !self.fills_room()
    }

    /// The LEB that the policy wants most; none when nothing can be gained.
    fn best_victim(&mut self) -> Option<LebId> {
        if self.evicts() {
            self.visit_lebs();
        }
        let pages = self.config.geometry.pages_per_leb();
        let (best, _) = self.pick(|groomer, eligible| {
            let wanted = groomer.policy.choose(eligible).and_then(|leb| eligible.get(leb))?;
            Some(groomer.rent.as_ref().map_or(wanted, |rent| cheaper(rent, eligible, wanted, pages)))
        })?;
        Some(best)
    }

    /// The LEB with the fewest live sectors, whatever the policy wants.
    fn emptiest(&mut self) -> Option<LebId> {
        let (emptiest, _) = self.pick(|_, eligible| eligible.iter().min_by_key(|leb| leb.live))?;
        Some(emptiest)
    }

    /// Whether free space is so short after a power cut that every LEB counts: a cut closes the LEB that the groomer had opened, however little
    /// stands in it. If the emptiest goes first, each further cut leaves the emptiest with half as much at the most, and
    /// the first that is moved whole frees a LEB.
    fn recovers_space(&mut self) -> bool {
        self.recovers_space &= self.free_lebs() as usize <= self.host_reserve();
        self.recovers_space
    }

    /// The LEB that the policy wants most if that costs at most so many moves for each slot that it frees. Where the policy knows nothing of
    /// lifetimes the emptiest goes before one that is too dear.
    pub(crate) fn victim_up_to(&mut self, price: f64) -> Option<LebId> {
        let slots = self.narrow.leb_slots;
        let cheap = |leb: &LebView<'_>| f64::from(leb.live) <= price * f64::from(slots - leb.live);
        let (found, _) = self.pick(|groomer, eligible| {
            let wanted = groomer.policy.choose(eligible).and_then(|leb| eligible.get(leb)).filter(&cheap);
            if wanted.is_some() || groomer.learns {
                return wanted;
            }
            eligible.iter().min_by_key(|leb| leb.live).filter(&cheap)
        })?;
        Some(found)
    }

    /// The LEB that is groomed next: for the sake of its redundancy, of wear, or of the space in it.
    pub(crate) fn next_victim(&mut self) -> Option<LebId> {
        if let Some(leb) = self.next_evacuation() {
            return Some(leb);
        }
        if self.recovers_space() && self.groomer.pace.is_short() {
            return self.emptiest();
        }
        if self.groomer.pace.is_short() || self.groomer.idle_lebs > 0 || self.wants_eviction() {
            if let Some(leb) = self.laggard() {
                return Some(leb);
            }
            return self.best_victim();
        }
        // It was chosen just now, and nothing happened since.
        self.groomer.ahead.leb.or_else(|| self.next_due())
    }

    /// Frees the LEBs in which nothing lives any more and which the checkpoint just written lets go, as long as there are free ones whose blocks
    /// or memory nobody has touched: those cost more to write. Media that are erased first gain nothing by it.
    pub(crate) fn free_dead(&mut self) {
        if self.config.erase_before_program || !self.is_started() || self.checkpointer.is_closing() || !self.any_blank()
        {
            return;
        }
        let (eligible, chosen) = (self.eligible(), self.groomer.ahead.leb);
        let dead = eligible.iter().filter(|leb| leb.live == 0 && chosen != Some(leb.id));
        for leb in dead.map(|leb| leb.id).collect::<Vec<_>>() {
            let taken = self.pick(|_, eligible| eligible.get(leb));
            debug_assert_eq!(taken, Some((leb, 0)));
            self.groomer.pace.earn(0, 0, self.narrow.leb_slots);
            self.empty_leb(leb);
        }
    }

    /// What could be groomed is newer than the last checkpoint: asks for one. Returns whether that helps.
    pub(crate) fn want_eligible(&mut self) -> bool {
        let begin = self.groomable_before();
        let slots = self.narrow.leb_slots;
        // Those of a checkpoint are freed by the next one, which takes as many: asked for on their account, there would be no end of it.
        let of_data = |leb: &Leb| leb.stream != Stream::Checkpoint;
        let evicts = self.evicts();
        let worth_it = |leb: &Leb| evicts || gains(leb, slots);
        let newer = |leb: &Leb| leb.state == LebState::Closed && leb.closed > begin && of_data(leb) && worth_it(leb);
        let over = self.lebs.owners.as_ref().filter(|_| self.is_for_limits_only());
        let of_one_over = |id| over.is_none_or(|owners| owners.over_in(id) > 0);
        let any = self.lebs.iter().any(|(id, leb)| newer(leb) && of_one_over(id));
        if any {
            self.checkpointer.want();
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Config, small};
    use crate::slots::UNNOTED;
    use crate::space::HOST_RESERVE;

    /// The LEB that a layer with three full LEBs, filled one after another, and hardly any space grooms next.
    fn victim(after_a_cut: bool, free: usize) -> Option<LebId> {
        let mut layer = small::attached(small::config());
        layer.seq += 100;
        let begin = layer.checkpointer.begin();
        for (leb, live) in [(3, 9), (4, 2), (5, 12)] {
            layer.lebs[leb].state = LebState::Closed;
            (layer.lebs[leb].opened, layer.lebs[leb].closed) = (u64::from(leb), begin - 10 + u64::from(leb));
            (0..live).for_each(|slot| layer.lebs.set_live(leb * 16 + slot, UNNOTED));
        }
        layer.free.truncate(free);
        layer.recovers_space = after_a_cut;
        layer.groomer.pace.set_free(16 * free as u64);
        layer.next_victim()
    }

    #[test]
    fn the_emptiest_goes_first_where_a_cut_left_hardly_any_space() {
        assert_eq!(victim(true, HOST_RESERVE), Some(4));
        assert_eq!(victim(true, HOST_RESERVE + 1), Some(3), "the policy's: there is room again");
        assert_eq!(victim(false, HOST_RESERVE), Some(3), "the policy's: nothing was cut short");
    }

    /// Three LEBs are full, of which nothing lives in the second: the LEBs that a checkpoint frees.
    fn freed(erase_before_program: bool, blank: bool) -> Vec<LebId> {
        let mut layer = small::attached(Config { erase_before_program, ..small::config() });
        let begin = layer.checkpointer.begin();
        for (leb, live, closed) in [(3, 9, begin - 1), (4, 0, begin - 1), (5, 0, begin + 1)] {
            layer.lebs[leb].state = LebState::Closed;
            layer.lebs[leb].closed = closed;
            (0..live).for_each(|slot| layer.lebs.set_live(leb * 16 + slot, UNNOTED));
        }
        layer.free.retain(|leb| ![3, 4, 5].contains(leb));
        for leb in layer.free.clone() {
            layer.lebs[leb].allocated = !blank;
        }
        layer.free_dead();
        layer.emptied.iter().map(|(leb, _)| *leb).collect()
    }

    #[test]
    fn dead_lebs_are_freed_as_long_as_there_are_blank_ones() {
        assert_eq!(freed(false, true), [4], "the last is newer than the checkpoint");
        assert_eq!(freed(false, false), [0; 0], "all that are free were written before");
        assert_eq!(freed(true, true), [0; 0], "flash is erased first");
    }
}
