//! The volatile write cache of a drilled disk: what was programmed and no sync covers yet.

use std::collections::HashMap;
use std::ops::Range;

use crate::{MediaError, Page, PageAddr};

/// Bytes that the cache holds before it writes them out by itself.
const LIMIT: u64 = 32 << 20;

/// A program that is done for its owner.
pub(super) struct Held {
    pub at: PageAddr,
    pub bytes: Range<u32>,
    pub page: Page,
}

/// What is to be done next.
pub(super) enum Stage {
    Nothing,
    /// Programs for the medium.
    Write(Vec<(PageAddr, Range<u32>, Page)>),
    /// All of it is written: a sync of the medium.
    Sync,
}

/// What the cache is doing.
#[derive(Default)]
enum Doing {
    #[default]
    Nothing,
    /// Writing so many programs out, for these syncs.
    Writing { left: usize, syncs: Vec<u64> },
    /// All of it is written.
    Written { syncs: Vec<u64> },
    /// A sync is with the medium.
    Syncing { syncs: Vec<u64> },
}

#[derive(Default)]
pub(super) struct Cache {
    /// In the order in which they came.
    held: Vec<Held>,
    held_bytes: u64,
    /// Being written out. Nothing else is written out meanwhile, so that an older program never overtakes a newer one.
    flying: Vec<Held>,
    doing: Doing,
    /// Syncs that wait for their turn.
    waiting: Vec<u64>,
    /// Why something could not be written out: for the next sync.
    failed: HashMap<u32, MediaError>,
}

impl Cache {
    /// Takes a program. Gives those that it covers in part: they must be written first.
    pub fn hold(&mut self, at: PageAddr, bytes: Range<u32>, page: Page) -> Vec<(Range<u32>, Page)> {
        let mut stranded = Vec::new();
        let mut index = 0;
        while index < self.held.len() {
            let old = &self.held[index];
            if old.at != at || old.bytes.start >= bytes.end || bytes.start >= old.bytes.end {
                index += 1;
                continue;
            }
            let old = self.held.remove(index);
            self.held_bytes -= u64::from(old.bytes.end - old.bytes.start);
            if old.bytes.start < bytes.start || bytes.end < old.bytes.end {
                stranded.push((old.bytes, old.page));
            }
        }
        self.held_bytes += u64::from(bytes.end - bytes.start);
        self.held.push(Held { at, bytes, page });
        stranded
    }

    /// What it holds of a page in some bytes of it, older ones first.
    pub fn newer(&self, at: PageAddr, bytes: &Range<u32>) -> Vec<(Range<u32>, Page)> {
        let here = |held: &&Held| held.at == at && held.bytes.start < bytes.end && bytes.start < held.bytes.end;
        let all = self.flying.iter().chain(&self.held);
        all.filter(here).map(|held| (held.bytes.clone(), held.page.clone())).collect()
    }

    /// Whether something of a page is being written out.
    pub fn is_flying(&self, at: PageAddr) -> bool {
        self.flying.iter().any(|held| held.at == at)
    }

    /// Gives up what it holds of a page.
    pub fn take_page(&mut self, at: PageAddr) -> Vec<(Range<u32>, Page)> {
        let (here, rest): (Vec<Held>, Vec<Held>) = self.held.drain(..).partition(|held| held.at == at);
        self.held = rest;
        self.count();
        here.into_iter().map(|held| (held.bytes, held.page)).collect()
    }

    /// Gives up everything that no sync covers, in the order in which it came.
    pub fn take_all(&mut self) -> Vec<Held> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// A block is erased.
    pub fn forget(&mut self, block: u32) {
        self.held.retain(|held| held.at.block != block);
        self.count();
    }

    /// A die is out of service.
    pub fn forget_die(&mut self, die: u32) {
        self.held.retain(|held| held.at.die != die);
        self.failed.remove(&die);
        self.count();
    }

    fn count(&mut self) {
        self.held_bytes = self.held.iter().map(|held| u64::from(held.bytes.end - held.bytes.start)).sum();
    }

    /// Somebody waits until everything that it holds is durable.
    pub fn wants_sync(&mut self, id: u64) {
        self.waiting.push(id);
    }

    /// Something could not be written.
    pub fn fail(&mut self, die: u32, error: MediaError) {
        if error != MediaError::Lost {
            self.failed.entry(die).or_insert(error);
        }
    }

    /// What is to be done next; it counts as begun.
    pub fn next(&mut self) -> Stage {
        match std::mem::take(&mut self.doing) {
            Doing::Nothing if !self.waiting.is_empty() || self.held_bytes > LIMIT => {
                let syncs = std::mem::take(&mut self.waiting);
                self.flying = self.take_all();
                let programs =
                    self.flying.iter().map(|held| (held.at, held.bytes.clone(), held.page.clone())).collect();
                self.doing = match self.flying.len() {
                    0 => Doing::Written { syncs },
                    left => Doing::Writing { left, syncs },
                };
                Stage::Write(programs)
            }
            Doing::Written { syncs } if syncs.is_empty() => self.next(),
            Doing::Written { syncs } => {
                self.doing = Doing::Syncing { syncs };
                Stage::Sync
            }
            doing => {
                self.doing = doing;
                Stage::Nothing
            }
        }
    }

    /// One of the programs being written out is done.
    pub fn written(&mut self, number: usize, error: Option<MediaError>) {
        if let (Some(error), Some(held)) = (error, self.flying.get(number)) {
            let die = held.at.die;
            self.fail(die, error);
        }
        if let Doing::Writing { left, syncs } = &mut self.doing {
            *left -= 1;
            if *left == 0 {
                let syncs = std::mem::take(syncs);
                self.doing = Doing::Written { syncs };
                self.flying = Vec::new();
            }
        }
    }

    /// The medium's sync is done: the answers to those who wait for it. `dead` are dies that fail everything.
    pub fn synced(&mut self, result: Result<(), MediaError>, dead: Vec<u32>) -> Vec<(u64, Result<(), MediaError>)> {
        let Doing::Syncing { syncs } = std::mem::take(&mut self.doing) else { return Vec::new() };
        let mut dies = dead;
        let mut result = result;
        for (die, error) in self.failed.drain() {
            match error {
                MediaError::Os(_) | MediaError::Truncated => dies.push(die),
                error => result = result.and(Err(error)),
            }
        }
        if let Err(MediaError::Dies { dies: failed, .. }) = &result {
            dies.extend(failed);
            result = Ok(());
        }
        dies.sort_unstable();
        dies.dedup();
        if !dies.is_empty() {
            result = result.and(Err(MediaError::Dies { dies, error: rustix::io::Errno::IO }));
        }
        syncs.into_iter().map(|id| (id, result.clone())).collect()
    }
}
