//! A file that SQLite has open.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use rusqlite::ffi;

use super::locks::Locks;
use super::places::Places;
use crate::{Files, FilesError, Make, ROOT};

/// What SQLite is told: an error of its own.
pub(super) type Code = c_int;

pub(super) struct Handle {
    files: Arc<Files>,
    number: u64,
    /// Its name, where it goes when it is closed.
    delete: Option<Vec<u8>>,
    locks: Arc<Locks>,
    level: c_int,
    /// Writes of a transaction that are to be one batch.
    batch: Option<Vec<(u64, Vec<u8>)>>,
    /// Transactions may be batches: `PRAGMA openvsl_batch = 0` turns that off, for comparisons.
    batches: bool,
    /// Something was written that no batch made durable.
    unsynced: bool,
}

impl Handle {
    pub(super) fn open(places: &Places, name: &str, flags: c_int) -> Result<Handle, FilesError> {
        let (files, name) = places.find(name)?;
        let create = flags & ffi::SQLITE_OPEN_CREATE != 0;
        let number = match files.lookup(ROOT, name) {
            Ok(_) if create && flags & ffi::SQLITE_OPEN_EXCLUSIVE != 0 => return Err(FilesError::Exists),
            Ok(number) => number,
            Err(FilesError::NotFound) if create => files.make(ROOT, name, &Make::file(0o644))?,
            Err(error) => return Err(error),
        };
        files.hold(number)?;
        let delete = (flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0).then(|| name.to_vec());
        let locks = places.locks(&files, number);
        Ok(Handle { files, number, delete, locks, level: 0, batch: None, batches: true, unsynced: false })
    }

    pub(super) fn close(mut self) -> Result<(), FilesError> {
        self.unlock(ffi::SQLITE_LOCK_NONE);
        if let Some(name) = self.delete.take() {
            self.files.remove(ROOT, &name, false)?;
        }
        self.files.release(self.number)
    }

    /// Tells how many bytes there were.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Code> {
        let data = self.files.read(self.number, offset, buffer.len()).map_err(|_| ffi::SQLITE_IOERR_READ)?;
        buffer[..data.len()].copy_from_slice(&data);
        Ok(data.len())
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Code> {
        if let Some(batch) = &mut self.batch {
            batch.push((offset, data.to_vec()));
            return Ok(());
        }
        self.unsynced = true;
        self.files.write(self.number, offset, data).map_err(|error| code(&error, ffi::SQLITE_IOERR_WRITE))
    }

    pub(super) fn truncate(&mut self, size: u64) -> Result<(), Code> {
        self.unsynced = true;
        self.files.truncate(self.number, size).map_err(|error| code(&error, ffi::SQLITE_IOERR_TRUNCATE))
    }

    pub(super) fn sync(&mut self) -> Result<(), Code> {
        if self.unsynced {
            self.files.sync(self.number).map_err(|_| ffi::SQLITE_IOERR_FSYNC)?;
            self.unsynced = false;
        }
        Ok(())
    }

    pub(super) fn size(&self) -> Result<u64, Code> {
        Ok(self.files.attributes(self.number).map_err(|_| ffi::SQLITE_IOERR_FSTAT)?.size)
    }

    pub(super) fn lock(&mut self, level: c_int) -> Result<(), Code> {
        if self.locks.raise(&mut self.level, level) { Ok(()) } else { Err(ffi::SQLITE_BUSY) }
    }

    pub(super) fn unlock(&mut self, level: c_int) {
        self.locks.lower(&mut self.level, level);
    }

    pub(super) fn reserved(&self) -> bool {
        self.locks.reserved()
    }

    /// Whether transactions may be batches.
    pub(super) fn batches(&self) -> bool {
        self.batches
    }

    pub(super) fn pragma(&mut self, name: &CStr, value: Option<&CStr>) -> Result<(), Code> {
        if name != c"openvsl_batch" {
            return Err(ffi::SQLITE_NOTFOUND);
        }
        self.batches = value.is_none_or(|value| value != c"0");
        Ok(())
    }

    pub(super) fn control(&mut self, operation: c_int) -> Result<(), Code> {
        match operation {
            ffi::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE => self.batch = Some(Vec::new()),
            ffi::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE => {
                let batch = self.batch.take().unwrap_or_default();
                let parts: Vec<(u64, &[u8])> = batch.iter().map(|(offset, data)| (*offset, &data[..])).collect();
                // SQLite writes its journal then, and the pages again.
                self.files.change(self.number, &parts, None).map_err(|_| ffi::SQLITE_IOERR_COMMIT_ATOMIC)?;
                // A sync of everything that the device had before is part of no batch.
                if self.unsynced {
                    self.sync()?;
                }
            }
            ffi::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE => self.batch = None,
            _ => return Err(ffi::SQLITE_NOTFOUND),
        }
        Ok(())
    }
}

/// SQLite's word for an error.
pub(super) fn code(error: &FilesError, otherwise: Code) -> Code {
    match error {
        FilesError::Device(openvsl::Error::NoSpace) | FilesError::TooLong { .. } | FilesError::TooMany { .. } => {
            ffi::SQLITE_FULL
        }
        FilesError::Device(openvsl::Error::ReadOnly) => ffi::SQLITE_READONLY,
        _ => otherwise,
    }
}
