//! What is known of each LEB: how far the journal holds it, and how far the store does.

use super::{Life, Segment};

/// Giving a LEB's place in the journal back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Giving {
    /// Nothing of the kind.
    No,
    /// The note that says so is being written.
    Noting,
    /// Reads of the journal that are under way come first.
    Waiting,
}

/// One LEB.
#[derive(Clone, Debug)]
pub(super) struct LebPlan {
    /// Its life; 0 for one that never had any.
    pub life: Life,
    /// The journal holds all of it; otherwise the store does.
    pub local: bool,
    /// Bytes from its beginning that hold something.
    pub end: u32,
    /// Where programs begin that are under way.
    pub under_way: Vec<u32>,
    /// Where programs began that failed and were not repeated yet.
    pub failed: Vec<u32>,
    /// Programs that wait in front of the journal.
    pub held: u32,
    /// Nothing more is appended to it.
    pub closed: bool,
    /// What the store holds of this life.
    pub segments: Vec<Segment>,
    /// Bytes of this life that the anchor in the store names.
    pub committed: u32,
    /// Reads of the journal that are under way.
    pub readers: u32,
    /// Whether its place is being given back.
    pub giving: Giving,
}

impl LebPlan {
    /// One that never held anything.
    pub fn empty() -> LebPlan {
        LebPlan {
            life: 0,
            local: true,
            end: 0,
            under_way: Vec::new(),
            failed: Vec::new(),
            held: 0,
            closed: false,
            segments: Vec::new(),
            committed: 0,
            readers: 0,
            giving: Giving::No,
        }
    }

    /// Bytes that the store holds of it.
    pub fn uploaded(&self) -> u32 {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    /// Bytes from its beginning that no program under way may change: what a cut can name.
    pub fn settled(&self) -> u32 {
        let first = self.under_way.iter().chain(&self.failed).min().copied().unwrap_or(self.end);
        // What is in the store already is written again at most with the same bytes.
        first.min(self.end).max(self.uploaded())
    }

    /// Bytes that would be lost with the journal.
    pub fn ahead(&self) -> u64 {
        u64::from(self.end.saturating_sub(self.committed))
    }

    /// Bytes that the journal holds.
    pub fn here(&self) -> u64 {
        if self.local { u64::from(self.end) } else { 0 }
    }

    /// Whether its place in the journal could be given back.
    pub fn can_go(&self) -> bool {
        let still = self.under_way.is_empty() && self.failed.is_empty() && self.held == 0;
        let there = self.end > 0 && self.committed == self.end && self.uploaded() == self.end;
        self.local && self.closed && still && there && self.giving == Giving::No
    }
}
