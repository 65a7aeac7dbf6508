//! The labels of all sectors, seven bits each, one after the other. Memory is taken for those that were written, a page at a time.

use super::label::Label;
use crate::words::{HUGE_WORDS, PAGE_WORDS, Words, touch};

/// Bits of a label, and of a word.
const BITS: usize = 7;
const WORD: usize = 32;
const MASK: u64 = (1 << BITS) - 1;
/// Base pages in a huge one.
const GATHERED: usize = HUGE_WORDS / PAGE_WORDS;

/// Seven bits for every sector.
pub(super) struct Labels {
    words: Words,
    /// Which pages were written: a bit each. A stretch of [`GATHERED`] moves into a huge page when all of its pages were.
    touched: Vec<u64>,
}

/// The word that a sector's label begins in, and the bit.
#[inline]
fn place(lba: usize) -> (usize, usize) {
    (lba * BITS / WORD, lba * BITS % WORD)
}

/// A label lies in two words at the most.
#[inline]
fn pair(two: &[u32]) -> u64 {
    u64::from(two[0]) | u64::from(two[1]) << WORD
}

impl Labels {
    pub fn new(sectors: u64) -> Labels {
        // The last label is read with the word behind it.
        let words = place(sectors as usize).0 + 2;
        Labels { words: Words::new(words), touched: vec![0; words.div_ceil(PAGE_WORDS).div_ceil(64)] }
    }

    #[inline]
    pub fn get(&self, lba: u64) -> Label {
        let (word, bit) = place(lba as usize);
        let two = &self.words[word..word + 2];
        Label((pair(two) >> bit & MASK) as u8)
    }

    /// Fetches it into the cache.
    #[inline]
    pub fn prefetch(&self, lba: u64) {
        self.words.prefetch(place(lba as usize).0);
    }

    /// Changes one; gives what it was and what it is.
    #[inline]
    pub fn change(&mut self, lba: u64, change: impl FnOnce(Label) -> Label) -> (Label, Label) {
        let (word, bit) = place(lba as usize);
        let two = &mut self.words[word..word + 2];
        let before = pair(two);
        let label = Label((before >> bit & MASK) as u8);
        let changed = change(label);
        let after = before & !(MASK << bit) | u64::from(changed.0) << bit;
        (two[0], two[1]) = (after as u32, (after >> WORD) as u32);
        self.touch(word / PAGE_WORDS);
        if (word + 1).is_multiple_of(PAGE_WORDS) {
            self.touch((word + 1) / PAGE_WORDS);
        }
        (label, changed)
    }

    /// Gives the label that it was.
    #[inline]
    pub fn set(&mut self, lba: u64, label: Label) -> Label {
        self.change(lba, |_| label).0
    }

    /// A page is written to.
    #[inline]
    fn touch(&mut self, page: usize) {
        if self.touched[page / 64] >> (page % 64) & 1 == 0 {
            self.touch_first(page);
        }
    }

    #[cold]
    fn touch_first(&mut self, page: usize) {
        self.touched[page / 64] |= 1 << (page % 64);
        let stretch = page / GATHERED;
        let bits = &self.touched[stretch * GATHERED / 64..];
        if bits.len() >= GATHERED / 64
            && bits[..GATHERED / 64].iter().all(|bits| *bits == u64::MAX)
            && (stretch + 1) * HUGE_WORDS <= self.words.len()
        {
            self.words.gather(stretch);
        }
    }

    /// Forgets a range; each label that was there goes to `forgotten`. What was never written is not looked at.
    pub fn forget(&mut self, lba: u64, count: u64, mut forgotten: impl FnMut(Label)) {
        let end = (lba + count) as usize;
        let mut at = lba as usize;
        while at < end {
            let page = place(at).0 / PAGE_WORDS;
            let bits = self.touched[page / 64] >> (page % 64);
            // To the first label that begins in the next page, or the one of the next word of bits.
            let next = if bits == 0 { (page / 64 + 1) * 64 } else { page + 1 };
            let stop = (next * PAGE_WORDS * WORD).div_ceil(BITS).min(end);
            if bits & 1 == 1 {
                self.forget_written(at, stop, &mut forgotten);
            }
            at = stop;
        }
    }

