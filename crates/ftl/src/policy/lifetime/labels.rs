//! The labels of all sectors, seven bits each, one after the other. Memory is taken for those that were written, a page at a time.

use super::label::Label;
use crate::words::{HUGE_WORDS, PAGE_WORDS, Words, touch};

/// Bits of a label, and of a byte.
const BITS: usize = 7;
const BYTE: usize = 8;
const MASK: u16 = (1 << BITS) - 1;
/// Bytes in a base page.
const PAGE: usize = PAGE_WORDS * size_of::<u32>();
/// Base pages in a huge one.
const GATHERED: usize = HUGE_WORDS / PAGE_WORDS;

/// Seven bits for every sector.
pub(super) struct Labels {
    words: Words,
    /// Which pages were written: a bit each. A stretch of [`GATHERED`] moves into a huge page when all of its pages were.
    touched: Vec<u64>,
}

/// The byte that a sector's label begins in, and the bit. It lies in two bytes at the most.
#[inline]
fn place(lba: usize) -> (usize, usize) {
    (lba * BITS / BYTE, lba * BITS % BYTE)
}

impl Labels {
    pub fn new(sectors: u64) -> Labels {
        // The last label is read with the byte behind it.
        let words = (place(sectors as usize).0 + 2).div_ceil(size_of::<u32>());
        Labels { words: Words::new(words), touched: vec![0; words.div_ceil(PAGE_WORDS).div_ceil(64)] }
    }

    #[inline]
    pub fn get(&self, lba: u64) -> Label {
        let (byte, bit) = place(lba as usize);
        let bytes = &self.words.bytes()[byte..byte + 2];
        Label((u16::from_le_bytes([bytes[0], bytes[1]]) >> bit & MASK) as u8)
    }

    /// Fetches it into the cache.
    #[inline]
    pub fn prefetch(&self, lba: u64) {
        self.words.prefetch(place(lba as usize).0 / size_of::<u32>());
    }

    /// Changes one, from what it is.
    #[inline]
    pub fn set(&mut self, lba: u64, before: Label, label: Label) {
        debug_assert_eq!(self.get(lba), before);
        let (byte, bit) = place(lba as usize);
        let bytes = &mut self.words.bytes_mut()[byte..byte + 2];
        let changed = u16::from(before.0 ^ label.0) << bit;
        bytes.copy_from_slice(&(u16::from_le_bytes([bytes[0], bytes[1]]) ^ changed).to_le_bytes());
        if before.is_unknown() {
            self.touch(byte);
        }
    }

    /// A label that begins in this byte is written for the first time, or after it was forgotten.
    #[cold]
    fn touch(&mut self, byte: usize) {
        for page in byte / PAGE..=(byte + 1) / PAGE {
            if self.touched[page / 64] >> (page % 64) & 1 == 0 {
                self.touch_first(page);
            }
        }
    }

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
            let page = place(at).0 / PAGE;
            let bits = self.touched[page / 64] >> (page % 64);
            // To the first label that begins in the next page, or the one of the next word of bits.
            let next = if bits == 0 { (page / 64 + 1) * 64 } else { page + 1 };
            let stop = (next * PAGE * BYTE).div_ceil(BITS).min(end);
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
            // So many labels fill so many bytes.
            let byte = place(at).0;
            let whole = at.is_multiple_of(BYTE) && at + BYTE <= stop;
            if whole && self.words.bytes()[byte..byte + BITS].iter().all(|byte| *byte == 0) {
                at += BYTE;
                continue;
            }
            let label = self.get(at as u64);
            if !label.is_unknown() {
                forgotten(label);
                self.set(at as u64, label, Label(0));
            }
            at += 1;
        }
    }

    /// Memory that they take, bytes.
    pub fn memory(&self) -> usize {
        let pages: u32 = self.touched.iter().map(|bits| bits.count_ones()).sum();
        pages as usize * PAGE + self.touched.len() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets one; gives what it was.
    fn replace(labels: &mut Labels, lba: u64, label: Label) -> Label {
        let before = labels.get(lba);
        labels.set(lba, before, label);
        before
    }

    #[test]
    fn what_is_preallocated_is_all_there_is() {
        for sectors in [1, 4096, 4097, 64 * 4096, 64 * 4096 + 1] {
            let mut labels = Labels::new(sectors);
            replace(&mut labels, sectors - 1, Label(3));
            labels.preallocate();
            let full = labels.memory();
            assert_eq!(full, labels.words.len().div_ceil(PAGE_WORDS) * PAGE + labels.touched.len() * 8);
            assert_eq!(replace(&mut labels, sectors - 1, Label(4)), Label(3));
            replace(&mut labels, 0, Label(1));
            assert_eq!(labels.memory(), full);
        }
    }

    #[test]
    fn neighbours_are_left_alone() {
        let mut labels = Labels::new(100);
        for lba in 0..100 {
            assert_eq!(replace(&mut labels, lba, Label(lba as u8 + 1)), Label(0));
        }
        for lba in (0..100).rev() {
            assert_eq!(replace(&mut labels, lba, Label(127 - lba as u8)), Label(lba as u8 + 1));
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
            assert_eq!(replace(&mut labels, lba, Label(label)), Label(0));
        }
        assert_eq!(labels.memory(), empty + 6 * PAGE);
        let mut gone = Vec::new();
        labels.forget(1, sectors - 2, |label| gone.push(label.0));
        gone.sort_unstable();
        assert_eq!(gone, [2, 3, 4, 5, 6, 7]);
        assert_eq!([labels.get(0), labels.get(sectors - 1)], [Label(1), Label(8)]);
    }
}
