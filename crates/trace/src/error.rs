//! What can be wrong with a trace.

use std::fmt;
use std::path::PathBuf;

/// Why a trace is not read, or not written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A record makes no sense.
    #[error("{}: {place}: {problem}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// The content is of no format that is known.
    #[error("{}: its format is not recognised: {problem}", path.display())]
    Unrecognised {
        /// Which file.
        path: PathBuf,
        /// What it looks like, and what to do.
        problem: String,
    },
    /// The trace cannot be used as was asked.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },
}

/// Where in a file, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, the first is 1.
    Line(u64),
    /// A record that begins at a byte, the first is 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(number) => write!(f, "line {number}"),
            Place::Byte(offset) => write!(f, "the record at byte {offset}"),
        }
    }
}
