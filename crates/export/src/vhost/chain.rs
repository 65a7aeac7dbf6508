//! Descriptor chains: what a guest says where the parts of a request stand. Every byte of it may be hostile.
//!
//! `virtio-queue` walks chains too, but ends a bad one silently; here each is told from a good one, because a request that was
//! cut short must not be carried out.

use vm_memory::{Bytes, GuestAddress};

use virtio_queue::desc::split::Descriptor;

use super::memory::Memory;

/// Descriptors that one chain may have, with those of its indirect table: as many as QEMU takes.
pub const MAX_DESCRIPTORS: usize = 1024;
const DESCRIPTOR_BYTES: u64 = 16;

/// Bytes that stand together in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where.
    pub address: u64,
    /// How many.
    pub bytes: u32,
}

/// A chain taken apart; the memory is used again.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// What the device reads, in order.
    pub readable: Vec<Segment>,
    /// What it writes, in order.
    pub writable: Vec<Segment>,
}

/// Why a chain is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadChain {
    /// An index beyond the table.
    #[error("descriptor {index} of a table of {size}")]
    Index {
        /// Which.
        index: u16,
        /// Descriptors in the table.
        size: u16,
    },
    /// More than the table holds: it comes back to itself.
    #[error("a chain that comes back to itself, or of more than {MAX_DESCRIPTORS} descriptors")]
    Endless,
    /// The table is not in the guest's memory.
    #[error("a table of descriptors outside of the guest's memory")]
    NoTable,
    /// A descriptor of no bytes.
    #[error("a descriptor of no bytes")]
    Empty,
    /// A table that may not be there, in another one, with more behind it, or of a size that is none.
    #[error("an indirect table where none may be, or of {0} bytes")]
    Indirect(u32),
    /// Something to read behind something to write.
    #[error("a descriptor to read behind one to write")]
    Order,
}

impl Chain {
    /// Reads the chain that begins with `head` in a table of `size` descriptors. Each descriptor is read once: what the guest
    /// makes of it later changes nothing.
    ///
    /// # Errors
    /// See [`BadChain`].
    pub fn read(
        &mut self,
        memory: &Memory,
        table: GuestAddress,
        size: u16,
        head: u16,
        may_be_indirect: bool,
    ) -> Result<(), BadChain> {
        self.readable.clear();
        self.writable.clear();
        let (mut table, mut size, mut index, mut indirect) = (table, size, head, false);
        let mut left = size;
        loop {
            if index >= size {
                return Err(BadChain::Index { index, size });
            }
            if left == 0 || self.readable.len() + self.writable.len() >= MAX_DESCRIPTORS {
                return Err(BadChain::Endless);
            }
            left -= 1;
            let at = table.0.checked_add(u64::from(index) * DESCRIPTOR_BYTES).ok_or(BadChain::NoTable)?;
            let descriptor: Descriptor = memory.guest().read_obj(GuestAddress(at)).map_err(|_| BadChain::NoTable)?;
            if descriptor.refers_to_indirect_table() {
                let bytes = descriptor.len();
                let entries = bytes / DESCRIPTOR_BYTES as u32;
                let whole = bytes.is_multiple_of(DESCRIPTOR_BYTES as u32) && (1..=1024).contains(&entries);
                if !may_be_indirect || indirect || descriptor.has_next() || !whole {
                    return Err(BadChain::Indirect(bytes));
                }
                (table, size, index, indirect) = (descriptor.addr(), entries as u16, 0, true);
                left = size;
                continue;
            }
            if descriptor.len() == 0 {
                return Err(BadChain::Empty);
            }
            let segment = Segment { address: descriptor.addr().0, bytes: descriptor.len() };
            if descriptor.is_write_only() {
                self.writable.push(segment);
            } else if self.writable.is_empty() {
                self.readable.push(segment);
            } else {
                return Err(BadChain::Order);
            }
            if !descriptor.has_next() {
                return Ok(());
            }
            index = descriptor.next();
        }
    }
}

/// Bytes of all segments.
pub fn bytes(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.bytes)).sum()
}

/// Whether all of it stands in the guest's memory.
pub fn is_there(memory: &Memory, segments: &[Segment]) -> bool {
    segments.iter().all(|segment| memory.covers(segment.address, segment.bytes as usize))
}

/// Copies `to.len()` bytes out of the guest, from `skip` bytes into the segments on. False where they end before, or lie
/// outside of the guest's memory.
pub fn gather(memory: &Memory, segments: &[Segment], skip: u64, mut to: &mut [u8]) -> bool {
    for (address, bytes) in behind(segments, skip) {
        let count = to.len().min(bytes);
        let (now, rest) = to.split_at_mut(count);
        if !memory.read(address, now) {
            return false;
        }
        to = rest;
        if to.is_empty() {
            break;
        }
    }
    to.is_empty()
}

/// Copies into the guest, from `skip` bytes into the segments on. False where they end before, or lie outside of its memory.
pub fn scatter(memory: &Memory, segments: &[Segment], skip: u64, mut from: &[u8]) -> bool {
    for (address, bytes) in behind(segments, skip) {
        let count = from.len().min(bytes);
        let (now, rest) = from.split_at(count);
        if !memory.write(address, now) {
            return false;
        }
        from = rest;
        if from.is_empty() {
            break;
        }
    }
    from.is_empty()
}

