//! The in-flight region: which requests a back end had taken and not answered, in memory that the front end keeps.
//!
//! When this process dies, the front end gives the region to the next one, which carries out what stands there in the order in
//! which it was taken. The layout is the vhost-user specification's for split rings ("Inflight I/O tracking"): per queue a head
//! of 16 bytes and 16 bytes a descriptor. A process that is killed has made each store that it had come to, in order, so what
//! matters here is the order of stores in the program, and the one that the processor sees is the compiler's.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use vhost::vhost_user::message::VhostUserInflight;
use vm_memory::{AtomicAccess, Bytes, FileOffset, MmapRegion, VolatileMemory};

use super::config::{MAX_QUEUE_SIZE, MAX_QUEUES};

/// Where in a queue's part things stand, bytes.
const VERSION: usize = 8;
const DESC_NUM: usize = 10;
const LAST_BATCH_HEAD: usize = 12;
const USED_IDX: usize = 14;
const HEAD_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;
/// In an entry.
const NEXT: usize = 6;
const COUNTER: usize = 8;
/// Parts of queues begin at multiples of this.
const ALIGNED: usize = 64;
/// The only version there is.
const VERSION_1: u16 = 1;

/// Why a region is not taken.
#[derive(Debug, thiserror::Error)]
pub enum InflightError {
    /// Of the sizes that the front end named.
    #[error("an in-flight region for {queues} queues of {size} descriptors in {bytes} bytes")]
    Sizes {
        /// Queues.
        queues: u16,
        /// Descriptors of each.
        size: u16,
        /// Bytes.
        bytes: u64,
    },
    /// Somebody could cut the file off below us, and reading there would end this process.
    #[error("an in-flight region in a file that may shrink")]
    MayShrink,
    /// The system refused.
    #[error("an in-flight region cannot be made or mapped: {0}")]
    System(String),
    /// What stands there cannot be.
    #[error("the in-flight region of queue {queue} is not what a back end leaves: {what}")]
    Content {
        /// Which.
        queue: usize,
        /// What is wrong.
        what: &'static str,
    },
}

/// The region of all queues.
#[derive(Debug)]
pub struct Inflight {
    mapping: MmapRegion,
    queues: u16,
    size: u16,
}

/// One queue's part.
#[derive(Clone, Debug)]
pub struct Part {
    region: Arc<Inflight>,
    queue: usize,
}

fn part_bytes(size: u16) -> usize {
    (HEAD_BYTES + usize::from(size) * ENTRY_BYTES).next_multiple_of(ALIGNED)
}

impl Inflight {
    /// A new region for so many queues, with the file that the front end is to keep.
    ///
    /// # Errors
    /// See [`InflightError`].
    pub fn create(queues: u16, size: u16) -> Result<(VhostUserInflight, File), InflightError> {
        let bytes = usize::from(queues) * part_bytes(size);
        check(queues, size, bytes as u64)?;
        let system = |error: rustix::io::Errno| InflightError::System(error.to_string());
        let fd = memfd_create("openvsl-inflight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).map_err(system)?;
        ftruncate(&fd, bytes as u64).map_err(system)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).map_err(system)?;
        Ok((VhostUserInflight::new(bytes as u64, 0, queues, size), File::from(fd)))
    }

    /// The region in a file that the front end kept.
    ///
    /// # Errors
    /// See [`InflightError`].
    pub fn map(said: &VhostUserInflight, file: File) -> Result<Inflight, InflightError> {
        let (bytes, offset) = (said.mmap_size, said.mmap_offset);
        check(said.num_queues, said.queue_size, bytes)?;
        if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            return Err(InflightError::MayShrink);
        }
        let held = file.metadata().map_or(0, |metadata| metadata.len());
        if offset.checked_add(bytes).is_none_or(|end| end > held) {
            return Err(InflightError::MayShrink);
        }
        let mapping = MmapRegion::from_file(FileOffset::new(file, offset), bytes as usize)
            .map_err(|error| InflightError::System(error.to_string()))?;
        Ok(Inflight { mapping, queues: said.num_queues, size: said.queue_size })
    }

    fn load<T: AtomicAccess + Default>(&self, at: usize) -> T {
        // Every place is inside: that is checked when the region is mapped, and heads before they are looked up.
        self.mapping.as_volatile_slice().load(at, Acquire).unwrap_or_default()
    }

    fn store<T: AtomicAccess>(&self, at: usize, value: T) {
        // As above.
        let _ = self.mapping.as_volatile_slice().store(value, at, Release);
    }
}

