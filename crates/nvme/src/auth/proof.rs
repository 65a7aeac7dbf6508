//! What is hashed, and how: the proofs that both sides send.

use ring::{digest, hmac};

use super::Names;

/// A hash function (8.13.5.2, hash identifiers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Hash {
    /// SHA-256.
    Sha256 = 1,
    /// SHA-384.
    Sha384 = 2,
    /// SHA-512.
    Sha512 = 3,
}

impl Hash {
    /// All there are.
    pub const ALL: [Hash; 3] = [Hash::Sha256, Hash::Sha384, Hash::Sha512];

    /// By its number.
    pub fn of(number: u8) -> Option<Hash> {
        Hash::ALL.into_iter().find(|hash| *hash as u8 == number)
    }

    /// Bytes of its output, which is also how long challenges are.
    pub fn bytes(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }

    fn digest(self, bytes: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha384 => &digest::SHA384,
            Hash::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes)
    }

    fn key(self, key: &[u8]) -> hmac::Key {
        let algorithm = match self {
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha384 => hmac::HMAC_SHA384,
            Hash::Sha512 => hmac::HMAC_SHA512,
        };
        hmac::Key::new(algorithm, key)
    }

    /// HMAC of parts, one behind the other.
    pub(super) fn mac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut context = hmac::Context::with_key(&self.key(key));
        parts.iter().for_each(|part| context.update(part));
        context.sign().as_ref().to_vec()
    }
}

/// Whose proof it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Host,
    Controller,
}

/// All that a proof is about, its key apart.
pub(super) struct Proof<'a> {
    pub(super) hash: Hash,
    pub(super) challenge: &'a [u8],
    /// What both sides agreed on in a group.
    pub(super) shared: Option<&'a [u8]>,
    pub(super) sequence: u32,
    pub(super) transaction: u16,
    pub(super) names: &'a Names,
    pub(super) whose: Whose,
}

impl Proof<'_> {
    /// The bytes under the HMAC (8.13.5.4, 8.13.5.5): challenge, sequence number, transaction, no secure channel, names.
    fn message(&self) -> Vec<u8> {
        // With a group, the challenge is augmented by what both sides agreed on.
        let challenge = match self.shared {
            Some(shared) => self.hash.mac(self.hash.digest(shared).as_ref(), &[self.challenge]),
            None => self.challenge.to_vec(),
        };
        let Names { host, subsystem } = self.names;
        let (label, first, second): (&[u8], _, _) = match self.whose {
            Whose::Host => (b"HostHost", host, subsystem),
            Whose::Controller => (b"Controller", subsystem, host),
        };
        let numbers = [&self.sequence.to_le_bytes()[..], &self.transaction.to_le_bytes(), &[0]].concat();
        [&challenge, &numbers, label, first.as_bytes(), &[0], second.as_bytes()].concat()
    }

    /// The proof, under a key.
    pub(super) fn make(&self, key: &[u8]) -> Vec<u8> {
        self.hash.mac(key, &[&self.message()])
    }

    /// Whether a proof is right. How long that takes says nothing of the right one.
    pub(super) fn is_right(&self, key: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.hash.key(key), &self.message(), proof).is_ok()
    }
}
