//! What is counted of each interval of time and each part of the address space.

use serde::Serialize;

use super::bins::Merge;
use super::distinct::Distinct;
use crate::record::{Op, Record};

/// An interval while it is counted.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    requests: [u64; 4],
    bytes: [u64; 2],
    /// Blocks that are used for the first time in it.
    pub new_blocks: u64,
    /// Blocks that are used in it. Most intervals of a long trace need one, and an empty one none.
    distinct: Option<Distinct>,
}

impl Interval {
    /// A request.
    #[inline]
    pub fn add(&mut self, record: &Record) {
        self.requests[index(record.op)] += 1;
        if record.op.has_data() {
            self.bytes[index(record.op)] += record.bytes;
        }
    }

    /// A block of it, by its hash.
    #[inline]
    pub fn touch(&mut self, key: u64) {
        self.distinct.get_or_insert_default().add(key);
    }

    /// What it comes to, so many seconds after the first request, with the blocks used before.
    pub fn row(&self, start_seconds: f64, blocks_before: u64) -> Row {
        Row {
            start_seconds,
            reads: self.requests[0],
            writes: self.requests[1],
            trims: self.requests[2],
            flushes: self.requests[3],
            read_bytes: self.bytes[0],
            written_bytes: self.bytes[1],
            working_set_blocks: self.distinct.as_ref().map_or(0.0, Distinct::estimate).round() as u64,
            new_blocks: self.new_blocks,
            footprint_blocks: blocks_before + self.new_blocks,
        }
    }
}

impl Merge for Interval {
    fn merge(&mut self, other: &Interval) {
        for (mine, theirs) in self.requests.iter_mut().zip(other.requests) {
            *mine += theirs;
        }
        for (mine, theirs) in self.bytes.iter_mut().zip(other.bytes) {
            *mine += theirs;
        }
        self.new_blocks += other.new_blocks;
        if let Some(theirs) = &other.distinct {
            self.distinct.get_or_insert_default().merge(theirs);
        }
    }
}

/// Number of an operation in counts.
pub fn index(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
        Op::Flush => 3,
    }
}

/// An interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// When it begins, after the first request.
    pub start_seconds: f64,
    /// Reads in it.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Different blocks read or written in it: its working set, by HyperLogLog.
    pub working_set_blocks: u64,
    /// Blocks read or written for the first time.
    pub new_blocks: u64,
    /// Different blocks read or written since the beginning.
    pub footprint_blocks: u64,
}

/// Requests that begin in a part of the address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

impl Merge for Region {
    fn merge(&mut self, other: &Region) {
        self.reads += other.reads;
        self.writes += other.writes;
    }
}
