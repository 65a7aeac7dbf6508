//! Tokens and keys: 256 random bits, of which only a digest is kept. Nothing slower is needed, since they cannot be guessed.

use std::path::Path;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::{Failure, stored};

/// Random bytes of a secret.
const BYTES: usize = 32;

/// The digest of a secret.
#[derive(Clone, Debug)]
pub struct Digest(String);

impl Digest {
    /// Of this secret.
    pub fn of(secret: &str) -> Digest {
        Digest(hex(digest(&SHA256, secret.as_bytes()).as_ref()))
    }

    /// As it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        equal(&self.0, &other.0)
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
pub fn equal(one: &str, other: &str) -> bool {
    let apart = one.bytes().zip(other.bytes()).fold(0, |apart, (a, b)| apart | (a ^ b));
    one.len() == other.len() && std::hint::black_box(apart) == 0
}

/// Bytes as people write them.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// So many random bytes as text.
pub fn random(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    // It fails only where the kernel has no random numbers, and then nothing may go on.
    SystemRandom::new().fill(&mut random).expect("the kernel gives random bytes");
    hex(&random)
}

/// A new secret.
pub fn make() -> String {
    random(BYTES)
}

/// The secret in a file, which is made where there is none.
///
/// # Errors
/// It can be neither read nor written, or was edited into something short.
pub fn token(path: &Path) -> Result<String, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim().len() >= BYTES => return Ok(text.trim().to_string()),
        Ok(_) => {
            return Err(Failure::failed(format!("{}: the token is shorter than {BYTES} characters", path.display()))
                .help("remove the file; the service makes a new one"));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::io(path, &error)),
    }
    let token = make();
    stored::replace(path, format!("{token}\n").as_bytes()).map_err(|error| Failure::io(path, &error))?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_compared_whole() {
        assert_ne!(make(), make());
        assert_eq!(make().len(), 2 * BYTES);
        assert!(equal("abc", "abc") && !equal("abc", "abd") && !equal("abc", "ab") && !equal("", "a"));
        assert_eq!(Digest::of("abc").as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_token_is_made_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        let made = token(&path).expect("made");
        assert_eq!(token(&path).expect("read"), made);
        std::fs::write(&path, "guess").expect("written");
        assert!(token(&path).expect_err("short").error.contains("shorter"));
    }
}
