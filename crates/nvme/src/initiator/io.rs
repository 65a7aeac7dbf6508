//! Commands of the NVM command set.
//!
//! Source: NVM Command Set Specification 1.0, 3.2.

use super::{Command, Namespace, Payload};
use crate::Sqe;
use crate::bytes::put;
use crate::command::nvm;
use crate::vendor::{self, MAPPED_BYTES, OPERATION_BYTES, Operation};

/// Force unit access: bit 30 of dword 12.
const FUA: u32 = 1 << 30;
/// Write Zeroes may deallocate: bit 25 of dword 12.
const DEALLOCATE: u32 = 1 << 25;
/// Dataset Management, attribute: deallocate, bit 2 of dword 11.
const ATTRIBUTE_DEALLOCATE: u32 = 1 << 2;
/// Ranges of one Dataset Management, or sources of one Copy, at most.
pub(super) const MAX_RANGES: usize = 256;
/// Bytes of a range.
const RANGE_BYTES: usize = 16;
/// Bytes of a source range of Copy, format 0.
const SOURCE_BYTES: usize = 32;

/// Blocks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: u64,
    /// How many.
    pub blocks: u32,
}

/// A command on blocks in a row, at least one.
#[inline]
fn blocks(opcode: u8, nsid: u32, first: u64, count: u32) -> Sqe {
    let entry = Sqe::new(opcode, 0, nsid).with(10, first as u32).with(11, (first >> 32) as u32);
    entry.with(12, count.saturating_sub(1) & 0xffff)
}

impl Command {
    /// Flush.
    pub fn flush(nsid: u32) -> Command {
        Command::bare(Sqe::new(nvm::FLUSH, 0, nsid))
    }

    /// Read of so many blocks, 65,536 at most.
    pub fn read(namespace: &Namespace, first: u64, count: u32) -> Command {
        let len = count.saturating_mul(namespace.block_bytes);
        Command::receiving(blocks(nvm::READ, namespace.nsid, first, count), len)
    }

    /// Read of as many whole blocks as a buffer has room for; it comes back with the completion.
    #[inline]
    pub fn read_into(namespace: &Namespace, first: u64, buffer: Vec<u8>) -> Command {
        let entry = blocks(nvm::READ, namespace.nsid, first, namespace.blocks_of(&buffer));
        Command { entry, payload: Payload::In(buffer) }
    }

    /// Write of whole blocks.
    #[inline]
    pub fn write(namespace: &Namespace, first: u64, data: Vec<u8>) -> Command {
        Command::sending(blocks(nvm::WRITE, namespace.nsid, first, namespace.blocks_of(&data)), data)
    }

    /// Compare of whole blocks with what is stored.
    pub fn compare(namespace: &Namespace, first: u64, data: Vec<u8>) -> Command {
        Command::sending(blocks(nvm::COMPARE, namespace.nsid, first, namespace.blocks_of(&data)), data)
    }

    /// Write Zeroes of so many blocks, 65,536 at most. With `deallocate` their space may be given back.
    pub fn write_zeroes(namespace: &Namespace, first: u64, count: u32, deallocate: bool) -> Command {
        let entry = blocks(nvm::WRITE_ZEROES, namespace.nsid, first, count);
        let flags = if deallocate { DEALLOCATE } else { 0 };
        Command::bare(entry.with(12, entry.dword(12) | flags))
    }

    /// Verify of so many blocks, 65,536 at most: the controller reads and checks them.
    pub fn verify(namespace: &Namespace, first: u64, count: u32) -> Command {
        Command::bare(blocks(nvm::VERIFY, namespace.nsid, first, count))
    }

    /// Dataset Management that deallocates ranges, of which the first 256 count.
    pub fn deallocate(namespace: &Namespace, ranges: &[Range]) -> Command {
        let ranges = &ranges[..ranges.len().min(MAX_RANGES)];
        let mut data = vec![0; ranges.len() * RANGE_BYTES];
        for (bytes, range) in data.chunks_exact_mut(RANGE_BYTES).zip(ranges) {
            put(bytes, 4, &range.blocks.to_le_bytes());
            put(bytes, 8, &range.first.to_le_bytes());
        }
        let last = ranges.len().saturating_sub(1) as u32;
        let entry = Sqe::new(nvm::DATASET_MANAGEMENT, 0, namespace.nsid).with(10, last).with(11, ATTRIBUTE_DEALLOCATE);
        Command::sending(entry, data)
    }

    /// Copy of ranges, of which the first 256 count, to where `first` begins. A range has 65,536 blocks at most.
    pub fn copy(namespace: &Namespace, first: u64, sources: &[Range]) -> Command {
        let sources = &sources[..sources.len().min(MAX_RANGES)];
        let mut data = vec![0; sources.len() * SOURCE_BYTES];
        for (bytes, range) in data.chunks_exact_mut(SOURCE_BYTES).zip(sources) {
            put(bytes, 8, &range.first.to_le_bytes());
            put(bytes, 16, &(range.blocks.saturating_sub(1) as u16).to_le_bytes());
        }
        let entry = Sqe::new(nvm::COPY, 0, namespace.nsid).with(10, first as u32).with(11, (first >> 32) as u32);
        Command::sending(entry.with(12, sources.len().saturating_sub(1) as u32), data)
    }

    /// Batch: all of these operations or none, whatever a power failure leaves. `data` is what the writes write, one behind another.
    /// No two operations may touch the same block.
    pub fn batch(namespace: &Namespace, operations: &[Operation], data: &[u8]) -> Command {
        let mut bytes = Vec::with_capacity(operations.len() * OPERATION_BYTES + data.len());
        operations.iter().for_each(|operation| bytes.extend(operation.encode()));
        bytes.extend(data);
        let entry = Sqe::new(vendor::BATCH, 0, namespace.nsid).with(10, operations.len() as u32);
        Command::sending(entry.with(11, namespace.blocks_of(data)), bytes)
    }

    /// Mapped Ranges: which of so many blocks from `first` on hold data, 0 for all behind it; at most `most` ranges, 1 to
    /// [`MAPPED_MAX`](vendor::MAPPED_MAX). [`Mapped`](vendor::Mapped) takes the answer apart.
    pub fn mapped_ranges(namespace: &Namespace, first: u64, blocks: u64, most: u32) -> Command {
        let most = most.clamp(1, vendor::MAPPED_MAX);
        let entry =
            Sqe::new(vendor::MAPPED_RANGES, 0, namespace.nsid).with(10, first as u32).with(11, (first >> 32) as u32);
        let entry = entry.with(12, most).with(14, blocks as u32).with(15, (blocks >> 32) as u32);
        Command::receiving(entry, (1 + most) * MAPPED_BYTES as u32)
    }

    /// The same Mapped Ranges for those blocks that differ from a snapshot, by its number.
    #[must_use]
    pub fn since(self, snapshot: u64) -> Command {
        Command { entry: self.entry.with(2, snapshot as u32).with(3, (snapshot >> 32) as u32), ..self }
    }

    /// The same command with force unit access: what it wrote is on the media when it ends.
    #[must_use]
    pub fn with_fua(self) -> Command {
        Command { entry: self.entry.with(12, self.entry.dword(12) | FUA), ..self }
    }
}
