//! What was changed in which order, and what each sector may hold.

/// A change.
struct Change {
    /// Its number, from 1.
    op: u64,
    /// The log's end behind it.
    end: u64,
    what: What,
}

enum What {
    Sectors {
        lba: u64,
        count: u64,
        zero: bool,
    },
    /// Everything, sector by sector, as a crash or a take-over left it.
    All(Vec<u64>),
}

/// All changes since the beginning.
pub struct History {
    sectors: u64,
    changes: Vec<Change>,
    ops: u64,
    /// So many changes were flushed.
    flushed: usize,
    /// The log's end behind the newest change of which a flush was answered that waits for the store.
    pub remote: u64,
}

impl History {
    pub fn new(sectors: u64) -> History {
        History { sectors, changes: Vec::new(), ops: 0, flushed: 0, remote: 0 }
    }

    /// The number of the next change.
    pub fn next(&self) -> u64 {
        self.ops + 1
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// A change was taken, or may have been.
    pub fn took(&mut self, lba: u64, count: u64, zero: bool, end: u64) {
        self.ops += 1;
        self.changes.push(Change { op: self.ops, end, what: What::Sectors { lba, count, zero } });
    }

    /// The first so many changes are durable.
    pub fn flushed(&mut self, count: usize) {
        self.flushed = self.flushed.max(count.min(self.changes.len()));
    }

    /// The first so many changes are in the store, too.
    pub fn flushed_remote(&mut self, count: usize) {
        let changes = self.changes.iter().take(count);
        let ends = changes.filter(|change| matches!(change.what, What::Sectors { .. })).map(|change| change.end);
        self.remote = ends.filter(|end| *end != u64::MAX).fold(self.remote, u64::max);
        self.flushed(count);
    }

    /// The changes of a sector, each with the log's end behind it, for messages.
    pub fn of(&self, lba: u64) -> String {
        let changes = self.changes.iter().filter_map(|change| Some(format!("{}@{:#x}", change.of(lba)?, change.end)));
        changes.collect::<Vec<_>>().join(" ")
    }

    /// Which change a sector is of after all of them; 0 for zeros.
    pub fn current(&self, lba: u64) -> u64 {
        self.changes.iter().rev().find_map(|change| change.of(lba)).unwrap_or(0)
    }

    /// Takes what a crash left for what counts: each sector as of its last durable change or a later one, and each change as a whole or not at
    /// all. What lies below `mark` is durable. What is appended from now on has numbers from `begin` on.
    pub fn crashed(&mut self, mark: u64, begin: u64, holds: impl Fn(u64, u64) -> bool) -> Result<(), String> {
        let durable = self.changes.iter().take_while(|change| change.end <= mark).count().max(self.flushed);
        let mut image = Vec::new();
        for lba in 0..self.sectors {
            let mut candidates = Vec::new();
            for (at, change) in self.changes.iter().enumerate().rev() {
                if let Some(op) = change.of(lba) {
                    candidates.push(op);
                    if at < durable {
                        break;
                    }
                }
            }
            let is_sure = self.changes[..durable].iter().any(|change| change.of(lba).is_some());
            if !is_sure {
                candidates.push(0);
            }
            match candidates.iter().find(|op| holds(lba, **op)) {
                Some(op) => image.push(*op),
                None => {
                    let held = (0..=self.ops).find(|op| holds(lba, *op));
                    return Err(format!("sector {lba} holds change {held:?} and none of {candidates:?}"));
                }
            }
        }
        self.check_whole(durable, &image)?;
        // More may have been durable than was known: the store may say so later, with a mark in between.
        self.changes.retain(|change| change.end < begin);
        self.changes.push(Change { op: 0, end: begin, what: What::All(image) });
        self.flushed = self.changes.len();
        Ok(())
    }

    /// Of a write that is there in part, every other sector must hold something newer.
    fn check_whole(&self, durable: usize, image: &[u64]) -> Result<(), String> {
        for (at, change) in self.changes.iter().enumerate().skip(durable) {
            let What::Sectors { lba, count, zero: false } = change.what else { continue };
            let range = lba..lba + count;
            if !range.clone().any(|lba| image[lba as usize] == change.op) {
                continue;
            }
            // A trim leaves zeros, which a sector may hold for other reasons.
            let newer = |lba: u64| {
                let op = image[lba as usize];
                op >= change.op || self.changes[at..].iter().any(|later| later.of(lba) == Some(0) && op == 0)
            };
            if let Some(torn) = range.clone().find(|lba| !newer(*lba)) {
                return Err(format!("change {} of sectors {range:?} is torn: sector {torn} is older", change.op));
            }
        }
        Ok(())
    }

    /// Forgets everything that is not below `mark`.
    pub fn cut_back(&mut self, mark: u64) {
        self.changes.retain(|change| change.end <= mark);
        self.flushed = self.changes.len();
    }

    /// What there is now is what counts; what is appended from now on has numbers from `begin` on.
    pub fn begin_again(&mut self, begin: u64) {
        let image = (0..self.sectors).map(|lba| self.current(lba)).collect();
        self.changes.push(Change { op: 0, end: begin, what: What::All(image) });
        self.flushed = self.changes.len();
    }
}

impl Change {
    /// What it says of a sector: the number of the change that it holds, 0 for zeros.
    fn of(&self, lba: u64) -> Option<u64> {
        match &self.what {
            What::Sectors { lba: first, count, zero } => {
                (*first..first + count).contains(&lba).then_some(if *zero { 0 } else { self.op })
            }
            What::All(image) => Some(image[lba as usize]),
        }
    }
}
