//! A copy of the data key in the superblock, wrapped by a secret.
//!
//! From the secret and a salt of the slot's own comes a key that is used for nothing else: by Argon2id from a
//! passphrase, by HKDF-SHA-256 from a key file. It seals the data key with AES-256-GCM. Each wrapping has a new salt and so
//! a new key, so its nonce may be all zeros.

use argon2::{Algorithm, Argon2, Params, Version};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{DataKey, NoKey, Secret, SecretKind, TAG_BYTES, entropy};

/// Copies of the data key that a superblock has room for.
pub(crate) const KEY_SLOTS: usize = 4;

/// Bytes of a slot in the superblock.
pub(crate) const SLOT_BYTES: usize = 96;

/// Memory that Argon2id takes, KiB: the second choice of RFC 9106, for machines that have other work too.
const ARGON_KIB: u32 = 64 << 10;
/// Its passes over that memory.
const ARGON_PASSES: u32 = 3;
/// Most of each that a superblock may ask for: a hostile one must not take the machine's memory.
const ARGON_KIB_MAX: u32 = 1 << 20;
const ARGON_PASSES_MAX: u32 = 16;

/// A wrapped copy of the data key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeySlot {
    pub kind: SecretKind,
    /// Memory (KiB) and passes of Argon2id; zeros for a key file.
    cost: [u32; 2],
    salt: [u8; 32],
    wrapped: [u8; 32 + TAG_BYTES],
}

impl KeySlot {
    /// Wraps a data key for the slot of this number.
    pub fn wrap(uuid: &Uuid, number: usize, key: &DataKey, secret: &Secret) -> Result<KeySlot, NoKey> {
        let cost = match secret.kind() {
            SecretKind::Passphrase => [ARGON_KIB, ARGON_PASSES],
            SecretKind::KeyFile => [0, 0],
        };
        let mut slot = KeySlot { kind: secret.kind(), cost, salt: [0; 32], wrapped: [0; 32 + TAG_BYTES] };
        entropy::fill(&mut slot.salt)?;
        let (text, tag) = slot.wrapped.split_at_mut(32);
        text.copy_from_slice(&**key);
        let sealed = slot_key(slot.kind, slot.cost, &slot.salt, secret)?.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key([0; 12]),
            Aad::from(context(uuid, number, slot.kind, slot.cost)),
            text,
        );
        match sealed {
            Ok(sealed) => tag.copy_from_slice(sealed.as_ref()),
            Err(_) => {
                text.fill(0);
                return Err(NoKey::Failed("the data key could not be wrapped"));
            }
        }
        Ok(slot)
    }

    /// The data key, if this secret wrapped it.
    pub fn unwrap(&self, uuid: &Uuid, number: usize, secret: &Secret) -> Result<Option<DataKey>, NoKey> {
        let mut text = Zeroizing::new(self.wrapped);
        let key = slot_key(self.kind, self.cost, &self.salt, secret)?;
        let context = Aad::from(context(uuid, number, self.kind, self.cost));
        let opened = key.open_in_place(Nonce::assume_unique_for_key([0; 12]), context, &mut text[..]);
        Ok(opened.ok().map(|opened| {
            let mut key = DataKey::default();
            key.copy_from_slice(opened);
            key
        }))
    }

    /// Its bytes on media.
    pub fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut out = [0; SLOT_BYTES];
        out[0] = self.kind as u8;
        out[4..8].copy_from_slice(&self.cost[0].to_le_bytes());
        out[8..12].copy_from_slice(&self.cost[1].to_le_bytes());
        out[16..48].copy_from_slice(&self.salt);
        out[48..96].copy_from_slice(&self.wrapped);
        out
    }

    /// From its bytes; `Ok(None)` for an empty slot.
    pub fn decode(bytes: &[u8; SLOT_BYTES]) -> Result<Option<KeySlot>, &'static str> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let cost = [word(4), word(8)];
        let kind = match bytes[0] {
            0 => return Ok(None),
            1 => SecretKind::Passphrase,
            2 => SecretKind::KeyFile,
            _ => return Err("a key slot's kind"),
        };
        let sane = match kind {
            SecretKind::Passphrase => {
                (8..=ARGON_KIB_MAX).contains(&cost[0]) && (1..=ARGON_PASSES_MAX).contains(&cost[1])
            }
            SecretKind::KeyFile => cost == [0, 0],
        };
        if !sane {
            return Err("a key slot's cost");
        }
        let (mut salt, mut wrapped) = ([0; 32], [0; 32 + TAG_BYTES]);
        salt.copy_from_slice(&bytes[16..48]);
        wrapped.copy_from_slice(&bytes[48..96]);
        Ok(Some(KeySlot { kind, cost, salt, wrapped }))
    }
}

