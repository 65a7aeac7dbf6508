//! Eviction: where sectors are copies of what stands elsewhere, as in a cache, the groomer leaves behind those that are hardly read
//! instead of moving them. There is no other index of what is cached than the map, and a LEB is freed without being written anew.
//!
//! What is left behind is recorded as a trim, so a power cut does not bring it back beside what a host put elsewhere since.

use std::ops::Range;

use crate::groom::Groomer;
use crate::layer::Ftl;
use crate::leb::{LebState, Stream};
use crate::owners::{Owners, QUOTAS_MAX, Quota};
use crate::policy::Cache;
use crate::trims::{TrimRecord, encode, records_in_slot};
use crate::types::{BatchOp, Command, Kind, NO_SLOT, Request, Slot, Source};

/// What may be left behind.
#[derive(Debug, Default)]
pub(crate) struct Evict {
    /// Sectors before this one; none where it is 0.
    below: u64,
    /// Sectors left behind since the device was attached.
    pub evicted: u64,
    /// What is to be left behind of the victim.
    chosen: Vec<(u64, Slot)>,
    /// Of the victim all is moved.
    pub moves_all: bool,
    /// Slots moved since the groomer found one to leave behind or the host gave it more of that: where everything is pinned, it gives up.
    fruitless: u64,
    /// Nothing of a volume over its limit could be had. A LEB that is closed, or the next checkpoint, may change that: the number before which
    /// LEBs had been closed.
    none_before: Option<u64>,
}

impl Evict {
    pub fn is_on(&self) -> bool {
        self.below > 0
    }

    /// A LEB was closed.
    #[inline]
    pub fn found_more(&mut self) {
        self.none_before = None;
    }
}

/// So often the groomer goes round before it gives up: what was read often is kept in the first ones.
const ROUNDS: u64 = 5;

impl Groomer {
    /// Whether there is more to leave behind, or less of what is pinned, once a request is done.
    #[inline]
    pub fn makes_losable(&self, request: &Request) -> bool {
        self.evict.is_on()
            && match request {
                Request::Write { lba, .. } => *lba < self.evict.below,
                Request::Trim { .. } => true,
                Request::Batch { ops, .. } => ops.iter().any(|op| matches!(op, BatchOp::Trim { .. })),
                Request::Read { .. } | Request::ReadSnapshot { .. } | Request::Flush => false,
            }
    }

    /// It is done.
    pub fn note_losable(&mut self) {
        self.evict.fruitless = 0;
    }

    /// Slots of a victim were moved.
    pub fn note_fruitless(&mut self, moved: u32) {
        self.evict.fruitless += u64::from(moved);
    }
}

impl Ftl {
    /// From now on the groomer may lose sectors before this one, those that are hardly read first; with 0 it loses none. Not remembered:
    /// whoever keeps copies here says so after each attach, once it knows what else there is.
    pub fn set_evictable(&mut self, below: u64) {
        self.groomer.evict = Evict { below, evicted: self.groomer.evict.evicted, ..Evict::default() };
        self.lebs.owners = None;
        if below == 0 {
            return self.set_policy(self.config.policy);
        }
        let shape = crate::groom::shape(&self.config);
        self.install_policy(Box::new(Cache::new(&shape, below)));
        self.work();
    }

    /// Shares what may be lost among volumes, in proportion to their shares where they want more than they have, and keeps each below its
    /// limit. Where there is one volume without a limit, or none, everything is as if this had never been called. Not remembered.
    ///
    /// # Panics
    /// There are more than [`QUOTAS_MAX`], or they overlap.
    pub fn set_quotas(&mut self, quotas: &[Quota]) {
        let mut quotas = quotas.to_vec();
        quotas.sort_unstable_by_key(|quota| quota.sectors.start);
        let apart = quotas.windows(2).all(|pair| pair[0].sectors.end <= pair[1].sectors.start);
        assert!(quotas.len() <= QUOTAS_MAX && apart, "no quotas: {quotas:?}");
        let below = self.groomer.evict.below;
        if below == 0 || quotas.iter().all(|quota| quota.limit.is_none()) && quotas.len() < 2 {
            if self.lebs.owners.take().is_some() {
                self.groomer.policy.share(None);
                self.streams_changed();
            }
            return;
        }
        if !self.lebs.owners.as_mut().is_some_and(|owners| owners.change(&quotas, below)) {
            self.lebs.owners = Some(Box::new(self.count_owners(&quotas)));
        }
        let places = self.lebs.owners.as_ref().map(|owners| owners.places().clone());
        self.groomer.policy.share(places.map(|places| (places, quotas)));
        self.streams_changed();
        self.groomer.evict.found_more();
        self.work();
    }

