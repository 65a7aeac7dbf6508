//! What every sector may hold: the promises of the device, kept as a list of versions.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use device::BatchOp;

/// A version of a sector: the number of the change that made it, an even one from 2 on in the order of submission; one more where the
/// change made it zeros. 0 stands for "never written".
pub type OpId = u64;

/// Sectors that a change touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// First sector.
    pub lba: u64,
    /// How many.
    pub count: u64,
    /// They are zeros then.
    pub zeros: bool,
}

impl Part {
    /// Those of an operation of a batch.
    pub fn of(op: &BatchOp) -> Part {
        let sectors = op.sectors();
        Part { lba: sectors.start, count: sectors.end - sectors.start, zeros: matches!(op, BatchOp::Trim { .. }) }
    }

    fn sectors(&self) -> Range<usize> {
        self.lba as usize..(self.lba + self.count) as usize
    }
}

/// One submitted change.
#[derive(Clone, Debug, Hash)]
struct Op {
    parts: Vec<Part>,
    /// All or nothing.
    atomic: bool,
    answered: bool,
}

/// The model of one device.
#[derive(Clone)]
pub struct Model {
    /// For each sector the versions that it may show after a crash, oldest first; the last is what a read shows.
    sectors: Vec<Vec<OpId>>,
    /// Changes that some sector may still show or lose.
    ops: BTreeMap<OpId, Op>,
    next: OpId,
}

impl Model {
    /// A device that was never written.
    pub fn new(sectors: u64) -> Model {
        Model { sectors: vec![vec![0]; sectors as usize], ops: BTreeMap::new(), next: 2 }
    }

    /// How many sectors.
    pub fn len(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// A change is about to be submitted: its number, should the device take it.
    pub fn next_op(&self) -> OpId {
        self.next
    }

    /// The device took the change (answered or not).
    pub fn took(&mut self, lba: u64, count: u64, zeros: bool) -> OpId {
        self.took_all(&[Part { lba, count, zeros }], !zeros)
    }

    /// The device took several changes at once (answered or not), of which no two touch the same sector.
    pub fn took_all(&mut self, parts: &[Part], atomic: bool) -> OpId {
        let op = self.next;
        self.next += 2;
        for part in parts {
            for sector in &mut self.sectors[part.sectors()] {
                sector.push(op | u64::from(part.zeros));
            }
        }
        self.ops.insert(op, Op { parts: parts.to_vec(), atomic, answered: false });
        op
    }

    /// The change was answered with success; with `durable` it was FUA.
    pub fn answered(&mut self, op: OpId, durable: bool) {
        if let Some(entry) = self.ops.get_mut(&op) {
            entry.answered = true;
        }
        if durable {
            self.make_durable(op);
        }
    }

    /// The changes that a flush submitted now must cover.
    pub fn flush_covers(&self) -> Vec<OpId> {
        self.ops.iter().filter(|(_, op)| op.answered).map(|(id, _)| *id).collect()
    }

    /// A flush that covers these was answered with success.
    pub fn flushed(&mut self, covered: &[OpId]) {
        for op in covered {
            self.make_durable(*op);
        }
    }

    fn make_durable(&mut self, op: OpId) {
        let Some(entry) = self.ops.remove(&op) else { return };
        for sector in entry.parts.iter().flat_map(Part::sectors) {
            // Nothing older than this may come back.
            self.sectors[sector].retain(|version| *version >= op);
        }
    }

    /// A hash of all that is promised: of two that are the same, the same may follow.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.sectors, &self.ops).hash(&mut hasher);
        hasher.finish()
    }

    /// What a read shows now.
    pub fn current(&self, lba: u64) -> OpId {
        *self.sectors[lba as usize].last().expect("a sector always holds something")
    }

    /// Whether that version is zeros.
    pub fn is_zero(op: OpId) -> bool {
        op == 0 || op & 1 == 1
    }

    /// After a crash: `seen` says what a sector holds, by comparing bytes with a version. Checks every promise, then
    /// goes on from what was seen.
    pub fn crashed(&mut self, mut holds: impl FnMut(u64, OpId, bool) -> bool) -> Result<(), String> {
        let mut seen = Vec::with_capacity(self.sectors.len());
        for (lba, versions) in (0..).zip(&self.sectors) {
            // Newest first: of two versions that look alike (zeros) the newer one explains more.
            let found = versions.iter().rev().find(|version| holds(lba, **version, Model::is_zero(**version)));
            let Some(found) = found else {
                return Err(format!("sector {lba} holds none of the versions {versions:?} that it may hold"));
            };
            seen.push(*found);
        }
        for (id, op) in self.ops.iter().filter(|(_, op)| op.atomic) {
            let sectors = || op.parts.iter().flat_map(Part::sectors);
            // Zeros that may as well be older say nothing.
            let older = |at: usize| self.sectors[at].iter().any(|version| version < id && Model::is_zero(*version));
            let shows = |at: usize| seen[at] == *id || (seen[at] == *id | 1 && !older(at));
            if let (true, Some(at)) = (sectors().any(shows), sectors().find(|at| seen[*at] < *id)) {
                return Err(format!(
                    "change {id} of {:?} is torn: sector {at} still holds version {}",
                    op.parts, seen[at]
                ));
            }
        }
        self.ops.clear();
        for (sector, seen) in self.sectors.iter_mut().zip(seen) {
            *sector = vec![seen];
        }
        Ok(())
    }
}