/// What a wrapped key belongs to: it opens nowhere else.
fn context(uuid: &Uuid, number: usize, kind: SecretKind, cost: [u32; 2]) -> [u8; 26] {
    let mut context = [0; 26];
    context[..16].copy_from_slice(uuid.as_bytes());
    context[16] = number as u8;
    context[17] = kind as u8;
    context[18..22].copy_from_slice(&cost[0].to_le_bytes());
    context[22..].copy_from_slice(&cost[1].to_le_bytes());
    context
}

/// The key that wraps.
fn slot_key(kind: SecretKind, cost: [u32; 2], salt: &[u8; 32], secret: &Secret) -> Result<LessSafeKey, NoKey> {
    let failed = || NoKey::Failed("the wrapping key could not be derived");
    let mut key = Zeroizing::new([0; 32]);
    match kind {
        SecretKind::Passphrase => {
            let params = Params::new(cost[0], cost[1], 1, Some(32)).map_err(|_| failed())?;
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                .hash_password_into(secret.bytes(), salt, &mut *key)
                .map_err(|_| NoKey::Failed("there is not enough memory to stretch the passphrase"))?;
        }
        SecretKind::KeyFile => Salt::new(HKDF_SHA256, salt)
            .extract(secret.bytes())
            .expand(&[b"OpenVSL key file"], HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut *key))
            .map_err(|_| failed())?,
    }
    Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &*key).map_err(|_| failed())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: Uuid = Uuid::from_u128(7);

    #[test]
    fn only_the_right_secret_in_the_right_place_opens_it() {
        let key = DataKey::new([0x42; 32]);
        let secret = Secret::key(&[1; 32]);
        let slot = KeySlot::wrap(&UUID, 2, &key, &secret).expect("wrapped");
        assert_eq!(slot.unwrap(&UUID, 2, &secret), Ok(Some(key.clone())));
        assert_eq!(slot.unwrap(&UUID, 1, &secret), Ok(None), "another slot");
        assert_eq!(slot.unwrap(&Uuid::from_u128(8), 2, &secret), Ok(None), "another format");
        assert_eq!(slot.unwrap(&UUID, 2, &Secret::key(&[2; 32])), Ok(None), "another key");
        let again = KeySlot::wrap(&UUID, 2, &key, &secret).expect("wrapped");
        assert!(again.salt != slot.salt && again.wrapped != slot.wrapped, "each wrapping has a key of its own");
        assert!(!slot.encode().windows(8).any(|window| window == [0x42; 8]));
    }

    #[test]
    fn passphrases_open_what_they_wrapped() {
        let key = DataKey::new([9; 32]);
        let secret = Secret::passphrase("correct horse".into()).expect("a passphrase");
        let slot = KeySlot::wrap(&UUID, 0, &key, &secret).expect("wrapped");
        assert_eq!(slot.unwrap(&UUID, 0, &secret), Ok(Some(key)));
        let wrong = Secret::passphrase("correct house".into()).expect("a passphrase");
        assert_eq!(slot.unwrap(&UUID, 0, &wrong), Ok(None));
    }

    /// Every changed bit is refused or opens nothing, and no cost is taken that could hurt.
    #[test]
    fn every_bit_counts() {
        let secret = Secret::key(&[1; 32]);
        let slot = KeySlot::wrap(&UUID, 0, &DataKey::new([5; 32]), &secret).expect("wrapped");
        let bytes = slot.encode();
        assert_eq!(KeySlot::decode(&bytes), Ok(Some(slot)));
        for bit in (0..8).chain(32..96).chain(128..SLOT_BYTES * 8) {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(Some(slot)) = KeySlot::decode(&changed) {
                assert_eq!(slot.kind, SecretKind::KeyFile);
                assert_eq!(slot.unwrap(&UUID, 0, &secret), Ok(None), "bit {bit}");
            }
        }
        let mut greedy = bytes;
        greedy[0] = SecretKind::Passphrase as u8;
        greedy[4..8].copy_from_slice(&(ARGON_KIB_MAX + 1).to_le_bytes());
        greedy[8] = 1;
        assert!(KeySlot::decode(&greedy).is_err());
    }
}
