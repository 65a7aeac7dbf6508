//! From the labels of several dies to one module: which superblock counts, and which dies serve.

use std::path::{Path, PathBuf};

use ftl::Geometry;
use media::file::check_length;
use media::flashback::media_geometry;
use media::{Backing, DieState, Flashback, Media, OpenError};
use rustix::io::Errno;

use crate::attach::Refusal;
use crate::checksum::Checker;
use crate::format::{decode, refused};
use crate::superblock::{DIES_MAX, NotSuperblock, Superblock, choose_superblock};
use crate::{AttachError, AttachOptions};

/// One die's superblock, if it has one.
pub(crate) type Label = Result<Superblock, Refusal>;

/// The files of a device, in the order of its dies.
pub(crate) struct Files {
    pub superblock: Superblock,
    pub backings: Vec<Option<Backing>>,
    pub paths: Vec<PathBuf>,
}

/// Opens the files of a device, named in any order. One that cannot be read counts as lost where there is parity.
pub(crate) fn open_files<P: AsRef<Path>>(paths: &[P], options: &AttachOptions) -> Result<Files, AttachError> {
    let mut found: Vec<(Backing, Superblock)> = Vec::new();
    let mut missing: Vec<(PathBuf, AttachError)> = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        let opened = Backing::open(path, options.read_only).map_err(AttachError::from);
        match opened.and_then(|backing| Ok((decode(&backing, path)?, backing))) {
            Ok((superblock, backing)) => found.push((backing, superblock)),
            Err(error) if is_loss(&error, options.degraded) => missing.push((path.into(), error)),
            Err(error) => return Err(error),
        }
    }
    let newest = found.iter().map(|(_, superblock)| superblock).max_by_key(|superblock| superblock.generation);
    let Some(newest) = newest.cloned() else {
        let (_, error) = missing.into_iter().next().expect("a device has a file");
        return Err(error);
    };
    let files = newest.files() as usize;
    let mut backings: Vec<Option<Backing>> = (0..files).map(|_| None).collect();
    let mut names: Vec<Option<PathBuf>> = vec![None; files];
    let mut labels: Vec<Label> = Vec::new();
    let redundant = !newest.dies.is_empty();
    // Of two that say that they are the same file the newer one is; the other is a copy that lies where another belongs.
    found.sort_by_key(|(_, superblock)| std::cmp::Reverse(superblock.generation));
    for (backing, superblock) in found {
        let die = superblock.die as usize;
        let path = backing.path().to_path_buf();
        if !superblock.is_of(&newest) || die >= files || names[die].is_some() {
            let again = names.iter().flatten().any(|known| same_file(known, &path));
            let error =
                AttachError::Stranger { path: path.clone(), uuid: superblock.identity(), expected: newest.identity() };
            if !redundant || again || (!superblock.is_of(&newest) && !options.degraded) {
                return Err(error);
            }
            missing.push((path, error));
            continue;
        }
        // Its place is taken, whether it can be used or not: an older copy must not step in.
        names[die] = Some(path);
        if redundant && let Err(error) = check_length(&backing, &medium_geometry(&newest)) {
            tracing::error!(die, %error, "a file cannot be used: the device goes on without it; `vsl rebuild` restores it");
            continue;
        }
        backings[die] = Some(backing);
        labels.push(Ok(superblock));
    }
    // Every file is named, unless it is on record as lost.
    let unnamed: Vec<u32> = (0..files as u32)
        .filter(|die| names[*die as usize].is_none())
        .filter(|die| newest.dies.get(*die as usize) != Some(&DieState::Lost))
        .collect();
    let can_do_without = options.degraded && !newest.dies.is_empty();
    if unnamed.len() > missing.len() && !can_do_without {
        let path = names.iter().flatten().next().cloned().unwrap_or_default();
        return Err(AttachError::NotAll { path, files: files as u32, missing: unnamed });
    }
    if newest.dies.is_empty() && !missing.is_empty() {
        let (_, error) = missing.remove(0);
        return Err(error);
    }
    let mut missing = missing.into_iter();
    for name in names.iter_mut().filter(|name| name.is_none()) {
        if let Some((path, error)) = missing.next() {
            tracing::error!(path = %path.display(), %error, "a file cannot be used: the device goes on without it; `vsl rebuild` restores it");
            *name = Some(path);
        }
    }
    let paths: Vec<PathBuf> = names.into_iter().map(Option::unwrap_or_default).collect();
    let first = paths.iter().find(|path| !path.as_os_str().is_empty()).cloned().unwrap_or_default();
    let mut superblock = assemble(labels, options.degraded).map_err(|refusal| refused(refusal, &first))?;
    // An identity that no file has taken comes to nothing.
    superblock.identity.next = None;
    Ok(Files { superblock, backings, paths })
}

