//! Free LEBs: made ready ahead of need, freed when what emptied them is durable.

use crate::append::Writer;
use crate::checkpoint::checkpoint_lebs;
use crate::fill::holds_waste;
use crate::geometry::Geometry;
use crate::layer::{Config, Ftl, id};
use crate::leb::LebState;
use crate::types::{Admission, Command, Error, LebId};

/// LEBs kept ready, so that no append point waits for one.
pub(crate) const READY: usize = 3;
/// Free LEBs that host writes never take: the groomer and checkpoints need them to free others.
pub(crate) const HOST_RESERVE: usize = 3;

impl Ftl {
    /// Whether another LEB may be opened now.
    pub(crate) fn can_open(&self, writer: Writer) -> bool {
        let keep = match writer {
            Writer::Host => self.host_reserve(),
            Writer::Groom => self.checkpointer.groom_reserve(),
            Writer::Checkpoint => 0,
        };
        // On a full backing store only what has its space already can be had.
        let spare = match self.no_space {
            None => self.free.len(),
            Some(_) => 0,
        };
        !self.ready.is_empty() && (spare + self.ready.len() > keep || (writer == Writer::Groom && self.may_stake()))
    }

    /// Free LEBs that host writes never take.
    pub(crate) fn host_reserve(&self) -> usize {
        HOST_RESERVE + self.checkpointer.reserve()
    }

    /// Whether there are free LEBs whose blocks or memory nobody has touched.
    pub(crate) fn any_blank(&self) -> bool {
        self.free.iter().any(|leb| !self.lebs[*leb].allocated)
    }

    /// Whether there is room for what gains none: the last LEBs are for those who free others.
    pub(crate) fn has_spare_lebs(&self) -> bool {
        self.free_lebs() as usize > self.host_reserve() + 1
    }

    /// How many LEBs to keep ready. On a full backing store nothing else counts as free, so the reserves must be among them.
    fn wanted_ready(&self) -> usize {
        match self.no_space {
            None => READY,
            Some(_) => READY.max(self.host_reserve() + 1),
        }
    }

    /// Keeps a few LEBs ready.
    pub(crate) fn prepare_lebs(&mut self) {
        let wanted = self.wanted_ready();
        while self.ready.len() + (self.preparing as usize) + self.cleaning.len() < wanted {
            // With a full backing store only LEBs that kept their space are of use. After an attach nobody knows which
            // those are, so each is tried once.
            let at = match self.no_space {
                Some(_) if self.untried == 0 => self.free.iter().position(|leb| self.lebs[*leb].allocated),
                _ => self.next_free(),
            };
            let Some(leb) = at.and_then(|at| self.free.remove(at)) else { return };
            let is_cut = self.filling.next_is_cut(self.config.geometry.pages_per_leb());
            if is_cut && !holds_waste(&self.lebs[leb]) {
                self.filling.used_blank();
            }
            if self.lebs[leb].dirty && self.config.erase_before_program {
                self.lebs[leb].state = LebState::Erasing;
                self.cleaning.push(leb);
                self.commands.push(Command::Erase { id: id::ERASE | u64::from(leb), leb });
            } else if self.lebs[leb].allocated {
                self.lebs[leb].state = LebState::Ready;
                self.ready.push_back(leb);
            } else {
                self.lebs[leb].state = LebState::Preparing;
                self.preparing += 1;
                let fill = is_cut && !self.config.erase_before_program;
                self.commands.push(Command::Allocate { id: id::ALLOCATE | u64::from(leb), leb, fill });
            }
        }
    }

    pub(crate) fn allocate_done(&mut self, leb: LebId, result: Result<(), Error>) {
        self.preparing -= 1;
        if self.filled_ahead(leb, result) {
            return;
        }
        match result {
            Ok(()) => {
                if self.untried == 0 {
                    (self.no_space, self.full) = (None, None);
                }
                self.untried = self.untried.saturating_sub(1);
                self.asked_again = false;
                self.lebs[leb].allocated = true;
                self.lebs[leb].state = LebState::Ready;
                self.ready.push_back(leb);
            }
            Err(error) => {
                self.untried = match self.tried_all {
                    false => self.free.len() as u32,
                    true => self.untried.saturating_sub(1),
                };
                self.tried_all = true;
                (self.no_space, self.full) = (Some(error), Some(error));
                self.lebs[leb].state = LebState::Free;
                self.free.push_back(leb);
            }
        }
    }

