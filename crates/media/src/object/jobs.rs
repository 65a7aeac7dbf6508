//! A cut of the journal, and what must be uploaded before the store can have it.

use std::collections::BTreeMap;

use super::lebs::LebPlan;
use super::{LebEntry, ObjectId, Segment};

/// Bytes of an object's content at most.
pub(super) const SEGMENT_BYTES: u32 = 8 << 20;

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Waiting,
    UnderWay,
    /// It failed, and is tried again later.
    Resting,
    Done,
}

/// A part of a LEB that is to be uploaded.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub id: ObjectId,
    pub start: u32,
    pub len: u32,
    pub progress: Progress,
    pub failures: u32,
}

/// What is to be uploaded of one LEB.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Parts in the store already that stay as they are.
    pub keep: usize,
    pub pieces: Vec<Piece>,
}

impl Job {
    /// What is missing in the store of the first `len` bytes. Small parts at the end are uploaded once more together with what follows, so that
    /// a LEB that grows slowly has few: each of its bytes goes over the wire once for each doubling of its part at most.
    pub fn new(leb: u32, plan: &LebPlan, len: u32, mut name: impl FnMut(u32) -> ObjectId) -> Job {
        let mut start = plan.uploaded();
        let mut keep = plan.segments.len();
        while let Some(last) = keep.checked_sub(1).map(|last| plan.segments[last]) {
            let behind = len - start;
            if last.len > behind || last.len + behind > SEGMENT_BYTES {
                break;
            }
            start -= last.len;
            keep -= 1;
        }
        let mut pieces = Vec::new();
        while start < len {
            let piece = (len - start).min(SEGMENT_BYTES);
            pieces.push(Piece { id: name(leb), start, len: piece, progress: Progress::Waiting, failures: 0 });
            start += piece;
        }
        Job { keep, pieces }
    }

    /// Whether all of it is in the store.
    pub fn is_done(&self) -> bool {
        self.pieces.iter().all(|piece| piece.progress == Progress::Done)
    }

    /// What the store holds of the LEB then.
    pub fn segments(&self, before: &[Segment]) -> Vec<Segment> {
        let new = self.pieces.iter().map(|piece| Segment { id: piece.id, len: piece.len });
        before[..self.keep].iter().copied().chain(new).collect()
    }
}

/// The journal as of one moment.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Which commit it will be.
    pub commit: u64,
    /// What the store holds of each LEB, of those whose job is done.
    pub lebs: Vec<LebEntry>,
    /// What is missing, by LEB.
    pub jobs: BTreeMap<u32, Job>,
    pub labels: [Vec<u8>; 2],
    pub mark: u64,
    /// Since when the oldest change in it has waited, milliseconds.
    pub since_ms: u64,
    /// What it holds is durable in the journal.
    pub synced: bool,
    /// The note that announces the commit is written.
    pub noted: bool,
    /// Nothing follows: the owner detaches.
    pub last: bool,
}

impl Cut {
    /// Whether the anchor can be written.
    pub fn is_ready(&self) -> bool {
        self.synced && self.noted && self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A LEB that grows by a little at a time has few parts, and each byte is uploaded a few times only.
    #[test]
    fn small_parts_grow_together() {
        let mut plan = LebPlan { life: 1, ..LebPlan::empty() };
        let (mut number, mut bytes) = (0, 0u64);
        for step in 1..=4000u32 {
            plan.end = step * 4096;
            let job = Job::new(3, &plan, plan.end, |leb| {
                number += 1;
                ObjectId { epoch: 1, leb, number }
            });
            bytes += job.pieces.iter().map(|piece| u64::from(piece.len)).sum::<u64>();
            plan.segments = job.segments(&plan.segments);
            assert_eq!(plan.uploaded(), plan.end);
            assert!(plan.segments.len() <= 16, "{} parts of {}", plan.segments.len(), plan.end);
        }
        assert!(bytes <= u64::from(plan.end) * 13, "{bytes} bytes for {}", plan.end);
    }
}