fn check(queues: u16, size: u16, bytes: u64) -> Result<(), InflightError> {
    let fits = usize::from(queues) * part_bytes(size) <= usize::try_from(bytes).unwrap_or(0);
    let bounded = bytes <= (usize::from(MAX_QUEUES) * part_bytes(MAX_QUEUE_SIZE)) as u64;
    if queues == 0 || queues > MAX_QUEUES || size == 0 || size > MAX_QUEUE_SIZE || !fits || !bounded {
        return Err(InflightError::Sizes { queues, size, bytes });
    }
    Ok(())
}

impl Part {
    /// The part of a queue of so many descriptors, if the region has one for it.
    ///
    /// # Errors
    /// The region is for other queues.
    pub fn new(region: &Arc<Inflight>, queue: usize, size: u16) -> Result<Part, InflightError> {
        if queue >= usize::from(region.queues) || size > region.size {
            return Err(InflightError::Content { queue, what: "it was made for fewer or smaller queues" });
        }
        Ok(Part { region: Arc::clone(region), queue })
    }

    fn at(&self, field: usize) -> usize {
        self.queue * part_bytes(self.region.size) + field
    }

    fn entry(&self, head: u16, field: usize) -> usize {
        self.at(HEAD_BYTES + usize::from(head) * ENTRY_BYTES + field)
    }

    /// Takes over from the back end before, whose ring now says `used`: what it had taken and not answered, in the order in
    /// which it was taken, each with its number.
    ///
    /// # Errors
    /// It is not what a back end leaves.
    pub fn take_over(&self, size: u16, used: u16) -> Result<Vec<(u64, u16)>, InflightError> {
        let wrong = |what| InflightError::Content { queue: self.queue, what };
        match self.region.load::<u16>(self.at(VERSION)) {
            0 => {
                self.region.store(self.at(DESC_NUM), size);
                self.region.store(self.at(USED_IDX), used);
                self.region.store(self.at(VERSION), VERSION_1);
                return Ok(Vec::new());
            }
            VERSION_1 if self.region.load::<u16>(self.at(DESC_NUM)) == size => {}
            VERSION_1 => return Err(wrong("its queue had another size")),
            _ => return Err(wrong("its version is not known")),
        }
        // It died between telling the guest and noting so here: what it told last is no longer in flight.
        let untold = used.wrapping_sub(self.region.load(self.at(USED_IDX)));
        if untold > size {
            return Err(wrong("the used ring is not the one that it was written for"));
        }
        let mut head: u16 = self.region.load(self.at(LAST_BATCH_HEAD));
        for _ in 0..untold {
            if head >= size {
                return Err(wrong("the last batch names a descriptor that is none"));
            }
            self.region.store(self.entry(head, 0), 0u8);
            head = self.region.load(self.entry(head, NEXT));
        }
        self.region.store(self.at(USED_IDX), used);
        let is_taken = |head: &u16| self.region.load::<u8>(self.entry(*head, 0)) == 1;
        let mut taken: Vec<(u64, u16)> =
            (0..size).filter(is_taken).map(|head| (self.region.load(self.entry(head, COUNTER)), head)).collect();
        taken.sort_unstable();
        Ok(taken)
    }

