//! The policy of a cache: what is left behind and what is kept, after S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi: "FIFO Queues Are All You Need for Cache
//! Eviction", SOSP 2023).
//!
//! A sector that comes for the first time stands in the *small* queue; what is kept, and what comes back soon after it was left behind, stands
//! in the *main* one. A queue is a stream's LEBs. Where the original moves a sector to the head of its queue for every round that it
//! survives, this one moves no more than a budget allows, because a move is a write:
//!
//! - *A LEB survives as a whole.* Each sector has a value that grows with how often it was used and falls with the time since then. The
//!   groomer takes the LEB whose sectors are worth least together, so a LEB full of hot sectors stays where it is and costs nothing.
//! - *Moves are for what is worth most.* What a victim holds is moved if it is worth more than a bar. The bar rises while the budget
//!   runs out, and falls while it is not used up.
//! - *A newcomer is worth half.* What stands in the small queue counts for half of its value, since most of what comes once never
//!   comes again.

mod ghosts;
mod label;
mod quotas;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ghosts::Ghosts;
use label::{EPOCHS, age, kept, label, used, uses};
use quotas::Quotas;

use super::{Destination, Eligible, GroomPolicy, LebView, Moved, Shape, Write};
use crate::owners::{Owners, Places, Quota};
use crate::slots::Notes;
use crate::types::LebId;

/// The small queue, and the main one.
const SMALL: u8 = 0;
const MAIN: u8 = 1;
/// What the host pins: it goes when the host trims it.
const PINNED: u8 = 2;
/// The two queues once more, for volumes whose sectors go sooner than those of others: so much is added to the number of a stream.
const APART: u8 = 3;
/// Uses in the small queue that are worth nothing where the volume has a weight below these.
const WEIGHTS_LESS: [f32; 2] = [0.5, 0.1];
/// Share of the cache that is the small queue's at the least.
const SMALL_SHARE: f64 = 0.1;
/// Value in the small queue of what would be worth one in the main queue.
const SMALL_WEIGHT: f32 = 0.5;
/// Slots that may be written for each sector that the host writes, beside that sector: headers of LEBs, records of what was left behind,
/// and moves.
const BUDGET: f64 = 0.095;
/// Slots that the record of a sector takes which is left behind, if it is a run of its own.
const RECORD: f64 = 24.0 / 4096.0;
/// LEBs that can be written with what was saved up, at the most.
const SAVED_LEBS: f64 = 16.0;
/// How fast the bar follows the budget.
const GAIN: f64 = 0.2;
/// The highest bar: nothing is worth more.
const BAR_MAX: f32 = 40.0;
/// The value of a sector is its uses and this, ...
const USES_MORE: f64 = 0.3;
/// ... over its age in cache fills and this.
const AGE_MORE: f64 = 0.2;
/// Uses with which a sector leaves the small queue for the main one while there is enough to spend.
const KEPT_USES: u8 = 1;
/// Uses that a sector has at the most which comes back after it was left behind.
const RETURN_USES: u8 = 3;
/// What a sector is worth at the most whose LEB nobody looked through yet, where a volume holds too much.
const NEW_WORTH: f32 = 1.5;
/// What a move costs there, in worth.
const MOVE_WORTH: f32 = 8.0;
/// LEBs that are looked through for each one that is taken.
const VISITS: u32 = 32;

/// The policy of caches.
pub struct Cache {
    shape: Shape,
    streams: u8,
    /// Sectors from this one on are pinned.
    pinned_from: u64,
    ghosts: Ghosts,
    /// Sectors that the host wrote.
    clock: u64,
    /// Of the clock.
    epoch: u64,
    /// What a sector with each note is worth, in the small queue and in the main one.
    values: [Box<[f32; 256]>; 2],
    /// What the sectors of each LEB were worth together when it was looked through last.
    worths: Vec<f32>,
    /// The LEB that is looked through next.
    next: LebId,
    /// What is worth more is moved.
    bar: f32,
    /// Slots that may be written now.
    credit: f64,
    /// The most that may be saved up.
    most: f64,
    /// Nothing was left behind yet: while the cache fills for the first time, nothing is saved up.
    fills_up: bool,
    /// Where volumes share the cache.
    quotas: Option<Box<Quotas>>,
}

