//! A guest's memory, mapped from the files that its front end handed over.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::{SealFlags, fcntl_add_seals};
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion, GuestRegionMmap,
    MmapRegion,
};

/// Regions that a front end may have.
pub const MAX_REGIONS: usize = 32;

/// Why a region is not taken.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Too many.
    #[error("more than {MAX_REGIONS} memory regions")]
    TooMany,
    /// What cannot be mapped safely: reading beyond the end of a file would end this process.
    #[error("the memory region at {0:#x} is no regular file that holds all of it")]
    NoFile(u64),
    /// The system refused.
    #[error("the memory region at {0:#x} cannot be mapped: {1}")]
    Map(u64, String),
    /// Regions overlap, or one that is to go is not there.
    #[error("the memory regions do not fit together: {0}")]
    Table(String),
}

/// Where the front end has a region in its own address space, by which it names the rings.
#[derive(Clone, Copy, Debug)]
struct User {
    start: u64,
    bytes: u64,
    guest: u64,
}

/// A memory table. It never changes: a new one takes its place, and requests under way keep theirs.
#[derive(Debug)]
pub struct Memory {
    guest: GuestMemoryMmap,
    users: Vec<User>,
}

impl Memory {
    /// Nothing.
    pub fn empty() -> Memory {
        Memory { guest: GuestMemoryMmap::new(), users: Vec::new() }
    }

    /// Maps a whole table.
    ///
    /// # Errors
    /// See [`MemoryError`].
    pub fn map(regions: &[VhostUserMemoryRegion], files: Vec<File>) -> Result<Memory, MemoryError> {
        regions.iter().zip(files).try_fold(Memory::empty(), |memory, (region, file)| memory.with(region, file))
    }

    /// The table with one more region.
    ///
    /// # Errors
    /// See [`MemoryError`].
    pub fn with(&self, region: &VhostUserMemoryRegion, file: File) -> Result<Memory, MemoryError> {
        let (guest, bytes, offset) = (region.guest_phys_addr, region.memory_size, region.mmap_offset);
        if self.users.len() >= MAX_REGIONS {
            return Err(MemoryError::TooMany);
        }
        // Reading beyond the end of a file that was cut off would end this process. Memory that is no memfd cannot be sealed.
        let _ = fcntl_add_seals(&file, SealFlags::SHRINK);
        let held = file.metadata().ok().filter(|metadata| metadata.is_file()).map_or(0, |metadata| metadata.len());
        if offset.checked_add(bytes).is_none_or(|end| end > held) {
            return Err(MemoryError::NoFile(guest));
        }
        let refused = |error: String| MemoryError::Map(guest, error);
        let bytes_mapped = usize::try_from(bytes).map_err(|error| refused(error.to_string()))?;
        let mapping = MmapRegion::from_file(FileOffset::new(file, offset), bytes_mapped)
            .map_err(|error| refused(error.to_string()))?;
        let mapped = GuestRegionMmap::new(mapping, GuestAddress(guest))
            .ok_or_else(|| refused("it ends beyond the last address".into()))?;
        let table = |error: &dyn std::fmt::Display| MemoryError::Table(error.to_string());
        let memory = self.guest.insert_region(Arc::new(mapped)).map_err(|error| table(&error))?;
        let mut users = self.users.clone();
        users.push(User { start: region.user_addr, bytes, guest });
        Ok(Memory { guest: memory, users })
    }

    /// The table without one region.
    ///
    /// # Errors
    /// It has no such region.
    pub fn without(&self, guest: u64, bytes: u64) -> Result<Memory, MemoryError> {
        let removed = self.guest.remove_region(GuestAddress(guest), bytes);
        let (memory, _) = removed.map_err(|error| MemoryError::Table(error.to_string()))?;
        let users = self.users.iter().filter(|user| user.guest != guest).copied().collect();
        Ok(Memory { guest: memory, users })
    }

