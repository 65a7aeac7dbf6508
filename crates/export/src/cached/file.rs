//! A file or block device behind a cached volume, as it is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::Errno;

use super::store::{Store, witness_of, write_zeros};
use crate::composite::lane::PAUSE;

/// How long threads of a volume that was stopped just now may take until they let the file go.
const FREE_WITHIN: Duration = Duration::from_secs(2);

/// An opened file. Nobody else who asks opens it meanwhile.
pub struct FileStore {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl FileStore {
    /// Opens it.
    ///
    /// # Errors
    /// It cannot be opened for writing, is in use, or is a directory.
    pub fn open(path: &Path) -> io::Result<FileStore> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let end = Instant::now() + FREE_WITHIN;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(io::Error::other("is in use by another program")),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        if file.metadata()?.is_dir() {
            return Err(io::Error::other("is a directory; expected a file or a block device"));
        }
        // The length of a block device is where it ends.
        let bytes = file.seek(SeekFrom::End(0))?;
        // What is read ahead of a miss would be read from slow storage. Where nobody listens, nothing is lost.
        let _ = fadvise(&file, 0, None, Advice::Random);
        Ok(FileStore { file, path: path.to_owned(), bytes })
    }

    fn settle(&self, fua: bool) -> io::Result<()> {
        if fua { self.flush() } else { Ok(()) }
    }
}

/// A disk that was pulled, and a file whose server is not there any more, are gone.
fn told(error: io::Error) -> io::Error {
    let gone = [Errno::NODEV, Errno::NXIO, Errno::STALE].map(Errno::raw_os_error);
    match error.raw_os_error() {
        Some(number) if gone.contains(&number) => io::Error::new(io::ErrorKind::NotConnected, error),
        _ => error,
    }
}

impl Store for FileStore {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Which file it is, how long, and when it was written last. Of a block device only how long it is: its name, its number and the
    /// times of its node are others after the next boot.
    fn witness(&self) -> [u8; 32] {
        match self.file.metadata() {
            Ok(meta) if meta.is_file() => {
                witness_of([meta.len(), meta.ino(), meta.mtime() as u64, meta.mtime_nsec() as u64])
            }
            _ => witness_of([self.bytes, 0, 0, 0]),
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(told)
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        self.file.write_all_at(data, offset).map_err(told)?;
        self.settle(fua)
    }

    fn zero(&self, offset: u64, bytes: u64, fua: bool) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Where the file system has no holes, zeros take space.
        if fallocate(self.file.as_fd(), flags, offset, bytes).is_err() {
            write_zeros(offset, bytes, |at, zeros| self.file.write_all_at(zeros, at)).map_err(told)?;
        }
        self.settle(fua)
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_data().map_err(told)
    }
}