impl Cache {
    /// Of a module of this shape, whose sectors from this one on are pinned.
    pub(crate) fn new(shape: &Shape, pinned_from: u64) -> Cache {
        let leb = f64::from(shape.slots_per_leb);
        let mut cache = Cache {
            shape: *shape,
            streams: shape.streams.min(3),
            pinned_from,
            ghosts: Ghosts::new(shape.sectors),
            clock: 0,
            epoch: 0,
            values: [Box::new([0.0; 256]), Box::new([0.0; 256])],
            worths: vec![f32::MAX; shape.lebs as usize],
            next: 0,
            bar: 1.0,
            credit: leb,
            most: leb * SAVED_LEBS,
            fills_up: true,
            quotas: None,
        };
        cache.value_notes();
        cache
    }

    fn stream(&self, wanted: u8) -> u8 {
        if self.streams >= 3 { wanted } else { wanted.min(1) }
    }

    /// The stream of a queue for a sector.
    fn stream_of(&self, queue: u8, lba: u64) -> u8 {
        let apart = self.streams > APART && self.quotas.as_ref().is_some_and(|quotas| quotas.is_apart(lba));
        if apart { queue + APART } else { queue }
    }

    /// What the sectors of a volume are worth beside those of others.
    fn weight(&self, lba: u64) -> f32 {
        self.quotas.as_ref().map_or(1.0, |quotas| quotas.weight(lba))
    }

    /// The same of a LEB.
    fn mean_weight(&self, leb: LebId) -> f32 {
        self.quotas.as_ref().map_or(1.0, |quotas| quotas.mean(leb))
    }

    /// The queue that a stream belongs to. With two streams what is pinned stands in the main one.
    fn queue(stream: u8) -> usize {
        usize::from(if stream >= APART { stream - APART } else { stream.min(MAIN) })
    }

    fn value(&self, moved: &Moved) -> f32 {
        self.values[Cache::queue(moved.stream)][usize::from(moved.note)] * self.weight(moved.lba)
    }

    /// Works out what each note is worth in this epoch.
    fn value_notes(&mut self) {
        for note in 1..=u8::MAX {
            let fills = f64::from(age(note, self.epoch)) / EPOCHS as f64;
            let worth = (f64::from(uses(note)) + USES_MORE) / (fills + AGE_MORE);
            self.values[0][usize::from(note)] = worth as f32 * SMALL_WEIGHT;
            self.values[1][usize::from(note)] = worth as f32;
        }
    }

    /// Share of what can be saved up that is left.
    fn left(&self) -> f64 {
        (self.credit / self.most).clamp(0.0, 1.0)
    }

    fn weigh_leb(&mut self, owners: Option<&Owners>, leb: &LebView) -> f32 {
        match (owners, &mut self.quotas) {
            (Some(owners), Some(quotas)) => quotas.weigh_leb(owners, leb.id, leb.live),
            _ => 1.0,
        }
    }

    /// What is taken where a volume holds more than its limit: the LEB with most to gain for what must be moved, and for what is lost.
    fn choose_of_one_over(&mut self, owners: &Owners, eligible: &Eligible) -> Option<LebId> {
        let quotas = self.quotas.as_mut()?;
        let over = quotas.over(owners);
        quotas.weigh(owners, eligible.lebs());
        quotas.take_only(over.clone().filter(|_| eligible.is_roomy()));
        let over = over?;
        let mut best = None::<(f32, u64, LebId)>;
        for leb in eligible.iter() {
            if leb.live == 0 {
                return Some(leb.id);
            }
            let (live, mean) = (leb.live as f32, self.weigh_leb(Some(owners), &leb));
            let gain: u32 = owners.copies(leb.id).zip(&over).filter(|(_, over)| **over).map(|(copies, _)| copies).sum();
            if gain == 0 {
                continue;
            }
            // As if nobody looked through it since it was filled.
            let worth = self.worths[leb.id as usize].min(live * NEW_WORTH) * mean;
            let price = (worth + MOVE_WORTH * (live - gain as f32)) / gain as f32;
            if best.is_none_or(|(least, closed, _)| (price, leb.closed) < (least, closed)) {
                best = Some((price, leb.closed, leb.id));
            }
        }
        best.map(|(_, _, id)| id)
    }

