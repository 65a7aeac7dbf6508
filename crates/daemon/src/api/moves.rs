//! Moves: a device goes to another one while clients use it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Opener;

/// Body of `POST /devices/{name}/migrate`: one of `path` and `target` says where the device goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// A new file, an absolute path, or a blank block device. The service makes a device there, of the same size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub path: Option<PathBuf>,
    /// An attached device that nobody uses, of the same size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Encrypt the new device at `path`; a key file opens it, since the service opens it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<Opener>,
    /// An encrypted device may go to one that stores what comes as it is.
    #[serde(default)]
    pub plain: bool,
    /// Destroy what `target` holds.
    #[serde(default)]
    pub force: bool,
}

/// A move that is under way, or the last one of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoveView {
    /// The device that is moved.
    pub device: String,
    /// Where it lay when the move began.
    pub from: String,
    /// Where it goes.
    pub to: String,
    /// The name of the new device for as long as the move takes.
    pub target: String,
    /// `copying`, `handing-over`, `moved`, `cancelled` or `failed`.
    pub state: String,
    /// How much of the device is on the new one, per cent.
    pub percent: u32,
    /// Host capacity, bytes.
    pub bytes: u64,
    /// How much of it is on the new device, bytes.
    pub done_bytes: u64,
    /// Of those, how much was copied, bytes.
    pub copied_bytes: u64,
    /// Of those, how much holds nothing and was not copied, bytes.
    pub unmapped_bytes: u64,
    /// When it began, or went on after a restart of the service: milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Of one that failed: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl MoveView {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.ended_ms.is_some()
    }
}
