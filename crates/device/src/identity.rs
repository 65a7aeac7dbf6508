//! What a device is known by: attached once in a process, and given anew to a copy.
//!
//! A copied file has the same format UUID as its original, which must stay: every slot's checksum
//! is bound to it. So a copy gets an identity in a section of its own of the superblock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use media::{Backing, is_same_disk};
use uuid::Uuid;

use crate::assemble::open_files;
use crate::superblock::{Identity, Superblock};
use crate::{AttachError, AttachOptions};

/// The devices that this process has attached: their files, by identity.
static ATTACHED: Mutex<BTreeMap<Uuid, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());

fn attached() -> MutexGuard<'static, BTreeMap<Uuid, Vec<PathBuf>>> {
    // One call changes it at once: a panic leaves it whole.
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An identity that nothing else in this process may attach, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(Uuid);

impl Claim {
    /// Claims the identity of a device on these files.
    ///
    /// # Errors
    /// [`AttachError::Twin`] when it is attached already.
    pub fn take(identity: Uuid, paths: &[PathBuf]) -> Result<Claim, AttachError> {
        let mut attached = attached();
        if let Some(other) = attached.get(&identity) {
            return Err(AttachError::Twin { paths: paths.to_vec(), identity, other: other.clone() });
        }
        attached.insert(identity, paths.to_vec());
        Ok(Claim(identity))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        attached().remove(&self.0);
    }
}

/// Gives a device that is not attached another identity, on all its files and in both copies. Where that is cut, the
/// device has its old identity until the first file has the new one, and the new one from then on.
///
/// # Errors
/// A file is missing or cannot be written, or this is no copy but another way to a disk that is attached.
pub(crate) fn renew(
    superblock: &mut Superblock,
    backings: &[Option<Backing>],
    paths: &[PathBuf],
    new: Uuid,
) -> Result<(), AttachError> {
    change(superblock, backings, paths, Identity::of(new))
}

fn change(
    superblock: &mut Superblock,
    backings: &[Option<Backing>],
    paths: &[PathBuf],
    last: Identity,
) -> Result<(), AttachError> {
    let no_identity = |why: String| AttachError::NoNewIdentity { path: paths[0].clone(), why };
    if let Some(other) = attached().get(&superblock.identity()) {
        let is_attached = |path: &&PathBuf| other.iter().any(|other| is_same_disk(path, other));
        if let Some(path) = paths.iter().find(is_attached) {
            let why = format!("{} is another way to a disk that is attached; use one of the two only", path.display());
            return Err(no_identity(why));
        }
    }
    let all: Option<Vec<&Backing>> = backings.iter().map(Option::as_ref).collect();
    let Some(all) = all else {
        return Err(no_identity("a file of it is missing; name all of them, or rebuild what is lost first".into()));
    };
    if let Some(backing) = all.iter().find(|backing| backing.is_read_only()) {
        let why = format!("{} is opened to be read only; attach it for writing", backing.path().display());
        return Err(no_identity(why));
    }
    write(superblock, last, all.len() as u32, |die, copy, bytes| all[die as usize].write_label(copy, bytes))?;
    Ok(())
}

/// Takes `identity` from a device that is not attached, since another device is known by it. Gives whether the device had it.
///
/// With `last` the device is known by that from now on. Without it, the device has moved to another one: it gets an identity that nobody
/// knows, and is attached again only with [`AttachOptions::new_identity`].
///
/// # Errors
/// A file is missing, or cannot be read or written.
pub fn give_up_identity<P: AsRef<Path>>(paths: &[P], identity: Uuid, last: Option<Uuid>) -> Result<bool, AttachError> {
    let files = open_files(paths, &AttachOptions::default())?;
    let mut superblock = files.superblock;
    let has_it = superblock.identity() == identity;
    if has_it {
        let last = last.map_or_else(|| Identity::moved_away(Uuid::new_v4()), Identity::of);
        change(&mut superblock, &files.backings, &files.paths, last)?;
    }
    Ok(has_it)
}

