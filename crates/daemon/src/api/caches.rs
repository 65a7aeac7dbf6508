//! Cached volumes: a device as the cache of slower storage.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Answer of `GET /caches`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Caches {
    /// By name.
    pub caches: Vec<CacheView>,
}

/// A cached volume. Counts are since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheView {
    /// Its name, by which it is exported like a device.
    pub name: String,
    /// Its identity.
    pub uuid: String,
    /// The device that caches it.
    pub cache: String,
    /// What stands behind: a device, a path, or an address.
    pub behind: String,
    /// `write-around`, `write-through` or `write-back`.
    pub mode: String,
    /// `opening`, `healthy`, `degraded`, `failed`, or `stopped`.
    pub state: String,
    /// In words.
    pub health: String,
    /// Host capacity, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its weight among the volumes of the cache device that want more room than they have.
    #[serde(default)]
    pub share: u32,
    /// What it may hold on the cache device at most, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// What the cache device holds of it, bytes.
    #[serde(default)]
    pub cached_bytes: u64,
    /// Read by clients and found in the cache, bytes.
    #[serde(default)]
    pub hit_bytes: u64,
    /// Read by clients from behind, bytes.
    #[serde(default)]
    pub missed_bytes: u64,
    /// Copied into the cache, bytes.
    #[serde(default)]
    pub filled_bytes: u64,
    /// Written or trimmed by clients, bytes.
    #[serde(default)]
    pub changed_bytes: u64,
    /// Written behind from the cache, bytes.
    #[serde(default)]
    pub written_back_bytes: u64,
    /// What is not behind yet, bytes.
    #[serde(default)]
    pub dirty_bytes: u64,
    /// The most that may not be behind yet, bytes.
    #[serde(default)]
    pub dirty_limit_bytes: u64,
    /// Regions in which the store behind may have changed without the cache: copies there are dropped after a crash.
    #[serde(default)]
    pub marked_regions: u64,
    /// Regions whose copies were dropped when the volume was opened.
    #[serde(default)]
    pub dropped_regions: u64,
    /// Copies that could not be read; the store behind answered.
    #[serde(default)]
    pub failed_copies: u64,
    /// What other rooms would do; nothing while it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimates: Option<CacheEstimates>,
}

/// The hit ratio that a cached volume would have with other rooms, estimated while it runs. The figures tell of the last sixteen times that
/// the cache's room was read, and of the later ones more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheEstimates {
    /// Read by clients as far as the figures tell of it, bytes.
    pub read_bytes: u64,
    /// Share that the volume itself found in the cache, counted like the estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_ratio: Option<f64>,
    /// From a quarter of the room of the cache device to eight times as much. No other volume shares them.
    pub rooms: Vec<RoomEstimate>,
}

/// The hit ratio with a room.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RoomEstimate {
    /// The room, bytes.
    pub room_bytes: u64,
    /// Share of what clients read that a cache with this room would have had; nothing before anything was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_ratio: Option<f64>,
    /// Such a cache, empty when the volume was opened, would have been full by now.
    pub full: bool,
}

/// Body of `POST /caches`. Exactly one of `device`, `path` and `address` is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheRequest {
    /// The volume's name: no device has it.
    pub name: String,
    /// An attached device with a sparse address space, which is empty or caches other volumes already.
    pub cache: String,
    /// The attached device that stands behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The file or block device that stands behind, as it is; an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub path: Option<PathBuf>,
    /// The export of an NBD server that stands behind, `nbd://HOST:PORT/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`, or the namespace of
    /// an NVMe subsystem, `nvme+tcp://HOST:PORT/SUBSYSTEM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `write-around`, `write-through` or `write-back`; `write-through` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Its weight among the volumes of the cache device that want more room than they have, 1 to 1000; 100 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// What it may hold on the cache device at most, bytes; no limit without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
}

/// Body of `POST /caches/{name}/settings`. What is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSettingsRequest {
    /// Its weight among the volumes of the cache device that want more room than they have, 1 to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// What it may hold on the cache device at most, bytes; 0 lifts the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
}

/// Body of `POST /caches/{name}/open`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    /// What becomes of writes from now on; as before without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The store behind is as it was left, whatever it looks like.
    #[serde(default)]
    pub unchanged: bool,
}

/// Body of `POST /caches/{name}/delete`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteCacheRequest {
    /// The volume's name once more.
    pub confirm: String,
    /// Close the connections of its clients.
    #[serde(default)]
    pub force: bool,
    /// Lose what is not behind yet.
    #[serde(default)]
    pub discard: bool,
}
