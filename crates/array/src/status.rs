//! How an array stands.

use crate::{Damage, Level, Role};

/// How an array stands as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Its members are looked at.
    Assembling,
    /// All is well.
    Healthy,
    /// Copies are brought into step.
    Resyncing,
    /// Stripes are laid out over one more member.
    Reshaping,
    /// Copies are missing.
    Degraded,
    /// It serves nobody.
    Failed,
    /// It was stopped.
    Stopped,
}

impl Condition {
    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Assembling => "assembling",
            Condition::Healthy => "healthy",
            Condition::Resyncing => "resyncing",
            Condition::Reshaping => "reshaping",
            Condition::Degraded => "degraded",
            Condition::Failed => "failed",
            Condition::Stopped => "stopped",
        }
    }
}

/// How a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It has everything.
    InSync,
    /// It is being brought into step.
    Rebuilding,
    /// It is not there, or is not used any more.
    Missing,
}

impl MemberState {
    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            MemberState::InSync => "in-sync",
            MemberState::Rebuilding => "rebuilding",
            MemberState::Missing => "missing",
        }
    }
}

/// Every figure of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How members make one device.
    pub level: Level,
    /// As a whole.
    pub condition: Condition,
    /// Each member.
    pub members: Vec<MemberState>,
    /// Raised with each change of roles, and as stripes are laid out anew.
    pub events: u64,
    /// Regions of a mirror.
    pub regions: u64,
    /// Those that would be copied after a crash.
    pub dirty_regions: u64,
    /// Those that are to be copied.
    pub unsynced_regions: u64,
    /// Those that cannot be copied, because they cannot be read.
    pub stuck_regions: u64,
    /// How much of what was to be copied is, per cent; nothing where nothing is to be copied.
    pub resync_percent: Option<u32>,
    /// How many of its stripes are laid out over the member that was added last, per cent; nothing where all are.
    pub reshape_percent: Option<u32>,
    /// What holds that up: a member, and how it fails. It is tried again all the while.
    pub reshape_trouble: Option<(usize, device::IoError)>,
    /// Sectors copied since it was assembled, to each member that needed them.
    pub copied_sectors: u64,
    /// Sectors unmapped instead of copied.
    pub unmapped_sectors: u64,
    /// Reads that another copy answered because the first could not.
    pub retried_reads: u64,
    /// Sectors that a copy could not read and got from another one.
    pub repaired_sectors: u64,
    /// Writes that lay on two members.
    pub logged_writes: u64,
    /// Records of the log that the assembly carried out.
    pub replayed: u64,
    /// Why it serves nobody, or why assembling it failed.
    pub failure: Option<Damage>,
}

impl Role {
    pub(crate) fn state(self, present: bool) -> MemberState {
        match self {
            Role::Active if present => MemberState::InSync,
            Role::Rebuilding if present => MemberState::Rebuilding,
            _ => MemberState::Missing,
        }
    }
}