    /// Why a request found no room: it may help to wait, or the backing store is full.
    pub(crate) fn no_room(&mut self) -> Admission {
        self.work();
        let Some(error) = self.no_space else { return Admission::Busy };
        let helped = self.preparing > 0
            || !self.cleaning.is_empty()
            || self.untried > 0
            || self.can_open(Writer::Host)
            || !self.emptied.is_empty()
            || self.durability.is_busy()
            || self.groomer.is_busy();
        if helped {
            return Admission::Busy;
        }
        // Somebody may have made room on the backing store meanwhile: asked once more before a request is refused.
        self.asked_again = !self.asked_again;
        if self.asked_again {
            self.no_space = None;
            self.prepare_lebs();
            return Admission::Busy;
        }
        Admission::Refused(error)
    }

    /// What to answer instead of mapping so many sectors more, where that is too much. Trims make room only when they are durable: a power
    /// cut could bring back what they unmapped, beside what was written since.
    #[cold]
    pub(crate) fn lacks_room(&mut self, more: u64) -> Option<Admission> {
        self.settle_leaving();
        let mapped = self.map.mapped() + more;
        if mapped + self.leaving_sectors <= self.room {
            return None;
        }
        if self.may_evict() && mapped > self.room {
            self.work();
            return Some(Admission::Busy);
        }
        let Some((seq, _)) = self.leaving.back().filter(|_| mapped <= self.room).copied() else {
            return Some(Admission::Refused(Error::Full));
        };
        Some(self.busy_until_durable(seq))
    }

    /// Has everything below a sequence number made durable, which makes room.
    pub(crate) fn busy_until_durable(&mut self, seq: u64) -> Admission {
        self.want_durable(seq);
        self.work();
        Admission::Busy
    }

    /// What was unmapped and is durable takes no room any more.
    pub(crate) fn settle_leaving(&mut self) {
        let durable = self.durable();
        while let Some((_, count)) = self.leaving.pop_front_if(|(seq, _)| *seq <= durable) {
            self.leaving_sectors -= count;
        }
    }

    /// Whether mapping so many sectors more could be too much, as far as can be told without a look at them.
    #[inline]
    pub(crate) fn may_lack_room(&self, more: u64) -> bool {
        self.map.mapped() + self.leaving_sectors + more > self.room
    }

    /// So many sectors were just unmapped.
    pub(crate) fn note_leaving(&mut self, count: u64) {
        if count > 0 && (self.room < u64::MAX || self.has_views) {
            self.leaving.push_back((self.seq, count));
            self.leaving_sectors += count;
        }
        self.checkpointer.unmapped(count);
    }

    /// A LEB lost its last live slot: it is freed when everything appended so far is durable.
    pub(crate) fn empty_leb(&mut self, leb: LebId) {
        debug_assert_eq!(self.lebs[leb].live, 0);
        if let Some(rent) = &mut self.groomer.rent {
            rent.forget(leb);
        }
        let entry = &mut self.lebs[leb];
        entry.state = LebState::Emptied;
        self.wear.emptied(entry.stream, self.stats.host_written_sectors.saturating_sub(entry.times.opened));
        self.emptied.push_back((leb, self.seq));
        self.want_durable(self.seq);
    }

    /// Frees emptied LEBs whose time has come.
    pub(crate) fn reclaim(&mut self) {
        let durable = self.durable();
        let mut i = 0;
        while let Some((leb, seq)) = self.emptied.get(i).copied() {
            if seq > durable {
                break;
            }
            if self.lebs[leb].readers > 0 || self.lebs[leb].buffered > 0 {
                i += 1;
                continue;
            }
            self.emptied.remove(i);
            debug_assert_eq!(self.lebs[leb].live, 0);
            self.stats.erased_lebs += 1;
            self.narrow.freed(self.lebs[leb].opened);
            let entry = &mut self.lebs[leb];
            entry.erases = entry.erases.saturating_add(1);
            entry.dirty = true;
            self.wear.erased();
            if self.config.erase_before_program {
                entry.state = LebState::Erasing;
                self.commands.push(Command::Erase { id: id::ERASE | u64::from(leb), leb });
            } else {
                // It keeps its space, and is the next to be used: to give space back and ask for it anew costs a file
                // system more than the writes themselves. What is not used again is given back in quiet times.
                entry.state = LebState::Free;
                self.free.push_front(leb);
            }
        }
        self.end_stake();
        self.prepare_lebs();
    }

