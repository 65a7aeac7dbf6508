//! One backing file or block device: opened, locked and probed for what it can do.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, OFlags, SeekFrom, Stat, StatxFlags};
use rustix::io::Errno;

use crate::lock::{self, FileId, Share};
use crate::page::{ALIGN, PageBuf};
use crate::{LABEL_BYTES, under};

/// Why a backing file or block device could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system failed.
    #[error("{path}: {error}")]
    Io {
        /// The file or block device.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody uses it.
    #[error("{path}: in use by {holder}; detach it there first")]
    Locked {
        /// The file or block device.
        path: PathBuf,
        /// Who: process id and name where known.
        holder: String,
    },
    /// Somebody uses what lies under it: the file of a loop device, say.
    #[error("{path}: {under}, which lies under it, is in use by {holder}; detach it there first")]
    Under {
        /// The block device.
        path: PathBuf,
        /// What lies under it.
        under: PathBuf,
        /// Who: process id and name where known.
        holder: String,
    },
    /// A mounted block device.
    #[error("{path}: mounted at {at}; unmount it first if its content may be given up")]
    Mounted {
        /// The block device.
        path: PathBuf,
        /// Its mount point.
        at: String,
    },
    /// Something that cannot hold a device.
    #[error("{path}: is a {kind}; expected a regular file or a block device")]
    Kind {
        /// What was named.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Shorter than the geometry needs.
    #[error("{path}: truncated: {found} bytes, the format says {expected}; restore the file from a copy")]
    Truncated {
        /// The file or block device.
        path: PathBuf,
        /// Its length, bytes.
        found: u64,
        /// The length it must have, bytes.
        expected: u64,
    },
}

/// How often, and how far apart, a busy block device that nobody holds a lock on is tried again.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// A backing file or block device, held with an exclusive lock until dropped.
#[derive(Debug)]
pub struct Backing {
    path: PathBuf,
    file: File,
    read_only: bool,
    is_block_device: bool,
    /// What direct I/O asks of offsets and lengths, bytes; `None` where it goes through the page cache.
    direct_alignment: Option<u32>,
    /// Locks on what lies under a block device.
    under: Vec<File>,
}

impl Backing {
    /// Opens and locks a regular file or block device.
    ///
    /// A read-only one is locked exclusively too: nobody may write while it is read.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path, read_only: bool) -> Result<Backing, OpenError> {
        let mut backing = Backing::open_unlocked(path, read_only)?;
        let stat = backing.stat().map_err(|error| failed(path, error))?;
        let id = FileId::of(&stat);
        lock::take_from_the_dead(&backing.file, id, Share::Alone).map_err(|error| match error {
            Errno::WOULDBLOCK => OpenError::Locked { path: path.into(), holder: lock::holder(id) },
            error => failed(path, error),
        })?;
        if backing.is_block_device {
            backing.under = under::lock_all(path, &stat)?;
        }
        backing.direct_alignment = probe_direct(&backing.file);
        Ok(backing)
    }

    /// Makes a sparse file of `bytes` that only its owner may read and write, durably, and opens it.
    ///
    /// # Errors
    /// [`OpenError::Io`] with [`io::ErrorKind::AlreadyExists`] when something has that name.
    pub fn create(path: &Path, bytes: u64) -> Result<Backing, OpenError> {
        let io = |error| OpenError::Io { path: path.into(), error };
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
        let made = file.set_len(bytes).and_then(|()| file.sync_all()).and_then(|()| {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(parent)?.sync_all()
        });
        if let Err(error) = made {
            // Half-made: the name was free before, so it is ours to remove.
            let _ = std::fs::remove_file(path);
            return Err(io(error));
        }
        drop(file);
        Backing::open(path, false)
    }

    /// Opens without the lock and without direct I/O, to look at a label that somebody may be
    /// changing: what it gives is a snapshot at best.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn peek(path: &Path) -> Result<Backing, OpenError> {
        let file = File::open(path).map_err(|error| OpenError::Io { path: path.into(), error })?;
        let stat = rustix::fs::fstat(&file).map_err(|error| failed(path, error))?;
        let is_block_device = is_block_device(path, &stat)?;
        Ok(Backing {
            path: path.into(),
            file,
            read_only: true,
            is_block_device,
            direct_alignment: None,
            under: Vec::new(),
        })
    }

    fn open_unlocked(path: &Path, read_only: bool) -> Result<Backing, OpenError> {
        // Looked at before it is opened, because opening some kinds (a FIFO, a tape) does something.
        let stat = rustix::fs::stat(path).map_err(|error| failed(path, error))?;
        let is_block_device = is_block_device(path, &stat)?;
        let mut options = File::options();
        options.read(true).write(!read_only);
        if is_block_device {
            // On a block device this refuses mounted ones and other exclusive users.
            options.custom_flags(OFlags::EXCL.bits() as i32);
        }
        let file = open_claimed(path, &stat, &options)?;
        Ok(Backing { path: path.into(), file, read_only, is_block_device, direct_alignment: None, under: Vec::new() })
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// A block device, not a regular file.
    pub fn is_block_device(&self) -> bool {
        self.is_block_device
    }

    /// What direct I/O asks of offsets and lengths, bytes; `None` when it goes through the page cache.
    pub fn direct_alignment(&self) -> Option<u32> {
        self.direct_alignment
    }

    /// Goes through the page cache from now on.
    ///
    /// # Errors
    /// The operating system refused.
    pub fn use_page_cache(&mut self) -> Result<(), OpenError> {
        set_direct(&self.file, false).map_err(|error| failed(&self.path, error))?;
        self.direct_alignment = None;
        Ok(())
    }

    /// Its length, bytes.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn bytes(&self) -> Result<u64, OpenError> {
        let bytes = if self.is_block_device {
            rustix::fs::seek(&self.file, SeekFrom::End(0))
        } else {
            self.stat().map(|stat| stat.st_size as u64)
        };
        bytes.map_err(|error| failed(&self.path, error))
    }

    /// Bytes of disk that a regular file takes; `None` for a block device.
    pub fn allocated_bytes(&self) -> Option<u64> {
        if self.is_block_device {
            return None;
        }
        self.stat().ok().map(|stat| stat.st_blocks as u64 * 512)
    }

    /// Reads a label copy, [`LABEL_BYTES`] long. Zeros stand for what lies behind the end of a
    /// file that is too short, so that a foreign file can be looked at the same way.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn read_label(&self, copy: u8) -> Result<Vec<u8>, Errno> {
        let page = PageBuf::new(LABEL_BYTES as usize);
        // SAFETY: the buffer was just made, nobody else knows it.
        let buffer = unsafe { page.bytes_mut(0..LABEL_BYTES as usize) };
        let start = label_offset(copy);
        let mut read = 0;
        while read < buffer.len() {
            match rustix::io::pread(&self.file, &mut buffer[read..], start + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(Errno::INTR) => {}
                // Where direct I/O stopped off its alignment, the file ends.
                Err(Errno::INVAL) if read > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(buffer.to_vec())
    }

    fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::fstat(&self.file)
    }

    /// Where the last data of a range ends, as the file system says; the range's end where it cannot say.
    pub(crate) fn written_end(&self, range: std::ops::Range<u64>) -> u64 {
        let mut end = range.start;
        while end < range.end {
            let data = match rustix::fs::seek(&self.file, SeekFrom::Data(end)) {
                Ok(data) if data < range.end => data,
                Ok(_) | Err(Errno::NXIO) => break,
                Err(_) => return range.end,
            };
            match rustix::fs::seek(&self.file, SeekFrom::Hole(data)) {
                Ok(hole) if hole > data => end = hole.min(range.end),
                _ => return range.end,
            }
        }
        end
    }
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Backing {
    /// The ring may hold on to the open file a little longer than its last completion says, and
    /// the lock would stay with it.
    fn drop(&mut self) {
        lock::release(&self.file);
        self.under.iter().for_each(lock::release);
    }
}