    /// Takes the memory for all of them now.
    pub fn preallocate(&mut self) {
        (0..self.words.len() / HUGE_WORDS).for_each(|stretch| self.words.gather(stretch));
        touch(&mut self.words);
        self.touched.fill(u64::MAX);
        let beyond = self.touched.len() * 64 - self.words.len().div_ceil(PAGE_WORDS);
        if let Some(last) = self.touched.last_mut() {
            *last >>= beyond;
        }
    }

    fn forget_written(&mut self, mut at: usize, stop: usize, forgotten: &mut impl FnMut(Label)) {
        while at < stop {
            // So many labels fill so many words.
            let word = place(at).0;
            let whole = at.is_multiple_of(WORD) && at + WORD <= stop;
            if whole && self.words[word..word + BITS].iter().all(|word| *word == 0) {
                at += WORD;
                continue;
            }
            let label = self.get(at as u64);
            if !label.is_unknown() {
                forgotten(self.set(at as u64, Label(0)));
            }
            at += 1;
        }
    }

    /// Memory that they take, bytes.
    pub fn memory(&self) -> usize {
        let pages: u32 = self.touched.iter().map(|bits| bits.count_ones()).sum();
        pages as usize * PAGE_WORDS * size_of::<u32>() + self.touched.len() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes in a page of the host's memory.
    const PAGE: usize = 4096;

    #[test]
    fn what_is_preallocated_is_all_there_is() {
        for sectors in [1, 4096, 4097, 64 * 4096, 64 * 4096 + 1] {
            let mut labels = Labels::new(sectors);
            labels.set(sectors - 1, Label(3));
            labels.preallocate();
            let full = labels.memory();
            assert_eq!(full, labels.words.len().div_ceil(PAGE_WORDS) * PAGE + labels.touched.len() * 8);
            assert_eq!(labels.set(sectors - 1, Label(4)), Label(3));
            labels.set(0, Label(1));
            assert_eq!(labels.memory(), full);
        }
    }

    #[test]
    fn neighbours_are_left_alone() {
        let mut labels = Labels::new(100);
        for lba in 0..100 {
            assert_eq!(labels.set(lba, Label(lba as u8 + 1)), Label(0));
        }
        for lba in (0..100).rev() {
            assert_eq!(labels.set(lba, Label(127 - lba as u8)), Label(lba as u8 + 1));
        }
        assert!((0..100).all(|lba| labels.get(lba) == Label(127 - lba as u8)));
        labels.forget(3, 90, |_| {});
        let left: Vec<u64> = (0..100).filter(|lba| labels.get(*lba) != Label(0)).collect();
        assert_eq!(left, [0, 1, 2, 93, 94, 95, 96, 97, 98, 99]);
        assert!(left.iter().all(|lba| labels.get(*lba) == Label(127 - *lba as u8)));
    }

    #[test]
    fn what_is_forgotten_was_there_and_what_was_not_written_takes_nothing() {
        let sectors = 3 << 20;
        let mut labels = Labels::new(sectors);
        let empty = labels.memory();
        // The one at 4681 lies across the border of two pages.
        let written = [0, 1, 4680, 4681, 300_000, 299_593, 299_594, sectors - 1];
        for (lba, label) in written.into_iter().zip(1..) {
            assert_eq!(labels.set(lba, Label(label)), Label(0));
        }
        assert_eq!(labels.memory(), empty + 6 * PAGE);
        let mut gone = Vec::new();
        labels.forget(1, sectors - 2, |label| gone.push(label.0));
        gone.sort_unstable();
        assert_eq!(gone, [2, 3, 4, 5, 6, 7]);
        assert_eq!([labels.get(0), labels.get(sectors - 1)], [Label(1), Label(8)]);
    }
}