    /// In quiet times: gives back the space of one LEB that nobody needs soon. Returns whether there may be more.
    pub(crate) fn give_space_back(&mut self) -> bool {
        if self.config.erase_before_program || self.giving_back {
            return self.giving_back;
        }
        let keep = self.filling.stock().max(self.groomer.pace.start_lebs() as usize);
        let mut holding = (0..self.free.len()).filter(|at| holds_waste(&self.lebs[self.free[*at]]));
        let Some(at) = holding.nth(keep) else { return false };
        let leb = self.free.remove(at).expect("just found");
        self.lebs[leb].state = LebState::Erasing;
        self.giving_back = true;
        self.commands.push(Command::Erase { id: id::ERASE | u64::from(leb), leb });
        true
    }

    pub(crate) fn erase_done(&mut self, leb: LebId, result: Result<(), Error>) {
        let wanted = self.cleaning.iter().position(|cleaning| *cleaning == leb);
        if let Some(at) = wanted {
            self.cleaning.swap_remove(at);
        }
        let entry = &mut self.lebs[leb];
        match result {
            // Where old content does no harm, one that failed is not asked again: some of its space may be given back all the same.
            Err(_) if self.config.erase_before_program => {
                entry.state = LebState::Retired;
                return;
            }
            _ => {
                entry.dirty = false;
                entry.allocated = false;
            }
        }
        entry.state = LebState::Free;
        match wanted {
            // It is the next to be used.
            Some(_) => self.free.push_front(leb),
            None => self.free.push_back(leb),
        }
        self.giving_back = false;
        self.end_stake();
    }
}

/// The most sectors that may hold data at once, of a host's address space of so many. One with more sectors than there are slots is sparse.
pub fn room(geometry: &Geometry, sectors: u64) -> u64 {
    match is_sparse(geometry, sectors) {
        true => data_slots(geometry, spare_lebs(geometry, true, 0)),
        false => sectors,
    }
}

/// What may be mapped where there are no snapshots.
pub(crate) fn base_room(config: &Config) -> u64 {
    if config.is_sparse() { config.room() } else { u64::MAX }
}

/// What may be live at once beside so many bytes of what snapshots see.
pub(crate) fn room_beside(config: &Config, views: u64) -> u64 {
    // With what one request may add.
    let views = views + 64 * u64::from(config.max_request);
    if config.room() > max_sectors(&config.geometry) && !config.is_sparse() {
        // A tiny module of a test, which has no room to groom in anyway.
        return u64::MAX / 2;
    }
    data_slots(&config.geometry, spare_lebs(&config.geometry, config.is_sparse(), views))
}

/// Whether a host can address more sectors than there are slots.
pub fn is_sparse(geometry: &Geometry, sectors: u64) -> bool {
    sectors > geometry.slots()
}

/// LEBs that a module needs beyond those that its sectors fill: append points, two checkpoints, each with a LEB that flushes on the way
/// leave half empty, the reserve, what the checkpoint of a recovery takes beyond all these, the room that the groomer works in, and a
/// margin of garbage to groom.
pub fn min_spare_lebs(geometry: &Geometry) -> u32 {
    spare_lebs(geometry, false, 0)
}

fn spare_lebs(geometry: &Geometry, sparse: bool, views: u64) -> u32 {
    let checkpoint = checkpoint_lebs(geometry, geometry.slots(), sparse, views);
    3 + 2 * (checkpoint + 1)
        + checkpoint.saturating_sub(3)
        + crate::pace::start_lebs(geometry.blocks)
        + (geometry.blocks / 100).max(4)
}

/// The most sectors that a host may have on this geometry. Each LEB begins with a header.
pub fn max_sectors(geometry: &Geometry) -> u64 {
    data_slots(geometry, min_spare_lebs(geometry))
}

fn data_slots(geometry: &Geometry, spare_lebs: u32) -> u64 {
    u64::from(geometry.blocks.saturating_sub(spare_lebs)) * u64::from(geometry.slots_per_leb() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::small;

    /// A layer on a full backing store, with so many free LEBs that have their space.
    fn on_a_full_store(having: usize) -> Ftl {
        let mut layer = small::attached(small::config());
        layer.free.truncate(having);
        for leb in layer.free.clone() {
            layer.lebs[leb].allocated = true;
        }
        (layer.no_space, layer.tried_all) = (Some(Error::NoSpace), true);
        layer.prepare_lebs();
        layer
    }

    #[test]
    fn a_full_store_leaves_the_groomer_and_checkpoints_what_they_need() {
        let layer = on_a_full_store(HOST_RESERVE);
        assert!(!layer.can_open(Writer::Host) && layer.can_open(Writer::Groom));
    }

    #[test]
    fn on_a_full_store_the_host_goes_on_with_the_lebs_that_have_their_space() {
        assert!(on_a_full_store(HOST_RESERVE + 1).can_open(Writer::Host));
    }
}
