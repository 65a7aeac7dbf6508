//! The order of what happens next: a timing wheel (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987) with one
//! level, and a heap for the little that lies beyond it.
//!
//! Every operation has at most one event at a time, so an event lives in a table by its operation and costs no memory of its own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Nanos;

/// Width of a slot: 1,024 ns.
const SHIFT: u32 = 10;
/// Slots: together 4 ms, more than a program or an erase takes as a rule.
const SLOTS: usize = 4096;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Nanos,
    /// Events of the same moment come in the order in which they were set.
    serial: u64,
    /// Next in the slot.
    next: u32,
}

/// Events by the number of their operation.
#[derive(Debug)]
pub struct Wheel {
    entries: Vec<Entry>,
    slots: Box<[u32; SLOTS]>,
    /// Which slots hold something, and which words of that do.
    filled: [u64; SLOTS / 64],
    filled_words: u64,
    far: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    /// No event is earlier.
    now: Nanos,
    serial: u64,
    /// The earliest event, where it is known: its moment, or [`Nanos::MAX`]; its operation; whether the heap holds it.
    first_at: Nanos,
    first_which: u32,
    first_far: bool,
    near: usize,
}

impl Wheel {
    /// An empty wheel.
    pub fn new() -> Wheel {
        Wheel {
            entries: Vec::new(),
            slots: Box::new([NONE; SLOTS]),
            filled: [0; SLOTS / 64],
            filled_words: 0,
            far: BinaryHeap::new(),
            now: 0,
            serial: 0,
            first_at: Nanos::MAX,
            first_which: NONE,
            first_far: false,
            near: 0,
        }
    }

    /// Sets the event of an operation that has none; `at` is not earlier than the last event taken.
    #[inline]
    pub fn set(&mut self, at: Nanos, which: u32) {
        debug_assert!(at >= self.now);
        self.serial += 1;
        let serial = self.serial;
        let far = (at >> SHIFT) - (self.now >> SHIFT) >= SLOTS as u64;
        // An earlier one takes the place of the first that is known; an unknown one is looked for when it is asked for.
        if at < self.first_at && (self.first_at < Nanos::MAX || (self.near == 0 && self.far.is_empty())) {
            (self.first_at, self.first_which, self.first_far) = (at, which, far);
        }
        if far {
            self.far.push(Reverse((at, serial, which)));
            return;
        }
        if self.entries.len() <= which as usize {
            self.entries.resize(which as usize + 1, Entry { at: 0, serial: 0, next: NONE });
        }
        let slot = (at >> SHIFT) as usize % SLOTS;
        self.entries[which as usize] = Entry { at, serial, next: self.slots[slot] };
        self.slots[slot] = which;
        self.filled[slot / 64] |= 1 << (slot % 64);
        self.filled_words |= 1 << (slot / 64);
        self.near += 1;
    }

    /// When the next event is; [`Nanos::MAX`] when there is none.
    #[inline]
    pub fn next(&mut self) -> Nanos {
        if self.first_at == Nanos::MAX && (self.near > 0 || !self.far.is_empty()) {
            self.find();
        }
        self.first_at
    }

    /// Takes the next event.
    #[inline]
    pub fn take(&mut self) -> Option<(Nanos, u32)> {
        let at = self.next();
        if at == Nanos::MAX {
            return None;
        }
        let which = self.first_which;
        self.first_at = Nanos::MAX;
        self.now = at;
        if self.first_far {
            self.far.pop();
        } else {
            self.unlink(at, which);
        }
        Some((at, which))
    }

    fn unlink(&mut self, at: Nanos, which: u32) {
        let slot = (at >> SHIFT) as usize % SLOTS;
        let next = self.entries[which as usize].next;
        if self.slots[slot] == which {
            self.slots[slot] = next;
            if next == NONE {
                self.filled[slot / 64] &= !(1 << (slot % 64));
                if self.filled[slot / 64] == 0 {
                    self.filled_words &= !(1 << (slot / 64));
                }
            }
        } else {
            let mut before = self.slots[slot];
            while self.entries[before as usize].next != which {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.near -= 1;
    }

    /// Looks for the earliest of everything.
    fn find(&mut self) {
        let (mut at, mut serial, mut first) = (Nanos::MAX, u64::MAX, NONE);
        let mut which = self.first_slot().map_or(NONE, |slot| self.slots[slot]);
        while which != NONE {
            let entry = &self.entries[which as usize];
            if entry.at < at || (entry.at == at && entry.serial < serial) {
                (at, serial, first) = (entry.at, entry.serial, which);
            }
            which = entry.next;
        }
        self.first_far = false;
        if let Some(Reverse((far_at, far_serial, far))) = self.far.peek()
            && (*far_at, *far_serial) < (at, serial)
        {
            (at, first, self.first_far) = (*far_at, *far, true);
        }
        (self.first_at, self.first_which) = (at, first);
    }

    /// The first slot at or after the present one that holds something, going round.
    fn first_slot(&self) -> Option<usize> {
        let begin = (self.now >> SHIFT) as usize % SLOTS;
        let (word, bit) = (begin / 64, begin % 64);
        let here = self.filled[word] >> bit << bit;
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        let words = self.filled_words;
        let later = if word == 63 { 0 } else { words >> (word + 1) << (word + 1) };
        // What is left in the word where it began lies a whole turn ahead.
        let word = if later != 0 { later } else { words };
        if word == 0 {
            return None;
        }
        let word = word.trailing_zeros() as usize;
        Some(word * 64 + self.filled[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::SplitMix64;

    #[test]
    fn gives_events_in_the_order_of_a_heap() {
        for seed in 0..50 {
            let mut random = SplitMix64::new(seed);
            let mut wheel = Wheel::new();
            let mut heap = BinaryHeap::new();
            let mut unused: Vec<u32> = (0..200).collect();
            let mut now = random.below(1 << 40);
            let mut serial = 0u64;
            wheel.now = now;
            for _ in 0..5000 {
                if !unused.is_empty() && random.one_in(2) {
                    let which = unused.swap_remove(random.below(unused.len() as u64) as usize);
                    let spread = [100, 10_000, 4_000_000, 5_000_000, 50_000_000][random.below(5) as usize];
                    let at = now + random.below(spread);
                    serial += 1;
                    wheel.set(at, which);
                    heap.push(Reverse((at, serial, which)));
                } else {
                    let expected = heap.pop().map(|Reverse((at, _, which))| (at, which));
                    assert_eq!(wheel.next(), expected.map_or(Nanos::MAX, |(at, _)| at), "seed {seed}");
                    assert_eq!(wheel.take(), expected, "seed {seed}");
                    if let Some((at, which)) = expected {
                        now = at;
                        unused.push(which);
                    }
                }
            }
        }
    }
}
