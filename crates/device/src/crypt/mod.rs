//! At-rest encryption of a format: sectors sealed under one random data key, and copies of that key in the superblock,
//! each wrapped by what its owner knows or has.
//!
//! `cipher.rs` seals sectors, `secret.rs` is what an owner gives, `key_slot.rs` wraps the data key with it, `entropy.rs` is where random
//! bytes come from. What is promised, and what is not, stands in `docs/encryption.md`.

mod cipher;
mod entropy;
mod key_slot;
mod secret;

#[cfg(feature = "simulation")]
pub mod nonces;

use std::sync::Arc;

use uuid::Uuid;
use zeroize::Zeroizing;

pub use cipher::SEALED_TRAILER_BYTES;
pub(crate) use cipher::{Cipher, TAG_BYTES};
#[cfg(feature = "simulation")]
pub use entropy::seed as seed_entropy;
pub(crate) use key_slot::{KEY_SLOTS, KeySlot, SLOT_BYTES};
pub use secret::{Secret, SecretError, SecretKind};

/// The name of the cipher, as users see it.
pub(crate) const CIPHER_NAME: &str = "aes-256-gcm";

/// The key that sectors are sealed with, or derived from.
pub(crate) type DataKey = Zeroizing<[u8; 32]>;

/// The superblock's part about encryption, and the cipher once somebody gave a secret that fits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encryption {
    /// Copies of the data key.
    pub slots: [Option<KeySlot>; KEY_SLOTS],
    pub unlocked: Unlocked,
}

/// The cipher in use. It is no part of what stands on media, so it makes no two superblocks different.
#[derive(Clone, Default)]
pub(crate) struct Unlocked(pub Option<Arc<Cipher>>);

impl PartialEq for Unlocked {
    fn eq(&self, _: &Unlocked) -> bool {
        true
    }
}

impl std::fmt::Debug for Unlocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "unlocked" } else { "locked" })
    }
}

/// Why a device's data key cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// It is encrypted and no secret was given.
    Missing,
    /// The secret opens none of its key slots.
    Wrong,
    /// A secret was given, and the device is not encrypted.
    NotEncrypted,
    /// The secret could not be tried.
    Failed(&'static str),
}

impl NoKey {
    /// In words.
    fn why(self) -> &'static str {
        match self {
            NoKey::Missing => "a secret is needed",
            NoKey::Wrong => "the secret is another one",
            NoKey::NotEncrypted => "it is not encrypted",
            NoKey::Failed(why) => why,
        }
    }
}

impl Encryption {
    /// A new data key for a format, with one copy of it.
    pub fn new(uuid: &Uuid, secret: &Secret) -> Result<Encryption, NoKey> {
        let mut key = DataKey::default();
        entropy::fill(&mut *key)?;
        let mut slots = [None, None, None, None];
        slots[0] = Some(KeySlot::wrap(uuid, 0, &key, secret)?);
        Ok(Encryption { slots, unlocked: Unlocked::default() })
    }

    /// The data key, and which slot the secret opened.
    pub fn data_key(&self, uuid: &Uuid, secret: &Secret) -> Result<(usize, DataKey), NoKey> {
        for (at, slot) in self.slots.iter().enumerate() {
            if let Some(slot) = slot.as_ref().filter(|slot| slot.kind == secret.kind())
                && let Some(key) = slot.unwrap(uuid, at, secret)?
            {
                return Ok((at, key));
            }
        }
        Err(NoKey::Wrong)
    }

    /// Makes the cipher, from a secret that opens it.
    pub fn unlock(&mut self, uuid: &Uuid, secret: &Secret) -> Result<(), NoKey> {
        let (_, key) = self.data_key(uuid, secret)?;
        self.unlocked = Unlocked(Some(Arc::new(Cipher::new(uuid, &key)?)));
        Ok(())
    }
}

/// Bytes of a key that is wrapped outside a superblock.
pub const WRAPPED_KEY_BYTES: usize = SLOT_BYTES;

/// Wraps the key of something that is no device, such as a backup, by a secret: what [`unwrap_key`] takes. It opens under this name only.
///
/// # Errors
/// Why the secret could not be used.
pub fn wrap_key(name: &Uuid, key: &[u8; 32], secret: &Secret) -> Result<[u8; WRAPPED_KEY_BYTES], &'static str> {
    KeySlot::wrap(name, 0, &DataKey::new(*key), secret).map(|slot| slot.encode()).map_err(NoKey::why)
}

/// The opposite of [`wrap_key`]; `None` where the secret is another one, or the name.
///
/// # Errors
/// What was wrapped is damaged, or why the secret could not be used.
pub fn unwrap_key(
    name: &Uuid,
    wrapped: &[u8; WRAPPED_KEY_BYTES],
    secret: &Secret,
) -> Result<Option<Zeroizing<[u8; 32]>>, &'static str> {
    let slot = KeySlot::decode(wrapped)?.filter(|slot| slot.kind == secret.kind());
    slot.map_or(Ok(None), |slot| slot.unwrap(name, 0, secret)).map_err(NoKey::why)
}
