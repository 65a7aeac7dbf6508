//! A file or block device behind a cached volume, as it is: threads that read and write it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Answer, What};
use device::IoError;
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

use super::error::CacheError;
use crate::composite::lane::{Lane, PAUSE};

/// Requests under way at once: what is behind is slow, and may do several.
const THREADS: usize = 16;
/// How long threads of a volume that was stopped just now may take until they let the file go.
const FREE_WITHIN: Duration = Duration::from_secs(2);
/// Zeros that are written at once where they cannot be had otherwise.
const ZEROS: usize = 1 << 20;

/// An opened store. Nobody else who asks opens it meanwhile.
pub(super) struct Store {
    file: Arc<File>,
    pub path: PathBuf,
    pub bytes: u64,
}

impl Store {
    /// Opens it.
    pub fn open(path: &Path) -> Result<Store, CacheError> {
        let failed = |what: String| CacheError::File { path: path.to_owned(), what };
        let said = |error: io::Error| failed(error.to_string());
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(said)?;
        let end = Instant::now() + FREE_WITHIN;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(failed("is in use by another program".into())),
                Err(TryLockError::Error(error)) => return Err(said(error)),
            }
        }
        let kind = file.metadata().map_err(said)?.file_type();
        if kind.is_dir() {
            return Err(failed("is a directory; expected a file or a block device".into()));
        }
        // The length of a block device is where it ends.
        let bytes = file.seek(SeekFrom::End(0)).map_err(said)?;
        // What is read ahead of a miss would be read from slow storage. Where nobody listens, nothing is lost.
        let _ = fadvise(&file, 0, None, Advice::Random);
        Ok(Store { file: Arc::new(file), path: path.to_owned(), bytes })
    }

    /// What it looks like: which file it is, how long, and when it was written last. Of a block device only how long it is: its name,
    /// its number and the times of its node are others after the next boot.
    pub fn witness(&self) -> [u8; 32] {
        self.later()()
    }

    /// The same, later.
    pub fn later(&self) -> impl Fn() -> [u8; 32] + Send + use<> {
        let (file, bytes) = (Arc::clone(&self.file), self.bytes);
        move || witness(&file, bytes)
    }

    /// Serves what is asked over a lane until that is closed.
    pub fn serve(self, lane: &Arc<Lane>, sector_bytes: u32) -> io::Result<()> {
        for number in 0..THREADS {
            let (lane, file, path) = (Arc::clone(lane), Arc::clone(&self.file), self.path.clone());
            let serve = move || {
                while let Some(command) = lane.wait_for_one() {
                    let result = carry_out(&file, command.what, u64::from(sector_bytes));
                    if let Err(error) = &result {
                        tracing::error!(path = %path.display(), "{error}");
                    }
                    lane.reply(&mut vec![(command.tag, result.map_err(|error| io_error(&error)))]);
                }
            };
            std::thread::Builder::new().name(format!("behind-{number}")).spawn(serve)?;
        }
        Ok(())
    }
}

fn witness(file: &File, bytes: u64) -> [u8; 32] {
    let mut numbers = [bytes, 0, 0, 0];
    if let Ok(meta) = file.metadata()
        && meta.is_file()
    {
        numbers = [meta.len(), meta.ino(), meta.mtime() as u64, meta.mtime_nsec() as u64];
    }
    let mut out = [0; 32];
    for (out, number) in out.chunks_exact_mut(8).zip(numbers) {
        out.copy_from_slice(&number.to_le_bytes());
    }
    out
}

fn io_error(error: &io::Error) -> IoError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoError::NoSpace,
        io::ErrorKind::ReadOnlyFilesystem => IoError::ReadOnly,
        _ => IoError::Media,
    }
}

fn carry_out(file: &File, what: What, sector: u64) -> io::Result<Answer> {
    let settle = |fua: bool| if fua { file.sync_data() } else { Ok(()) };
    match what {
        What::Read { lba, mut buf } => {
            file.read_exact_at(&mut buf, lba * sector)?;
            return Ok(Answer::Done(Some(buf)));
        }
        What::Write { lba, data, part, fua } => {
            file.write_all_at(&data[part], lba * sector)?;
            settle(fua)?;
        }
        What::Zeroes { lba, count, fua } => {
            zero(file, lba * sector, count * sector)?;
            settle(fua)?;
        }
        What::Flush => file.sync_data()?,
        // A volume asks for neither of what is behind.
        What::Batch { .. } | What::Extent { .. } => return Err(io::ErrorKind::Unsupported.into()),
    }
    Ok(Answer::Done(None))
}

/// Makes bytes read as zeros, without space where the file system can do that.
fn zero(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    if fallocate(file.as_fd(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, bytes).is_ok() {
        return Ok(());
    }
    let zeros = vec![0; ZEROS.min(bytes as usize)];
    let mut at = 0;
    while at < bytes {
        let count = zeros.len().min((bytes - at) as usize);
        file.write_all_at(&zeros[..count], from + at)?;
        at += count as u64;
    }
    Ok(())
}
