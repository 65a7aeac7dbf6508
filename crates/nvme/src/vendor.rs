//! Commands of the vendor: batches of writes and deallocations of which all or none are carried out, and which blocks hold data.
//!
//! Their layout is specified here and in docs/nvme.md. Bits 1:0 of an opcode say which way data travel (Base Specification 2.0,
//! figure 87), and 80h to FFh are a vendor's (figure 88).

use crate::Status;
use crate::bytes::{put, u32_at, u64_at};
use crate::namespace::Namespace;
use crate::nvm::Range;

/// Batch: a list of operations, then the data of its writes. Data to the controller.
pub const BATCH: u8 = 0xc1;
/// Mapped Ranges: where data stand, or what differs from a snapshot. Data from the controller.
pub const MAPPED_RANGES: u8 = 0xc2;

/// Bytes of an operation in a batch's list: kind u8 (0 write, 1 deallocate), 7 reserved, first block u64, blocks u64; little-endian.
pub const OPERATION_BYTES: usize = 24;
/// Bytes of a mapped range (first block u64, blocks u64), and of what stands before them: where to go on u64, ranges u32, 4 reserved.
pub const MAPPED_BYTES: usize = 16;
/// Mapped ranges of one answer, at most.
pub const MAPPED_MAX: u32 = 4095;
/// In a range's number of blocks: they differ and hold no data.
const EMPTY: u64 = 1 << 63;

/// An operation of a batch, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// It forgets the blocks; otherwise it writes them.
    pub deallocates: bool,
    /// The first block.
    pub first: u64,
    /// How many.
    pub blocks: u64,
}

impl Operation {
    /// A write of these blocks.
    pub fn write(first: u64, blocks: u64) -> Operation {
        Operation { deallocates: false, first, blocks }
    }

    /// A deallocation of them: they read as zeros.
    pub fn deallocate(first: u64, blocks: u64) -> Operation {
        Operation { deallocates: true, first, blocks }
    }

    /// As it stands in a list.
    pub fn encode(&self) -> [u8; OPERATION_BYTES] {
        let mut bytes = [0; OPERATION_BYTES];
        bytes[0] = u8::from(self.deallocates);
        put(&mut bytes, 8, &self.first.to_le_bytes());
        put(&mut bytes, 16, &self.blocks.to_le_bytes());
        bytes
    }
}

/// Blocks that hold data or differ, as far as they were looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// First block and number of blocks of each range, in order, and whether they hold data; no two that are alike touch.
    pub ranges: Vec<(u64, u64, bool)>,
    /// Everything before this block was looked at.
    pub next: u64,
}

impl Mapped {
    /// As it travels, in so many bytes: those behind the ranges are zeros.
    pub fn encode(&self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        bytes.extend(self.next.to_le_bytes());
        bytes.extend((self.ranges.len() as u64).to_le_bytes());
        for (first, blocks, mapped) in &self.ranges {
            bytes.extend(first.to_le_bytes());
            bytes.extend((blocks | if *mapped { 0 } else { EMPTY }).to_le_bytes());
        }
        bytes.resize(len, 0);
        bytes
    }

    /// Takes it apart; ranges that did not come are left out.
    pub fn decode(bytes: &[u8]) -> Mapped {
        let count = u32_at(bytes, 8) as usize;
        let ranges = bytes.chunks_exact(MAPPED_BYTES).skip(1).take(count);
        let range = |bytes: &[u8]| (u64_at(bytes, 0), u64_at(bytes, 8) & !EMPTY, u64_at(bytes, 8) & EMPTY == 0);
        Mapped { ranges: ranges.map(range).collect(), next: u64_at(bytes, 0) }
    }
}

impl Namespace {
    /// What a batch's list asks for, in bytes of the device: whether to forget a range, and which.
    ///
    /// # Errors
    /// An operation of an unknown kind, or beyond the end.
    pub fn batch(&self, list: &[u8]) -> Result<Vec<(bool, Range)>, Status> {
        let operation = |bytes: &[u8]| {
            let deallocates = match bytes[0] {
                0 => false,
                1 => true,
                _ => return Err(Status::INVALID_FIELD),
            };
            Ok((deallocates, self.range(u64_at(bytes, 8), u64_at(bytes, 16))?))
        };
        list.chunks_exact(OPERATION_BYTES).map(operation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::tests::namespace;

    #[test]
    fn a_list_as_it_is_documented() {
        let (write, forget) = (Operation::write(3, 2), Operation::deallocate(9, 1));
        let list = [write.encode(), forget.encode()].concat();
        assert_eq!(list[..24], [0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        let range = |first: u64, blocks: u64| Range { offset: first << 14, len: blocks << 14 };
        assert_eq!(namespace().batch(&list), Ok(vec![(false, range(3, 2)), (true, range(9, 1))]));
        let wild = Operation::write(u64::MAX, 2).encode();
        assert_eq!(namespace().batch(&wild), Err(Status::LBA_RANGE));
        let mut unknown = write.encode();
        unknown[0] = 2;
        assert_eq!(namespace().batch(&unknown), Err(Status::INVALID_FIELD));
    }

    #[test]
    fn mapped_ranges_as_they_are_documented() {
        let mapped = Mapped { ranges: vec![(3, 2, true), (9, 1, false)], next: 77 };
        let bytes = mapped.encode(80);
        assert_eq!((bytes.len(), bytes[0], bytes[8], bytes[16], bytes[24], bytes[31]), (80, 77, 2, 3, 2, 0));
        assert_eq!((bytes[32], bytes[40], bytes[47]), (9, 1, 0x80));
        assert_eq!(Mapped::decode(&bytes), mapped);
        assert_eq!(Mapped::decode(&bytes[..40]).ranges, [(3, 2, true)], "what did not come");
        assert_eq!(Mapped::decode(&[]), Mapped::default());
    }
}
