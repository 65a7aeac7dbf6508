//! From the labels of several dies to one module: which superblock counts, and which dies serve.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use ftl::{EPOCH_SHIFT, Geometry};
use media::file::check_length;
use media::flashback::media_geometry;
use media::{Backing, DieState, Drilled, Flashback, Media, OpenError, Stack};
use rustix::io::Errno;

use crate::checksum::Checker;
use crate::copies::{choose_superblock, decode};
use crate::members::identity;
use crate::refusal::{Refusal, refused};
use crate::superblock::{DIES_MAX, NotSuperblock, Superblock};
use crate::{AttachError, AttachOptions};

/// One die's superblock, if it has one.
pub(crate) type Label = Result<Superblock, Refusal>;

/// The files of a device, in the order of its dies.
pub(crate) struct Files {
    pub superblock: Superblock,
    pub backings: Vec<Option<Backing>>,
    pub paths: Vec<PathBuf>,
    /// Dies whose file is there and is not used, and why.
    pub set_aside: Vec<(u32, String)>,
    /// Another device has the name and the contents.
    pub moved_away: bool,
}

/// Opens the files of a device, named in any order. One that cannot be read counts as lost where there is parity.
pub(crate) fn open_files<P: AsRef<Path>>(paths: &[P], options: &AttachOptions) -> Result<Files, AttachError> {
    let mut found: Vec<(Backing, Superblock)> = Vec::new();
    let position = |path: &Path| paths.iter().position(|named| named.as_ref() == path);
    let mut missing: Vec<(PathBuf, AttachError)> = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        let opened = Backing::open(path, options.read_only).map_err(AttachError::from);
        match opened.and_then(|backing| Ok((decode(&backing, path)?, backing))) {
            Ok((superblock, backing)) => found.push((backing, superblock)),
            Err(error) if is_loss(&error, options.degraded) => missing.push((path.into(), error)),
            Err(error) => return Err(error),
        }
    }
    let Some(newest) = newest_of_most(&found) else {
        let (_, error) = missing.into_iter().next().expect("a device has a file");
        return Err(error);
    };
    let files = newest.files() as usize;
    let mut backings: Vec<Option<Backing>> = (0..files).map(|_| None).collect();
    let mut names: Vec<Option<PathBuf>> = vec![None; files];
    let mut labels: Vec<Label> = Vec::new();
    let mut set_aside: Vec<(u32, String)> = Vec::new();
    let redundant = !newest.dies.is_empty();
    // Of two that say that they are the same file the newer one is, or the one that is named where it belongs; the other is a
    // copy that lies where another belongs.
    found.sort_by_key(|(backing, superblock)| {
        (Reverse(superblock.generation), position(backing.path()) != Some(superblock.die as usize))
    });
    for (backing, superblock) in found {
        let die = superblock.die as usize;
        let path = backing.path().to_path_buf();
        if !superblock.is_of(&newest) || die >= files || names[die].is_some() {
            let again = names.iter().flatten().any(|known| same_file(known, &path));
            let error = match superblock.is_of(&newest) {
                true => AttachError::Double { path: path.clone(), die: superblock.die },
                false => AttachError::Stranger {
                    path: path.clone(),
                    uuid: superblock.identity(),
                    expected: newest.identity(),
                },
            };
            if !redundant || again || (!superblock.is_of(&newest) && !options.degraded) {
                return Err(error);
            }
            missing.push((path, error));
            continue;
        }
        // Its place is taken, whether it can be used or not: an older copy must not step in.
        names[die] = Some(path);
        if redundant && let Err(error) = check_length(&backing, &medium_geometry(&newest)) {
            set_aside.push((superblock.die, error.to_string()));
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
    // Which die a file was that does not say so cannot be known: they stand for those that are missing, in order.
    for (die, name) in (0..).zip(&mut names).filter(|(_, name)| name.is_none()) {
        if let Some((path, error)) = missing.next() {
            set_aside.push((die, error.to_string()));
            *name = Some(path);
        }
    }
    let paths: Vec<PathBuf> = names.into_iter().map(Option::unwrap_or_default).collect();
    let first = paths.iter().find(|path| !path.as_os_str().is_empty()).cloned().unwrap_or_default();
    let assembled = assemble(labels, options.degraded, options.read_only);
    let mut superblock = assembled.map_err(|refusal| refused(refusal, &first))?;
    // The files that are there and were found to be old copies.
    for (die, state) in (0..).zip(&superblock.dies).filter(|(die, _)| backings[*die].is_some()) {
        if *state == DieState::Lost && newest.dies[die] == DieState::Good {
            set_aside.push((die as u32, format!("{}: an old copy of what it should hold", paths[die].display())));
        }
    }
    let moved_away = superblock.identity.is_moved_away();
    // An identity that no file has taken comes to nothing.
    superblock.identity.next = None;
    Ok(Files { superblock, backings, paths, set_aside, moved_away })
}

/// The newest superblock of the device that most of the files belong to: files of others do not count, however new they are.
fn newest_of_most(found: &[(Backing, Superblock)]) -> Option<Superblock> {
    let members = |newest: &Superblock| found.iter().filter(|(_, superblock)| superblock.is_of(newest)).count();
    let superblocks = found.iter().map(|(_, superblock)| superblock);
    superblocks.max_by_key(|superblock| (members(superblock), superblock.generation)).cloned()
}

/// Dies that should be in service and hold what the device was in an earlier attach: a copy was put in their place.
///
/// An attach makes its epoch durable on all dies before it takes a request, a checkpoint or a clean detach. So no cut, no copy
/// that went bad and no write that failed leaves a die with an older epoch than that of the newest of those two.
fn behind(labels: &[Label], newest: &Superblock) -> Vec<u32> {
    let anchor = &newest.anchor;
    let established = if anchor.clean { newest.epoch } else { (anchor.checkpoint_begin >> EPOCH_SHIFT) as u32 };
    let serves = |die: u32| newest.dies.get(die as usize).is_none_or(|state| *state == DieState::Good);
    let labels = labels.iter().flatten().filter(|label| serves(label.die));
    let behind = labels.filter(|label| label.epoch < established);
    behind.map(|label| label.die).collect()
}

/// Whether two paths lead to one file.
fn same_file(one: &Path, other: &Path) -> bool {
    identity(one).is_some_and(|file| Some(file) == identity(other))
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
/// An old copy counts as a lost die. Where parity cannot make up for all of them, the module is refused, unless it is only to be
/// read: some of what it holds is old or cannot be read, and what is written would make the current files old in turn.
///
/// `degraded` lets a module go on with dies missing of which no record says that they are: where as few dies can be left as
/// may be lost, what is left may be the part that fell behind.
pub(crate) fn assemble(labels: Vec<Label>, degraded: bool, read_only: bool) -> Result<Superblock, Refusal> {
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
    let behind = behind(&labels, &superblock);
    if behind.len() + lost_dies(&superblock).len() <= geometry.parity as usize {
        behind.iter().for_each(|die| superblock.dies[*die as usize] = DieState::Lost);
    } else if !behind.is_empty() {
        let refusal = Refusal::OldCopies { dies: behind };
        if !read_only {
            return Err(refusal);
        }
        tracing::error!("{refusal}: some of what is read is old");
    }
    if superblock.dies.is_empty() {
        // Without parity every die must be there.
        let missing = labels.into_iter().find_map(Result::err);
        return missing.map_or(Ok(superblock), Err);
    }
    let is_here = |die: u32| labels.iter().flatten().any(|label| label.die == die && label.uuid == superblock.uuid);
    let missing: Vec<u32> = (0..geometry.dies).filter(|die| !is_here(*die)).collect();
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
pub(crate) fn with_parity(media: Drilled, superblock: &Superblock) -> Stack {
    if superblock.dies.is_empty() {
        return Stack::Plain(media);
    }
    let checker = Box::new(Checker::of(superblock));
    let flashback = Flashback::new(media, superblock.geometry, checker, superblock.dies.clone());
    Stack::Flashback(Box::new(flashback))
}

/// The shape of the medium of a format.
pub(crate) fn medium_geometry(superblock: &Superblock) -> Geometry {
    match superblock.dies.is_empty() {
        true => superblock.geometry,
        false => media_geometry(&superblock.geometry),
    }
}
