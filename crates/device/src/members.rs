//! Devices by their files: what a directory holds, and the files of a device that lie beside those that were named.

use std::collections::BTreeSet;
use std::fs::{metadata, read_dir};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::{AttachError, Info, inspect};

/// The files and block devices in a directory that hold a device or a part of one, in the order of their names. What cannot be
/// read is left out, and nothing is written to.
///
/// # Errors
/// The directory cannot be read.
pub fn scan(directory: &Path) -> io::Result<Vec<Info>> {
    // A link is what it leads to.
    let entries = read_dir(directory)?.flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| std::fs::canonicalize(entry.path()).ok()).collect();
    paths.sort();
    paths.dedup();
    let holds_data = |path: &PathBuf| {
        // Looked at before it is opened: opening a FIFO waits.
        metadata(path).is_ok_and(|file| (file.is_file() && file.len() > 0) || file.file_type().is_block_device())
    };
    Ok(paths.iter().filter(|path| holds_data(path)).filter_map(|path| inspect(path).ok()).collect())
}

/// The files of the device of those that are named, by absolute paths, that are not named themselves and lie in the same directories as they: as many as there are, in the
/// order of their numbers. What is named and cannot be read stands for one of them.
///
/// # Errors
/// Several files say that they are the same one of the device: one of them is a copy.
pub fn beside(named: &[PathBuf]) -> Result<Vec<PathBuf>, AttachError> {
    let known: Vec<Info> = named.iter().filter_map(|path| inspect(path).ok()).collect();
    let Some(device) = known.first().filter(|info| info.files as usize > named.len()) else { return Ok(Vec::new()) };
    let mut found: Vec<Info> = Vec::new();
    let directories: BTreeSet<&Path> = named.iter().filter_map(|path| path.parent()).collect();
    for directory in directories {
        let Ok(others) = scan(directory) else { continue };
        found.extend(others.into_iter().filter(|info| info.is_same_device(device)));
    }
    found.retain(|info| known.iter().all(|known| known.file_number != info.file_number));
    found.sort_by_key(|info| info.file_number);
    // One may be there by several names.
    found.dedup_by(|other, one| identity(&one.paths[0]) == identity(&other.paths[0]));
    if let Some([one, other]) = found.array_windows().find(|[one, other]| one.file_number == other.file_number) {
        return Err(AttachError::Copies {
            die: one.file_number,
            paths: [one, other].map(|info| info.paths[0].clone()),
        });
    }
    Ok(found.into_iter().map(|info| info.paths[0].clone()).collect())
}

/// What tells one file or block device from all others, whichever path leads there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A file, by its file system's device and its inode.
    File(u64, u64),
    /// A block device, by its number: several nodes may lead to it.
    BlockDevice(u64),
}

/// The identity of what is at a path; none where nothing is.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    let file = metadata(path).ok()?;
    let is_block_device = file.file_type().is_block_device();
    Some(if is_block_device { Identity::BlockDevice(file.rdev()) } else { Identity::File(file.dev(), file.ino()) })
}
