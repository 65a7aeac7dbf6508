//! What a larger or smaller cache would do: the hit ratio that a volume would have with other rooms, estimated while it runs.
//!
//! **Method.** Miniature simulations with spatial sampling (Waldspurger, Saemundsson, Ahmad and Park: "Cache Modeling and Optimization using
//! Miniature Simulations", USENIX ATC 2017). Chunks of 32 KiB whose hash lies below a threshold are followed, in blocks of 4 KiB. For each room there
//! is an S3-FIFO (`miniature.rs`) with that share of the room which is followed. The policy of the cache device follows S3-FIFO, too.
//!
//! **What counts.** The same as in [`crate::Status`]: sectors.
//! If more or less was read of the chunks that are followed than their share, the difference counts as hits (as in Waldspurger, Park, Garthwaite and
//! Ahmad: "Efficient MRC Construction with SHARDS", FAST 2015): it is a few blocks that are read again and again.
//!
//! **When.** The counts are halved whenever eight times the cache's room was read, so a figure tells of the last sixteen, and of the later ones more.

use random::SplitMix64;

use crate::layout::Range;
use crate::miniature::Miniature;

/// Bytes of a block.
const BLOCK_BYTES: u32 = 4096;
/// Blocks of a chunk, as a power of two. Smaller chunks are a better sample, larger ones see more of a request.
const CHUNK_SHIFT: u32 = 3;
/// Blocks that a miniature has room for at most.
const BLOCKS_MAX: u64 = 4096;
/// The rooms, in quarters of the cache's own.
const QUARTERS: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// Blocks of a trim above which everything is looked through instead of each of them.
const DROPS_MAX: u64 = 1 << 13;
/// How often the cache's room is read until counts are halved.
const WINDOW_ROOMS: u64 = 8;
/// Every chunk is followed with this threshold.
const ALL: u64 = 1 << 32;

/// What becomes of what a host changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Copies of it are dropped.
    Dropped,
    /// It is copied into the cache.
    Copied,
    /// It is held by the cache.
    Held,
}

/// The hit ratio with another room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Sectors of the cache's room.
    pub room_sectors: u64,
    /// Of what was read, the share that it would have had; nothing before anything was read.
    pub hit_ratio: Option<f64>,
    /// It would have been full by now. Before that there is little to tell it from larger ones.
    pub full: bool,
}

/// Estimates of a volume, and what it did meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// Sectors read that the figures tell of; those before the last ones count for less.
    pub read_sectors: u64,
    /// The hit ratio of the volume itself, counted like those of the estimates.
    pub hit_ratio: Option<f64>,
    /// With other rooms, the smallest first. Without a room of its own there are none.
    pub rooms: Vec<Estimate>,
}

/// A cache of another room.
#[derive(Debug)]
struct Size {
    room: u64,
    /// Chunks with hashes below are followed.
    threshold: u64,
    miniature: Miniature,
    /// Sectors read that were followed, and those of them that hit.
    read: u64,
    hit: u64,
}

/// A block of a request: the hash of its chunk, its number, whose upper bits do not matter, and sectors of it that are asked for.
type Asked = (u64, u32, u64);

/// Follows what a volume is asked for. It is deterministic, and its memory does not depend on the volume's size.
#[derive(Debug)]
pub struct Estimator {
    sectors_per_block: u64,
    sizes: Vec<Size>,
    /// Above this threshold nobody follows anything.
    threshold: u64,
    /// Sectors read until counts are halved.
    window: u64,
    /// Sectors read since they were, and what counts of those before.
    read: u64,
    read_before: u64,
    /// Hits and misses of the volume itself: what counts of those before counts were halved, and as they were then.
    own: [u64; 2],
    own_before: [u64; 2],
    asked: Vec<Asked>,
}

impl Estimator {
    /// For a cache with room for so many sectors, of which so many may be held at most.
    pub fn new(room: u64, held_max: u64, sector_bytes: u32) -> Estimator {
        let sectors_per_block = u64::from((BLOCK_BYTES / sector_bytes).max(1));
        let size = |quarters: u64| {
            let blocks = (room * quarters / 4 / sectors_per_block).max(1);
            // Rounded up, so that small rooms are followed whole.
            let threshold = (ALL * BLOCKS_MAX.min(blocks)).div_ceil(blocks);
            let share = |sectors: u64| ((sectors / sectors_per_block * quarters / 4 * threshold) >> 32) as usize;
            let miniature = Miniature::new(share(room), share(held_max));
            Size { room: room * quarters / 4, threshold, miniature, read: 0, hit: 0 }
        };
        let sizes: Vec<Size> = QUARTERS.into_iter().filter(|_| room > 0).map(size).collect();
        Estimator {
            sectors_per_block,
            threshold: sizes.iter().map(|size| size.threshold).max().unwrap_or(0),
            sizes,
            window: (room * WINDOW_ROOMS).max(1),
            read: 0,
            read_before: 0,
            own: [0; 2],
            own_before: [0; 2],
            asked: Vec::new(),
        }
    }