/// Opens a block device that is claimed by nobody else, or any other file.
pub(crate) fn open_claimed(path: &Path, stat: &Stat, options: &OpenOptions) -> Result<File, OpenError> {
    let mut tries = 0;
    loop {
        let error = match options.open(path) {
            Ok(file) => return Ok(file),
            Err(error) => error,
        };
        if Errno::from_io_error(&error) != Some(Errno::BUSY) {
            return Err(OpenError::Io { path: path.into(), error });
        }
        if let Some(at) = lock::mount_point(stat) {
            return Err(OpenError::Mounted { path: path.into(), at });
        }
        // A ring lets go of a block device a moment after its user did, who has given back the lock.
        let id = FileId::of(stat);
        if tries == BUSY_TRIES || lock::holder_pid(id).is_some() {
            return Err(OpenError::Locked { path: path.into(), holder: lock::holder(id) });
        }
        tries += 1;
        std::thread::sleep(BUSY_PAUSE);
    }
}

/// Where a label copy begins, bytes from the start of a backing file.
pub const fn label_offset(copy: u8) -> u64 {
    copy as u64 * LABEL_BYTES as u64
}

fn failed(path: &Path, error: Errno) -> OpenError {
    OpenError::Io { path: path.into(), error: error.into() }
}

fn is_block_device(path: &Path, stat: &Stat) -> Result<bool, OpenError> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(false),
        FileType::BlockDevice => return Ok(true),
        FileType::Directory => "directory",
        FileType::CharacterDevice => "character device",
        FileType::Fifo => "named pipe",
        FileType::Socket => "socket",
        _ => "special file",
    };
    Err(OpenError::Kind { path: path.into(), kind })
}

/// Switches to direct I/O where the target can, and gives the alignment it asks for.
fn probe_direct(file: &File) -> Option<u32> {
    let told = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let told = told.filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let alignment = match told {
        // Zero: the kernel knows that this one cannot.
        Some(told) if told.stx_dio_offset_align == 0 => return None,
        Some(told) => told.stx_dio_offset_align.max(told.stx_dio_mem_align),
        // Before Linux 6.1, or a file system that does not tell: the largest alignment in use, tried below.
        None => ALIGN as u32,
    };
    if alignment as usize > ALIGN || !alignment.is_power_of_two() || set_direct(file, true).is_err() {
        return None;
    }
    let page = PageBuf::new(ALIGN);
    // SAFETY: the buffer was just made, nobody else knows it.
    let buffer = unsafe { page.bytes_mut(0..alignment as usize) };
    if rustix::io::pread(file, buffer, 0) == Err(Errno::INVAL) {
        let _ = set_direct(file, false);
        return None;
    }
    Some(alignment)
}

fn set_direct(file: &File, direct: bool) -> Result<(), Errno> {
    let mut flags = rustix::fs::fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, direct);
    rustix::fs::fcntl_setfl(file, flags)
}