    /// A request is taken, as the one of this number.
    #[inline]
    pub fn taken(&self, head: u16, counter: u64) {
        self.region.store(self.entry(head, COUNTER), counter);
        self.region.store(self.entry(head, 0), 1u8);
    }

    /// The guest is about to be told that a request is done.
    #[inline]
    pub fn telling(&self, head: u16) {
        self.region.store(self.entry(head, NEXT), self.region.load::<u16>(self.at(LAST_BATCH_HEAD)));
        self.region.store(self.at(LAST_BATCH_HEAD), head);
    }

    /// It was told; the used ring says `used` now.
    #[inline]
    pub fn told(&self, head: u16, used: u16) {
        self.region.store(self.entry(head, 0), 0u8);
        self.region.store(self.at(USED_IDX), used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region() -> Arc<Inflight> {
        let (said, file) = Inflight::create(2, 8).expect("a file in memory");
        Arc::new(Inflight::map(&said, file).expect("its own file"))
    }

    #[test]
    fn what_was_taken_and_not_told_comes_back_in_order() {
        let region = region();
        let part = Part::new(&region, 1, 8).expect("two queues");
        assert_eq!(part.take_over(8, 0).expect("fresh"), []);
        for (counter, head) in [(1, 5), (2, 0), (3, 7), (4, 2)] {
            part.taken(head, counter);
        }
        part.telling(0);
        part.told(0, 1);
        assert_eq!(part.take_over(8, 1).expect("left by us"), [(1, 5), (3, 7), (4, 2)]);
        // Killed between telling the guest and noting so: the guest has it.
        part.telling(7);
        assert_eq!(part.take_over(8, 2).expect("left by us"), [(1, 5), (4, 2)]);
        // Killed before the guest was told.
        part.telling(5);
        assert_eq!(part.take_over(8, 2).expect("left by us"), [(1, 5), (4, 2)]);
        let other = Part::new(&region, 0, 8).expect("two queues");
        assert_eq!(other.take_over(8, 0).expect("fresh"), []);
    }

    #[test]
    fn a_region_that_lies_is_refused() {
        let region = region();
        assert!(Part::new(&region, 2, 8).is_err() && Part::new(&region, 0, 16).is_err());
        let part = Part::new(&region, 0, 8).expect("two queues");
        part.take_over(8, 0).expect("fresh");
        assert!(part.take_over(4, 0).is_err(), "another size");
        assert!(part.take_over(8, 9).is_err(), "more told than the ring holds");
        region.store(part.at(LAST_BATCH_HEAD), 8u16);
        assert!(part.take_over(8, 1).is_err(), "no descriptor");
        region.store(part.at(LAST_BATCH_HEAD), 3u16);
        region.store(part.entry(3, NEXT), 3u16);
        assert!(part.take_over(8, 8).is_ok(), "a list that turns in a circle ends");
        region.store(part.at(VERSION), 2u16);
        assert!(part.take_over(8, 0).is_err(), "a version from the future");
    }

    #[test]
    fn a_file_that_may_shrink_or_is_too_short_is_not_mapped() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("its size");
        let said = VhostUserInflight::new(1 << 16, 0, 1, 8);
        assert!(matches!(Inflight::map(&said, file), Err(InflightError::MayShrink)));
        let (said, file) = Inflight::create(1, 8).expect("a file in memory");
        let behind = VhostUserInflight { mmap_offset: 4096, ..said };
        assert!(Inflight::map(&behind, file).is_err());
        for (queues, size, bytes) in [(0, 8, 4096), (1, 0, 4096), (1, 8, 64), (65, 8, 1 << 20), (1, 8, u64::MAX)] {
            let (_, file) = Inflight::create(1, 8).expect("a file in memory");
            let said = VhostUserInflight::new(bytes, 0, queues, size);
            assert!(matches!(Inflight::map(&said, file), Err(InflightError::Sizes { .. })), "{queues} {size} {bytes}");
        }
        assert!(Inflight::create(MAX_QUEUES + 1, 8).is_err());
    }
}