/// Whether two paths lead to one file.
fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let look = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino(), file.rdev())).ok();
    look(one).is_some_and(|file| Some(file) == look(other))
}

/// Whether a file that cannot be opened counts as lost: the store has it no more, or it holds nothing of ours. What may be put right at
/// once (permissions, another file named by mistake) is an error instead, since a die that counts as lost is rebuilt as a whole;
/// with `degraded` its owner has given it up.
fn is_loss(error: &AttachError, degraded: bool) -> bool {
    match error {
        AttachError::Open(OpenError::Io { error, .. }) => {
            let gone = [Errno::NOENT, Errno::NXIO, Errno::NODEV, Errno::IO].map(Errno::raw_os_error);
            degraded || error.raw_os_error().is_some_and(|code| gone.contains(&code))
        }
        AttachError::Open(OpenError::Truncated { .. })
        | AttachError::Foreign { .. }
        | AttachError::Damaged { .. }
        | AttachError::Media { .. } => true,
        AttachError::Open(OpenError::Kind { .. }) => degraded,
        // In use, or written by a newer program: keep off, whatever is wanted.
        _ => false,
    }
}

/// The newest superblock of all dies, and how they stand: a die that is missing or has no label is lost.
///
/// `degraded` lets a module go on with dies missing of which no record says that they are: where as few dies can be left as
/// may be lost, what is left may be the part that fell behind.
pub(crate) fn assemble(labels: Vec<Label>, degraded: bool) -> Result<Superblock, Refusal> {
    let newest = labels.iter().flatten().max_by_key(|superblock| superblock.generation).cloned();
    let Some(mut superblock) = newest.map(|newest| Superblock { die: 0, ..newest }) else {
        let refusal = labels.into_iter().find_map(Result::err);
        return Err(refusal.unwrap_or(Refusal::NoSuperblock(NotSuperblock::Blank)));
    };
    let serves = |label: &&Superblock| superblock.dies.get(label.die as usize).is_none_or(|die| *die == DieState::Good);
    let serving: Vec<&Superblock> = labels.iter().flatten().filter(serves).collect();
    let in_step = serving.iter().all(|label| label.in_step && label.generation == superblock.generation);
    // The next write goes where the newest copy is not. Where that is the only good copy of some die, the newest is written
    // first instead: on the other dies the one before it says the same.
    let is_next = |label: &&Superblock| !label.in_step && label.generation % 2 != superblock.generation % 2;
    superblock.generation += u64::from(serving.iter().any(is_next));
    superblock.in_step = in_step;
    let geometry = superblock.geometry;
    if superblock.dies.is_empty() {
        // Without parity every die must be there.
        let missing = labels.into_iter().find_map(Result::err);
        return missing.map_or(Ok(superblock), Err);
    }
    let is_here = |die: u32| labels.iter().flatten().any(|label| label.die == die && label.uuid == superblock.uuid);
    let missing: Vec<u32> = (0..geometry.dies).filter(|die| !is_here(*die)).collect();
    if ftl::mutant!(StaleDie) {
        superblock.dies.fill(DieState::Good);
    }
    let unexpected = missing.iter().any(|die| superblock.dies[*die as usize] != DieState::Lost);
    for die in &missing {
        superblock.dies[*die as usize] = DieState::Lost;
    }
    let lost = superblock.dies.iter().filter(|state| **state != DieState::Good).count();
    if lost > geometry.parity as usize {
        return Err(Refusal::Dies { lost: lost_dies(&superblock), parity: geometry.parity });
    }
    if unexpected && geometry.data_dies() <= geometry.parity && !degraded {
        return Err(Refusal::MayBeBehind { missing });
    }
    Ok(superblock)
}

fn lost_dies(superblock: &Superblock) -> Vec<u32> {
    (0..).zip(&superblock.dies).filter(|(_, state)| **state != DieState::Good).map(|(die, _)| die).collect()
}

/// Reads the labels of all dies of a medium.
pub(crate) fn read_labels(media: &mut dyn Media) -> Vec<Label> {
    (0..media.geometry().dies.min(DIES_MAX))
        .map(|die| choose_superblock([0, 1].map(|copy| media.read_label(die, copy))))
        .collect()
}

/// Puts parity between the layer and a medium, where the format has any.
pub(crate) fn with_parity(media: Box<dyn Media>, superblock: &Superblock) -> Box<dyn Media> {
    if superblock.dies.is_empty() {
        return media;
    }
    let checker = Box::new(Checker::of(superblock));
    Box::new(Flashback::new(media, superblock.geometry, checker, superblock.dies.clone()))
}

/// The shape of the medium of a format.
pub(crate) fn medium_geometry(superblock: &Superblock) -> Geometry {
    match superblock.dies.is_empty() {
        true => superblock.geometry,
        false => media_geometry(&superblock.geometry),
    }
}
