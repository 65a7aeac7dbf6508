//! What stands on simulated media: one image for what reads see, one for what a power cut leaves.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;

use crc_fast::{CrcAlgorithm, checksum};

use crate::{Geometry, LABEL_BYTES, PageAddr};

/// What a disk writes as one: a torn write is torn between two such pieces, bytes.
pub(crate) const PIECE_BYTES: usize = 512;

/// A page that something was written to since the last erase.
#[derive(Clone, Debug)]
struct Stored {
    bytes: Vec<u8>,
    /// By unit: a program of it began since the last erase.
    programmed: Vec<bool>,
    /// Hash of `bytes`, once somebody asked for it.
    digest: Cell<Option<u64>>,
}

/// All content at one moment. Clones share pages.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub geometry: Geometry,
    /// Index: `(block * dies + die) * pages_per_block + page`.
    pages: Vec<Option<Rc<Stored>>>,
    /// By block.
    pub allocated: Vec<bool>,
    /// Index: `die * 2 + copy`. As long as what was written; the rest is zeros.
    labels: Vec<Rc<Vec<u8>>>,
    /// What each of them held before it was written last.
    former_labels: Vec<Rc<Vec<u8>>>,
}

/// What may become of a label copy long after it was written.
#[derive(Clone, Copy, Debug)]
pub enum LabelFault {
    /// Bits of `mask` flip in a byte.
    Rot {
        /// Which byte.
        byte: u32,
        /// Which bits.
        mask: u8,
    },
    /// It reads as zeros.
    Blank,
    /// It holds what it held before, as if it had not been written the last time.
    Stale,
}

impl Image {
    pub(crate) fn new(geometry: Geometry) -> Image {
        let blocks = geometry.blocks as usize;
        let pages = blocks * geometry.dies as usize * geometry.pages_per_block as usize;
        Image {
            geometry,
            pages: vec![None; pages],
            allocated: vec![false; blocks],
            labels: vec![Rc::default(); geometry.dies as usize * 2],
            former_labels: vec![Rc::default(); geometry.dies as usize * 2],
        }
    }

    /// Has so many blocks from now on, no fewer than before; the new ones hold nothing.
    pub(crate) fn grow(&mut self, blocks: u32) {
        let Geometry { dies, pages_per_block, .. } = self.geometry;
        self.geometry.blocks = blocks;
        self.pages.resize(blocks as usize * dies as usize * pages_per_block as usize, None);
        self.allocated.resize(blocks as usize, false);
    }

    fn index(&self, at: PageAddr) -> usize {
        let Geometry { dies, blocks, pages_per_block, .. } = self.geometry;
        assert!(at.die < dies && at.block < blocks && at.page < pages_per_block, "{at:?}: outside {:?}", self.geometry);
        (at.block as usize * dies as usize + at.die as usize) * pages_per_block as usize + at.page as usize
    }

    fn stored(&mut self, at: PageAddr) -> &mut Stored {
        let index = self.index(at);
        let (bytes, unit) = (self.geometry.page_bytes(), self.geometry.unit_bytes);
        let new = || {
            let programmed = vec![false; bytes.div_ceil(unit) as usize];
            Rc::new(Stored { bytes: vec![0; bytes as usize], programmed, digest: Cell::new(None) })
        };
        let stored = Rc::make_mut(self.pages[index].get_or_insert_with(new));
        stored.digest.set(None);
        stored
    }

