//! What is known of every slot: the *note* that the groomer's policy keeps with what is live, or that it is dead.
//!
//! A note is never zero: that is what a dead slot looks like, and no bit more is needed to tell. Slots stand one after the other: who marks one dead
//! has its note in the cache, and who moves what is live out of a LEB goes through its notes in their order.

use words::{Words, touch};

/// The most bits of a note: a slot then lies in two bytes at the most.
pub const NOTE_BITS: u32 = 8;
/// The note of what nothing was noted of.
pub const UNNOTED: u8 = 1;
const DEAD: u8 = 0;

/// The slots of all LEBs.
pub(crate) struct Slots {
    words: Words,
    bits: u32,
    /// Bytes of a LEB.
    stride: usize,
}

/// Words of a table of LEBs with so many bytes each. The last slot is read with the byte behind it.
fn words(lebs: u32, stride: usize) -> usize {
    (lebs as usize * stride + 1).div_ceil(size_of::<u32>())
}

impl Slots {
    /// Of so many LEBs of so many slots, all of them dead.
    pub fn new(lebs: u32, slots_per_leb: u32, note_bits: u32) -> Slots {
        assert!((1..=NOTE_BITS).contains(&note_bits));
        let stride = (slots_per_leb as usize * note_bits as usize).div_ceil(8);
        Slots { words: Words::huge(words(lebs, stride)), bits: note_bits, stride }
    }

    /// Of so many LEBs, which are no fewer than before; all slots of those that are new are dead.
    pub fn grow(&mut self, lebs: u32) {
        let mut larger = Words::huge(words(lebs, self.stride));
        larger[..self.words.len()].copy_from_slice(&self.words);
        self.words = larger;
    }

    /// The byte in which the slot of a LEB begins, and the bit.
    #[inline]
    fn place(&self, leb: u32, at: u32) -> (usize, u32) {
        let bit = at as usize * self.bits as usize;
        (leb as usize * self.stride + bit / 8, (bit % 8) as u32)
    }

    /// What is noted of it; zero where it is dead.
    #[inline]
    pub fn note(&self, leb: u32, at: u32) -> u8 {
        let (byte, shift) = self.place(leb, at);
        let bytes = &self.words.bytes()[byte..byte + 2];
        (u16::from_le_bytes([bytes[0], bytes[1]]) >> shift & self.mask()) as u8
    }

    #[inline]
    fn set(&mut self, leb: u32, at: u32, note: u8) {
        debug_assert!(u16::from(note) <= self.mask(), "a note of more bits than were asked for");
        let (byte, shift) = self.place(leb, at);
        let mask = self.mask() << shift;
        let bytes = &mut self.words.bytes_mut()[byte..byte + 2];
        let before = u16::from_le_bytes([bytes[0], bytes[1]]);
        bytes.copy_from_slice(&(before & !mask | u16::from(note) << shift).to_le_bytes());
    }

    /// All bits of a slot.
    #[inline]
    fn mask(&self) -> u16 {
        (1 << self.bits) - 1
    }

    /// Whether it is live.
    #[inline]
    pub fn is_live(&self, leb: u32, at: u32) -> bool {
        self.note(leb, at) != DEAD
    }

    /// It is live from now on, with this note.
    #[inline]
    pub fn set_live(&mut self, leb: u32, at: u32, note: u8) {
        debug_assert!(!self.is_live(leb, at) && note != DEAD);
        self.set(leb, at, note);
    }

    /// What is live has this note from now on.
    #[inline]
    pub fn set_note(&mut self, leb: u32, at: u32, note: u8) {
        debug_assert!(self.is_live(leb, at) && note != DEAD);
        self.set(leb, at, note);
    }

    /// It is dead from now on.
    #[inline]
    pub fn set_dead(&mut self, leb: u32, at: u32) {
        debug_assert!(self.is_live(leb, at));
        self.set(leb, at, DEAD);
    }

    /// Starts to fetch a slot into the cache.
    #[inline]
    pub fn prefetch(&self, leb: u32, at: u32) {
        self.words.prefetch(self.place(leb, at).0 / size_of::<u32>());
    }

    /// Bits of a note.
    pub fn note_bits(&self) -> u32 {
        self.bits
    }

    /// Bytes of a LEB.
    pub fn leb_bytes(&self) -> usize {
        self.stride
    }

    /// Takes all of the memory now.
    pub fn touch(&mut self) {
        touch(&mut self.words);
    }

    /// Takes all of the memory now and locks it.
    ///
    /// # Errors
    /// There is not so much memory, or the process may not lock it.
    pub fn lock(&mut self) -> std::io::Result<()> {
        self.words.lock()
    }

    /// Memory is taken as it is used.
    pub fn unlock(&mut self) {
        self.words.unlock();
    }
}

/// The notes of what is live in one LEB.
pub struct Notes<'a> {
    slots: &'a mut Slots,
    leb: u32,
    count: u32,
}

impl<'a> Notes<'a> {
    pub(crate) fn new(slots: &'a mut Slots, leb: u32, count: u32) -> Notes<'a> {
        Notes { slots, leb, count }
    }

    /// Goes through them in the order of their slots: each is replaced by what comes of it.
    pub fn update(&mut self, mut replace: impl FnMut(u8) -> u8) {
        for at in 0..self.count {
            let note = self.slots.note(self.leb, at);
            if note != DEAD {
                let after = replace(note);
                if after != note {
                    self.slots.set_note(self.leb, at, after);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_left_alone() {
        for note_bits in 1..=NOTE_BITS {
            let mut slots = Slots::new(3, 101, note_bits);
            let note = |at: u32| (1 + at * 37 % ((1 << note_bits) - 1)) as u8;
            for at in 0..101 {
                (0..3).for_each(|leb| slots.set_live(leb, at, note(at)));
            }
            for at in 0..101 {
                match at % 3 {
                    0 => slots.set_dead(1, at),
                    1 => slots.set_note(1, at, note(at + 1)),
                    _ => {}
                }
            }
            for at in 0..101 {
                assert!(slots.is_live(0, at) && slots.is_live(2, at) && slots.is_live(1, at) == (at % 3 > 0));
                let changed = [DEAD, note(at + 1), note(at)][at as usize % 3];
                assert_eq!([0, 1, 2].map(|leb| slots.note(leb, at)), [note(at), changed, note(at)], "{note_bits} {at}");
            }
        }
    }
}
