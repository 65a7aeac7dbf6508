//! Secrets, in the form in which people and tools pass them on.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{Entropy, Failure, Hash};

/// Bytes of the checksum behind the key.
const SUM_BYTES: usize = 4;
/// What every secret begins with: the format, of version 1.
const PREFIX: &str = "DHHC-1:";
/// What is mixed into a transformed key beside a name (8.13.5.8).
const LABEL: &[u8] = b"NVMe-over-Fabrics";

/// A secret (8.13.5.8): a key of 32, 48 or 64 bytes, and how it is transformed for whose proof it makes.
///
/// `DHHC-1:01:...:` is its text, as `nvme gen-dhchap-key` prints it: the transformation, then the key and its CRC-32 in base64. It is
/// shown by `Display` only, so that no log has it by accident.
#[derive(Clone)]
pub struct Secret {
    key: Zeroizing<Vec<u8>>,
    transform: Option<Hash>,
}

/// Text that is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// It does not have the parts.
    #[error("a secret looks like \"DHHC-1:00:...:\"; `nvme gen-dhchap-key` makes one")]
    Form,
    /// Its transformation is none.
    #[error("the second part of the secret is none of 00, 01, 02 and 03")]
    Transformation,
    /// Its key is of another length.
    #[error("the secret's key has none of 32, 48 and 64 bytes")]
    Length,
    /// Its checksum does not fit: it was not copied whole.
    #[error("the secret's checksum is wrong: it was not copied as it was made")]
    Checksum,
}

impl Secret {
    /// A new secret, as long as the hash of its transformation; of 32 bytes without one.
    ///
    /// # Errors
    /// There is no randomness to be had.
    pub fn generate(transform: Option<Hash>, entropy: &mut dyn Entropy) -> Result<Secret, Failure> {
        let mut key = Zeroizing::new(vec![0; transform.map_or(Hash::Sha256.bytes(), Hash::bytes)]);
        entropy.fill(&mut key)?;
        Ok(Secret { key, transform })
    }

    /// The key for the proofs of a host or subsystem of this name.
    pub(super) fn key_for(&self, nqn: &str) -> Zeroizing<Vec<u8>> {
        match self.transform {
            None => self.key.clone(),
            Some(hash) => Zeroizing::new(hash.mac(&self.key, &[nqn.as_bytes(), LABEL])),
        }
    }
}

impl FromStr for Secret {
    type Err = BadSecret;

    fn from_str(text: &str) -> Result<Secret, BadSecret> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(BadSecret::Form)?;
        let (transform, rest) = rest.split_once(':').ok_or(BadSecret::Form)?;
        let transform = match transform {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            "03" => Some(Hash::Sha512),
            _ => return Err(BadSecret::Transformation),
        };
        let encoded = rest.strip_suffix(':').ok_or(BadSecret::Form)?;
        let mut key = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| BadSecret::Form)?);
        let len = key.len().checked_sub(SUM_BYTES).ok_or(BadSecret::Length)?;
        if ![32, 48, 64].contains(&len) {
            return Err(BadSecret::Length);
        }
        if key[len..] != checksum(&key[..len]) {
            return Err(BadSecret::Checksum);
        }
        key.truncate(len);
        Ok(Secret { key, transform })
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transform = self.transform.map_or(0, |hash| hash as u8);
        let summed = Zeroizing::new([&self.key[..], &checksum(&self.key)].concat());
        write!(f, "{PREFIX}{transform:02}:{}:", Zeroizing::new(STANDARD.encode(&summed)).as_str())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn checksum(key: &[u8]) -> [u8; SUM_BYTES] {
    (crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, key) as u32).to_le_bytes()
}
