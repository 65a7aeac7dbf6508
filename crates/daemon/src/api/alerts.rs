//! Rules, alerts, and where they are sent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Information,
    /// Should be looked at.
    Warning,
    /// Should be looked at now.
    Critical,
}

impl Severity {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Information => "information",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// On which side of the threshold an alert is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    /// When the value is the threshold or more.
    Above,
    /// When the value is the threshold or less.
    Below,
}

/// When an alert is raised and cleared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// What it means, and what to do.
    #[serde(default)]
    pub meaning: String,
    /// Which metric of devices; see `GET /telemetry/metrics`.
    pub metric: String,
    /// Which device; any where it is left out.
    #[serde(default)]
    pub device: Option<String>,
    /// On which side of the threshold.
    pub comparison: Comparison,
    /// The value from which on it is raised.
    pub threshold: f64,
    /// The value at which it is cleared again: on the other side of the threshold, or the threshold itself.
    #[serde(default)]
    pub clear: Option<f64>,
    /// How long it must be so, seconds, before it is raised, and before it is cleared.
    #[serde(default)]
    pub for_s: u32,
    /// How bad it is.
    pub severity: Severity,
    /// It is looked at.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// It came with the service.
    #[serde(default)]
    pub built_in: bool,
}

fn yes() -> bool {
    true
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// Its number.
    pub id: u64,
    /// The rule that raised it.
    pub rule: String,
    /// Of which device.
    pub device: String,
    /// How bad it is.
    pub severity: Severity,
    /// In words.
    pub what: String,
    /// The value when it was raised.
    pub value: f64,
    /// The rule's threshold then.
    pub threshold: f64,
    /// When it was raised, milliseconds since 1970.
    pub raised_ms: u64,
    /// When it was cleared.
    #[serde(default)]
    pub cleared_ms: Option<u64>,
    /// When somebody acknowledged it.
    #[serde(default)]
    pub acknowledged_ms: Option<u64>,
    /// Who.
    #[serde(default)]
    pub acknowledged_by: Option<String>,
    /// What they said.
    #[serde(default)]
    pub note: Option<String>,
    /// What came of telling people when it was raised or, once it is over, cleared: the last try of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Sent>,
}

/// Answer of `GET /alerts` and `GET /alerts/history`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Alerts {
    /// They.
    pub alerts: Vec<Alert>,
}

/// Body of `POST /alerts/{id}/acknowledge`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Acknowledge {
    /// What to note.
    #[serde(default)]
    pub note: Option<String>,
}

/// How a connection to a mail server is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// Not at all.
    None,
    /// With STARTTLS, or not used.
    Starttls,
    /// TLS from the first byte.
    Tls,
}

/// A mail server, and who gets mail.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    /// Its host name or address.
    pub host: String,
    /// Its port.
    #[schema(minimum = 1, maximum = 65535)]
    pub port: u16,
    /// How the connection is secured.
    pub security: Security,
    /// With whose name to sign in.
    #[serde(default)]
    pub user: Option<String>,
    /// Never shown; left out or `null` it stays as it is.
    #[serde(default)]
    pub password: Option<String>,
    /// The sender's address.
    pub from: String,
    /// Who gets mail.
    pub to: Vec<String>,
}

/// An address that alerts are posted to, as JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// `http://` or `https://`.
    pub url: String,
    /// With it the body is signed: `X-OpenVSL-Signature: sha256=...`, its HMAC. Never shown; left out or `null` it stays as it is.
    #[serde(default)]
    pub secret: Option<String>,
}

/// Where alerts are sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// By mail.
    #[serde(default)]
    pub smtp: Option<Smtp>,
    /// By HTTP.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// Alerts less severe than this are not sent.
    #[serde(default = "warning")]
    pub least_severity: Severity,
}

fn warning() -> Severity {
    Severity::Warning
}

impl Default for Notifications {
    fn default() -> Notifications {
        Notifications { smtp: None, webhooks: Vec::new(), least_severity: Severity::Warning }
    }
}

/// What came of one way of sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sent {
    /// The mail server, or the webhook's host: the rest of its address is often a secret.
    pub to: String,
    /// What went wrong; nothing where it was taken.
    pub error: Option<String>,
}
