//! The directory of a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::journal::{Journal, JournalError};
use super::record::{Line, VERSION};
use crate::cached::CachePlan;
use crate::protocol::{self, Protocol, ProtocolError};

/// What a run was asked: all that is needed to do it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the directory's form.
    pub version: u32,
    /// The protocol's name; its text is beside this file.
    pub protocol: String,
    /// quick or full.
    pub form: String,
    /// What the form differs in from the protocol as it was published, in words; empty for the full form at full scale.
    pub differs: String,
    /// When it began, as RFC 3339.
    pub started: String,
    /// The command, word by word.
    pub command: Vec<String>,
    /// What was asked.
    pub options: Options,
    /// The machine that it runs on.
    pub environment: Environment,
}

/// What was asked of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The kind of target: virtual, fio, or over NBD native, emulated or nbd.
    pub target: String,
    /// Devices: data sheets, a path or an NBD address.
    pub devices: Vec<String>,
    /// The quick form.
    pub quick: bool,
    /// Formats in place of the protocol's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formats: Option<Vec<String>>,
    /// Arrangements in place of the protocol's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrays: Option<Vec<String>>,
    /// The host's drivers in place of the protocol's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drivers: Option<Vec<String>>,
    /// The groomer's policy in place of the data sheets'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groomer: Option<String>,
    /// Only these tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// How often everything is done, each time from another seed.
    pub repeat: u32,
    /// The first seed.
    pub seed: u64,
    /// Virtual devices are built about so many times smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<u32>,
    /// A recorded trace in place of those that the protocol's stages play.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// Virtual disks are run without and with this cache in front of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CachePlan>,
    /// Size to which a file is made, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// fio's engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// fio goes through the page cache.
    #[serde(default)]
    pub buffered: bool,
}

/// What is wrong with a run's directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There is something already.
    #[error("{}: is there already; `vsl lab resume` goes on with a run, --out names another directory", .0.display())]
    Exists(PathBuf),
    /// It is no run.
    #[error("{}: is no run's directory: it has no run.toml", .0.display())]
    NoRun(PathBuf),
    /// `run.toml` is damaged.
    #[error("{}: {problem}", path.display())]
    Header {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The protocol's text is damaged.
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    /// The journal is.
    #[error("{0}")]
    Journal(#[from] JournalError),
}

/// A run's directory.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

const HEADER: &str = "run.toml";
const PROTOCOL: &str = "protocol.toml";
/// The journal of a run, in its directory.
pub const JOURNAL: &str = "journal.jsonl";

impl Directory {
    /// A new one with what is needed to do the run again, and its empty journal.
    ///
    /// # Errors
    /// There is something in it already, or it cannot be written.
    pub fn create(path: &Path, header: &Header, protocol: &str) -> Result<(Directory, Journal), DirectoryError> {
        let fail = |error| DirectoryError::File { path: path.into(), error };
        if path.is_dir() && std::fs::read_dir(path).map_err(fail)?.next().is_some() {
            return Err(DirectoryError::Exists(path.into()));
        }
        std::fs::create_dir_all(path).map_err(fail)?;
        let directory = Directory { path: path.into() };
        let text = toml::to_string(header)
            .map_err(|error| DirectoryError::Header { path: path.join(HEADER), problem: error.to_string() })?;
        // The header comes last but for the journal: what has one is a run.
        for (name, text) in [(PROTOCOL, protocol), (HEADER, text.as_str())] {
            let path = path.join(name);
            std::fs::write(&path, text).map_err(|error| DirectoryError::File { path, error })?;
        }
        let journal = Journal::create(&directory.journal())?;
        Ok((directory, journal))
    }

    /// An existing one.
    ///
    /// # Errors
    /// It is none.
    pub fn open(path: &Path) -> Result<Directory, DirectoryError> {
        if !path.join(HEADER).is_file() {
            return Err(DirectoryError::NoRun(path.into()));
        }
        Ok(Directory { path: path.into() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// What was asked.
    ///
    /// # Errors
    /// The file is damaged, or of another version.
    pub fn header(&self) -> Result<Header, DirectoryError> {
        let path = self.path.join(HEADER);
        let text =
            std::fs::read_to_string(&path).map_err(|error| DirectoryError::File { path: path.clone(), error })?;
        let header: Header = toml::from_str(&text)
            .map_err(|error| DirectoryError::Header { path: path.clone(), problem: error.to_string() })?;
        if header.version != VERSION {
            let problem = format!("version = {}; this program reads version {VERSION}", header.version);
            return Err(DirectoryError::Header { path, problem });
        }
        Ok(header)
    }

    /// The protocol as it was run.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn protocol(&self) -> Result<Protocol, DirectoryError> {
        Ok(protocol::read(&self.path.join(PROTOCOL))?.0)
    }

    /// The journal for going on with it, and what stands in it.
    ///
    /// # Errors
    /// It is damaged, or somebody else writes to it.
    pub fn resume(&self) -> Result<(Journal, Vec<Line>), DirectoryError> {
        let path = self.journal();
        if !path.exists() {
            return Ok((Journal::create(&path)?, Vec::new()));
        }
        Ok(Journal::resume(&path)?)
    }
}
