//! What takes long and goes on by itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It goes on.
    Running,
    /// It came to its end.
    Done,
    /// It did not work.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

/// Something that takes long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// `prediction`, `lab` or `demo`.
    pub kind: String,
    /// Of which device.
    pub device: Option<String>,
    /// How far it is.
    pub state: JobState,
    /// The part that is done, from 0 to 1.
    pub progress: f64,
    /// What it is doing.
    pub what: String,
    /// When it began, milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// Why it failed.
    pub error: Option<String>,
    /// What came of it.
    #[schema(value_type = Option<Object>)]
    pub result: Option<serde_json::Value>,
}
