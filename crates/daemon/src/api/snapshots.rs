//! Snapshots: what a device held at a moment.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::CloneView;

/// Answer of `GET /devices/{name}/snapshots`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshots {
    /// From the oldest to the newest.
    pub snapshots: Vec<SnapshotView>,
    /// What all of them hold that the device itself does not any more, bytes.
    pub held_bytes: u64,
    /// What may be written before the device is full of yesterday, bytes.
    pub room_bytes: u64,
    /// What the service makes and deletes by itself, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleView>,
}

/// A snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotView {
    /// Its name.
    pub name: String,
    /// When it was made, seconds since 1970.
    pub created: u64,
    /// It may not be deleted.
    pub held: bool,
    /// What it shows that holds data, bytes.
    pub mapped_bytes: u64,
    /// What becomes free when it alone is deleted, bytes.
    pub alone_bytes: u64,
    /// The clones that stand on it; while there are any it is not deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clones: Vec<CloneView>,
}

/// Body of `POST /devices/{name}/snapshots`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRequest {
    /// Its name: 1 to 63 letters, digits and any of . _ : + -.
    pub name: String,
}

/// Body of `PATCH /devices/{name}/snapshots/{snapshot}`: what is to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotPatch {
    /// Another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Keep it from being deleted, or let it be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
}

/// Body of `POST /devices/{name}/snapshots/{snapshot}/roll-back`: what was written since is lost, unless a newer snapshot shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBackRequest {
    /// The device's name once more.
    pub confirm: String,
    /// Delete the snapshots that are newer.
    #[serde(default)]
    pub delete_newer: bool,
}

/// The question of `GET /devices/{name}/snapshots/{snapshot}/diff`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DiffQuery {
    /// The snapshot to compare with; the device as it is by default.
    pub with: Option<String>,
    /// Where to go on, bytes; 0 by default.
    pub from: Option<u64>,
}

/// Answer of `GET /devices/{name}/snapshots/{snapshot}/diff`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diff {
    /// Bytes of a block: every offset and length is a multiple of it.
    pub block_size_bytes: u32,
    /// What differs, in order; some of it may be the same again.
    pub blocks: Vec<DiffBlock>,
    /// Where to go on, bytes; nothing where these were the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Bytes in a row that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffBlock {
    /// Where they begin.
    pub byte_offset: u64,
    /// How many.
    pub size_bytes: u64,
    /// Whether they hold data in the newer of the two; otherwise they are zeros there.
    pub mapped: bool,
}

/// How many snapshots the service keeps that it makes of a device by itself; without any of them it makes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Of each hour its first: those of so many hours.
    #[serde(default)]
    #[schema(maximum = 1000)]
    pub hourly: u32,
    /// Of each day its first: those of so many days.
    #[serde(default)]
    #[schema(maximum = 1000)]
    pub daily: u32,
    /// Of each week its first: those of so many weeks.
    #[serde(default)]
    #[schema(maximum = 1000)]
    pub weekly: u32,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = [(self.hourly, "hourly"), (self.daily, "daily"), (self.weekly, "weekly")];
        let kept = kept.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        f.write_str(&kept.collect::<Vec<_>>().join(", "))
    }
}

/// A device's schedule, and how it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    /// What is kept.
    pub keep: Schedule,
    /// When it made its newest snapshot, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Why there is no newer one, where it could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
