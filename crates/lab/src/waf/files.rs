//! A file system as a workload: a journal in a ring, metadata that is written often, files that are made and deleted.

use std::collections::VecDeque;

use ftl::Request;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::medium::LARGEST;

/// A number below `limit`.
pub(super) fn below(random: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(limit)) >> 64) as u64
}

/// Sectors of an extent, the unit in which space is given to files.
const EXTENT: u64 = 16;

/// The state of the file system.
pub struct Files {
    journal: u64,
    journal_at: u64,
    metadata: u64,
    /// First extent's sector.
    data: u64,
    free: Vec<u32>,
    files: Vec<Vec<u32>>,
    /// So many extents stay free.
    keep: usize,
    trims: bool,
    due: VecDeque<Request<'static>>,
}

impl Files {
    pub fn new(sectors: u64, trims: bool) -> Files {
        let journal = sectors / 128;
        let metadata = sectors / 64;
        let data = journal + metadata;
        let extents = (sectors - data) / EXTENT;
        Files {
            journal,
            journal_at: 0,
            metadata,
            data,
            free: (0..extents as u32).rev().collect(),
            files: Vec::new(),
            keep: extents as usize / 10,
            trims,
            due: VecDeque::new(),
        }
    }

    fn write(&mut self, lba: u64, count: u64) {
        let mut at = lba;
        while at < lba + count {
            let some = (lba + count - at).min(u64::from(LARGEST));
            self.due.push_back(Request::Write { lba: at, count: some as u32, fua: false });
            at += some;
        }
    }

    fn delete(&mut self, random: &mut Xoshiro256PlusPlus) {
        // Most files die young, some live long.
        let count = self.files.len() as u64;
        let recent = count.div_ceil(8);
        let at = if below(random, 4) > 0 { count - 1 - below(random, recent) } else { below(random, count) };
        for extent in self.files.remove(at as usize) {
            if self.trims {
                let lba = self.data + u64::from(extent) * EXTENT;
                self.due.push_back(Request::Trim { lba, count: EXTENT, fua: false });
            }
            let place = below(random, self.free.len() as u64 + 1) as usize;
            self.free.push(extent);
            let last = self.free.len() - 1;
            self.free.swap(place, last);
        }
    }

    /// Makes a file, or writes one anew, with what it costs in the journal and in metadata.
    fn step(&mut self, random: &mut Xoshiro256PlusPlus) {
        let at = self.journal_at % self.journal;
        self.journal_at += 2;
        self.write(at.min(self.journal - 2), 2);
        let inode = self.journal + below(random, self.metadata).min(below(random, self.metadata));
        self.write(inode, 1);
        if below(random, 3) == 0 && !self.files.is_empty() {
            let file = below(random, self.files.len() as u64) as usize;
            let extent = self.files[file][below(random, self.files[file].len() as u64) as usize];
            let from = below(random, EXTENT);
            let count = 1 + below(random, EXTENT - from);
            return self.write(self.data + u64::from(extent) * EXTENT + from, count);
        }
        let size = 1 << below(random, 7).min(below(random, 7));
        while self.free.len() < self.keep + size && !self.files.is_empty() {
            self.delete(random);
        }
        let file: Vec<u32> = (0..size).filter_map(|_| self.free.pop()).collect();
        for extent in &file {
            self.write(self.data + u64::from(*extent) * EXTENT, EXTENT);
        }
        if !file.is_empty() {
            self.files.push(file);
        }
    }

    pub fn next(&mut self, random: &mut Xoshiro256PlusPlus) -> Request<'static> {
        loop {
            if let Some(request) = self.due.pop_front() {
                return request;
            }
            self.step(random);
        }
    }
}
