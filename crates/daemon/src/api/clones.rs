//! Clones: writable devices that stand on a snapshot.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Answer of `GET /devices/{name}/clones`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Clones {
    /// From the oldest to the newest.
    pub clones: Vec<CloneView>,
}

/// A clone of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CloneView {
    /// Its name; no snapshot of the device has the same.
    pub name: String,
    /// The snapshot that it stands on.
    pub snapshot: String,
    /// When it was made, seconds since 1970.
    pub created: u64,
    /// What it wrote, bytes: they become free when it is deleted.
    pub own_bytes: u64,
}

/// Body of `POST /devices/{name}/clones`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloneRequest {
    /// Its name: 1 to 63 letters, digits and any of . _ : + -.
    pub name: String,
    /// The snapshot that it begins as.
    pub snapshot: String,
}

/// Body of `POST /devices/{name}/clones/{clone}/promote`: what the device holds is lost, unless a snapshot shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    /// The device's name once more.
    pub confirm: String,
}
