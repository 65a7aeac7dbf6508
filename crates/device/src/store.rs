//! The backing files of a detached device, opened and locked: what is done to a device as a whole is done to each of them.

use std::path::{Path, PathBuf};

use media::Backing;
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::copies::decode;
use crate::refusal::{Refusal, refused};
use crate::superblock::Superblock;
use crate::{AttachError, FormatError};

/// The UUID of the format that takes the place of another one on several files: it follows from the old one, so that the files of
/// a format that was cut are known to belong together.
pub(crate) fn heir(old: &Uuid, formatted: u64) -> Uuid {
    let digest = digest(&SHA256, &[old.as_bytes().as_slice(), &formatted.to_le_bytes()].concat());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_ref()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

pub(crate) struct Die {
    pub path: PathBuf,
    pub backing: Backing,
    /// Which die it is.
    pub number: u32,
}

pub(crate) struct Store {
    pub dies: Vec<Die>,
    /// The newest superblock.
    pub superblock: Superblock,
}

impl Store {
    /// Opens and locks the files of a device. Each must belong to it, and none may be missing.
    pub fn open(paths: &[PathBuf]) -> Result<Store, AttachError> {
        Store::open_with(paths, |_, _| false)
    }

    /// As [`Store::open`], to be formatted: also where that was begun and cut, so that some files hold the new format already.
    pub fn open_to_format(paths: &[PathBuf]) -> Result<Store, AttachError> {
        Store::open_with(paths, |old, new| new.epoch == 0 && new.uuid == heir(&old.uuid, new.formatted))
    }

    /// Files that are `ahead` of the oldest one do not count.
    fn open_with(paths: &[PathBuf], ahead: impl Fn(&Superblock, &Superblock) -> bool) -> Result<Store, AttachError> {
        let mut dies = Vec::new();
        let mut labels: Vec<Superblock> = Vec::new();
        for path in paths {
            let backing = Backing::open(path, false)?;
            let label = decode(&backing, path)?;
            dies.push(Die { path: path.clone(), backing, number: label.die });
            labels.push(label);
        }
        // Where an erase was cut between two files, those that it came to know more than the others.
        let oldest = labels.iter().min_by_key(|label| label.generation);
        let counts = |label: &Superblock| oldest.is_none_or(|oldest| !ahead(oldest, label));
        let newest =
            labels.iter().filter(|label| counts(label)).max_by_key(|label| (label.erase.is_some(), label.generation));
        let Some(mut superblock) = newest.cloned() else {
            return Err(AttachError::Foreign { path: PathBuf::new(), found: "no file was named".into() });
        };
        // What is written next is newer than all of them.
        superblock.generation = labels.iter().map(|label| label.generation).max().unwrap_or(superblock.generation);
        let was = superblock.erase.map(|erasing| erasing.old);
        for (die, label) in dies.iter().zip(&labels) {
            if counts(label) && !label.is_of(&superblock) && Some(label.uuid) != was {
                let found = format!("a part of the device {}, not of {}", label.identity(), superblock.identity());
                return Err(AttachError::Foreign { path: die.path.clone(), found });
            }
        }
        if superblock.objects {
            let why =
                "it is the journal of a device on objects, of which nothing is changed but while it is attached".into();
            return Err(AttachError::Objects { path: dies[0].path.clone(), why });
        }
        if superblock.emulation.is_some() {
            // Its length need not be a multiple of what direct I/O asks for.
            dies.iter_mut().try_for_each(|die: &mut Die| die.backing.use_page_cache())?;
        }
        let expected = superblock.files();
        let mut numbers: Vec<u32> = dies.iter().map(|die| die.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() != expected as usize || dies.len() != numbers.len() {
            let what = format!("the device has {expected} files, {} were named; name each of them once", dies.len());
            return Err(AttachError::Media { path: dies[0].path.clone(), what });
        }
        Ok(Store { dies, superblock })
    }

    /// For messages.
    pub fn path(&self) -> &Path {
        &self.dies[0].path
    }

    /// All paths.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.dies.iter().map(|die| die.path.clone()).collect()
    }

    /// Writes a superblock to both copies on every die, the older copy first, so that nothing older can come back.
    /// `go_on` is asked before each.
    pub fn write(&mut self, superblock: &mut Superblock, go_on: &mut dyn FnMut() -> bool) -> Result<bool, FormatError> {
        for _ in 0..2 {
            superblock.generation += 1;
            for die in &self.dies {
                if !go_on() {
                    return Ok(false);
                }
                let copy = (superblock.generation % 2) as u8;
                // Written to its full length, so that nothing of what stood there is left behind the end.
                die.backing.write_label(copy, &superblock.encode(die.number))?;
            }
        }
        self.superblock = superblock.clone();
        Ok(true)
    }

    /// A refusal in words.
    pub fn refused(&self, refusal: Refusal) -> AttachError {
        refused(refusal, self.path())
    }
}
