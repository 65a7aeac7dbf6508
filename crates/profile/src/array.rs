//! The shape of an array in a data sheet.

use serde::{Deserialize, Serialize};

/// How data is spread over the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Striped.
    Raid0,
    /// Mirrored.
    Raid1,
    /// Striped with rotating parity.
    Raid5,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Raid0 => "RAID 0",
            Self::Raid1 => "RAID 1",
            Self::Raid5 => "RAID 5",
        })
    }
}

/// Several of another product behind a RAID controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// How data is spread.
    pub level: Level,
    /// Name of the members' profile.
    pub member: String,
    /// How many members.
    pub count: u32,
    /// Consecutive bytes on one member.
    pub stripe_bytes: u64,
    /// Time that every request takes in the controller alone, one after the other, microseconds.
    pub request_us: f64,
    /// Memory that answers writes before the members have them, bytes; 0 for none.
    pub write_cache_bytes: u64,
    /// Whether the members' own write caches are on. A controller usually switches them off.
    pub member_write_cache: bool,
}
