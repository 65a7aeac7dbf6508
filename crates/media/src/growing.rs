//! Backing files that become longer while their medium is in use.

use std::io::{Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::{Backing, LABEL_AREA_BYTES, OpenError};

/// A backing file in use, for whoever makes it longer on a thread of its own: that waits for its file system.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    file: std::fs::File,
    is_block_device: bool,
}

impl Growing {
    /// The file behind a backing.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn of(backing: &Backing) -> Result<Growing, OpenError> {
        let path = backing.path().to_path_buf();
        match backing.as_fd().try_clone_to_owned() {
            Ok(fd) => Ok(Growing { path, file: fd.into(), is_block_device: backing.is_block_device() }),
            Err(error) => Err(OpenError::Io { path, error }),
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that it has room for behind its labels, where that is given: a block device is as long as it is.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn room(&mut self) -> Result<Option<u64>, OpenError> {
        if !self.is_block_device {
            return Ok(None);
        }
        let end = self.file.seek(SeekFrom::End(0)).map_err(|error| self.failed(error))?;
        Ok(Some(end.saturating_sub(LABEL_AREA_BYTES)))
    }

    /// Makes a file at least so long, durably: after a power cut it still is.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn extend(&self, bytes: u64) -> Result<(), OpenError> {
        if self.is_block_device {
            return Ok(());
        }
        let longer = || {
            if self.file.metadata()?.len() < bytes {
                self.file.set_len(bytes)?;
            }
            self.file.sync_all()
        };
        longer().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), error }
    }
}