    fn spend(&mut self, slots: f64) {
        self.credit = (self.credit - slots).max(-self.most);
    }
}

impl GroomPolicy for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn reshaped(&mut self, shape: &Shape) {
        if shape.sectors != self.shape.sectors {
            self.ghosts = Ghosts::new(shape.sectors);
        }
        self.worths.resize(shape.lebs as usize, f32::MAX);
        if let Some(quotas) = &mut self.quotas {
            quotas.grow(shape.lebs);
        }
        self.shape = *shape;
    }

    fn host_streams(&self) -> u8 {
        self.streams
    }

    fn streams(&self) -> u8 {
        self.streams
    }

    fn learns(&self) -> bool {
        true
    }

    fn note_bits(&self) -> u32 {
        u8::BITS
    }

    fn place(&mut self, write: &Write) -> u8 {
        if write.lba >= self.pinned_from {
            return self.stream(PINNED);
        }
        let queue = if write.olds[0].is_some() || self.ghosts.uses(write.lba).is_some() { MAIN } else { SMALL };
        self.stream_of(queue, write.lba)
    }

    fn wrote(&mut self, write: &Write, notes: &mut [u8]) {
        let most = if self.fills_up { f64::from(self.shape.slots_per_leb) } else { self.most };
        self.credit = (self.credit + BUDGET * notes.len() as f64).min(most);
        self.clock += notes.len() as u64;
        let epoch = self.clock * EPOCHS / self.shape.sectors.max(1);
        if epoch != self.epoch {
            self.epoch = epoch;
            self.value_notes();
            if let Some(quotas) = &mut self.quotas {
                quotas.epoch_is(epoch);
            }
        }
        for ((note, old), lba) in notes.iter_mut().zip(write.olds).zip(write.lba..) {
            let back = if lba < self.pinned_from { self.ghosts.uses(lba) } else { None };
            *note = match (old, back) {
                (Some(old), _) => used(old.note, epoch),
                (None, Some(uses)) => label(epoch, (uses + 1).min(RETURN_USES)),
                (None, None) => label(epoch, 0),
            };
            if back.is_some() {
                self.ghosts.forget(lba);
            }
            if let Some(quotas) = &mut self.quotas {
                quotas.used(lba, old.is_none());
            }
        }
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        let pinned = moved.lba >= self.pinned_from;
        let stream = if pinned { self.stream(PINNED) } else { self.stream_of(MAIN, moved.lba) };
        self.spend(1.0);
        Destination { stream, written: moved.now, note: kept(moved.note, self.epoch) }
    }

    fn read(&self, note: u8) -> u8 {
        used(note, self.epoch)
    }

    fn share(&mut self, among: Option<(Places, Vec<Quota>)>) {
        let (lebs, epoch, before) = (self.shape.lebs, self.epoch, self.quotas.take().map(|quotas| *quotas));
        self.quotas = among.map(|(places, quotas)| Box::new(Quotas::new(places, quotas, lebs, epoch, before)));
        let apart = self.quotas.is_some() && self.shape.streams >= APART + 2;
        self.streams = if apart { APART + 2 } else { self.shape.streams.min(APART) };
    }

    fn asked(&mut self, lba: u64) {
        if let Some(quotas) = &mut self.quotas {
            quotas.used(lba, false);
        }
    }

    fn leaves_behind(&self, moved: &Moved) -> bool {
        if self.quotas.as_ref().is_some_and(|quotas| quotas.stays(moved.lba)) {
            return false;
        }
        if self.credit < 1.0 {
            return true;
        }
        if Cache::queue(moved.stream) == usize::from(MAIN) {
            return self.value(moved) <= self.bar;
        }
        let left = self.left();
        let mut more = u8::from(left <= 0.5) + u8::from(left <= 0.25);
        let weight = self.weight(moved.lba);
        more += WEIGHTS_LESS.iter().map(|less| u8::from(weight < *less)).sum::<u8>();
        uses(moved.note) < KEPT_USES + more
    }

    fn left_behind(&mut self, lba: u64, note: u8) {
        self.fills_up = false;
        self.spend(RECORD);
        self.ghosts.add(lba, uses(note));
    }

    fn opened(&mut self, leb: LebId, _: u8) {
        self.worths[leb as usize] = f32::MAX;
        // Its header.
        self.spend(1.0);
    }

    fn took(&mut self, victim: &LebView) {
        // The slot of its last records is seldom full.
        self.spend(1.0);
        let worth = self.worths[victim.id as usize];
        if Cache::queue(victim.data_stream()) == usize::from(MAIN) && worth < f32::MAX {
            // What is worth less than the mean of the LEB is worth no move however much there is to spend.
            let mean = (worth * self.mean_weight(victim.id) / self.shape.slots_per_leb as f32).min(BAR_MAX);
            self.bar = (self.bar * (1.0 + GAIN * (0.5 - self.left())) as f32).clamp(mean, BAR_MAX);
        }
    }

    fn to_visit(&mut self, lebs: u32) -> Range<LebId> {
        let from = if self.next < lebs { self.next } else { 0 };
        self.next = (from + VISITS).min(lebs);
        from..self.next
    }

    fn visit(&mut self, leb: LebId, stream: u8, notes: &mut Notes) {
        let bar = self.bar / self.mean_weight(leb);
        let (values, epoch) = (&self.values[Cache::queue(stream)], self.epoch);
        let mut worth = 0.0;
        notes.update(|note| {
            worth += values[usize::from(note)].min(bar);
            kept(note, epoch)
        });
        self.worths[leb as usize] = worth;
    }

    fn score(&self, leb: &LebView) -> f64 {
        -f64::from(self.worths[leb.id as usize])
    }

    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        if let Some(owners) = eligible.owners() {
            if let Some(found) = self.choose_of_one_over(owners, eligible) {
                return Some(found);
            }
            if eligible.is_roomy() {
                return None;
            }
        }
        let (mut live, mut best) = ([0u64; 3], [None::<(f32, LebView)>; 3]);
        for leb in eligible.iter() {
            if leb.live == 0 {
                return Some(leb.id);
            }
            let queue = match leb.data_stream() {
                PINNED => usize::from(PINNED),
                stream => Cache::queue(stream),
            };
            live[queue] += u64::from(leb.live);
            let weight = self.weigh_leb(eligible.owners(), &leb);
            let worth =
                if queue == usize::from(PINNED) { leb.live as f32 } else { self.worths[leb.id as usize] * weight };
            let first = |(least, other): &(f32, LebView)| (worth, leb.closed) < (*least, other.closed);
            if best[queue].as_ref().is_none_or(first) {
                best[queue] = Some((worth, leb));
            }
        }
        // What is pinned is trimmed by and by; moving it is worth it only where that has happened.
        let [small, main, pinned] = best;
        let pinned = pinned.filter(|(_, leb)| leb.utilisation() < 0.25 || (small.is_none() && main.is_none()));
        let few = (live[0] as f64) < (live[0] + live[1]) as f64 * SMALL_SHARE;
        // It is kept for newcomers, not for volumes that have too much.
        let few = few && small.as_ref().is_none_or(|(_, leb)| self.mean_weight(leb.id) >= WEIGHTS_LESS[0]);
        let cold = match (small, main) {
            (Some(small), Some(main)) => Some(if few || main.0 <= small.0 { main } else { small }),
            (small, main) => small.or(main),
        };
        pinned.or(cold).map(|(_, leb)| leb.id)
    }

    fn memory(&self) -> usize {
        let quotas = self.quotas.as_ref().map_or(0, |quotas| quotas.memory());
        quotas + self.ghosts.memory() + self.worths.capacity() * size_of::<f32>() + 2 * size_of::<[f32; 256]>()
    }
}
