//! The operations that sequences are made of.

use device::BatchOp;

use crate::model::Part;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Write so many sectors from this one on.
    Write { lba: u64, count: u64, fua: bool },
    /// Trim them.
    Trim { lba: u64, count: u64, fua: bool },
    /// Write zeros to one sector.
    Zeroes { lba: u64 },
    /// Do all of this or nothing.
    Batch { ops: &'static [BatchOp], fua: bool },
    /// Make everything durable.
    Flush,
    /// Three times: write a sector, and ask for everything to become durable without waiting for it.
    Flushes,
    /// Read everything.
    Read,
    /// A quiet moment.
    Idle,
    /// Detach, and attach again.
    Detach,
    /// Make a snapshot.
    Snapshot,
    /// Roll back to it.
    RollBack,
    /// Delete it.
    Delete,
}

/// Sectors of the device.
pub(super) const SECTORS: u64 = 3;

/// All that sequences are made of.
pub(super) const OPERATIONS: [Operation; 14] = [
    Operation::Write { lba: 0, count: 1, fua: false },
    Operation::Write { lba: 1, count: 1, fua: false },
    Operation::Write { lba: 0, count: 2, fua: false },
    Operation::Write { lba: 0, count: 1, fua: true },
    Operation::Trim { lba: 0, count: 1, fua: false },
    Operation::Trim { lba: 0, count: 3, fua: true },
    Operation::Zeroes { lba: 1 },
    Operation::Batch { ops: &[BatchOp::Write { lba: 2, count: 1 }, BatchOp::Write { lba: 0, count: 1 }], fua: false },
    Operation::Batch { ops: &[BatchOp::Write { lba: 2, count: 1 }, BatchOp::Trim { lba: 0, count: 2 }], fua: true },
    Operation::Flush,
    Operation::Flushes,
    Operation::Read,
    Operation::Idle,
    Operation::Detach,
];

impl Operation {
    /// What it changes, and whether all of it or nothing.
    pub fn changes(self) -> (Vec<Part>, bool) {
        match self {
            Operation::Write { lba, count, .. } => (vec![Part { lba, count, zeros: false }], true),
            Operation::Trim { lba, count, .. } => (vec![Part { lba, count, zeros: true }], false),
            Operation::Zeroes { lba } => (vec![Part { lba, count: 1, zeros: true }], false),
            Operation::Batch { ops, .. } => (ops.iter().map(Part::of).collect(), true),
            Operation::Flush
            | Operation::Flushes
            | Operation::Read
            | Operation::Idle
            | Operation::Detach
            | Operation::Snapshot
            | Operation::RollBack
            | Operation::Delete => (Vec::new(), false),
        }
    }
}

/// Every sequence of one to `longest` operations; with a snapshot each begins with one, and goes on with up to so many. A detach is the last one: a
/// module this small takes no more writes then.
pub(super) fn sequences(longest: usize, snapshots: bool) -> Vec<Vec<Operation>> {
    let (mut operations, mut first) = (OPERATIONS.to_vec(), Vec::new());
    if snapshots {
        operations.extend([Operation::RollBack, Operation::Delete]);
        first = vec![OPERATIONS[0], Operation::Snapshot];
    }
    let mut all: Vec<Vec<Operation>> = if snapshots { vec![first.clone()] } else { Vec::new() };
    let mut last: Vec<Vec<Operation>> = vec![first];
    for _ in 0..longest {
        let open = last.iter().filter(|sequence| sequence.last() != Some(&Operation::Detach));
        last = open
            .flat_map(|sequence| operations.iter().map(|operation| [&sequence[..], &[*operation]].concat()))
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}
