//! What every sector may hold: the promises of the device, kept as a list of versions.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A write or trim, numbered from 1 in the order of submission. 0 stands for "never written".
pub type OpId = u64;

/// One submitted change.
#[derive(Clone, Debug, Hash)]
struct Op {
    lba: u64,
    count: u64,
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
    /// Which ops wrote zeros.
    zeros: BTreeMap<OpId, ()>,
    next: OpId,
}

impl Model {
    /// A device that was never written.
    pub fn new(sectors: u64) -> Model {
        Model { sectors: vec![vec![0]; sectors as usize], ops: BTreeMap::new(), zeros: BTreeMap::new(), next: 1 }
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
        let op = self.next;
        self.next += 1;
        for sector in &mut self.sectors[lba as usize..(lba + count) as usize] {
            sector.push(op);
        }
        if zeros {
            self.zeros.insert(op, ());
        }
        self.ops.insert(op, Op { lba, count, atomic: !zeros, answered: false });
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
        for sector in &mut self.sectors[entry.lba as usize..(entry.lba + entry.count) as usize] {
            // Nothing older than this may come back.
            sector.retain(|version| *version >= op);
        }
    }

    /// A hash of all that is promised: of two that are the same, the same may follow.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.sectors, &self.ops, &self.zeros).hash(&mut hasher);
        hasher.finish()
    }

    /// What a read shows now.
    pub fn current(&self, lba: u64) -> OpId {
        *self.sectors[lba as usize].last().expect("a sector always holds something")
    }

    /// Whether that version is zeros.
    pub fn is_zero(&self, op: OpId) -> bool {
        op == 0 || self.zeros.contains_key(&op)
    }

    /// After a crash: `seen` says what a sector holds, by comparing bytes with a version. Checks every promise, then
    /// goes on from what was seen.
    pub fn crashed(&mut self, mut holds: impl FnMut(u64, OpId, bool) -> bool) -> Result<(), String> {
        let mut seen = Vec::with_capacity(self.sectors.len());
        for (lba, versions) in (0..).zip(&self.sectors) {
            // Newest first: of two versions that look alike (zeros) the newer one explains more.
            let found = versions.iter().rev().find(|version| holds(lba, **version, self.is_zero(**version)));
            let Some(found) = found else {
                return Err(format!("sector {lba} holds none of the versions {versions:?} that it may hold"));
            };
            seen.push(*found);
        }
        for (id, op) in self.ops.iter().filter(|(_, op)| op.atomic) {
            let range = op.lba as usize..(op.lba + op.count) as usize;
            let applied = seen[range.clone()].contains(id);
            if let Some(at) = range.clone().find(|at| applied && seen[*at] < *id) {
                return Err(format!(
                    "write {id} of sectors {range:?} is torn: sector {at} still holds version {}",
                    seen[at]
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
