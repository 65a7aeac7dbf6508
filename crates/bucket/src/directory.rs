//! A directory as a store: for file servers, and to try things out. Each object is a file, durable when it is answered.
//!
//! The anchor is replaced under a lock on a file beside it, so hosts that share the directory need a file system with working locks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use media::object::anchor::ANCHOR_NAME;
use media::object::{Answer, Ask, Failure};
use rustix::fs::{FlockOperation, flock};

/// What files that are being written end in.
const PART: &str = ".part";
/// The file whose lock guards the anchor.
const LOCK: &str = "anchor.lock";

/// Tells parts that are written at the same time apart.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// The directory of one device.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) fn new(root: &Path) -> Directory {
        Directory { root: root.into() }
    }

    pub(crate) fn perform(&self, ask: Ask) -> Answer {
        let done = match ask {
            // One that is there already is an earlier attempt of the same.
            Ask::Put { name, bytes } => self.put(&self.root.join(name), &bytes).map(|_| Answer::Done),
            Ask::Get { name, range } => get(&self.root.join(name), &range).map(Answer::Bytes),
            Ask::Swap { bytes, expected } => self.swap(&bytes, expected.as_deref()),
            Ask::Fetch => fs::read(self.root.join(ANCHOR_NAME)).map(|bytes| {
                let version = version(&bytes);
                Answer::Anchor(bytes, version)
            }),
            Ask::Delete { name } => match fs::remove_file(self.root.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(Answer::Done),
            },
            Ask::Note { .. } => Ok(Answer::Failed(Failure::Other("a store keeps no notes".into()))),
        };
        done.unwrap_or_else(|error| match error.kind() {
            ErrorKind::NotFound => Answer::Failed(Failure::Missing),
            _ => Answer::Failed(self.failure(&error)),
        })
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::Other(format!("{}: {error}", self.root.display()))
    }

    /// Makes an object, and says whether it was made: where one of that name is there already, it stays.
    pub(crate) fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, Failure> {
        self.put(&self.root.join(name), bytes).map_err(|error| self.failure(&error))
    }

    /// Makes a file, durably, unless it is there.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<bool> {
        let part = self.part(path, bytes)?;
        let linked = fs::hard_link(&part, path);
        fs::remove_file(&part)?;
        let is_made = match linked {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        sync_parent(path)?;
        Ok(is_made)
    }

    /// Writes something under a name that nobody reads.
    fn part(&self, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent)?;
        let number = PARTS.fetch_add(1, Ordering::Relaxed);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = parent.join(format!("{name}.{}-{number}{PART}", std::process::id()));
        let mut file = File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        Ok(part)
    }

    fn swap(&self, bytes: &[u8], expected: Option<&str>) -> io::Result<Answer> {
        fs::create_dir_all(&self.root)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(self.root.join(LOCK))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let path = self.root.join(ANCHOR_NAME);
        let now = match fs::read(&path) {
            Ok(bytes) => Some(version(&bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if now.as_deref() != expected {
            return Ok(Answer::Failed(Failure::Precondition));
        }
        let part = self.part(&path, bytes)?;
        fs::rename(&part, &path)?;
        sync_parent(&path)?;
        Ok(Answer::Swapped(version(bytes)))
    }

    /// What lies below the directory.
    pub(crate) fn below(&self, path: &str) -> Directory {
        Directory { root: self.root.join(path) }
    }

    /// Whether a device lies at a path, and the paths that go on below it.
    pub(crate) fn level(&self, path: &str) -> Result<(bool, Vec<String>), Failure> {
        let at = self.root.join(path);
        let failed = |error: io::Error| self.failure(&error);
        let (mut has_anchor, mut below) = (false, Vec::new());
        for entry in fs::read_dir(&at).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            has_anchor |= entry.file_name() == ANCHOR_NAME;
            // Links are not followed: they may lead round in a circle.
            if entry.file_type().map_err(failed)?.is_dir()
                && let Some(path) = entry.path().strip_prefix(&self.root).ok().and_then(Path::to_str)
            {
                below.push(path.to_owned());
            }
        }
        Ok((has_anchor, below))
    }

    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => Failure::Missing,
            _ => self.failure(&error),
        };
        let mut left = vec![self.root.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                if path.is_dir() {
                    left.push(path);
                } else if let Some(name) = path.strip_prefix(&self.root).ok().and_then(Path::to_str)
                    && name != LOCK
                {
                    names.push(name.to_owned());
                }
            }
        }
        Ok(names)
    }
}

fn get(path: &Path, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let end = file.metadata()?.len().min(range.end);
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(range.start)).unwrap_or(0)];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}

/// Two anchors are never alike, so a checksum tells them apart.
fn version(bytes: &[u8]) -> String {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes);
    format!("{sum:016x}-{:x}", bytes.len())
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_made_once_and_the_anchor_replaced_on_condition() {
        let root = tempfile::tempdir().expect("a directory");
        let store = Directory::new(&root.path().join("a/b"));
        let put = |bytes: &[u8]| store.perform(Ask::Put { name: "x/1".into(), bytes: bytes.to_vec() });
        assert_eq!(store.perform(Ask::Fetch), Answer::Failed(Failure::Missing));
        assert_eq!(put(b"first"), Answer::Done);
        assert_eq!(put(b"second"), Answer::Done);
        let get = |range| store.perform(Ask::Get { name: "x/1".into(), range });
        assert_eq!(get(1..99), Answer::Bytes(b"irst".to_vec()), "what is there stays, and ends where it ends");
        let swap = |bytes: &[u8], expected| store.perform(Ask::Swap { bytes: bytes.to_vec(), expected });
        let Answer::Swapped(one) = swap(b"one", None) else { panic!("there was none") };
        assert_eq!(swap(b"two", None), Answer::Failed(Failure::Precondition));
        let Answer::Swapped(two) = swap(b"two", Some(one.clone())) else { panic!("it was that one") };
        assert_eq!(swap(b"three", Some(one)), Answer::Failed(Failure::Precondition));
        assert_eq!(store.perform(Ask::Fetch), Answer::Anchor(b"two".to_vec(), two));
        let mut names = store.names().expect("listed");
        names.sort();
        assert_eq!(names, ["anchor", "x/1"]);
        let above = crate::Store::Directory(Directory::new(root.path()));
        assert_eq!(above.devices().expect("listed"), [("a/b".to_owned(), b"two".to_vec())]);
        let delete = || store.perform(Ask::Delete { name: "x/1".into() });
        assert_eq!((delete(), delete()), (Answer::Done, Answer::Done));
    }
}
