//! The policy of a cache: what is left behind and what is kept, after S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi: "FIFO Queues Are All You Need for Cache
//! Eviction", SOSP 2023).
//!
//! A sector that comes for the first time stands in a short queue, which it leaves unless it is read meanwhile; what is kept, and what
//! comes back soon after it was left behind, stands in the main queue. A queue is a stream's LEBs, oldest first. Where the original
//! moves everything that was read since, this one moves no more than [`MOVES`] allows, the most read first: a move is a write.

use super::{Destination, Eligible, GroomPolicy, LebView, Moved, Shape, Write};
use crate::slots::UNNOTED;
use crate::types::LebId;

/// The short queue, and the main one.
const SMALL: u8 = 0;
const MAIN: u8 = 1;
/// What the host pins: it goes when the host trims it.
const PINNED: u8 = 2;
/// Share of the cache that is the short queue's.
const SMALL_SHARE: f64 = 0.1;
/// Sectors moved for each that the host wrote, at the most.
const MOVES: f64 = 0.08;
/// Reads that are counted: a note is one more than its sector's.
const READS_MAX: u8 = 3;

/// The policy of caches.
pub struct Cache {
    streams: u8,
    /// Sectors from this one on are pinned.
    pinned_from: u64,
    /// Fingerprints of what was left behind lately, by a hash of the sector; zero where there is none.
    ghosts: Vec<u16>,
    /// Moves that may be made now.
    credit: f64,
    most: f64,
}

impl Cache {
    /// Of a module of this shape, whose sectors from this one on are pinned.
    pub(crate) fn new(shape: &Shape, pinned_from: u64) -> Cache {
        let ghosts = shape.sectors.next_power_of_two().max(16) as usize;
        let most = f64::from(shape.slots_per_leb) * 4.0;
        Cache { streams: shape.streams.min(3), pinned_from, ghosts: vec![0; ghosts], credit: most, most }
    }

    fn ghost(&self, lba: u64) -> (usize, u16) {
        // Fibonacci hashing: the upper bits are the good ones.
        let hash = lba.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> 16) as usize & (self.ghosts.len() - 1), (hash >> 48) as u16 | 1)
    }

    fn stream(&self, wanted: u8) -> u8 {
        if self.streams == 3 { wanted } else { wanted.min(1) }
    }
}

impl GroomPolicy for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn host_streams(&self) -> u8 {
        self.streams
    }

    fn streams(&self) -> u8 {
        self.streams
    }

    fn learns(&self) -> bool {
        true
    }

    fn note_bits(&self) -> u32 {
        3
    }

    fn place(&mut self, write: &Write) -> u8 {
        if write.lba >= self.pinned_from {
            return self.stream(PINNED);
        }
        let (at, print) = self.ghost(write.lba);
        if self.ghosts[at] == print || write.olds[0].is_some() { MAIN } else { SMALL }
    }

    fn wrote(&mut self, write: &Write, notes: &mut [u8]) {
        self.credit = (self.credit + MOVES * notes.len() as f64).min(self.most);
        for (at, (note, old)) in notes.iter_mut().zip(write.olds).enumerate() {
            *note = old.map_or(UNNOTED, |old| old.note);
            if write.lba < self.pinned_from {
                let (at, print) = self.ghost(write.lba + at as u64);
                if self.ghosts[at] == print {
                    self.ghosts[at] = 0;
                }
            }
        }
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        let stream = if moved.lba >= self.pinned_from { self.stream(PINNED) } else { MAIN };
        self.credit -= f64::from(u8::from(stream == MAIN));
        Destination { stream, written: moved.now, note: (moved.note - 1).max(UNNOTED) }
    }

    fn read(&self, note: u8) -> u8 {
        (note + 1).min(UNNOTED + READS_MAX)
    }

    fn leaves_behind(&self, moved: &Moved) -> bool {
        // The fewer moves are left, the more often it must have been read.
        let reads = moved.note - UNNOTED;
        let left = self.credit / self.most;
        reads == 0 || self.credit < 1.0 || f64::from(reads) < f64::from(READS_MAX) * (1.0 - left)
    }

    fn left_behind(&mut self, lba: u64) {
        let (at, print) = self.ghost(lba);
        self.ghosts[at] = print;
    }

    fn score(&self, leb: &LebView) -> f64 {
        leb.age() as f64
    }

    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        let (mut live, mut heads) = ([0u64; 3], [const { None::<LebView> }; 3]);
        for leb in eligible.iter() {
            if leb.live == 0 {
                return Some(leb.id);
            }
            let queue = usize::from(leb.data_stream().min(PINNED));
            live[queue] += u64::from(leb.live);
            if heads[queue].is_none_or(|head| leb.age() > head.age()) {
                heads[queue] = Some(leb);
            }
        }
        // What is pinned is trimmed by and by; moving it is worth it only where that has happened.
        let [small, main, pinned] = heads;
        let pinned = pinned.filter(|leb| leb.utilisation() < 0.25 || (small.is_none() && main.is_none()));
        let clean = (live[0] + live[1]) as f64;
        let cold = if live[0] as f64 > clean * SMALL_SHARE { small.or(main) } else { main.or(small) };
        pinned.or(cold).map(|leb| leb.id)
    }

    fn memory(&self) -> usize {
        self.ghosts.len() * size_of::<u16>()
    }
}
