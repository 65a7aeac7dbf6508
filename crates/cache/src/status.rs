//! How a cached volume stands.

use crate::header::Mode;

/// As a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It is found out what the cache holds.
    Opening,
    /// All is well.
    Healthy,
    /// The store behind is gone: what is cached is served, and writes are taken while there is room to hold them.
    Alone,
    /// It serves nobody.
    Failed,
    /// It was stopped.
    Stopped,
}

impl Condition {
    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Opening => "opening",
            Condition::Healthy => "healthy",
            Condition::Alone => "degraded",
            Condition::Failed => "failed",
            Condition::Stopped => "stopped",
        }
    }
}

/// Why it serves nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The cache device failed or is gone.
    #[error("the cache device is gone, or does not do what it must")]
    Cache,
    /// The store behind failed while it was opened or stopped.
    #[error("the store behind is gone, or does not do what it must")]
    Behind,
    /// What is held does not belong to what stands behind now.
    #[error(
        "the store behind was changed from outside while the cache held {held} sectors that are not behind yet; expected the store as it was left"
    )]
    Changed {
        /// Sectors held.
        held: u64,
    },
}

/// Every figure of it. Counts of sectors are since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// What becomes of writes.
    pub mode: Mode,
    /// As a whole.
    pub condition: Condition,
    /// Why it serves nobody.
    pub failure: Option<Failure>,
    /// Sectors read that the cache had.
    pub hit_sectors: u64,
    /// Sectors read from behind.
    pub missed_sectors: u64,
    /// Sectors copied into the cache.
    pub filled_sectors: u64,
    /// Sectors that the host wrote or trimmed.
    pub changed_sectors: u64,
    /// Sectors written behind from the cache.
    pub written_back_sectors: u64,
    /// Sectors that are not behind yet.
    pub dirty_sectors: u64,
    /// Sectors held, those that are behind by now among them.
    pub held_sectors: u64,
    /// Sectors that may be dirty at most.
    pub dirty_limit: u64,
    /// Regions in which the store behind may have changed without the cache.
    pub marked_regions: u64,
    /// Regions whose clean copies were dropped when it was opened.
    pub dropped_regions: u64,
    /// Reads of a copy that failed; the store behind answered.
    pub failed_copies: u64,
}

impl Status {
    /// Sectors read that the cache had, and those that it had not.
    pub(crate) fn own(&self) -> [u64; 2] {
        [self.hit_sectors, self.missed_sectors]
    }
}
