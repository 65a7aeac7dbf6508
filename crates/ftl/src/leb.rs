//! Logical erase blocks: their life, and which of their slots are live.

use crate::owners::Owners;
use crate::slots::{Notes, Slots, UNNOTED};
use crate::types::{LebId, Slot};
use words::prefetch_line;

/// Where a LEB stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LebState {
    /// Holds nothing that is needed.
    Free,
    /// Being made ready for an append point.
    Preparing,
    /// Ready for an append point.
    Ready,
    /// An append point writes here.
    Open,
    /// Full, or given up by its append point.
    Closed,
    /// The groomer moves its live sectors away.
    Grooming,
    /// Empty; freed when what emptied it is durable and nobody reads it.
    Emptied,
    /// Being erased.
    Erasing,
    /// Could not be erased: out of use until the next attach.
    Retired,
}

/// The streams of appended data, each with an append point of its own, so that data of different
/// lifetimes lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Host sectors, as the policy groups them, from 0. Trims go to the first.
    Data(u8),
    /// Checkpoints.
    Checkpoint,
}

/// The most streams of host sectors, but for devices of zones.
pub const DATA_STREAMS: u8 = 6;
/// How many streams such a device has.
pub const STREAMS: usize = DATA_STREAMS as usize + 1;
/// The most streams of host sectors on a device of zones: trims, fourteen active zones, and what the groomer moves.
pub const ZONE_STREAMS: u8 = 16;
/// How many streams there are at all.
pub(crate) const ALL_STREAMS: usize = ZONE_STREAMS as usize + 1;

impl Stream {
    /// The stream that the host's trims go to, and its writes where nothing separates them.
    pub const FIRST: Stream = Stream::Data(0);

    /// Its number on media.
    pub const fn code(self) -> u8 {
        match self {
            Stream::Data(n) if n < 2 => n,
            Stream::Checkpoint => 2,
            Stream::Data(n) => n + 1,
        }
    }

    /// The stream of that number on media.
    pub const fn from_code(code: u8) -> Option<Stream> {
        match code {
            0 | 1 => Some(Stream::Data(code)),
            2 => Some(Stream::Checkpoint),
            3..=ZONE_STREAMS => Some(Stream::Data(code - 1)),
            _ => None,
        }
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Stream> {
        Stream::data().chain([Stream::Checkpoint])
    }

    /// Those of host sectors.
    pub fn data() -> impl Iterator<Item = Stream> {
        (0..ZONE_STREAMS).map(Stream::Data)
    }
}

/// When a LEB was written. The clock counts sectors that the host wrote.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// When it was opened.
    pub opened: u64,
    /// When it was closed.
    pub closed: u64,
    /// Sectors that the host wrote while one slot was filled, in the mean, in parts of [`PARTS`]: of a LEB that is closed.
    pace: u64,
    /// Sectors that the groomer moved here.
    moved: u32,
    /// Sum of the moments when the host had written those; their mean once the LEB is closed.
    written: u64,
}

/// Parts of a sector in which the pace of a LEB is kept.
const PARTS: u64 = 1 << 16;

impl Times {
    /// Of a LEB that is opened.
    pub(crate) fn opened(now: u64) -> Times {
        Times { opened: now, ..Times::default() }
    }

    /// A sector that the host wrote at this moment was moved here.
    #[inline]
    pub(crate) fn count_moved(&mut self, written: u64) {
        self.moved += 1;
        self.written += written;
    }

    /// The LEB, of so many slots, is closed. What is asked for every sector that dies or is moved is worked out here, once.
    pub(crate) fn close(&mut self, now: u64, slots: u32) {
        self.closed = now;
        self.pace = (now.saturating_sub(self.opened) * PARTS).div_ceil(u64::from(slots.max(1)));
        self.written = self.written.checked_div(self.moved.into()).unwrap_or(0);
    }

    /// When the slot of this number was filled, about: the host filled the LEB, which is closed, evenly.
    #[inline]
    pub(crate) fn filled(&self, slot: u32) -> u64 {
        self.opened + self.pace * u64::from(slot) / PARTS
    }

    /// The mean of the moments when the host had written what the groomer moved to the LEB, which is closed, if it moved anything there.
    #[inline]
    pub(crate) fn mean_moved(&self) -> Option<u64> {
        (self.moved > 0).then_some(self.written)
    }
}

