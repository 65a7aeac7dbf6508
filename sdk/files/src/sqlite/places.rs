//! Where a database is: on which device, and under which name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use openvsl::Device;

use super::locks::Locks;
use crate::{Files, FilesError};

/// How long a device that was closed may take to be free.
const CLOSING: Duration = Duration::from_secs(10);
/// Files at most on a device that the extension found empty.
const FILES: u64 = 1000;

/// The devices of a VFS, and the locks of their files.
pub(super) struct Places {
    one: Option<Arc<Files>>,
    many: Mutex<BTreeMap<PathBuf, Weak<Files>>>,
    locks: Mutex<BTreeMap<(usize, u64), Weak<Locks>>>,
}

impl Places {
    /// All names are those of a device's files.
    pub(super) fn one(files: Arc<Files>) -> Places {
        Places { one: Some(files), many: Mutex::default(), locks: Mutex::default() }
    }

    /// Names begin with the path of a device.
    pub(super) fn any() -> Places {
        Places { one: None, many: Mutex::default(), locks: Mutex::default() }
    }

    /// The device of a name, and what remains of the name there.
    pub(super) fn find<'a>(&self, name: &'a str) -> Result<(Arc<Files>, &'a [u8]), FilesError> {
        if let Some(files) = &self.one {
            return Ok((files.clone(), name.trim_start_matches('/').as_bytes()));
        }
        let (device, name) = name.rsplit_once('/').ok_or(FilesError::NotFound)?;
        let path = std::fs::canonicalize(device).map_err(|_| FilesError::NotFound)?;
        let mut many = self.many.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = many.get(&path).and_then(Weak::upgrade) {
            return Ok((files, name.as_bytes()));
        }
        // Another thread may be closing the last database of the device right now.
        let until = Instant::now() + if many.contains_key(&path) { CLOSING } else { Duration::ZERO };
        let files = loop {
            match open(&path) {
                Ok(files) => break Arc::new(files),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        many.insert(path, Arc::downgrade(&files));
        Ok((files, name.as_bytes()))
    }

    /// The locks of a file, which all that have it open share.
    pub(super) fn locks(&self, files: &Arc<Files>, number: u64) -> Arc<Locks> {
        let mut all = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, locks| locks.strong_count() > 0);
        let key = (Arc::as_ptr(files) as usize, number);
        all.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let locks = Arc::new(Locks::default());
            all.insert(key, Arc::downgrade(&locks));
            locks
        })
    }
}

fn open(path: &Path) -> Result<Files, FilesError> {
    let device = Device::open(path).map_err(|error| FilesError::NoFiles { why: error.to_string() })?;
    match device.ranges(..).next().transpose()? {
        Some(_) => Files::open(device),
        None => Files::create(device, FILES),
    }
}
