//! A file medium that works on the host's page cache, for devices whose own pace is slower than that.
//!
//! Programs are copied into the page cache on the spot, and reads out of it; a read that would have to wait for the disk goes
//! through the ring, so that it holds up nothing else. Erases keep the space: giving it back and asking for it anew
//! holds up a file system for longer than any flash would.

use std::io::IoSliceMut;

use rustix::fd::AsFd;
use rustix::io::{Errno, ReadWriteFlags};

use crate::arena::Arena;
use crate::backing::label_offset;
use crate::file::block_position;
use crate::{Command, Done, FileMedia, Geometry, LABEL_BYTES, Media, MediaError, Page, PageAddr, Slice};

/// What Linux calls a file system in memory (`TMPFS_MAGIC` in linux/magic.h).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// A medium on one file, through the page cache.
pub struct CachedFile {
    file: FileMedia,
    geometry: Geometry,
    /// Buffers for reads of one slot, by far the most frequent ones.
    slots: Arena,
    pages: Arena,
    read_only: bool,
    /// The file system keeps its files in memory.
    in_memory: bool,
}

impl CachedFile {
    /// On a file medium of one die that was opened with `page_cache`.
    ///
    /// # Panics
    /// It has more than one die.
    pub fn new(file: FileMedia, read_only: bool) -> CachedFile {
        let geometry = *file.geometry();
        assert_eq!(geometry.dies, 1, "one file");
        let kind = file.backings().next().and_then(|backing| rustix::fs::fstatfs(backing).ok());
        CachedFile {
            in_memory: kind.is_some_and(|kind| kind.f_type == TMPFS_MAGIC),
            file,
            geometry,
            slots: Arena::new(geometry.slot_bytes() as usize),
            pages: Arena::new(geometry.page_bytes() as usize),
            read_only,
        }
    }

    fn position(&self, at: PageAddr, byte: u32) -> u64 {
        block_position(&self.geometry, at.block)
            + u64::from(at.page) * u64::from(self.geometry.page_bytes())
            + u64::from(byte)
    }

    /// Reads what the page cache holds; `None` when not all of it is there.
    fn read_cached(&self, at: PageAddr, bytes: &std::ops::Range<u32>) -> Option<Slice> {
        let len = bytes.len();
        let page = if len <= self.geometry.slot_bytes() as usize { self.slots.page() } else { self.pages.page() };
        // SAFETY: the arena just handed the buffer out, nobody else knows it.
        let target = unsafe { page.bytes_mut(0..len) };
        let backing = self.file.backings().next()?;
        let position = self.position(at, bytes.start);
        let read = match rustix::io::preadv2(backing, &mut [IoSliceMut::new(target)], position, ReadWriteFlags::NOWAIT)
        {
            // File systems in memory know no other way, and do not wait either.
            Err(Errno::OPNOTSUPP) if self.in_memory => rustix::io::pread(backing, target, position),
            read => read,
        };
        // Less than all of it, or a file system that cannot tell: the ring does it.
        matches!(read, Ok(count) if count == len).then_some(Slice { page, offset: 0, len })
    }

    fn write(&self, mut position: u64, mut left: &[u8]) -> Result<(), MediaError> {
        let Some(backing) = self.file.backings().next() else { return Err(MediaError::Os(Errno::BADF)) };
        while !left.is_empty() {
            match rustix::io::pwrite(backing.as_fd(), left, position) {
                Ok(0) => return Err(MediaError::NoSpace),
                Ok(count) => {
                    left = &left[count..];
                    position += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn fits(label: &[Vec<u8>]) -> bool {
    label.len() <= 1 && label.iter().all(|bytes| bytes.len() <= LABEL_BYTES as usize)
}

impl Media for CachedFile {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        self.pages.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        match command {
            Command::Read { at, ref bytes } => match self.read_cached(at, bytes) {
                Some(slice) => Some(Done { id, result: Ok(Some(slice)) }),
                None => self.file.submit(id, command),
            },
            Command::Program { at, bytes, page } if !self.read_only => {
                let data = page.bytes(bytes.start as usize..bytes.end as usize);
                let result = self.write(self.position(at, bytes.start), data);
                Some(Done { id, result: result.map(|()| None) })
            }
            // In the page cache at once, in the order of everything else; done when it is on the disk.
            Command::WriteLabel { copy: copy @ 0..=1, bytes } if !self.read_only && fits(&bytes) => {
                let written = bytes.first().map_or(Ok(()), |bytes| self.write(label_offset(copy), bytes));
                match written {
                    Ok(()) => self.file.submit(id, Command::Sync),
                    Err(error) => Some(Done { id, result: Err(error) }),
                }
            }
            Command::Erase { .. } if !self.read_only => Some(Done { id, result: Ok(None) }),
            command => self.file.submit(id, command),
        }
    }

    fn poll(&mut self) -> Option<Done> {
        self.file.poll()
    }

    fn wait(&mut self) {
        self.file.wait();
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        self.file.read_label(die, copy)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.file.allocated_bytes()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.file.free_bytes()
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        Some(&mut self.file)
    }
}
