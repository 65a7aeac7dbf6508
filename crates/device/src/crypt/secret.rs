//! What opens an encrypted device: a passphrase, or the content of a key file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

/// The shortest key file, bytes.
const KEY_FILE_MIN: usize = 32;
/// The longest key file or passphrase, bytes.
const SECRET_MAX: usize = 8192;

/// Which sort of secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SecretKind {
    /// Something to remember: stretched by Argon2id.
    Passphrase = 1,
    /// Random bytes in a file.
    KeyFile = 2,
}

impl SecretKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            SecretKind::Passphrase => "passphrase",
            SecretKind::KeyFile => "key file",
        }
    }
}

/// What opens an encrypted device. Overwritten in memory when the last clone goes; never shown.
#[derive(Clone)]
pub struct Secret {
    kind: SecretKind,
    bytes: Arc<Zeroizing<Vec<u8>>>,
}

/// Why something is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A passphrase of no use.
    #[error("the passphrase is {found}; expected 1 to {SECRET_MAX} bytes")]
    Passphrase {
        /// How long it is.
        found: String,
    },
    /// A file that is too short or too long.
    #[error("{path}: {found}; expected {expected}")]
    Length {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: String,
    },
    /// It cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl Secret {
    /// A passphrase, to the byte.
    ///
    /// # Errors
    /// It is empty or too long.
    pub fn passphrase(mut text: String) -> Result<Secret, SecretError> {
        let bytes = Zeroizing::new(text.as_bytes().to_vec());
        text.zeroize();
        match bytes.len() {
            0 => Err(SecretError::Passphrase { found: "empty".into() }),
            len if len > SECRET_MAX => Err(SecretError::Passphrase { found: format!("{len} bytes long") }),
            _ => Ok(Secret { kind: SecretKind::Passphrase, bytes: Arc::new(bytes) }),
        }
    }

    /// The passphrase in a file: its bytes without a line's end behind them.
    ///
    /// # Errors
    /// The file cannot be read, or holds no passphrase.
    pub fn passphrase_file(path: &Path) -> Result<Secret, SecretError> {
        let mut bytes = read(path)?;
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        if bytes.is_empty() {
            let (found, expected) = ("no passphrase in it".into(), "one line".into());
            return Err(SecretError::Length { path: path.into(), found, expected });
        }
        Ok(Secret { kind: SecretKind::Passphrase, bytes: Arc::new(bytes) })
    }

    /// The content of a key file.
    ///
    /// # Errors
    /// The file cannot be read, or is too short to be a key.
    pub fn key_file(path: &Path) -> Result<Secret, SecretError> {
        let bytes = read(path)?;
        if bytes.len() < KEY_FILE_MIN {
            let (found, expected) = (
                format!("{} bytes", bytes.len()),
                // No command that writes to this path: it may be somebody's passphrase.
                format!(
                    "{KEY_FILE_MIN} to {SECRET_MAX} random bytes; if the file holds a passphrase, name it with --passphrase-file"
                ),
            );
            return Err(SecretError::Length { path: path.into(), found, expected });
        }
        Ok(Secret { kind: SecretKind::KeyFile, bytes: Arc::new(bytes) })
    }

    /// A key that is no file's.
    #[must_use]
    pub fn key(bytes: &[u8; 32]) -> Secret {
        Secret { kind: SecretKind::KeyFile, bytes: Arc::new(Zeroizing::new(bytes.to_vec())) }
    }

    /// Which sort it is.
    pub fn kind(&self) -> SecretKind {
        self.kind
    }

    /// It as text, where it is UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    let io = |error| SecretError::Io { path: path.into(), error };
    // One allocation, so that no copy stays behind where the buffer grew out of another.
    let mut bytes = Zeroizing::new(Vec::with_capacity(SECRET_MAX + 2));
    let file = File::open(path).map_err(io)?;
    file.take(SECRET_MAX as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() > SECRET_MAX {
        let (found, expected) = (format!("more than {SECRET_MAX} bytes"), format!("at most {SECRET_MAX} bytes"));
        return Err(SecretError::Length { path: path.into(), found, expected });
    }
    Ok(bytes)
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a {}", self.kind.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::passphrase("open sesame".into()).expect("a passphrase");
        assert_eq!(format!("{secret:?}"), "a passphrase");
    }

    #[test]
    fn files_are_read_to_the_byte_and_judged() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("key");
        let put = |bytes: &[u8]| std::fs::write(&path, bytes).expect("written");
        put(b"  open sesame \r\n");
        assert_eq!(Secret::passphrase_file(&path).expect("read").bytes(), b"  open sesame ");
        put(b"\n");
        assert!(Secret::passphrase_file(&path).expect_err("empty").to_string().contains("no passphrase in it"));
        put(&[7; 31]);
        assert!(Secret::key_file(&path).expect_err("short").to_string().contains("31 bytes; expected 32 to 8192"));
        put(&[b'\n'; 32]);
        assert_eq!(Secret::key_file(&path).expect("read").bytes(), [b'\n'; 32]);
        put(&[7; SECRET_MAX + 1]);
        assert!(Secret::key_file(&path).is_err() && Secret::passphrase_file(&path).is_err());
        assert!(Secret::key_file(Path::new("/nowhere/key")).expect_err("missing").to_string().contains("/nowhere/key"));
        assert!(Secret::passphrase(String::new()).is_err());
    }
}
