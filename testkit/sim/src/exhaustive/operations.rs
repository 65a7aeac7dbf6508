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
    /// Make a clone of it.
    Clone,
    /// A write to the clone.
    CloneWrite { lba: u64, count: u64, fua: bool },
    /// A trim in it.
    CloneTrim { lba: u64, count: u64, fua: bool },
    /// Delete it.
    DeleteClone,
    /// Promote it.
    Promote,
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
            Operation::Write { lba, count, .. } | Operation::CloneWrite { lba, count, .. } => {
                (vec![Part { lba, count, zeros: false }], true)
            }
            Operation::Trim { lba, count, .. } | Operation::CloneTrim { lba, count, .. } => {
                (vec![Part { lba, count, zeros: true }], false)
            }
            Operation::Zeroes { lba } => (vec![Part { lba, count: 1, zeros: true }], false),
            Operation::Batch { ops, .. } => (ops.iter().map(Part::of).collect(), true),
            Operation::Flush
            | Operation::Flushes
            | Operation::Read
            | Operation::Idle
            | Operation::Detach
            | Operation::Snapshot
            | Operation::RollBack
            | Operation::Delete
            | Operation::Clone
            | Operation::DeleteClone
            | Operation::Promote => (Vec::new(), false),
        }
    }

    /// Whether it is carried out on the clone.
    pub fn is_of_clone(self) -> bool {
        matches!(self, Operation::CloneWrite { .. } | Operation::CloneTrim { .. })
    }
}

/// What every sequence begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behind {
    /// Nothing.
    #[default]
    Format,
    /// A snapshot.
    Snapshot,
    /// A snapshot, and a clone of it.
    Clone,
}

impl Behind {
    /// How many operations that is.
    pub(super) fn len(self) -> usize {
        match self {
            Behind::Format => 0,
            Behind::Snapshot => 2,
            Behind::Clone => 3,
        }
    }
}

/// Every sequence of one to `longest` operations; behind a snapshot each begins with one, and goes on with up to so many. A detach is the last one: a
/// module this small takes no more writes then.
pub(super) fn sequences(longest: usize, behind: Behind) -> Vec<Vec<Operation>> {
    let mut operations = OPERATIONS.to_vec();
    let first = [OPERATIONS[0], Operation::Snapshot, Operation::Clone][..behind.len()].to_vec();
    match behind {
        Behind::Format => {}
        Behind::Snapshot => operations.extend([Operation::RollBack, Operation::Delete]),
        Behind::Clone => operations.extend([
            Operation::RollBack,
            Operation::CloneWrite { lba: 0, count: 1, fua: false },
            Operation::CloneWrite { lba: 0, count: 2, fua: true },
            Operation::CloneTrim { lba: 0, count: 1, fua: false },
            Operation::CloneTrim { lba: 0, count: 3, fua: true },
            Operation::DeleteClone,
            Operation::Promote,
        ]),
    }
    let mut all: Vec<Vec<Operation>> = if first.is_empty() { Vec::new() } else { vec![first.clone()] };
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
