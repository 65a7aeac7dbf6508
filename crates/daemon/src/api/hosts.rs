//! Other hosts' services under this one's console.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ObjectsDevice;

/// Body of `POST /hosts`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHost {
    /// What to call it: up to 63 letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// `https://HOST:PORT`, or `http://` on loopback.
    pub address: String,
    /// An access key of an account there, or its token.
    pub key: String,
    /// The certificate that it shows, or that of who signed it, in PEM form; those that the system trusts where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

/// A host, as `GET /hosts` lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostView {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// It answered when it was asked last.
    pub reachable: bool,
    /// Why it did not.
    pub error: Option<String>,
    /// When it answered last, milliseconds since 1970.
    pub seen_ms: Option<u64>,
    /// Its program's version.
    pub version: Option<String>,
    /// Devices that serve requests there.
    pub attached: Option<u64>,
    /// Devices that could not be attached there.
    pub failed: Option<u64>,
    /// Alerts that are active there.
    pub alerts: Option<u64>,
    /// Devices on objects there; none where its program is older than they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<Vec<ObjectsDevice>>,
}
