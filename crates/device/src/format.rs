//! Low-level format: what a device is made with.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{AttachError, CreateError, FormatError};

/// How much of the raw size the host sees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capacity {
    /// What the data sheet says.
    Advertised,
    /// 110 % of it: the most that the original allowed.
    Maximum,
    /// 70 % of it.
    ImprovedWrite,
    /// 50 % of it.
    MaximumWrite,
    /// Bytes.
    Bytes(u64),
    /// Per cent of the advertised capacity.
    Percent(f64),
}

/// What a format sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FormatOptions {
    /// 512, 1024, 2048 or 4096 bytes.
    pub sector_bytes: u32,
    /// Host capacity.
    pub capacity: Capacity,
    /// A name for people, at most 63 bytes.
    pub label: String,
}

/// What a new device is made with: the store's size, then the format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateOptions {
    /// Advertised capacity, bytes.
    pub advertised_bytes: u64,
    /// Raw capacity, bytes: advertised plus over-provisioning.
    pub raw_bytes: u64,
    /// Name of the data sheet it was made from, if any.
    pub profile: Option<String>,
    /// The first format.
    pub format: FormatOptions,
}

/// What is known of a device without attaching it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Backing files, one a die.
    pub paths: Vec<PathBuf>,
    /// Made by the format.
    pub uuid: Uuid,
    /// For people.
    pub label: String,
    /// On-media format version.
    pub format_version: u32,
    /// Name of the data sheet it was made from, if any.
    pub profile: Option<String>,
    /// Bytes in a sector.
    pub sector_bytes: u32,
    /// Sectors that the host sees.
    pub sectors: u64,
    /// Advertised capacity, bytes.
    pub advertised_bytes: u64,
    /// Raw capacity, bytes.
    pub raw_bytes: u64,
    /// The largest request, bytes; a write up to it is never torn.
    pub max_request_bytes: u32,
    /// Whether the last detach was clean.
    pub clean: bool,
}

impl Info {
    /// Host capacity, bytes.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(self.sector_bytes)
    }
}

/// Makes a new device file (sparse) and formats it.
///
/// # Errors
/// It exists, the options do not fit together, or the operating system failed.
pub fn create(_path: &Path, _options: &CreateOptions) -> Result<Info, CreateError> {
    unimplemented!()
}

/// Formats a detached device anew: everything on it is lost.
///
/// # Errors
/// See [`FormatError`].
pub fn format(_path: &Path, _options: &FormatOptions) -> Result<Info, FormatError> {
    unimplemented!()
}

/// Reads what a detached (or attached elsewhere) device is.
///
/// # Errors
/// See [`AttachError`].
pub fn inspect(_path: &Path) -> Result<Info, AttachError> {
    unimplemented!()
}