    /// A hash of all content, and of which blocks have their space.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (index, page) in self.pages.iter().enumerate() {
            let Some(page) = page else { continue };
            let digest = page.digest.get().unwrap_or_else(|| checksum(CrcAlgorithm::Crc64Nvme, &page.bytes));
            page.digest.set(Some(digest));
            (index, digest).hash(&mut hasher);
        }
        (&self.allocated, &self.labels, &self.former_labels).hash(&mut hasher);
        hasher.finish()
    }

    /// Copies a part of a page.
    pub(crate) fn read(&self, at: PageAddr, bytes: Range<usize>, into: &mut [u8]) {
        match &self.pages[self.index(at)] {
            Some(stored) => into.copy_from_slice(&stored.bytes[bytes]),
            None => into.fill(0),
        }
    }

    /// Marks units as programmed; false when one of them was already since the last erase.
    pub(crate) fn begin_program(&mut self, at: PageAddr, bytes: Range<u32>) -> bool {
        let unit = self.geometry.unit_bytes;
        let units = (bytes.start / unit) as usize..bytes.end.div_ceil(unit) as usize;
        let programmed = &mut self.stored(at).programmed[units];
        let fresh = !programmed.contains(&true);
        programmed.fill(true);
        fresh
    }

    /// Writes those pieces of `bytes` for which `keep` says so, at byte `start` of a page.
    pub(crate) fn write(&mut self, at: PageAddr, start: usize, bytes: &[u8], mut keep: impl FnMut(usize) -> bool) {
        let unit = self.geometry.unit_bytes as usize;
        for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            if keep(number) {
                let from = start + number * PIECE_BYTES;
                let stored = self.stored(at);
                stored.bytes[from..from + piece.len()].copy_from_slice(piece);
                stored.programmed[from / unit] = true;
                self.allocated[at.block as usize] = true;
            }
        }
    }

    /// Changes one byte of a page.
    pub(crate) fn rot(&mut self, at: PageAddr, byte: usize, mask: u8) {
        self.stored(at).bytes[byte] ^= mask;
    }

    /// Erases some pages of a block on one die.
    pub(crate) fn erase(&mut self, die: u32, block: u32, pages: Range<u32>) {
        let first = self.index(PageAddr { die, block, page: 0 });
        self.pages[first + pages.start as usize..first + pages.end as usize].fill(None);
    }

    /// Puts a blank die in the place of one.
    pub(crate) fn blank(&mut self, die: u32) {
        for block in 0..self.geometry.blocks {
            self.erase(die, block, 0..self.geometry.pages_per_block);
        }
        for copy in 0..2 {
            self.labels[die as usize * 2 + copy] = Rc::default();
            self.former_labels[die as usize * 2 + copy] = Rc::default();
        }
    }

    /// Writes those pieces of a label copy for which `keep` says so.
    pub(crate) fn write_label(&mut self, die: usize, copy: u8, bytes: &[u8], mut keep: impl FnMut(usize) -> bool) {
        let index = die * 2 + usize::from(copy);
        self.former_labels[index] = Rc::clone(&self.labels[index]);
        let label = Rc::make_mut(&mut self.labels[index]);
        for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            if keep(number) {
                let at = number * PIECE_BYTES;
                label.resize(label.len().max(at + piece.len()), 0);
                label[at..at + piece.len()].copy_from_slice(piece);
            }
        }
    }

    /// A label copy as a whole.
    pub(crate) fn label(&self, die: u32, copy: u8) -> Vec<u8> {
        let label = &self.labels[die as usize * 2 + usize::from(copy)];
        let mut bytes = vec![0; LABEL_BYTES as usize];
        bytes[..label.len()].copy_from_slice(label);
        bytes
    }

    /// Lets something become of a label copy.
    pub(crate) fn spoil_label(&mut self, die: u32, copy: u8, fault: LabelFault) {
        let index = die as usize * 2 + usize::from(copy);
        match fault {
            LabelFault::Rot { byte, mask } => {
                let label = Rc::make_mut(&mut self.labels[index]);
                label.resize(label.len().max(byte as usize + 1), 0);
                label[byte as usize] ^= mask;
            }
            LabelFault::Blank => self.labels[index] = Rc::default(),
            LabelFault::Stale => self.labels[index] = Rc::clone(&self.former_labels[index]),
        }
    }

    /// Bytes of pages that hold something.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.pages.iter().flatten().count() as u64 * u64::from(self.geometry.page_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        dies: 2,
        parity: 0,
        blocks: 4,
        pages_per_block: 2,
        slots_per_page: 2,
        sector_bytes: 512,
        trailer_bytes: 32,
        unit_bytes: 32,
    };

    #[test]
    fn a_digest_is_that_of_the_content() {
        let at = PageAddr { die: 1, block: 2, page: 1 };
        let mut image = Image::new(GEOMETRY);
        image.write(at, 64, &[7; 64], |_| true);
        let (digest, copy) = (image.digest(), image.clone());
        for byte in [0, 64, GEOMETRY.page_bytes() as usize - 1] {
            image.rot(at, byte, 1);
            assert_ne!(image.digest(), digest, "byte {byte} is another one");
            image.rot(at, byte, 1);
            assert_eq!(image.digest(), digest);
        }
        let mut elsewhere = Image::new(GEOMETRY);
        elsewhere.write(PageAddr { page: 0, ..at }, 64, &[7; 64], |_| true);
        assert_ne!(elsewhere.digest(), digest, "the same bytes on another page");
        assert_eq!(copy.digest(), digest, "a copy keeps its content");
    }
}
