//! Who may do what, and who did.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an account may do; each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read everything but accounts, the audit log and where alerts are sent.
    Viewer,
    /// Use devices without destroying what they hold.
    Operator,
    /// Everything.
    Administrator,
}

impl Role {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Administrator => "administrator",
        }
    }

    /// The role that is written so.
    pub fn of_name(name: &str) -> Option<Role> {
        [Role::Viewer, Role::Operator, Role::Administrator].into_iter().find(|role| role.name() == name)
    }
}

/// How somebody got in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// The Unix socket, by the kernel's word.
    Socket,
    /// The service's own token.
    Token,
    /// An access key of an account.
    Key,
    /// A browser's session.
    Session,
}

/// Answer of `GET` and `POST /session`: who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The account; `token` for the service's own token; `user N` on the Unix socket.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// How it got in.
    pub via: Via,
}

/// Body of `POST /session`: a token or access key, or an account's name and password.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The service's token, or an access key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// An account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// An access key as it is listed: without the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    /// Its number.
    pub id: String,
    /// What it is for.
    pub note: String,
    /// When it was made, seconds since 1970.
    pub created: u64,
}

/// An account as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountView {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// It has a password.
    pub password: bool,
    /// Its access keys.
    pub keys: Vec<KeyView>,
    /// When it was made, seconds since 1970.
    pub created: u64,
}

/// Body of `POST /accounts`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    /// Up to 63 letters, digits, `-`, `_`, `.` and `@`.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// At least 8 characters. Without one it has only access keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// Body of `PATCH /accounts/{name}`: what is left out stays.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountChange {
    /// What it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// At least 8 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// Body of `POST /accounts/{name}/keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// What it is for.
    #[serde(default)]
    pub note: String,
}

/// Answer of `POST /accounts/{name}/keys`: the only time that the key is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeKey {
    /// Its number.
    pub id: String,
    /// The key.
    pub key: String,
}

/// Something that somebody changed, or tried to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// How many there were before it.
    pub number: u64,
    /// When, milliseconds since 1970.
    pub at_ms: u64,
    /// Who; empty where nobody had signed in.
    pub who: String,
    /// With which role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How they got in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// From where.
    pub peer: String,
    /// What was asked: the method.
    pub method: String,
    /// The path behind `/api/v1`.
    pub path: String,
    /// What came of it.
    pub status: u16,
    /// The body, without what is secret.
    pub what: String,
}

/// Answer of `GET /audit`, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Audit {
    /// They.
    pub entries: Vec<AuditEntry>,
}