    /// Where in the guest an address of the front end lies.
    pub fn guest_address(&self, user: u64) -> Option<u64> {
        let region = self.users.iter().find(|region| user >= region.start && user - region.start < region.bytes)?;
        Some(region.guest + (user - region.start))
    }

    /// What the rings are read from.
    pub fn guest(&self) -> &GuestMemoryMmap {
        &self.guest
    }

    /// Whether so many bytes stand there.
    #[inline]
    pub fn covers(&self, address: u64, bytes: usize) -> bool {
        bytes == 0 || GuestMemoryBackend::check_range(&self.guest, GuestAddress(address), bytes)
    }

    /// Copies out of the guest; false where nothing is.
    #[inline]
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.guest.read_slice(to, GuestAddress(address)).is_ok()
    }

    /// Copies into the guest; false where nothing is.
    #[inline]
    pub fn write(&self, address: u64, from: &[u8]) -> bool {
        self.guest.write_slice(from, GuestAddress(address)).is_ok()
    }

    /// Bytes mapped.
    pub fn bytes(&self) -> u64 {
        self.guest.iter().map(GuestMemoryRegion::len).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A memory of so many bytes from guest address 0, which the front end has at 0x7000_0000.
    pub fn memory(bytes: u64) -> Memory {
        let region = VhostUserMemoryRegion::new(0, bytes, 0x7000_0000, 0);
        Memory::map(&[region], vec![file(bytes)]).expect("a file of that size")
    }

    fn file(bytes: u64) -> File {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(bytes).expect("its size");
        file
    }

    #[test]
    fn addresses_of_the_front_end_are_found_in_the_guest() {
        let regions =
            [VhostUserMemoryRegion::new(0, 8192, 0x5000, 0), VhostUserMemoryRegion::new(0x10_0000, 4096, 0x9000, 4096)];
        let memory = Memory::map(&regions, vec![file(8192), file(8192)]).expect("they fit");
        assert_eq!(memory.guest_address(0x5000), Some(0));
        assert_eq!(memory.guest_address(0x6fff), Some(0x1fff));
        assert_eq!(memory.guest_address(0x7000), None);
        assert_eq!(memory.guest_address(0x9010), Some(0x10_0010));
        assert!(memory.write(0x10_0ff0, &[7; 16]) && !memory.write(0x10_0ff1, &[7; 16]));
        assert!(memory.covers(0x10_0000, 4096) && !memory.covers(0x10_0000, 4097) && !memory.covers(u64::MAX, 2));
        let less = memory.without(0x10_0000, 4096).expect("it is there");
        assert_eq!((less.guest_address(0x9010), less.bytes()), (None, 8192));
        assert!(memory.read(0x10_0ff0, &mut [0; 16]), "the old table stands as it was");
    }

    #[test]
    fn a_memfd_cannot_shrink_any_more_once_it_is_mapped() {
        let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
        let fd = File::from(rustix::fs::memfd_create("guest", flags).expect("a file in memory"));
        fd.set_len(8192).expect("its size");
        let region = VhostUserMemoryRegion::new(0, 8192, 0, 0);
        let memory = Memory::map(&[region], vec![fd.try_clone().expect("a descriptor")]).expect("it fits");
        fd.set_len(4096).expect_err("sealed");
        assert!(memory.write(8191, &[1]));
    }

    #[test]
    fn what_is_shorter_than_its_region_or_no_file_is_not_mapped() {
        let region = VhostUserMemoryRegion::new(0, 8192, 0, 4096);
        assert!(matches!(Memory::map(&[region], vec![file(8192)]), Err(MemoryError::NoFile(0))));
        let null = File::open("/dev/zero").expect("it is everywhere");
        assert!(matches!(Memory::map(&[region], vec![null]), Err(MemoryError::NoFile(0))));
        let twice = [VhostUserMemoryRegion::new(0, 8192, 0, 0); 2];
        assert!(matches!(Memory::map(&twice, vec![file(8192), file(8192)]), Err(MemoryError::Table(_))));
    }
}
