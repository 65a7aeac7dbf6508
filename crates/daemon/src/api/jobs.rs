//! What takes long and goes on by itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Certificate;

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
    /// `prediction`, `lab`, `demo` or `erase`.
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
    pub result: Option<JobResult>,
}

/// What came of a job, by its kind. Of the kind `demo` nothing comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum JobResult {
    /// Of the kind `prediction`.
    Prediction(Prediction),
    /// Of the kind `erase`.
    Erased(Certificate),
    /// Of the kind `lab`: the name of the run.
    Run(String),
}

/// Body of `POST /predictions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictionRequest {
    /// An attached device: its capacities are those that are predicted, and what was recorded of it can be the workload.
    #[serde(default)]
    pub device: Option<String>,
    /// The data sheet of a flash card: what it would do, whichever device is named. By default the card that the device emulates; of a
    /// device on files or disks only what the layer does is predicted then.
    #[serde(default)]
    pub profile: Option<String>,
    /// A workload of `GET /lab/workloads`, or `recorded`.
    pub workload: String,
    /// The recording that is played with `recorded`, an absolute path; by default the device's last one.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub trace: Option<std::path::PathBuf>,
    /// The capacities to try, as `vsl format` names them; the original's four by default.
    #[serde(default)]
    pub capacities: Option<Vec<String>>,
}

/// What one capacity comes to, in the steady state. Of a device on files or disks rates and latencies are missing: its store decides them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PredictionChoice {
    /// As `vsl format` names it.
    pub capacity: String,
    /// Host capacity of the device, or of the card's module where no device was named, bytes.
    pub bytes: u64,
    /// Raw capacity beyond the host's, per cent of the host's.
    pub over_provisioning_percent: f64,
    /// Requests a second.
    pub iops: Option<f64>,
    /// Bytes a second.
    pub bytes_per_s: Option<f64>,
    /// Median latency, microseconds; nothing where too few requests were made for it, as below.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// The lowest 99th percentile of a second of the run.
    pub p99_least_us: Option<f64>,
    /// The highest.
    pub p99_most_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Bytes on media for each byte that the host writes; nothing where it writes nothing, as below.
    pub write_amplification: Option<f64>,
    /// Bytes that the host can write until the flash is worn out.
    pub lifetime_written_bytes: Option<f64>,
    /// Days that this takes at the rate of `lifetime_bytes_per_s`, the same for every choice.
    pub lifetime_days: Option<f64>,
}

/// The result of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prediction {
    /// The workload.
    pub workload: String,
    /// The data sheet; nothing where it is about a device on files or disks.
    pub profile: Option<String>,
    /// What the host is taken to write for `lifetime_days`: the most that every choice sustains, bytes a second.
    pub lifetime_bytes_per_s: Option<f64>,
    /// How many times smaller the simulated card was.
    pub scale: u32,
    /// `modelled`.
    pub source: String,
    /// The choices, in the order that was asked for.
    pub choices: Vec<PredictionChoice>,
}

/// A thing of the lab that has a name: a protocol, a workload or a data sheet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Of a data sheet: `flash`, `bridged`, `disk` or `array`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Body of `POST /lab/runs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabRunRequest {
    /// A protocol of `GET /lab/protocols`.
    pub protocol: String,
    /// A data sheet of `GET /lab/profiles`, or an attached device, which is overwritten.
    pub device: String,
    /// The name of an attached device once more: what it holds may go.
    #[serde(default)]
    pub confirm: Option<String>,
    /// What to call the run.
    pub name: String,
    /// The whole protocol with its times and sizes as published, instead of the quick form.
    #[serde(default)]
    pub full: bool,
    /// About how many times smaller virtual devices are built.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 65536)]
    pub scale: Option<u32>,
    /// How many times everything is done.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1000)]
    pub repeat: u32,
    /// Seed of every random choice.
    #[serde(default = "first")]
    pub seed: u64,
}

fn one() -> u32 {
    1
}

fn first() -> u64 {
    1
}

/// A lab run, finished or under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabRun {
    /// Its name.
    pub name: String,
    /// Its protocol.
    pub protocol: String,
    /// When it was begun, or got further, milliseconds since 1970.
    pub made_ms: u64,
    /// Its report can be read.
    pub report: bool,
}

/// Body of `POST /devices/{name}/demo`: the load overwrites what the device holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DemoRequest {
    /// The device's name once more, where it holds data.
    #[serde(default)]
    pub confirm: Option<String>,
}

/// Answer of `GET /devices/{name}/demo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Demo {
    /// It goes on.
    pub running: bool,
    /// Its job.
    pub job: Option<Job>,
}
