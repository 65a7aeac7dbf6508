//! Protocols from text.

use std::path::{Path, PathBuf};

use super::Protocol;

/// Why a text is no protocol.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Not TOML, or not these fields; says in which line.
    #[error("{name}: {error}")]
    Toml {
        /// Which file.
        name: String,
        /// What is wrong in it.
        error: Box<toml::de::Error>,
    },
    /// The fields make no sense together.
    #[error("{name}:{line}: {problem}")]
    Invalid {
        /// Which file.
        name: String,
        /// In which line it begins.
        line: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
}

/// A protocol from the text of a file of this name, checked.
///
/// # Errors
/// What is wrong, and in which line.
pub fn from_toml(name: &str, text: &str) -> Result<Protocol, ProtocolError> {
    let protocol: Protocol =
        toml::from_str(text).map_err(|error| ProtocolError::Toml { name: name.into(), error: Box::new(error) })?;
    protocol.check().map_err(|(offset, problem)| {
        let line = text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
        ProtocolError::Invalid { name: name.into(), line, problem }
    })?;
    Ok(protocol)
}

/// A protocol from a file, with the file's text.
///
/// # Errors
/// The file cannot be read, or is no protocol.
pub fn read(path: &Path) -> Result<(Protocol, String), ProtocolError> {
    let text = crate::workload::text_of(path).map_err(|error| ProtocolError::File { path: path.into(), error })?;
    Ok((from_toml(&path.display().to_string(), &text)?, text))
}