    /// Halves counts whenever so many sectors were read.
    #[must_use]
    pub fn with_window(self, sectors: u64) -> Estimator {
        Estimator { window: sectors.max(1), ..self }
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.sizes.iter().map(|size| size.miniature.memory()).sum::<usize>()
            + self.asked.capacity() * size_of::<Asked>()
    }

    /// Finds the blocks of sectors that anybody follows.
    fn look(&mut self, sectors: &Range) {
        self.asked.clear();
        let (blocks, per_block) = (sectors.start / self.sectors_per_block, self.sectors_per_block);
        let (mut block, end) = (blocks, sectors.end.div_ceil(per_block));
        while block < end {
            let chunk = block >> CHUNK_SHIFT;
            let hash = SplitMix64::from_state(chunk).bits();
            let chunk_end = end.min((chunk + 1) << CHUNK_SHIFT);
            if hash >> 32 < self.threshold {
                for block in block..chunk_end {
                    let count = sectors.end.min((block + 1) * per_block) - sectors.start.max(block * per_block);
                    self.asked.push((hash >> 32, block as u32, count));
                }
            }
            block = chunk_end;
        }
    }

    /// The host reads sectors. `own` is how many the volume itself found and missed up to now.
    pub fn read(&mut self, sectors: &Range, own: [u64; 2]) {
        self.look(sectors);
        for size in &mut self.sizes {
            size.read(&self.asked);
        }
        self.read += sectors.end - sectors.start;
        if self.read >= self.window {
            self.halve(own);
        }
    }

    fn halve(&mut self, own: [u64; 2]) {
        self.read_before = (self.read_before + std::mem::take(&mut self.read)) / 2;
        for size in &mut self.sizes {
            (size.read, size.hit) = (size.read / 2, size.hit / 2);
        }
        self.own = self.recent(own).map(|count| count / 2);
        self.own_before = own;
    }

    fn recent(&self, own: [u64; 2]) -> [u64; 2] {
        std::array::from_fn(|at| self.own[at] + own[at] - self.own_before[at])
    }

    /// The host changes sectors.
    pub fn changed(&mut self, sectors: &Range, how: Changed) {
        let blocks = sectors.start / self.sectors_per_block..sectors.end.div_ceil(self.sectors_per_block);
        if how == Changed::Dropped && blocks.end - blocks.start > DROPS_MAX {
            return self.sizes.iter_mut().for_each(|size| size.miniature.forget_all(&blocks));
        }
        self.look(sectors);
        for size in &mut self.sizes {
            for (hash, key, _) in &self.asked {
                if *hash < size.threshold {
                    match how {
                        Changed::Dropped => size.miniature.forget(*key),
                        Changed::Copied => size.miniature.copy(*key),
                        Changed::Held => size.miniature.hold(*key),
                    }
                }
            }
        }
    }

    /// What was found out. `own` is how many sectors the volume itself found and missed up to now.
    pub fn estimates(&self, own: [u64; 2]) -> Estimates {
        let read = self.read_before + self.read;
        let mut rooms: Vec<Estimate> = self.sizes.iter().map(|size| size.estimate(read)).collect();
        // What never was full does what every larger one does, and of smaller ones more is followed.
        if let Some(first) = rooms.iter().position(|room| !room.full) {
            let ratio = rooms[first].hit_ratio;
            rooms[first..].iter_mut().for_each(|room| room.hit_ratio = ratio);
        }
        let [hit, missed] = self.recent(own);
        let hit_ratio = (hit + missed > 0).then(|| hit as f64 / (hit + missed) as f64);
        Estimates { read_sectors: read, hit_ratio, rooms }
    }
}

impl Size {
    fn read(&mut self, asked: &[Asked]) {
        for (_, key, count) in asked.iter().filter(|(hash, ..)| *hash < self.threshold) {
            self.read += count;
            if self.miniature.has(*key) {
                self.hit += count;
            }
            self.miniature.read(*key);
        }
    }

    /// After so many sectors were read, those that nobody followed among them.
    fn estimate(&self, read: u64) -> Estimate {
        let expected = read as f64 * self.threshold as f64 / ALL as f64;
        let more = expected - self.read as f64;
        let ratio = ((self.hit as f64 + more) / expected).clamp(0.0, 1.0);
        Estimate {
            room_sectors: self.room,
            hit_ratio: (self.read > 0).then_some(ratio),
            full: self.miniature.was_full(),
        }
    }
}

#[cfg(test)]
mod tests;
