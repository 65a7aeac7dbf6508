//! The labels of all sectors. Memory is taken for those that were written, a page at a time.

use super::label::Label;
use crate::prefetch::prefetch_line;

/// Labels in a page of the host's memory.
const PAGE: usize = 4096;

/// One byte for every sector.
pub(super) struct Labels {
    /// Zeros come from the system as pages that take no memory until they are written.
    bytes: Vec<u8>,
    /// Which pages were written: a bit each.
    touched: Vec<u64>,
}

impl Labels {
    pub fn new(sectors: u64) -> Labels {
        let pages = (sectors as usize).div_ceil(PAGE);
        Labels { bytes: vec![0; sectors as usize], touched: vec![0; pages.div_ceil(64)] }
    }

    pub fn get(&self, lba: u64) -> Label {
        Label(self.bytes[lba as usize])
    }

    /// Fetches it into the cache.
    #[inline]
    pub fn prefetch(&self, lba: u64) {
        if let Some(label) = self.bytes.get(lba as usize) {
            prefetch_line(label);
        }
    }

    /// Gives the label that it was.
    pub fn set(&mut self, lba: u64, label: Label) -> Label {
        let page = lba as usize / PAGE;
        self.touched[page / 64] |= 1 << (page % 64);
        Label(std::mem::replace(&mut self.bytes[lba as usize], label.0))
    }

    /// Forgets a range; each label that was there goes to `forgotten`. What was never written is not looked at.
    pub fn forget(&mut self, lba: u64, count: u64, mut forgotten: impl FnMut(Label)) {
        let end = (lba + count) as usize;
        let mut at = lba as usize;
        while at < end {
            let page = at / PAGE;
            let bits = self.touched[page / 64] >> (page % 64);
            if bits == 0 {
                // To the next word of bits.
                at = (page / 64 + 1) * 64 * PAGE;
                continue;
            }
            let stop = ((page + 1) * PAGE).min(end);
            if bits & 1 == 1 {
                self.bytes[at..stop].iter_mut().for_each(|label| forgotten(Label(std::mem::take(label))));
            }
            at = stop;
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

    #[test]
    fn what_is_forgotten_was_there_and_what_was_not_written_takes_nothing() {
        let sectors = 3 << 20;
        let mut labels = Labels::new(sectors);
        let empty = labels.memory();
        let written = [0, 1, 4095, 4096, 300_000, 262_143, 262_144, sectors - 1];
        for (lba, label) in written.into_iter().zip(1..) {
            assert_eq!(labels.set(lba, Label(label)), Label(0));
        }
        assert_eq!(labels.memory(), empty + 6 * PAGE);
        let mut gone = Vec::new();
        labels.forget(1, sectors - 2, |label| gone.push(label.0));
        gone.retain(|label| *label != 0);
        gone.sort_unstable();
        assert_eq!(gone, [2, 3, 4, 5, 6, 7]);
        assert_eq!([labels.get(0), labels.get(sectors - 1)], [Label(1), Label(8)]);
    }
}