    /// What a volume holds whose copies lie in these sectors, what may not be lost included.
    pub fn cached_sectors(&self, sectors: Range<u64>) -> u64 {
        let count = sectors.end.saturating_sub(sectors.start);
        let held = |from: u64| self.map.mapped_in(from, count.min(self.map.sectors().saturating_sub(from)));
        held(sectors.start) + held(sectors.start + self.groomer.evict.below)
    }

    /// Whose everything is, by the map.
    pub(crate) fn count_owners(&self, quotas: &[Quota]) -> Owners {
        let slots_per_leb = self.config.geometry.slots_per_leb();
        let mut owners = Owners::new(quotas, self.groomer.evict.below, self.lebs.len(), slots_per_leb);
        self.map.for_each(|lba, slot| owners.add(lba, slot, 1));
        owners
    }

    /// Checks whose everything is against the map.
    ///
    /// # Errors
    /// They do not agree.
    pub(crate) fn verify_owners(&self) -> Result<(), String> {
        // What only a snapshot sees is not in the map.
        let Some(owners) = self.lebs.owners.as_ref().filter(|_| !self.has_views) else { return Ok(()) };
        let agrees = owners.agrees(&self.count_owners(owners.quotas()));
        agrees.then_some(()).ok_or_else(|| "what volumes hold is not what the map says".into())
    }

    /// Whether a volume holds more than its limit, and something of it may be had.
    fn has_over(&self) -> bool {
        self.lebs
            .owners
            .as_ref()
            .is_some_and(|owners| self.groomer.evict.none_before != Some(self.groomable_before()) && owners.any_over())
    }

    /// No LEB holds what may be taken from a volume over its limit.
    pub(crate) fn found_none(&mut self) {
        if self.lebs.owners.is_some() {
            self.groomer.evict.none_before = Some(self.groomable_before());
        }
    }

    /// Whether the groomer may lose anything.
    pub fn is_cache(&self) -> bool {
        self.groomer.evict.is_on()
    }

    /// Sectors that the groomer left behind since the device was attached.
    pub fn evicted_sectors(&self) -> u64 {
        self.groomer.evict.evicted
    }

    /// Whether anything may be left behind now.
    pub(crate) fn evicts(&self) -> bool {
        self.groomer.evict.is_on() && !self.groomer.evict.moves_all && !self.has_views && !self.has_stake()
    }

    /// Whether something must go before long, and something can: so much is mapped, or a volume holds too much.
    pub(crate) fn wants_eviction(&self) -> bool {
        self.may_evict() && (self.fills_room() || self.has_over())
    }

    /// Whether nearly as much is mapped as there is room for.
    pub(crate) fn fills_room(&self) -> bool {
        let largest = u64::from(self.config.max_request);
        // A victim leaves a LEB's worth behind at once; where LEBs are few, that is much of the cache.
        let leb = u64::from(self.config.geometry.slots_per_leb());
        let margin = (self.room / 64).min(leb / 2).max(4 * largest).min(self.room / 8).max(largest);
        self.may_lack_room(margin)
    }

    /// Whether anything may be left behind, now or soon, as far as can be told.
    pub(crate) fn may_evict(&self) -> bool {
        self.groomer.evict.is_on() && !self.has_views && !self.is_fruitless()
    }

    /// Whether the groomer went round several times and found everything pinned.
    fn is_fruitless(&self) -> bool {
        self.groomer.evict.fruitless > ROUNDS * self.config.geometry.slots()
    }

