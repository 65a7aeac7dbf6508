//! The history: seconds, minutes and hours of every device, in one SQLite file.
//!
//! Written once a second in one transaction, in write-ahead mode: a crash leaves what the last transaction left, or what
//! the one before it did. Power lost takes the last seconds at most, since the log is synced with its checkpoints only.

mod prune;
mod query;
mod schema;
mod write;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::span::Span;
use crate::table::Of;

pub use query::{Query, Row, Series, Table};

/// Spans that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Resolution {
    /// Single seconds.
    #[serde(rename = "1s")]
    Second,
    /// Minutes.
    #[serde(rename = "1m")]
    Minute,
    /// Hours.
    #[serde(rename = "1h")]
    Hour,
}

impl Resolution {
    /// All, the finest first.
    pub const ALL: [Resolution; 3] = [Resolution::Second, Resolution::Minute, Resolution::Hour];

    /// Its length, seconds.
    pub fn seconds(self) -> u64 {
        match self {
            Resolution::Second => 1,
            Resolution::Minute => 60,
            Resolution::Hour => 3600,
        }
    }

    /// As it is written: `1s`, `1m` or `1h`.
    pub fn name(self) -> &'static str {
        match self {
            Resolution::Second => "1s",
            Resolution::Minute => "1m",
            Resolution::Hour => "1h",
        }
    }

    /// The one written so.
    pub fn parse(text: &str) -> Option<Resolution> {
        Resolution::ALL.into_iter().find(|resolution| resolution.name() == text)
    }

    /// How long it is kept, seconds.
    pub fn kept(self) -> u64 {
        KEEP[self as usize]
    }
}

/// How long seconds, minutes and hours are kept, seconds: six hours, thirty days, two years.
pub const KEEP: [u64; 3] = [6 * 3600, 30 * 86_400, 2 * 366 * 86_400];

/// The largest that the file may become, bytes. Beyond it the oldest of every resolution goes before its time.
const LARGEST: u64 = 512 << 20;

/// What a row belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesKey {
    /// A device or the service.
    pub of: Of,
    /// A device's UUID; `service`.
    pub uuid: String,
}

impl SeriesKey {
    /// The service itself.
    pub fn service() -> SeriesKey {
        SeriesKey { of: Of::Service, uuid: "service".into() }
    }

    /// A device.
    pub fn device(uuid: impl Into<String>) -> SeriesKey {
        SeriesKey { of: Of::Device, uuid: uuid.into() }
    }
}

/// Why the history cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// What SQLite says.
    pub what: String,
    /// The file itself is at fault: it is damaged, or none of ours.
    pub damaged: bool,
}

/// The history, and the spans in the making.
pub struct History {
    path: PathBuf,
    connection: Connection,
    series: HashMap<SeriesKey, Open>,
    /// The largest that the file may become, bytes.
    largest: u64,
    pruned: u64,
}

/// A series that is being written.
struct Open {
    id: i64,
    name: String,
    minute: Option<Span>,
    hour: Option<Span>,
}

impl History {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// It cannot be made, or is something else.
    pub fn open(path: &Path) -> Result<History, Error> {
        History::with_limit(path, LARGEST)
    }

    fn with_limit(path: &Path, largest: u64) -> Result<History, Error> {
        let connection = schema::open(path).map_err(|error| failed(path, &error))?;
        Ok(History { path: path.into(), connection, series: HashMap::new(), largest, pruned: 0 })
    }

    fn check<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|error| failed(&self.path, &error))
    }

    /// How large the file is, with its log, bytes.
    pub fn file_bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        size(&self.path) + size(Path::new(&log))
    }
}

fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let damaged = matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
    );
    Error { path: path.into(), what: error.to_string(), damaged }
}
