//! Devices and the service: what `vsl` has always asked for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use device::{Drill, Secret, SecretError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zeroize::Zeroize;

use super::FromStore;

/// Answer of `GET /version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Of the program.
    pub version: String,
    /// Of the API.
    pub api: u32,
    /// The service's process.
    pub pid: u32,
}

/// Answer of `GET /health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Whether every device that was to be attached at start has been tried.
    pub ready: bool,
    /// Devices that serve requests.
    pub attached: usize,
    /// Devices that could not be attached.
    pub failed: usize,
    /// Where devices are exported: NBD addresses without an export name.
    pub addresses: Vec<String>,
    /// Where the console and this API are served over TCP.
    #[serde(default)]
    pub web: Vec<String>,
}

/// Body of `POST /devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachRequest {
    /// An absolute path, several with commas in between for a device on several files, or `memory:SIZE`.
    pub path: String,
    /// What to call it; by default after the file.
    #[serde(default)]
    pub name: Option<String>,
    /// Take no writes.
    #[serde(default)]
    pub read_only: bool,
    /// Attach it again when the service starts again.
    #[serde(default)]
    pub remember: bool,
    /// Go on without files that nothing says are lost, also where what is left may have fallen behind them.
    #[serde(default)]
    pub degraded: bool,
    /// Make a copy a device of its own, with a UUID of its own, so that it can be attached beside its original.
    #[serde(default)]
    pub new_identity: bool,
    /// The passphrase of an encrypted device. It is neither stored nor logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<Passphrase>,
    /// The key file of an encrypted device, an absolute path. It is read at each attach, also when the service starts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
    /// A file elsewhere, an absolute path, that keeps how far the device has come: a device that is older than that is refused.
    /// It is made where there is none, and only administrators name one. A format and an erase end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub witness: Option<PathBuf>,
    /// Take the device from its object store first: `path` is its new journal, an absolute path, which only administrators give, or a file's name,
    /// for one in `journals` below the service's state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<FromStore>,
    /// Another lease for a device on objects, seconds; 0 for none from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u32>,
}

/// Body of `POST /devices/{name}/scrub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScrubRequest {
    /// Begin, or go on where it stopped; otherwise end it.
    pub on: bool,
}

/// Body of `POST /devices/{name}/optimise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OptimiseRequest {
    /// Begin, or go on at another rate; otherwise end it.
    pub on: bool,
    /// The most that is moved, MiB/s; 50 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mib: Option<u32>,
}

/// Body of `POST /devices/{name}/resize`: at least one of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeRequest {
    /// Host capacity, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Raw capacity, bytes, which only grows; without it, it grows with the host capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<u64>,
}

/// Body of `POST /devices/{name}/rebuild`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RebuildRequest {
    /// Which lost die.
    pub die: u32,
    /// What takes its place: a new file, or a blank block device; by default what it had before.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub onto: Option<PathBuf>,
}

/// Answer of `GET`, `POST` and `DELETE` below `/devices/{name}/drills`. The body of `POST` is a [`Drill`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Drills {
    /// What was done, in words.
    pub said: String,
    /// A drill has cut the power.
    pub powered_off: bool,
    /// Those that are on.
    #[schema(value_type = Vec<Object>)]
    pub drills: Vec<Drill>,
}

/// Body of `POST /devices/{name}/power-on`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerOnRequest {
    /// The passphrase of an encrypted device. It is neither stored nor logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<Passphrase>,
    /// The key file of an encrypted device, an absolute path; by default the one that it was attached with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
}

/// Answer of `GET /devices/{name}/events`: the last thousand since it was attached, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Events {
    /// They.
    pub events: Vec<Event>,
}

/// Something that happened to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// How many there were before it.
    pub number: u64,
    /// When, milliseconds since 1970.
    pub at_ms: u64,
    /// Its sort: attached, drill-begins, drill-ends, power-cut, power-on or power-on-failed.
    pub event: String,
    /// What it is about, in words.
    pub what: String,
}

/// Body of `POST /devices/{name}/record`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordRequest {
    /// The new file: a name, for one in `recordings` below the service's state directory; or, for administrators, an absolute path.
    /// Ending in .gz, .zst, .xz or .bz2 it is compressed.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// Its format: fio3, vscsi2, vscsi-csv or msr; by default what its ending says.
    #[serde(default)]
    pub format: Option<String>,
}

/// Answer of `POST /devices/{name}/record`, `POST /devices/{name}/record/stop` and `GET /devices/{name}/record`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordStatus {
    /// It goes on.
    pub recording: bool,
    /// The file; none where nothing is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub path: Option<PathBuf>,
    /// Its format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Requests written.
    pub written: u64,
    /// Requests left out, because the file was slower than the device, or because the format cannot say them.
    pub dropped: u64,
}

/// A recording that came to its end, as `GET /devices/{name}/recordings` lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedRecording {
    /// UUID of the format that was recorded.
    pub uuid: String,
    /// What the device was called.
    pub device: String,
    /// The file.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// Its format.
    pub format: String,
    /// Requests written.
    pub written: u64,
    /// Requests left out.
    pub dropped: u64,
    /// When it ended, milliseconds since 1970.
    pub ended_ms: u64,
    /// Why it ended early, with what was written before in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the file is there; as it was when this was asked.
    #[serde(default)]
    pub exists: bool,
}

/// A passphrase on its way: never shown, and overwritten in memory at the end.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Passphrase(String);

impl Passphrase {
    /// Of this text.
    pub fn new(text: String) -> Passphrase {
        Passphrase(text)
    }

    /// As what opens a device.
    ///
    /// # Errors
    /// It is empty or too long.
    pub fn secret(&self) -> Result<Secret, SecretError> {
        Secret::passphrase(self.0.clone())
    }
}

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a passphrase")
    }
}

impl Drop for Passphrase {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Body of `POST /devices/{name}/detach` and `POST /shutdown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DetachRequest {
    /// Close the connections of clients, once what they asked for is done, instead of refusing.
    #[serde(default)]
    pub force: bool,
}

/// Body of `PUT /devices/{name}/beacon`, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Beacon {
    /// Lit.
    pub on: bool,
}

/// Answer of `GET` and `PATCH /devices/{name}/config`: every setting and its value. The body of the
/// latter holds those to change.
pub type Config = BTreeMap<String, String>;

/// A connected client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Client {
    /// Its number on the device; a later client may get it again.
    pub id: u64,
    /// The protocol that it speaks: `nbd`, `nvme` or `vhost`.
    pub protocol: String,
    /// Who: a process on a Unix socket, an address on TCP.
    pub peer: String,
    /// Whether it uses TLS.
    pub tls: bool,
    /// When it came, seconds since 1970.
    pub since: u64,
    /// Requests since then.
    pub requests: u64,
    /// Bytes read since then.
    pub read_bytes: u64,
    /// Bytes written since then.
    pub written_bytes: u64,
    /// Requests under way.
    pub in_flight: u32,
    /// Over NVMe: the host, and which of its queues this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeQueue>,
    /// How the last of its requests that failed ended, in the protocol's numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<u16>,
    /// Memory that it takes in the service: what it sent, and answers on their way to it, bytes.
    pub memory_bytes: u64,
}

/// A queue of an NVMe host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NvmeQueue {
    /// The host's qualified name.
    pub host: String,
    /// Its controller.
    pub controller: u16,
    /// The queue; 0 is the admin queue.
    pub queue: u16,
    /// Headers carry a digest.
    pub header_digest: bool,
    /// Data carry a digest.
    pub data_digest: bool,
}