/// One LEB.
pub struct Leb {
    /// Where it stands in its life.
    pub state: LebState,
    /// Which stream wrote it.
    pub stream: Stream,
    /// Whether its space on the backing store is sure.
    pub allocated: bool,
    /// Something was written to it since it was last erased.
    pub dirty: bool,
    /// A live slot of it cannot be read: it is kept as it is until the host gives those sectors up.
    pub damaged: bool,
    /// Its redundancy is not what it should be: it is groomed before any other.
    pub unsound: bool,
    /// Live slots.
    pub live: u32,
    /// Pages of it that are still in a buffer.
    pub buffered: u32,
    /// Reads under way.
    pub readers: u32,
    /// Times it was erased or given up for reuse.
    pub erases: u32,
    /// Sequence number when it was opened: everything in it is at least this new.
    pub opened: u64,
    /// Sequence number when it was closed: everything in it is older.
    pub closed: u64,
    /// When it was written, by the host's clock.
    pub times: Times,
    /// It was opened in this attach, and the groomer moved nothing here: every sector in it was written after it was opened.
    pub(crate) host_only: bool,
    /// Its slots were used before.
    used: bool,
}

impl Leb {
    /// One of which nothing is known.
    fn free() -> Leb {
        Leb {
            state: LebState::Free,
            stream: Stream::FIRST,
            allocated: false,
            dirty: false,
            damaged: false,
            unsound: false,
            live: 0,
            buffered: 0,
            readers: 0,
            erases: 0,
            opened: 0,
            closed: 0,
            times: Times::default(),
            host_only: false,
            used: false,
        }
    }
}

/// All LEBs of a module.
pub struct Lebs {
    lebs: Vec<Leb>,
    slots_per_leb: u32,
    /// 2^64 over that, rounded up.
    reciprocal: u64,
    slots: Slots,
    /// Whose they are, where volumes share a cache.
    pub(crate) owners: Option<Box<Owners>>,
    /// LEBs whose slots were used.
    used: usize,
    /// All memory that there can be was taken.
    preallocated: bool,
}

impl Lebs {
    /// `count` free LEBs.
    pub fn new(count: u32, slots_per_leb: u32) -> Lebs {
        let mut lebs = Vec::new();
        lebs.resize_with(count as usize, Leb::free);
        assert!(slots_per_leb > 1);
        let reciprocal = u64::MAX / u64::from(slots_per_leb) + 1;
        let slots = Slots::new(count, slots_per_leb, 1);
        Lebs { lebs, slots_per_leb, reciprocal, slots, owners: None, used: 0, preallocated: false }
    }

    /// So many LEBs from now on, no fewer than before. Nobody knows what the new ones hold: as after an attach.
    pub(crate) fn grow(&mut self, count: u32) {
        self.slots.grow(count);
        if let Some(owners) = &mut self.owners {
            owners.grow(count);
        }
        self.lebs.resize_with(count as usize, || Leb { dirty: true, ..Leb::free() });
    }

    /// From now on there is room for a note of so many bits with every live slot. Nothing is noted yet.
    pub(crate) fn set_note_bits(&mut self, bits: u32) {
        let mut slots = Slots::new(self.len(), self.slots_per_leb, bits);
        for (id, _) in self.iter().filter(|(_, leb)| leb.live > 0) {
            for at in (0..self.slots_per_leb).filter(|at| self.slots.is_live(id, *at)) {
                slots.set_live(id, at, UNNOTED);
            }
        }
        self.slots = slots;
        if self.preallocated {
            self.slots.touch();
        }
    }

