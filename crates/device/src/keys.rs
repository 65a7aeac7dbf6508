//! The key slots of a device, detached or in use: more secrets that open it, fewer, others.

use std::path::PathBuf;

use uuid::Uuid;

use crate::crypt::{DataKey, Encryption, KEY_SLOTS, KeySlot, NoKey, Secret};
use crate::refusal::{Refusal, refused};
use crate::store::Store;
use crate::superblock::Superblock;
use crate::{AttachError, Device, FormatError, Info};

/// Why key slots could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The device cannot be opened, or the secret does not open it.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Every slot is in use.
    #[error("{path}: its {KEY_SLOTS} key slots are all in use; remove one first with `vsl key remove`")]
    Full {
        /// The device file.
        path: PathBuf,
    },
    /// There is no such slot, or nothing in it.
    #[error("{path}: key slot {slot} is empty; in use are {used}")]
    Empty {
        /// The device file.
        path: PathBuf,
        /// What was asked for.
        slot: usize,
        /// What there is.
        used: String,
    },
    /// Without it nobody could open the device.
    #[error(
        "{path}: key slot {slot} is the last one; to give up everything on the device use `vsl sure-erase --crypto`"
    )]
    Last {
        /// The device file.
        path: PathBuf,
        /// What was asked for.
        slot: usize,
    },
}

impl From<AttachError> for KeyError {
    fn from(error: AttachError) -> KeyError {
        KeyError::Format(error.into())
    }
}

/// What is to be done to the key slots of a device.
#[derive(Clone, Debug)]
pub enum KeyChange {
    /// Adds a secret that opens the device besides.
    Add(Secret),
    /// Puts another secret in the place of the one given.
    Change(Secret),
    /// Empties a slot, by default that of the secret given. The last one stays.
    Remove(Option<usize>),
}

/// The key slots of a device, apart from it: trying a passphrase takes a while, and the device goes on meanwhile.
#[derive(Clone, Debug)]
pub struct KeyRing {
    path: PathBuf,
    uuid: Uuid,
    encryption: Encryption,
}

impl KeyRing {
    /// Whether a secret opens the device, and by which slot.
    ///
    /// # Errors
    /// It opens none of them, or could not be tried.
    pub fn opened_by(&self, secret: &Secret) -> Result<usize, KeyError> {
        self.open(secret).map(|(slot, _)| slot)
    }

    fn open(&self, secret: &Secret) -> Result<(usize, DataKey), KeyError> {
        self.encryption.data_key(&self.uuid, secret).map_err(|why| match why {
            NoKey::Wrong => AttachError::WrongKey { path: self.path.clone(), kind: secret.kind().name() }.into(),
            why => refused(Refusal::Key(why), &self.path).into(),
        })
    }

    /// The slots as they are to be, for whoever shows a secret that opens the device; and which of them is another.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn changed(&self, secret: &Secret, change: &KeyChange) -> Result<(KeyRing, usize), KeyError> {
        let (opened, key) = self.open(secret)?;
        let mut ring = self.clone();
        let slots = &mut ring.encryption.slots;
        let path = || self.path.clone();
        let wrap = |slot: usize, new: &Secret| {
            let wrapped = KeySlot::wrap(&self.uuid, slot, &key, new);
            wrapped.map(Some).map_err(|why| KeyError::from(refused(Refusal::Key(why), &self.path)))
        };
        let slot = match change {
            KeyChange::Add(new) => {
                let slot = slots.iter().position(Option::is_none).ok_or_else(|| KeyError::Full { path: path() })?;
                slots[slot] = wrap(slot, new)?;
                slot
            }
            KeyChange::Change(new) => {
                slots[opened] = wrap(opened, new)?;
                opened
            }
            KeyChange::Remove(slot) => {
                let slot = slot.unwrap_or(opened);
                let used: Vec<String> =
                    (0..KEY_SLOTS).filter(|at| slots[*at].is_some()).map(|at| at.to_string()).collect();
                if slots.get(slot).is_none_or(Option::is_none) {
                    return Err(KeyError::Empty { path: path(), slot, used: used.join(", ") });
                }
                if used.len() == 1 {
                    return Err(KeyError::Last { path: path(), slot });
                }
                slots[slot] = None;
                slot
            }
        };
        Ok((ring, slot))
    }
}

impl Device {
    /// Its key slots; nothing where it is not encrypted.
    pub fn key_ring(&self) -> Option<KeyRing> {
        let Superblock { uuid, encryption, .. } = &self.core.superblock;
        let path = self.info().paths.first().cloned().unwrap_or_default();
        encryption.clone().map(|encryption| KeyRing { path, uuid: *uuid, encryption })
    }

    /// Puts changed key slots in place of those that they were made from. Both copies of the superblock are on their way then, so that nothing is
    /// left of a slot that is gone: [`Device::is_saved`] says when they are on the medium.
    ///
    /// # Errors
    /// The slots are not those any more, or the device is attached read-only.
    pub fn set_keys(&mut self, old: &KeyRing, new: &KeyRing) -> Result<(), FormatError> {
        self.check_writable()?;
        let stale = || FormatError::Invalid {
            name: "keys",
            value: "changed meanwhile".into(),
            expected: "the slots that were asked about: try again".into(),
        };
        let uuid = self.core.superblock.uuid;
        let encryption = self.core.superblock.encryption.as_mut().ok_or_else(stale)?;
        if uuid != old.uuid || encryption.slots != old.encryption.slots {
            return Err(stale());
        }
        encryption.slots = new.encryption.slots.clone();
        self.core.save_settings();
        self.renew_info();
        Ok(())
    }
}

/// Adds a secret that opens a detached device; gives the slot it went into.
///
/// # Errors
/// See [`KeyError`].
pub fn add_key(paths: &[PathBuf], secret: &Secret, new: &Secret) -> Result<(Info, usize), KeyError> {
    change(paths, secret, &KeyChange::Add(new.clone()))
}

/// Puts another secret in the place of the one given; gives its slot.
///
/// # Errors
/// See [`KeyError`].
pub fn change_key(paths: &[PathBuf], secret: &Secret, new: &Secret) -> Result<(Info, usize), KeyError> {
    change(paths, secret, &KeyChange::Change(new.clone()))
}

/// Empties a key slot, by default the one that the secret opens. The last one stays.
///
/// # Errors
/// See [`KeyError`].
pub fn remove_key(paths: &[PathBuf], secret: &Secret, slot: Option<usize>) -> Result<(Info, usize), KeyError> {
    change(paths, secret, &KeyChange::Remove(slot))
}

/// Opens a detached device, checks the secret, changes its superblock, and writes that everywhere.
fn change(paths: &[PathBuf], secret: &Secret, what: &KeyChange) -> Result<(Info, usize), KeyError> {
    let mut store = Store::open(paths)?;
    let mut superblock = store.superblock.clone();
    if let Some(erasing) = superblock.erase {
        return Err(store.refused(Refusal::BeingErased(erasing.level)).into());
    }
    let path = store.path().to_path_buf();
    let Some(encryption) = superblock.encryption.clone() else {
        return Err(AttachError::NotEncrypted { path }.into());
    };
    let (ring, slot) = KeyRing { path, uuid: superblock.uuid, encryption }.changed(secret, what)?;
    superblock.encryption = Some(ring.encryption);
    store.write(&mut superblock, &mut || true)?;
    Ok((Info::of(&superblock, &store.paths()), slot))
}
