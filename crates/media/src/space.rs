//! What is left on the file systems under a device.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, StatVfs, major, minor};

use crate::Backing;

/// The file system that a backing file lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Where it is mounted; the file's directory where that is not known.
    pub mount: PathBuf,
    /// Its device number.
    pub dev: u64,
    /// Bytes left on it for ordinary users.
    pub free_bytes: u64,
}

impl FileSystem {
    /// That of a regular file; nothing for a block device, of which nobody knows what is left under it, or where the file system
    /// does not say it.
    pub fn of(path: &Path) -> Option<FileSystem> {
        let stat = rustix::fs::stat(path).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        let free_bytes = free(&rustix::fs::statvfs(path).ok()?)?;
        let path = fs::canonicalize(path).ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mount = mount_in(&mounts, stat.st_dev, &path).or_else(|| Some(path.parent()?.to_path_buf()))?;
        Some(FileSystem { mount, dev: stat.st_dev, free_bytes })
    }
}

impl Backing {
    /// Bytes left for ordinary users on the file system of a regular file; `None` for a block device.
    pub fn free_bytes(&self) -> Option<u64> {
        if self.is_block_device() {
            return None;
        }
        free(&rustix::fs::fstatvfs(self).ok()?)
    }
}

/// Some file systems do not say how large they are; they have no blocks at all then.
fn free(stat: &StatVfs) -> Option<u64> {
    (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Where a file system is mounted, of the places above a path the nearest, in the text of `/proc/self/mountinfo`.
fn mount_in(mounts: &str, dev: u64, path: &Path) -> Option<PathBuf> {
    let number = format!("{}:{}", major(dev), minor(dev));
    let places = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        (fields.nth(2)? == number).then(|| unescaped(fields.nth(1).unwrap_or("/")))
    });
    places.filter(|place| path.starts_with(place)).max_by_key(|place| place.as_os_str().len())
}

/// Spaces, tabs, line ends and backslashes stand there as a backslash and three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let (mut rest, mut bytes) = (text.as_bytes(), Vec::with_capacity(text.len()));
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn the_nearest_mount_above_a_file_is_its_file_system() {
        let mounts = "36 35 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n\
                      37 35 0:40 / /a\\040b rw shared:2 - tmpfs tmpfs rw\n\
                      38 35 0:40 /c /a\\040b/c rw shared:2 - tmpfs tmpfs rw\n";
        let mount = |dev, path: &str| mount_in(mounts, dev, Path::new(path));
        assert_eq!(mount(makedev(254, 1), "/a b/x"), Some("/".into()));
        assert_eq!(mount(makedev(0, 40), "/a b/x.vsl"), Some("/a b".into()));
        assert_eq!(mount(makedev(0, 40), "/a b/c/x.vsl"), Some("/a b/c".into()));
        assert_eq!(mount(makedev(0, 40), "/elsewhere"), None);
        assert_eq!(mount(makedev(9, 9), "/a b"), None);
    }

    #[test]
    fn a_file_has_a_file_system_and_a_device_has_none() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let system = FileSystem::of(file.path()).expect("a file system");
        assert!(file.path().starts_with(&system.mount), "{system:?}");
        assert_eq!(FileSystem::of(Path::new("/dev/null")), None);
        assert_eq!(FileSystem::of(Path::new("/proc/self/mountinfo")), None, "it has no blocks");
    }
}
