//! What can be configured on a device, kept in its superblock.

use serde::{Deserialize, Serialize};

/// The settings of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// A name for people.
    pub label: String,
    /// Whether trims are carried out.
    pub trim: bool,
    /// The location beacon.
    pub beacon: bool,
    /// Whether faults may be put on it by command.
    pub drills: bool,
    /// The groomer's policy: `greedy`, `cost-benefit` or `fifo`.
    pub groomer: String,
    /// Bytes appended between two checkpoints: bounds what an attach after a crash must read.
    pub checkpoint_interval_bytes: u64,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// See [`Settings::label`].
    Label(String),
    /// See [`Settings::trim`].
    Trim(bool),
    /// See [`Settings::beacon`].
    Beacon(bool),
    /// See [`Settings::drills`]. Holds with the next attach.
    Drills(bool),
    /// See [`Settings::groomer`].
    Groomer(String),
    /// See [`Settings::checkpoint_interval_bytes`].
    CheckpointInterval(u64),
}