/// Announces the new identity on every file before the first file takes it, so that the files of one device are told from
/// those of its original wherever it is cut.
fn write<E>(
    superblock: &mut Superblock,
    last: Identity,
    files: u32,
    mut write: impl FnMut(u32, u8, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let announced = Identity { next: last.own, ..superblock.identity };
    for identity in [announced, last] {
        superblock.identity = identity;
        for _ in 0..2 {
            superblock.generation += 1;
            for die in 0..files {
                write(die, (superblock.generation % 2) as u8, &superblock.encode(die))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::format::create_with;
    use crate::inspect;
    use crate::superblock::tests::sample;

    /// A device of two files, with parity or without.
    fn made(directory: &std::path::Path, parity: bool) -> Vec<PathBuf> {
        let mut superblock = sample();
        superblock.geometry.dies = if parity { 3 } else { 2 };
        superblock.geometry.parity = u32::from(parity);
        superblock.sectors = 8_000;
        superblock.dies = vec![media::DieState::Good; if parity { 3 } else { 0 }];
        superblock.anchor = ftl::Anchor { clean: true, ..ftl::Anchor::default() };
        let paths: Vec<PathBuf> = (0..superblock.geometry.dies).map(|die| directory.join(format!("{die}"))).collect();
        create_with(&paths, superblock).expect("made");
        paths
    }

    fn copied(paths: &[PathBuf], directory: &std::path::Path) -> Vec<PathBuf> {
        std::fs::create_dir_all(directory).expect("a directory");
        let copies = paths.iter().map(|path| directory.join(path.file_name().expect("a name")));
        let copies: Vec<PathBuf> = copies.collect();
        for (from, to) in paths.iter().zip(&copies) {
            // Only the labels hold anything.
            let (from, to) = (std::fs::File::open(from).expect("opened"), std::fs::File::create(to).expect("made"));
            let mut labels = vec![0; media::LABEL_AREA_BYTES as usize];
            from.read_exact_at(&mut labels, 0).expect("read");
            to.write_all_at(&labels, 0).expect("written");
            to.set_len(from.metadata().expect("there").len()).expect("grown");
        }
        copies
    }

    /// The identity of the device on these files.
    fn identity(paths: &[PathBuf]) -> Result<Uuid, AttachError> {
        open_files(paths, &AttachOptions::default()).map(|files| files.superblock.identity())
    }

    /// Cut before each write of a label, and in the middle of it.
    #[test]
    fn a_cut_leaves_either_identity() {
        let made_of: [fn(Uuid) -> Identity; 2] = [Identity::of, Identity::moved_away];
        for (parity, last) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
            let directory = tempfile::tempdir().expect("a directory");
            let original = made(directory.path(), parity);
            let old = identity(&original).expect("whole");
            let writes = 4 * original.len();
            let mut renewed = 0;
            for (cut, torn) in (0..=writes).flat_map(|cut| [(cut, false), (cut, true)]) {
                let copy = copied(&original, &directory.path().join("copy"));
                {
                    let files = open_files(&copy, &AttachOptions::default()).expect("opened");
                    let mut superblock = files.superblock;
                    let mut left = cut;
                    let last = made_of[last](Uuid::new_v4());
                    let result = write(&mut superblock, last, copy.len() as u32, |die, number, bytes| {
                        let backing = files.backings[die as usize].as_ref().expect("all are there");
                        if left == 0 {
                            if torn {
                                backing.write_label(number, &bytes[..bytes.len() / 2]).expect("written");
                            }
                            return Err(());
                        }
                        left -= 1;
                        backing.write_label(number, bytes).expect("written");
                        Ok(())
                    });
                    assert_eq!(result.is_ok(), cut == writes);
                }
                let found = identity(&copy).unwrap_or_else(|error| panic!("cut at {cut}, torn {torn}: {error}"));
                renewed += usize::from(found != old);
                // All its files belong together, and are found out to do so before any is opened.
                let ids: Vec<_> = copy.iter().map(|path| inspect(path).expect("a label")).collect();
                assert!(
                    ids.iter().all(|info| info.uuid == found || info.next_uuid == Some(found) || found == old),
                    "cut at {cut}: {ids:?}"
                );
                let moved_away = open_files(&copy, &AttachOptions::default()).expect("opened").moved_away;
                assert_eq!(moved_away, last == 1 && found != old, "cut at {cut}, torn {torn}");
                if found != old {
                    // A file of the original among those of the copy is a stranger.
                    let mut mixed = copy.clone();
                    mixed[1] = original[1].clone();
                    let error = identity(&mixed).expect_err("mixed");
                    assert!(matches!(error, AttachError::Stranger { .. }), "{error}");
                }
                // Again, and it is done.
                let files = open_files(&copy, &AttachOptions::default()).expect("opened");
                let mut superblock = files.superblock;
                renew(&mut superblock, &files.backings, &files.paths, Uuid::new_v4()).expect("renewed");
                drop(files.backings);
                let last = identity(&copy).expect("whole");
                assert!(last != old && last != found && last == superblock.identity());
            }
            assert!(renewed > 0 && renewed < 2 * writes, "{renewed} of {writes}");
            assert_eq!(identity(&original).expect("untouched"), old);
        }
    }

    #[test]
    fn an_identity_is_claimed_once() {
        let (id, path) = (Uuid::from_u128(0xabc), [PathBuf::from("/a.vsl")]);
        let claim = Claim::take(id, &path).expect("free");
        let error = Claim::take(id, &[PathBuf::from("/b.vsl")]).expect_err("claimed");
        let words = error.to_string();
        assert!(words.contains("/a.vsl") && words.ends_with("`vsl attach --new-identity /b.vsl`"), "{words}");
        drop(claim);
        Claim::take(id, &path).expect("free again");
    }
}
