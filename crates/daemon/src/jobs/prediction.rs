//! What each capacity of a format would do to a workload: `vsl lab predict` as a process of its own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Task;
use super::process::{self, vsl};
use crate::Failure;
use crate::api::{JobResult, Prediction};

/// The card that stands for the layer of a device on files or disks. Its rates are not shown; its over-provisioning is the device's.
pub const STAND_IN: &str = "iodrive-320-mlc";

/// The device that a prediction is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct About {
    /// Its capacity by its stock format, bytes.
    pub advertised_bytes: u64,
    /// Its media in all, parity and reserve left out, bytes.
    pub raw_bytes: u64,
    /// Bytes in a sector.
    pub sector_bytes: u32,
    /// Its groomer's policy.
    pub groomer: String,
    /// It emulates the card: then rates and wear hold as well.
    pub emulated: bool,
}

/// What is to be predicted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The card's data sheet.
    pub profile: String,
    /// The device; nothing where the question is about the card as such.
    pub about: Option<About>,
    /// The workload's name, as it was asked for.
    pub named: String,
    /// A recording to play instead of a named workload.
    pub trace: Option<PathBuf>,
    /// The capacities to try, as `vsl format` names them. Of several, those that the card does not have are left out.
    pub capacities: Vec<String>,
}

/// A line of the answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// How far it is, from 0 to 1, with so many capacities.
    At(f64, usize),
    /// It is done.
    Done(Prediction),
}

/// Those that the original's tools offer.
pub const CAPACITIES: [&str; 5] = ["maximum", "advertised", "high-performance", "improved-write", "maximum-write"];

/// Has the question answered.
///
/// # Errors
/// The workload does not fit the card, or the process cannot be started.
pub fn predict(question: &Question, task: &Task) -> Result<Option<JobResult>, Failure> {
    let mut command = vsl()?;
    command.args(["lab", "predict"]);
    let question_text = serde_json::to_vec(question).map_err(|error| Failure::failed(error.to_string()))?;
    let mut prediction = None;
    let ended = process::finish(command, &question_text, task, |lines| {
        for line in lines {
            match serde_json::from_str(&line) {
                Ok(Line::At(share, capacities)) => task.at(share, &format!("{capacities} capacities")),
                Ok(Line::Done(answer)) => prediction = Some(answer),
                Err(error) => tracing::warn!("a prediction said '{}': {error}", line.escape_debug()),
            }
        }
    })?;
    match (ended, prediction) {
        (None, _) => Ok(None),
        (Some(Ok(())), Some(prediction)) => Ok(Some(JobResult::Prediction(prediction))),
        (Some(Ok(())), None) => Err(Failure::failed("the prediction ended without an answer")),
        (Some(Err(ended)), _) => Err(process::refusal(&ended.said)),
    }
}
