//! Format and erase: what is done to a backing store as a whole, without a ring, while nothing else uses it.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::page::{ALIGN, PageBuf};
use crate::{Backing, LABEL_AREA_BYTES, LABEL_BYTES, OpenError};

/// Written at once when a store is overwritten, bytes.
const CHUNK: usize = 4 << 20;

impl Backing {
    /// Writes a label copy, durably.
    ///
    /// # Errors
    /// The operating system failed.
    ///
    /// # Panics
    /// When the bytes do not fit a label copy.
    pub fn write_label(&self, copy: u8, bytes: &[u8]) -> Result<(), OpenError> {
        assert!(bytes.len() <= LABEL_BYTES as usize);
        let page = PageBuf::new(LABEL_BYTES as usize);
        // SAFETY: the buffer is new and known to nobody else.
        unsafe { page.bytes_mut(0..bytes.len()) }.copy_from_slice(bytes);
        self.write_all(page.bytes(0..page.len()), u64::from(copy) * u64::from(LABEL_BYTES))?;
        rustix::fs::fdatasync(self).map_err(|error| self.failed(error))
    }

    /// Gives a regular file another length.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn resize(&self, bytes: u64) -> Result<(), OpenError> {
        rustix::fs::ftruncate(self, bytes).map_err(|error| self.failed(error))?;
        rustix::fs::fsync(self).map_err(|error| self.failed(error))
    }

    /// Gives the space of everything behind the labels back, where the target can; it then reads as zeros.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn discard_blocks(&self) -> Result<(), OpenError> {
        self.discard_behind(LABEL_AREA_BYTES)
    }

    /// Gives the space of everything from byte `start` on back, where the target can; it then reads as zeros.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn discard_behind(&self, start: u64) -> Result<(), OpenError> {
        let len = self.bytes()?.saturating_sub(start);
        if len == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self, flags, start, len) {
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(self.failed(error)),
        }
        self.sync()
    }

    /// Overwrites bytes with zeros; `at` and `len` are multiples of 4096 or end with the file.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn write_zeros(&self, at: u64, len: u64) -> Result<(), OpenError> {
        let zeros = PageBuf::new(len.min(CHUNK as u64) as usize);
        let mut done = 0;
        while done < len {
            let part = (len - done).min(CHUNK as u64);
            self.write_all(zeros.bytes(0..part as usize), at + done)?;
            done += part;
        }
        Ok(())
    }

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn sync(&self) -> Result<(), OpenError> {
        rustix::fs::fdatasync(self).map_err(|error| self.failed(error))
    }

    /// Changes `len` bytes from `at` on where they lie. What direct I/O takes only together with them stays as it is.
    ///
    /// # Errors
    /// The operating system failed, or the file ends before them.
    pub(crate) fn tamper(&self, at: u64, len: usize, change: &mut dyn FnMut(&mut [u8])) -> Result<(), Errno> {
        let alignment = u64::from(self.direct_alignment().unwrap_or(1));
        let start = at / alignment * alignment;
        let end = (at + len as u64).next_multiple_of(alignment);
        let page = PageBuf::new((end - start).max(1) as usize);
        // SAFETY: the buffer is new and known to nobody else.
        let buffer = unsafe { page.bytes_mut(0..(end - start) as usize) };
        let mut read = 0;
        while read < buffer.len() {
            match rustix::io::pread(self, &mut buffer[read..], start + read as u64) {
                Ok(0) => return Err(Errno::IO),
                Ok(more) => read += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        let first = (at - start) as usize;
        change(&mut buffer[first..first + len]);
        let mut written = 0;
        while written < buffer.len() {
            match rustix::io::pwrite(self, &buffer[written..], start + written as u64) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads bytes, and says which is the first that is not zero.
    ///
    /// # Errors
    /// The operating system failed, or the file ends before them.
    pub fn first_nonzero(&self, at: u64, len: u64) -> Result<Option<u64>, OpenError> {
        let page = PageBuf::new(len.min(CHUNK as u64) as usize);
        let mut done = 0;
        while done < len {
            let want = (len - done).min(CHUNK as u64) as usize;
            // SAFETY: the buffer is new and known to nobody else.
            let buffer = unsafe { page.bytes_mut(0..want) };
            match rustix::io::pread(self, &mut *buffer, at + done) {
                Ok(0) => return Err(self.failed(Errno::IO)),
                Ok(read) => {
                    if let Some(found) = buffer[..read].iter().position(|byte| *byte != 0) {
                        return Ok(Some(at + done + found as u64));
                    }
                    done += read as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(None)
    }

    /// The next range from `at` on where something may be stored, in whole units of 4096 bytes; nothing up to `end` otherwise.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn next_data(&self, at: u64, end: u64) -> Result<Option<std::ops::Range<u64>>, OpenError> {
        let found = self.next_stored(at, end)?;
        let unit = ALIGN as u64;
        Ok(found.map(|data| data.start / unit * unit..data.end.next_multiple_of(unit).min(end)))
    }

    /// The next range at or after `at` where something is stored.
    fn next_stored(&self, at: u64, end: u64) -> Result<Option<std::ops::Range<u64>>, OpenError> {
        if at >= end {
            return Ok(None);
        }
        if self.is_block_device() {
            return Ok(Some(at..end));
        }
        let start = match rustix::fs::seek(self, rustix::fs::SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let stop = rustix::fs::seek(self, rustix::fs::SeekFrom::Hole(start)).map_err(|e| self.failed(e))?;
        Ok((start < end).then_some(start..stop.min(end)))
    }

    fn write_all(&self, mut bytes: &[u8], mut at: u64) -> Result<(), OpenError> {
        while !bytes.is_empty() {
            match rustix::io::pwrite(self, bytes, at) {
                Ok(0) => return Err(self.failed(Errno::NOSPC)),
                Ok(n) => {
                    bytes = &bytes[n..];
                    at += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    fn failed(&self, error: Errno) -> OpenError {
        OpenError::Io { path: self.path().into(), error: error.into() }
    }
}