    /// After an attach nobody knows by the host's clock when LEBs were written: they are taken to have been filled one after the other, in the
    /// order in which they were closed, up to now.
    pub(crate) fn guess_times(&mut self, now: u64) {
        let mut order: Vec<(u64, usize)> = self.lebs.iter().enumerate().map(|(id, leb)| (leb.closed, id)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let slots = u64::from(self.slots_per_leb);
        for (rank, (_, id)) in (0u64..).zip(order) {
            let closed = now.saturating_sub(rank * slots);
            self.lebs[id].times = Times::opened(closed.saturating_sub(slots));
            self.lebs[id].times.close(closed, self.slots_per_leb);
        }
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.lebs.len() as u32
    }

    /// Slots of each.
    #[inline]
    pub fn slots_per_leb(&self) -> u32 {
        self.slots_per_leb
    }

    /// Never true: a module has LEBs.
    pub fn is_empty(&self) -> bool {
        self.lebs.is_empty()
    }

    /// Each with its number.
    pub fn iter(&self) -> impl Iterator<Item = (LebId, &Leb)> {
        (0..).zip(&self.lebs)
    }

    /// Heap memory, bytes.
    pub fn memory(&self) -> usize {
        let owners = self.owners.as_ref().map_or(0, |owners| owners.memory());
        self.lebs.capacity() * size_of::<Leb>() + self.used * self.slots.leb_bytes() + owners
    }

    /// What notes take of it, beyond the bit that says that a slot is live.
    pub fn note_memory(&self) -> usize {
        (self.used * self.slots_per_leb as usize * (self.slots.note_bits() as usize - 1)).div_ceil(8)
    }

    /// Takes the memory for the slots of all LEBs now, and locks it.
    ///
    /// # Errors
    /// There is not so much memory, or the process may not lock it.
    pub(crate) fn preallocate(&mut self) -> std::io::Result<()> {
        self.slots.lock()?;
        self.preallocated = true;
        self.used = self.lebs.len();
        self.lebs.iter_mut().for_each(|leb| leb.used = true);
        Ok(())
    }

    /// Memory is taken as LEBs are used again; what was taken stays.
    pub(crate) fn release(&mut self) {
        self.preallocated = false;
        self.slots.unlock();
    }

    /// The LEB of a slot, and its number there. Asked many times for every write: a multiplication in place of divisions, exact for every
    /// slot (Lemire, Kaser, Kurz: "Faster remainder by direct computation", Software: Practice and Experience, 2019).
    #[inline]
    pub(crate) fn place(&self, slot: Slot) -> (LebId, u32) {
        let leb = ((u128::from(self.reciprocal) * u128::from(slot)) >> 64) as u32;
        (leb, slot - leb * self.slots_per_leb)
    }

    /// Marks a slot live, with what the groomer's policy notes of it.
    #[inline]
    pub fn set_live(&mut self, slot: u32, note: u8) {
        let (leb, at) = self.place(slot);
        self.slots.set_live(leb, at, note);
        let leb = &mut self.lebs[leb as usize];
        leb.live += 1;
        self.used += usize::from(!leb.used);
        leb.used = true;
    }

    /// Marks a live slot dead.
    #[inline]
    pub fn set_dead(&mut self, slot: u32) {
        let (leb, at) = self.place(slot);
        self.slots.set_dead(leb, at);
        self.lebs[leb as usize].live -= 1;
        if let Some(owners) = &mut self.owners {
            owners.remove(leb, slot);
        }
    }

    /// Whether a slot is live.
    #[inline]
    pub fn is_live(&self, slot: u32) -> bool {
        let (leb, at) = self.place(slot);
        self.slots.is_live(leb, at)
    }

    /// What is noted of a slot of a LEB: zero where it is dead.
    #[inline]
    pub(crate) fn note(&self, (leb, at): (LebId, u32)) -> u8 {
        self.slots.note(leb, at)
    }

    /// Notes something else of a live slot.
    #[inline]
    pub(crate) fn set_note(&mut self, (leb, at): (LebId, u32), note: u8) {
        self.slots.set_note(leb, at, note);
    }

    /// The notes of a LEB.
    pub(crate) fn notes(&mut self, leb: LebId) -> Notes<'_> {
        Notes::new(&mut self.slots, leb, self.slots_per_leb)
    }

    /// Starts to fetch what is known of a slot into the cache.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        let (leb, at) = self.place(slot);
        self.slots.prefetch(leb, at);
        if let Some(leb) = self.lebs.get(leb as usize) {
            // It is longer than a line: where it begins, and what lies at its end.
            prefetch_line(leb);
            prefetch_line(&leb.state);
        }
    }
}

impl std::ops::Index<LebId> for Lebs {
    type Output = Leb;
    fn index(&self, leb: LebId) -> &Leb {
        &self.lebs[leb as usize]
    }
}

impl std::ops::IndexMut<LebId> for Lebs {
    fn index_mut(&mut self, leb: LebId) -> &mut Leb {
        &mut self.lebs[leb as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leb_of_a_slot_is_that_of_a_division() {
        for slots_per_leb in [2, 3, 255, 256, 6400, 65_537, (1 << 25) - 1] {
            let lebs = Lebs::new(1, slots_per_leb);
            let borders = (0..u32::MAX / slots_per_leb).step_by(997).map(|leb| leb * slots_per_leb);
            for slot in borders.flat_map(|slot| [slot.saturating_sub(1), slot, slot + 1]).chain([u32::MAX]) {
                assert_eq!(lebs.place(slot), (slot / slots_per_leb, slot % slots_per_leb), "{slot} of {slots_per_leb}");
            }
        }
    }

    #[test]
    fn room_for_notes_leaves_what_is_live_and_forgets_notes() {
        let mut lebs = Lebs::new(3, 100);
        lebs.set_note_bits(6);
        (0..300).step_by(7).for_each(|slot| lebs.set_live(slot, 33));
        for bits in [6, 1, 3] {
            lebs.set_note_bits(bits);
            assert_eq!(
                lebs.note_memory(),
                (300 * (bits as usize - 1)).div_ceil(8),
                "the bit of what is live is no note"
            );
            for slot in 0..300 {
                assert_eq!(lebs.is_live(slot), slot % 7 == 0, "{slot} with {bits} bits");
                let noted = if slot % 7 == 0 { UNNOTED } else { 0 };
                assert_eq!(lebs.note(lebs.place(slot)), noted, "{slot} with {bits} bits");
            }
        }
        assert_eq!([0, 1, 2].map(|leb| lebs[leb].live), [15, 14, 14]);
    }
}
