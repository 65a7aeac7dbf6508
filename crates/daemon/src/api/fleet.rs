//! Devices on objects across hosts: which host has which, which stand by, and moves from one to another.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Passphrase;

/// What this service is called beside the hosts that it watches.
pub const HERE: &str = "here";

/// Where an attach takes a device from, in `POST /devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FromStore {
    /// `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///DIRECTORY`.
    pub address: String,
    /// The store's endpoint, where it is not the one that the address implies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Take it also from a host that has it. What only that host's journal has is given up, and the host is fenced for good.
    #[serde(default)]
    pub take_over: bool,
    /// Do not take it now, but when the lease of the host that has it was not renewed for its whole time.
    #[serde(default)]
    pub stand_by: bool,
}

/// Body of `POST /objects/look`: a device in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LookRequest {
    /// Where its objects lie.
    pub address: String,
    /// The store's endpoint, where it is not the one that the address implies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

/// What a store says of a device, by its anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Owner {
    /// What the machine of its owner calls itself.
    pub host: String,
    /// The owner epoch.
    pub epoch: u32,
    /// The owner has released it: any host may attach it, and nothing is lost.
    pub released: bool,
    /// When the owner last wrote its anchor, milliseconds since 1970 by that machine's clock.
    pub written_ms: u64,
    /// By how much its journal was ahead then, bytes.
    pub ahead_bytes: u64,
    /// The lease, seconds; 0 without one.
    pub lease_s: u64,
}

/// A device on objects of a service, as `GET /objects` lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectsDevice {
    /// Its name in the service.
    pub name: String,
    /// Where its objects lie.
    pub address: String,
    /// The store's endpoint, where it is not the one that the address implies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// `owner`; `fenced` where another host has taken it over, and `outdated` where the host does not know that yet; `stand-by`; or `failed` where it
    /// could not be attached.
    pub role: String,
    /// The owner epoch of the attach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// The lease, seconds; 0 without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<u64>,
    /// How it does, in words.
    pub health: String,
}

/// A device on objects and who has it, as `GET /fleet` lists them: the devices of this service, of every host that it watches, and those that one of
/// them knows and none of them has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetDevice {
    /// The watched host, `here` for this service; none where no watched host has the device.
    pub host: Option<String>,
    /// What is known of it there. Where no watched host has it the role is `elsewhere`, `released`, or `unknown` where the store does not say.
    #[serde(flatten)]
    pub device: ObjectsDevice,
}

/// Body of `POST /fleet/moves`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetMoveRequest {
    /// The device's name on the host that has it.
    pub device: String,
    /// The host that has it; without it, the one that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The host that gets it.
    pub to: String,
    /// Its new journal there: an absolute path, which only administrators give; or a file's name, for one in `journals` below the state
    /// directory of that service. Without it the name is the device's, with the owner epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub path: Option<PathBuf>,
    /// Close the connections of clients, once what they asked for is done, instead of refusing.
    #[serde(default)]
    pub force: bool,
    /// The passphrase of an encrypted device. It is neither stored nor logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<Passphrase>,
    /// The key file of an encrypted device, an absolute path that is good on both hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
}

/// A move of a device from host to host, as `GET /fleet/moves` lists them: the last hundred since the service was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FleetMove {
    /// Its number.
    pub id: u64,
    /// The device.
    pub device: String,
    /// Where its objects lie.
    pub address: String,
    /// The host that had it.
    pub from: String,
    /// The host that gets it.
    pub to: String,
    /// Its old journal.
    pub old_journal: String,
    /// Its new one.
    pub journal: String,
    /// `detaching`, `attaching`, `going-back`, `moved` or `failed`.
    pub state: String,
    /// When it began, milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Why it failed, and where the device is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
