//! Arrays: several devices as one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Answer of `GET /arrays`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Arrays {
    /// By name.
    pub arrays: Vec<ArrayView>,
}

/// An array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayView {
    /// Its name, by which it is exported like a device.
    pub name: String,
    /// Its identity.
    pub uuid: String,
    /// `raid0`, `raid1` or `concat`.
    pub level: String,
    /// `healthy`, `resyncing`, `reshaping`, `degraded`, `failed`, or `stopped`.
    pub state: String,
    /// In words.
    pub health: String,
    /// Of RAID 0: the stripe, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_bytes: Option<u64>,
    /// Host capacity, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The largest request, bytes; a write up to it is never torn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_request_bytes: Option<u32>,
    /// By position.
    pub members: Vec<ArrayMemberView>,
    /// How much of what is to be copied is, per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_percent: Option<u32>,
    /// Of RAID 0 that got one more member: how many of its stripes are laid out over it, per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reshape_percent: Option<u32>,
    /// Copied to members since the array was assembled, bytes.
    #[serde(default)]
    pub copied_bytes: u64,
    /// What a copy of a mirror could not read and got from another one since the array was assembled, bytes.
    #[serde(default)]
    pub repaired_bytes: u64,
    /// Regions of a mirror that would be copied after a crash.
    #[serde(default)]
    pub dirty_regions: u64,
    /// Regions of a mirror.
    #[serde(default)]
    pub regions: u64,
    /// Raised with each change of the members' roles, and as stripes are laid out anew.
    #[serde(default)]
    pub events: u64,
}

/// A member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayMemberView {
    /// The device.
    pub name: String,
    /// `in-sync`, `rebuilding` or `missing`.
    pub state: String,
}

/// Body of `POST /arrays`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayRequest {
    /// Its name: no device has it.
    pub name: String,
    /// `raid0`, `raid1` or `concat`.
    pub level: String,
    /// Attached devices, in order.
    pub members: Vec<String>,
    /// Of RAID 0: the stripe, bytes, a power of two; 64 KiB without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_bytes: Option<u64>,
    /// Destroy what the devices hold.
    #[serde(default)]
    pub force: bool,
}

/// Body of `POST /arrays/{name}/assemble`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssembleRequest {
    /// A mirror does without members that are not attached, also where nothing says that they are gone.
    #[serde(default)]
    pub degraded: bool,
    /// Take a copy that was not finished, where no other is attached.
    #[serde(default)]
    pub force: bool,
}

/// Body of `POST /arrays/{name}/replace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest {
    /// The member that is missing.
    pub member: String,
    /// The attached device that takes its place.
    pub with: String,
    /// Destroy what that device holds.
    #[serde(default)]
    pub force: bool,
}

/// Body of `POST /arrays/{name}/add`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMemberRequest {
    /// The attached device that becomes one more member.
    pub device: String,
    /// Destroy what that device holds.
    #[serde(default)]
    pub force: bool,
}

/// Body of `POST /arrays/{name}/delete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteArrayRequest {
    /// The array's name once more.
    pub confirm: String,
    /// Close the connections of its clients.
    #[serde(default)]
    pub force: bool,
}