/// What is left of the segments behind the first `skip` bytes: addresses and bytes.
fn behind(segments: &[Segment], mut skip: u64) -> impl Iterator<Item = (u64, usize)> {
    segments.iter().filter_map(move |segment| {
        let skipped = skip.min(u64::from(segment.bytes));
        skip -= skipped;
        let left = segment.bytes as usize - skipped as usize;
        (left > 0).then(|| (segment.address.wrapping_add(skipped), left))
    })
}

#[cfg(test)]
mod tests {
    use super::super::memory::tests::memory;
    use super::*;

    const NEXT: u16 = 1;
    const WRITE: u16 = 2;
    const INDIRECT: u16 = 4;

    fn put(memory: &Memory, table: u64, index: u16, (address, bytes, flags, next): (u64, u32, u16, u16)) {
        let descriptor = Descriptor::new(address, bytes, flags, next);
        memory.guest().write_obj(descriptor, GuestAddress(table + u64::from(index) * 16)).expect("inside");
    }

    fn read(descriptors: &[(u64, u32, u16, u16)]) -> Result<Chain, BadChain> {
        let memory = memory(1 << 20);
        for (index, descriptor) in descriptors.iter().enumerate() {
            put(&memory, 0, index as u16, *descriptor);
        }
        // An indirect table that is as it should be, one that points to itself, and one with another one inside.
        put(&memory, 0x8000, 0, (0x4000, 16, NEXT, 1));
        put(&memory, 0x8000, 1, (0x5000, 1, WRITE, 0));
        put(&memory, 0x9000, 0, (0x4000, 16, NEXT, 0));
        put(&memory, 0xa000, 0, (0x8000, 32, INDIRECT, 0));
        let mut chain = Chain::default();
        chain.read(&memory, GuestAddress(0), 8, 0, true).map(|()| chain)
    }

    #[test]
    fn a_chain_ends_in_its_table_or_in_one_of_its_own() {
        let chain = read(&[(0x1000, 16, NEXT, 2), (0, 0, 0, 0), (0x2000, 1, WRITE, 0)]).expect("a good chain");
        assert_eq!((bytes(&chain.readable), bytes(&chain.writable)), (16, 1));
        let chain = read(&[(0x8000, 32, INDIRECT, 0)]).expect("a good table");
        assert_eq!(chain.readable, [Segment { address: 0x4000, bytes: 16 }]);
        assert_eq!(chain.writable, [Segment { address: 0x5000, bytes: 1 }]);
    }

    #[test]
    fn each_way_to_lie_has_its_name() {
        let of = |descriptors| read(descriptors).expect_err("a lie");
        assert_eq!(of(&[(0x1000, 16, NEXT, 8)]), BadChain::Index { index: 8, size: 8 });
        assert_eq!(of(&[(0x1000, 16, NEXT, 0)]), BadChain::Endless);
        assert_eq!(of(&[(0x9000, 32, INDIRECT, 0)]), BadChain::Endless);
        assert_eq!(of(&[(0x1000, 0, 0, 0)]), BadChain::Empty);
        assert_eq!(of(&[(0xa000, 16, INDIRECT, 0)]), BadChain::Indirect(32));
        assert_eq!(of(&[(0x8000, 31, INDIRECT, 0)]), BadChain::Indirect(31));
        assert_eq!(of(&[(0x8000, 0, INDIRECT, 0)]), BadChain::Indirect(0));
        assert_eq!(of(&[(0x8000, 32, INDIRECT | NEXT, 1)]), BadChain::Indirect(32));
        assert_eq!(of(&[(0xfff0_0000, 32, INDIRECT, 0)]), BadChain::NoTable);
        assert_eq!(of(&[(u64::MAX - 8, 32, INDIRECT, 0)]), BadChain::NoTable);
        assert_eq!(of(&[(0x1000, 1, WRITE | NEXT, 1), (0x1000, 1, 0, 0)]), BadChain::Order);
        let (memory, mut chain) = (memory(1 << 20), Chain::default());
        put(&memory, 0, 0, (0x8000, 32, INDIRECT, 0));
        assert_eq!(chain.read(&memory, GuestAddress(0), 8, 0, false), Err(BadChain::Indirect(32)));
        assert_eq!(chain.read(&memory, GuestAddress(u64::MAX), 8, 1, false), Err(BadChain::NoTable));
    }

    #[test]
    fn bytes_go_over_the_bounds_of_segments_and_not_beyond_the_last() {
        let memory = memory(1 << 20);
        let segments = [Segment { address: 0x1000, bytes: 3 }, Segment { address: 0x3000, bytes: 5 }];
        assert!(scatter(&memory, &segments, 0, b"abcdefgh"));
        let mut taken = [0; 5];
        assert!(gather(&memory, &segments, 2, &mut taken));
        assert_eq!(&taken, b"cdefg");
        assert!(!gather(&memory, &segments, 4, &mut taken), "one byte short");
        assert!(!scatter(&memory, &segments, 0, &[0; 9]));
        let outside = [Segment { address: (1 << 20) - 2, bytes: 4 }];
        assert!(!is_there(&memory, &outside) && !gather(&memory, &outside, 0, &mut [0; 4]));
        assert!(!is_there(&memory, &[Segment { address: u64::MAX, bytes: 2 }]));
    }
}