    /// The host read sectors.
    pub(crate) fn note_reads(&mut self, lba: u64, count: u32) {
        if self.lebs.owners.is_some() {
            self.groomer.policy.asked(lba);
        }
        for lba in lba..self.groomer.evict.below.min(lba + u64::from(count)) {
            let slot = self.map.get(lba);
            if slot != NO_SLOT {
                let place = self.lebs.place(slot);
                let note = self.groomer.policy.read(self.lebs.note(place));
                self.lebs.set_note(place, note);
            }
        }
    }

    /// Has the policy look through the notes of those LEBs that are next.
    pub(crate) fn visit_lebs(&mut self) {
        for leb in self.groomer.policy.to_visit(self.lebs.len()) {
            let entry = &self.lebs[leb];
            if let (LebState::Closed, Stream::Data(stream)) = (entry.state, entry.stream) {
                self.groomer.policy.visit(leb, stream, &mut self.lebs.notes(leb));
            }
        }
    }

    /// Whether a sector in a slot of the victim is to be left behind; it is when the victim is done.
    pub(crate) fn chose_to_leave(&mut self, lba: u64, slot: Slot) -> bool {
        let leaves = lba < self.groomer.evict.below && self.is_used(lba, slot) && self.leaves_behind(lba, slot);
        if leaves {
            self.groomer.evict.chosen.push((lba, slot));
        }
        leaves
    }

    /// Leaves behind what was chosen. Whether that is done: it may have to wait for room to record it.
    pub(crate) fn leave_chosen(&mut self) -> bool {
        let mut chosen = std::mem::take(&mut self.groomer.evict.chosen);
        // The host may have written or trimmed it while the rest was looked at.
        chosen.retain(|(lba, slot)| self.is_used(*lba, *slot));
        chosen.sort_unstable();
        while !chosen.is_empty() {
            let (runs, left) = last_runs(&chosen, records_in_slot(self.config.geometry.sector_bytes));
            if !self.record_left(&runs) {
                break;
            }
            chosen.truncate(left);
            runs.into_iter().for_each(|(lba, count)| self.leave(lba, count));
        }
        if !chosen.is_empty() && self.may_stake() {
            // Where so little is left, nothing may be appended but what is moved.
            self.groomer.evict.moves_all = true;
            chosen.clear();
            self.reread_victim();
        }
        self.groomer.evict.chosen = chosen;
        self.groomer.evict.chosen.is_empty() && !self.groomer.evict.moves_all
    }

    fn leave(&mut self, lba: u64, count: u64) {
        for lba in lba..lba + count {
            let note = self.lebs.note(self.lebs.place(self.map.get(lba)));
            self.groomer.policy.left_behind(lba, note);
        }
        self.unmap(lba, count);
        self.groomer.pace.earn_slots(count as u32);
        self.groomer.evict.evicted += count;
        self.groomer.evict.fruitless = 0;
    }

    /// Appends a slot of trim records for runs of sectors, first ones and counts; `false` when there is no room.
    fn record_left(&mut self, runs: &[(u64, u64)]) -> bool {
        let stream = (!self.may_stake()).then(|| self.groom_stream(self.groomer.streams - 1)).flatten();
        let Some(stream) = stream else { return false };
        let run = self.reserve(stream, 1);
        let header = self.meta_header(Kind::Trims, run.slot);
        let records = (self.seq..).zip(runs).map(|(seq, (lba, count))| TrimRecord { seq, lba: *lba, count: *count });
        let source = Source::Meta(encode(&records.collect::<Vec<_>>()));
        self.seq += runs.len() as u64;
        self.commands.push(Command::Stage { buf: run.buf, at: run.at, count: 1, header, source });
        self.commit(stream, run);
        true
    }
}

/// The last sectors, of those in order, as runs, so many at most; and how many sectors come before them.
fn last_runs(sectors: &[(u64, Slot)], most: usize) -> (Vec<(u64, u64)>, usize) {
    let mut runs: Vec<(u64, u64)> = Vec::with_capacity(most);
    for (at, (lba, _)) in sectors.iter().enumerate().rev() {
        if let Some((first, count)) = runs.last_mut().filter(|(first, _)| *first == lba + 1) {
            (*first, *count) = (*lba, *count + 1);
        } else if runs.len() == most {
            return (runs, at + 1);
        } else {
            runs.push((*lba, 1));
        }
    }
    (runs, 0)
}
