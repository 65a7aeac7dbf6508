//! Logical erase blocks: their life, and which of their slots are live.

use crate::types::LebId;

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
#[repr(u8)]
pub enum Stream {
    /// What the host writes, and its trims.
    Host = 0,
    /// What the groomer moves.
    Groom = 1,
    /// Checkpoints.
    Checkpoint = 2,
}

/// How many streams there are.
pub const STREAMS: usize = 3;

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
    bits: Option<Box<[u64]>>,
}

/// All LEBs of a module.
pub struct Lebs {
    lebs: Vec<Leb>,
    slots_per_leb: u32,
    bitmaps: usize,
}

impl Lebs {
    /// `count` free LEBs.
    pub fn new(count: u32, slots_per_leb: u32) -> Lebs {
        let mut lebs = Vec::new();
        lebs.resize_with(count as usize, || Leb {
            state: LebState::Free,
            stream: Stream::Host,
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
            bits: None,
        });
        Lebs { lebs, slots_per_leb, bitmaps: 0 }
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.lebs.len() as u32
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
        self.lebs.capacity() * size_of::<Leb>() + self.bitmaps * self.slots_per_leb.div_ceil(64) as usize * 8
    }

    /// Marks a slot live.
    #[inline]
    pub fn set_live(&mut self, slot: u32) {
        let (leb, at) = (slot / self.slots_per_leb, slot % self.slots_per_leb);
        let words = self.slots_per_leb.div_ceil(64) as usize;
        let leb = &mut self.lebs[leb as usize];
        let bits = leb.bits.get_or_insert_with(|| {
            self.bitmaps += 1;
            vec![0; words].into_boxed_slice()
        });
        debug_assert!(bits[at as usize / 64] >> (at % 64) & 1 == 0);
        bits[at as usize / 64] |= 1 << (at % 64);
        leb.live += 1;
    }

    /// Marks a live slot dead.
    #[inline]
    pub fn set_dead(&mut self, slot: u32) {
        let (leb, at) = (slot / self.slots_per_leb, slot % self.slots_per_leb);
        let leb = &mut self.lebs[leb as usize];
        let bits = leb.bits.as_mut().expect("a live slot's LEB has its bitmap");
        debug_assert!(bits[at as usize / 64] >> (at % 64) & 1 == 1);
        bits[at as usize / 64] &= !(1 << (at % 64));
        leb.live -= 1;
    }

    /// Whether a slot is live.
    pub fn is_live(&self, slot: u32) -> bool {
        let (leb, at) = (slot / self.slots_per_leb, slot % self.slots_per_leb);
        self.lebs[leb as usize].bits.as_ref().is_some_and(|bits| bits[at as usize / 64] >> (at % 64) & 1 == 1)
    }

    /// Gives a LEB without live slots its bitmap's memory back.
    pub fn drop_bitmap(&mut self, leb: LebId) {
        debug_assert_eq!(self.lebs[leb as usize].live, 0);
        if self.lebs[leb as usize].bits.take().is_some() {
            self.bitmaps -= 1;
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
