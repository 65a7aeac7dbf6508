//! What happened to each block of 4 KiB: exactly while they are few, of a sample of them when they are many.
//!
//! A block belongs to the sample by a hash of its address, so all accesses of a block are in it or none. When the table is full the
//! sampled share is halved and the blocks that no longer belong to it are dropped. That is spatially hashed sampling with a fixed size
//! (Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, FAST 2015).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a block.
pub const BLOCK: u64 = 4096;
/// Blocks that are held at most: 14 GiB of footprint exactly, in about 140 MiB of memory.
const MOST: usize = 3_670_016;

/// A block's history.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Times that it was read.
    pub reads: u32,
    /// Times that it was written.
    pub writes: u32,
    /// When it was last written.
    pub written_at_ns: u64,
    /// Blocks that the whole trace had written when it was last written.
    pub written_after: u64,
}

/// The histories of blocks.
#[derive(Debug)]
pub struct Blocks {
    table: HashMap<u64, Block, BuildHasherDefault<AsItIs>>,
    /// The share of blocks that is in the table is 1 / 2^halvings.
    halvings: u32,
    most: usize,
}

/// Scatters a number over 64 bits; no two numbers become the same. The finaliser of MurmurHash3 by Appleby, in Stafford's variant 13.
#[inline]
pub fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Keys are scattered already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The middle bits decide about the sample, and are the same for all that are in it; the table uses the others.
        self.0 = number;
    }
}

/// A block that is in the sample.
pub struct Touched<'a> {
    /// Its history, up to now.
    pub block: &'a mut Block,
    /// It is the first time.
    pub is_new: bool,
    /// For how many blocks it stands.
    pub weight: u64,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks::holding(MOST)
    }
}

impl Blocks {
    /// That hold so many at most.
    fn holding(most: usize) -> Blocks {
        Blocks { table: HashMap::default(), halvings: 0, most }
    }

    /// The hash of a block's address on its volume.
    #[inline]
    pub fn key(volume: u32, block: u64) -> u64 {
        // One volume keeps its blocks apart without fail; of several, two blocks are taken for one with a chance below one in a million.
        mix(block ^ if volume == 0 { 0 } else { mix(u64::from(volume)) })
    }

    #[inline]
    fn is_sampled(key: u64, halvings: u32) -> bool {
        (key >> 24) & ((1 << halvings) - 1) == 0
    }

    /// A block is used. `None`: it is not in the sample.
    #[inline]
    pub fn touch(&mut self, key: u64) -> Option<Touched<'_>> {
        if !Blocks::is_sampled(key, self.halvings) {
            return None;
        }
        if self.table.len() >= self.most && !self.table.contains_key(&key) {
            self.halve();
            if !Blocks::is_sampled(key, self.halvings) {
                return None;
            }
        }
        let weight = self.weight();
        let mut is_new = false;
        let block = self.table.entry(key).or_insert_with(|| {
            is_new = true;
            Block { reads: 0, writes: 0, written_at_ns: 0, written_after: 0 }
        });
        Some(Touched { block, is_new, weight })
    }

    #[cold]
    fn halve(&mut self) {
        // Beyond 24 halvings even every block of 8 EiB would have been few enough.
        while self.table.len() >= self.most && self.halvings < 24 {
            self.halvings += 1;
            let halvings = self.halvings;
            self.table.retain(|key, _| Blocks::is_sampled(*key, halvings));
        }
    }

    /// For how many blocks one in the table stands. 1: all are there.
    pub fn weight(&self) -> u64 {
        1 << self.halvings
    }

    /// The histories in the table.
    pub fn histories(&self) -> impl Iterator<Item = &Block> {
        self.table.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_counted_exactly() {
        let mut blocks = Blocks::default();
        for round in 0..3 {
            for block in 0..10_000 {
                let touched = blocks.touch(Blocks::key(7, block)).expect("all are there");
                assert_eq!((touched.is_new, touched.weight), (round == 0, 1));
                touched.block.reads += 1;
            }
        }
        assert_eq!(blocks.histories().count(), 10_000);
        assert!(blocks.histories().all(|block| block.reads == 3));
    }

    #[test]
    fn many_are_sampled_and_a_sampled_one_keeps_its_whole_history() {
        let mut blocks = Blocks::holding(4096);
        for round in 0..2 {
            for block in 0..200_000u64 {
                if let Some(touched) = blocks.touch(Blocks::key(0, block)) {
                    touched.block.reads += 1;
                    assert!(round == 0 || !touched.is_new);
                }
            }
        }
        let count = blocks.histories().count() as u64;
        assert!(count <= 4096 && blocks.weight() > 1);
        assert!(blocks.histories().all(|block| block.reads == 2));
        let estimate = (count * blocks.weight()) as f64;
        // A sample of some 3000: a standard error of 2 %.
        assert!((estimate / 200_000.0 - 1.0).abs() < 0.06, "{estimate}");
    }
}
