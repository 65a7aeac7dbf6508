//! The key slots of a detached device: more secrets that open it, fewer, others.

use std::path::{Path, PathBuf};

use crate::attach::Refusal;
use crate::crypt::{DataKey, Encryption, KEY_SLOTS, KeySlot, NoKey, Secret};
use crate::store::Store;
use crate::superblock::Superblock;
use crate::{AttachError, FormatError, Info};

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

/// Adds a secret that opens the device; gives the slot it went into.
///
/// # Errors
/// See [`KeyError`].
pub fn add_key(paths: &[PathBuf], secret: &Secret, new: &Secret) -> Result<(Info, usize), KeyError> {
    change(paths, secret, |path, superblock, _, key| {
        let uuid = superblock.uuid;
        let encryption = section(superblock);
        let Some(slot) = encryption.slots.iter().position(Option::is_none) else {
            return Err(KeyError::Full { path: path.into() });
        };
        encryption.slots[slot] = Some(wrapped(path, KeySlot::wrap(&uuid, slot, key, new))?);
        Ok(slot)
    })
}

/// Puts another secret in the place of the one given; gives its slot.
///
/// # Errors
/// See [`KeyError`].
pub fn change_key(paths: &[PathBuf], secret: &Secret, new: &Secret) -> Result<(Info, usize), KeyError> {
    change(paths, secret, |path, superblock, slot, key| {
        let uuid = superblock.uuid;
        section(superblock).slots[slot] = Some(wrapped(path, KeySlot::wrap(&uuid, slot, key, new))?);
        Ok(slot)
    })
}

/// Empties a key slot, by default the one that the secret opens. The last one stays.
///
/// # Errors
/// See [`KeyError`].
pub fn remove_key(paths: &[PathBuf], secret: &Secret, slot: Option<usize>) -> Result<(Info, usize), KeyError> {
    change(paths, secret, |path, superblock, opened, _| {
        let slot = slot.unwrap_or(opened);
        let slots = &mut section(superblock).slots;
        let used: Vec<String> = (0..KEY_SLOTS).filter(|at| slots[*at].is_some()).map(|at| at.to_string()).collect();
        if slots.get(slot).is_none_or(Option::is_none) {
            return Err(KeyError::Empty { path: path.into(), slot, used: used.join(", ") });
        }
        if used.len() == 1 {
            return Err(KeyError::Last { path: path.into(), slot });
        }
        slots[slot] = None;
        Ok(slot)
    })
}

/// The part about encryption of a device that a secret opened.
fn section(superblock: &mut Superblock) -> &mut Encryption {
    superblock.encryption.as_mut().expect("a secret opened it")
}

fn wrapped(path: &Path, slot: Result<KeySlot, NoKey>) -> Result<KeySlot, KeyError> {
    slot.map_err(|why| crate::format::refused(Refusal::Key(why), path).into())
}

/// Opens a device, checks the secret, changes its superblock, and writes that everywhere.
fn change(
    paths: &[PathBuf],
    secret: &Secret,
    work: impl FnOnce(&Path, &mut Superblock, usize, &DataKey) -> Result<usize, KeyError>,
) -> Result<(Info, usize), KeyError> {
    let mut store = Store::open(paths)?;
    let mut superblock = store.superblock.clone();
    if let Some(erasing) = superblock.erase {
        return Err(store.refused(Refusal::BeingErased(erasing.level)).into());
    }
    let path = store.path().to_path_buf();
    let Some(encryption) = &superblock.encryption else {
        return Err(AttachError::NotEncrypted { path }.into());
    };
    let (opened, key) = encryption.data_key(&superblock.uuid, secret).map_err(|why| match why {
        NoKey::Wrong => AttachError::WrongKey { path: path.clone(), kind: secret.kind().name() },
        why => store.refused(Refusal::Key(why)),
    })?;
    let slot = work(&path, &mut superblock, opened, &key)?;
    store.write(&mut superblock, &mut || true)?;
    Ok((Info::of(&superblock, &store.paths()), slot))
}
