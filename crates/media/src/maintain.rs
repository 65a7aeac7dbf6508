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
        let len = self.bytes()?.saturating_sub(LABEL_AREA_BYTES);
        if len == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self, flags, LABEL_AREA_BYTES, len) {
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(self.failed(error)),
        }
        rustix::fs::fdatasync(self).map_err(|error| self.failed(error))
    }

    /// Overwrites everything behind the labels with zeros, where anything was ever stored, then makes that durable.
    /// `progress` is told bytes done and bytes in all.
    ///
    /// # Errors
    /// The operating system failed.
    pub fn overwrite_blocks(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<(), OpenError> {
        let end = self.bytes()?;
        let zeros = PageBuf::new(CHUNK);
        let mut at = LABEL_AREA_BYTES;
        let total = end.saturating_sub(LABEL_AREA_BYTES);
        while let Some(data) = self.next_data(at, end)? {
            // Whole alignment units around what is stored.
            at = data.start / ALIGN as u64 * ALIGN as u64;
            let stop = data.end.next_multiple_of(ALIGN as u64).min(end);
            while at < stop {
                let len = (stop - at).min(CHUNK as u64);
                self.write_all(zeros.bytes(0..len as usize), at)?;
                at += len;
                progress(at - LABEL_AREA_BYTES, total);
            }
        }
        progress(total, total);
        rustix::fs::fsync(self).map_err(|error| self.failed(error))
    }

    /// The next range at or after `at` where something is stored.
    fn next_data(&self, at: u64, end: u64) -> Result<Option<std::ops::Range<u64>>, OpenError> {
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
