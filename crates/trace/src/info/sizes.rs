//! Sizes of requests, and what their addresses are multiples of.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Op, Record};

/// Different sizes that are told apart. Disks see a few dozen; the first so many are counted, the others together.
const MOST: usize = 1024;
/// Alignments that are told.
const ALIGNMENTS: [u64; 7] = [512, 1024, 2048, 4096, 8192, 16_384, 65_536];

/// Counts of sizes and alignments.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    sizes: BTreeMap<u64, [u64; 3]>,
    others: [u64; 3],
    aligned: [u64; ALIGNMENTS.len()],
    requests: u64,
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Size {
    /// The size.
    pub bytes: u64,
    /// Reads of it.
    pub reads: u64,
    /// Writes of it.
    pub writes: u64,
    /// Trims of it.
    pub trims: u64,
}

/// Requests whose first and last byte lie on multiples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aligned {
    /// Of so many bytes.
    pub bytes: u64,
    /// Share of reads, writes and trims, per cent.
    pub percent: f64,
}

impl Sizes {
    /// A request that has a size.
    #[inline]
    pub fn add(&mut self, record: &Record) {
        let op = match record.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim => 2,
            Op::Flush => return,
        };
        self.requests += 1;
        let full = self.sizes.len() >= MOST;
        match self.sizes.get_mut(&record.bytes) {
            Some(counts) => counts[op] += 1,
            None if full => self.others[op] += 1,
            None => self.sizes.entry(record.bytes).or_default()[op] += 1,
        }
        let zeros = (record.offset | record.bytes).trailing_zeros();
        for (count, bytes) in self.aligned.iter_mut().zip(ALIGNMENTS) {
            *count += u64::from(zeros >= bytes.trailing_zeros());
        }
    }

    /// Every size, from the smallest, and how many requests had one beyond those that are told apart.
    pub fn sizes(&self) -> (Vec<Size>, u64) {
        let size = |(bytes, counts): (&u64, &[u64; 3])| Size {
            bytes: *bytes,
            reads: counts[0],
            writes: counts[1],
            trims: counts[2],
        };
        (self.sizes.iter().map(size).collect(), self.others.iter().sum())
    }

    /// What requests are multiples of.
    pub fn alignment(&self) -> Vec<Aligned> {
        let share = |count: u64| 100.0 * count as f64 / self.requests.max(1) as f64;
        self.aligned.iter().zip(ALIGNMENTS).map(|(count, bytes)| Aligned { bytes, percent: share(*count) }).collect()
    }
}
