//! I/O commands of the NVM command set: what is wrong with them, and what they ask of the device.
//!
//! Source: NVM Command Set Specification 1.0, 3.2 (commands), 2.1.4 (atomicity).

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::command::{ALL_NAMESPACES, nvm, zone};
use crate::identify::{COPY_RANGES, DEALLOCATE_RANGES, NAMESPACE};
use crate::namespace::Namespace;
use crate::placement::{self, IDENTIFIER_BYTES};
use crate::vendor::{self, MAPPED_BYTES, MAPPED_MAX, OPERATION_BYTES};
use crate::zoned::{Action, Wanted};
use crate::{Data, Fuse, Sqe, Status};

/// Bytes of a range of a deallocation.
const RANGE_BYTES: usize = 16;
/// Bytes of a source range of a copy, format 0.
const COPY_RANGE_BYTES: usize = 32;
/// Dword 12, force unit access.
pub(crate) const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// Dword 12 of Write Zeroes: the blocks may be deallocated.
const DEALLOCATE: u32 = 1 << 25;
/// Dword 12: protection information is to be checked or made. There is none.
pub(crate) const PROTECTION: u32 = 0xf << 26;
/// Dword 11 of a deallocation: it is one.
const ATTRIBUTE_DEALLOCATE: u32 = 1 << 2;

/// Blocks in bytes of the device, checked against its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// From this byte on.
    pub offset: u64,
    /// So many bytes.
    pub len: u64,
}

/// How a write is to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Durable when answered.
    pub durable: bool,
    /// With which other writes it belongs together; 0 where the host says nothing.
    pub placement: u8,
}

/// An I/O command without what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Makes answered writes durable.
    Flush,
    /// Reads.
    Read(Range),
    /// Writes.
    Write(Range, How),
    /// Compares with what is stored.
    Compare(Range),
    /// Zeroes.
    WriteZeroes {
        /// What.
        range: Range,
        /// Durable when answered.
        durable: bool,
        /// It need not keep its space.
        deallocate: bool,
    },
    /// Forgets ranges that follow as data: so many.
    Deallocate(usize),
    /// A hint that needs nothing of us; so many ranges follow as data.
    Hint(usize),
    /// Reads and throws away.
    Verify(Range),
    /// Copies ranges that follow as data, so many, to one place.
    Copy {
        /// Where to, byte.
        to: u64,
        /// How many ranges.
        ranges: usize,
        /// Durable when answered.
        durable: bool,
    },
    /// Writes and deallocations of which all or none are carried out: a list of them follows as data, and behind it what they write.
    Batch {
        /// How many operations.
        operations: usize,
        /// Bytes that they write in all.
        bytes: usize,
        /// Durable when answered.
        durable: bool,
    },
    /// Tells how the placement handles stand, in so many bytes.
    PlacementStatus(usize),
    /// Placement handles refer to other reclaim units from now on: so many identifiers follow as data.
    UpdatePlacements(usize),
    /// Writes at the end of the zone that begins there, and tells where.
    Append(Range, How),
    /// Does something with the zone that begins at a byte, or with all.
    Zone {
        /// What.
        action: Action,
        /// The zone's first byte; nothing for all.
        zone: Option<u64>,
    },
    /// Tells how zones stand.
    ZoneReport(Wanted),
    /// Tells where data stand, or what differs.
    MappedRanges {
        /// Where to look.
        range: Range,
        /// How many to tell of.
        most: usize,
        /// Those that differ from this snapshot, instead of those that hold data.
        since: Option<u64>,
    },
}

impl Command {
    /// Takes an I/O command apart.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub fn decode(entry: &Sqe, namespace: &Namespace) -> Result<Command, Status> {
        let opcode = entry.opcode();
        let fuse = entry.fuse()?;
        if fuse != Fuse::None && !matches!((fuse, opcode), (Fuse::First, nvm::COMPARE) | (Fuse::Second, nvm::WRITE)) {
            return Err(Status::INVALID_FIELD);
        }
        if opcode == nvm::FLUSH {
            let ours = matches!(entry.nsid(), NAMESPACE | ALL_NAMESPACES);
            return if ours { Ok(Command::Flush) } else { Err(Status::INVALID_NAMESPACE) };
        }
        if entry.nsid() != NAMESPACE {
            return Err(Status::INVALID_NAMESPACE);
        }
        let control = entry.dword(12);
        if matches!(opcode, nvm::READ | nvm::WRITE | nvm::COMPARE | nvm::VERIFY) && control & PROTECTION != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let durable = control & FORCE_UNIT_ACCESS != 0;
        let blocks = || namespace.range(entry.dwords(10), u64::from(control & 0xffff) + 1);
        let command = match opcode {
            nvm::READ => Command::Read(sized(blocks()?, namespace)?),
            nvm::WRITE => {
                let how = How { durable, placement: namespace.placement(entry)? };
                Command::Write(sized(blocks()?, namespace)?, how)
            }
            nvm::COMPARE => Command::Compare(sized(blocks()?, namespace)?),
            nvm::VERIFY => Command::Verify(blocks()?),
            nvm::WRITE_ZEROES => {
                // What is not written moves no write pointer.
                let deallocate = control & DEALLOCATE != 0 && namespace.zones.is_none();
                Command::WriteZeroes { range: blocks()?, durable, deallocate }
            }
            nvm::DATASET_MANAGEMENT => {
                let ranges = (entry.dword(10) & 0xff) as usize + 1;
                debug_assert!(ranges <= DEALLOCATE_RANGES);
                // A zone is forgotten as a whole, by a reset.
                let deallocate = entry.dword(11) & ATTRIBUTE_DEALLOCATE != 0 && namespace.zones.is_none();
                if deallocate { Command::Deallocate(ranges) } else { Command::Hint(ranges) }
            }
            nvm::COPY => {
                // Descriptors of format 0, in bits 11:8.
                if control >> 8 & 0xf != 0 {
                    return Err(Status::INVALID_FIELD);
                }
                let ranges = (control & 0xff) as usize + 1;
                if ranges > usize::from(COPY_RANGES) {
                    return Err(Status::SIZE_LIMIT);
                }
                Command::Copy { to: namespace.range(entry.dwords(10), 1)?.offset, ranges, durable }
            }
            nvm::IO_MANAGEMENT_RECEIVE | nvm::IO_MANAGEMENT_SEND => management(entry, namespace)?,
            zone::APPEND | zone::MANAGEMENT_SEND | zone::MANAGEMENT_RECEIVE => namespace.zone_command(entry)?,
            vendor::BATCH => {
                let operations = entry.dword(10) as usize;
                let bytes = u64::from(entry.dword(11)) << namespace.block_shift;
                let most = u64::from(namespace.max_request_bytes);
                if operations == 0 || (operations * OPERATION_BYTES) as u64 > most || bytes > most {
                    return Err(Status::INVALID_FIELD);
                }
                Command::Batch { operations, bytes: bytes as usize, durable }
            }
            vendor::MAPPED_RANGES => {
                let most = entry.dword(12);
                if !(1..=MAPPED_MAX).contains(&most) {
                    return Err(Status::INVALID_FIELD);
                }
                let first = entry.dwords(10);
                let blocks = match entry.dwords(14) {
                    0 => namespace.blocks().saturating_sub(first),
                    blocks => blocks,
                };
                let since = Some(entry.dwords(2)).filter(|since| *since > 0);
                Command::MappedRanges { range: namespace.range(first, blocks)?, most: most as usize, since }
            }
            _ => return Err(Status::INVALID_OPCODE),
        };
        let changes = !matches!(
            command,
            Command::Read(_)
                | Command::Compare(_)
                | Command::Verify(_)
                | Command::Hint(_)
                | Command::PlacementStatus(_)
                | Command::MappedRanges { .. }
                | Command::ZoneReport(_)
        );
        if changes && namespace.read_only {
            return Err(Status::WRITE_PROTECTED);
        }
        Ok(command)
    }

    /// Bytes that the host sends with it.
    #[inline]
    pub fn from_host(&self) -> usize {
        match self {
            Command::Write(range, _) | Command::Append(range, _) | Command::Compare(range) => range.len as usize,
            Command::Deallocate(ranges) | Command::Hint(ranges) => ranges * RANGE_BYTES,
            Command::Copy { ranges, .. } => ranges * COPY_RANGE_BYTES,
            Command::UpdatePlacements(handles) => handles * IDENTIFIER_BYTES,
            Command::Batch { operations, bytes, .. } => operations * OPERATION_BYTES + bytes,
            _ => 0,
        }
    }

    /// Bytes that the host gets.
    #[inline]
    pub fn to_host(&self) -> usize {
        match self {
            Command::Read(range) => range.len as usize,
            Command::PlacementStatus(bytes) => *bytes,
            Command::ZoneReport(wanted) => wanted.bytes,
            Command::MappedRanges { most, .. } => MAPPED_BYTES * (1 + most),
            _ => 0,
        }
    }

    /// How its data travel, if the description is that of a host that means this command. One that is longer than needed is taken
    /// (Linux sends 4 KiB with every deallocation); what is behind counts for nothing.
    ///
    /// # Errors
    /// The description is for less, or of a kind that does not fit.
    #[inline]
    pub fn data(&self, entry: &Sqe) -> Result<Data, Status> {
        let data = entry.data()?;
        let (from, to) = (self.from_host(), self.to_host());
        if (data.len() as usize) < from + to {
            return Err(Status::SGL_LENGTH_INVALID);
        }
        match data {
            Data::InCapsule(_) if to > 0 => Err(Status::SGL_TYPE_INVALID),
            _ => Ok(data),
        }
    }
}

/// What I/O management asks of the placement handles.
fn management(entry: &Sqe, namespace: &Namespace) -> Result<Command, Status> {
    let (operation, handles) = ((entry.dword(10) & 0xff) as u8, entry.dword(10) >> 16);
    match entry.opcode() {
        _ if !namespace.places() => Err(Status::INVALID_OPCODE),
        nvm::IO_MANAGEMENT_RECEIVE if operation == placement::operation::STATUS => {
            let bytes = 4 * (u64::from(entry.dword(11)) + 1);
            if bytes > u64::from(namespace.max_request_bytes) {
                return Err(Status::INVALID_FIELD);
            }
            Ok(Command::PlacementStatus(bytes as usize))
        }
        nvm::IO_MANAGEMENT_SEND if operation == placement::operation::UPDATE => {
            Ok(Command::UpdatePlacements(handles as usize + 1))
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

#[inline]
fn sized(range: Range, namespace: &Namespace) -> Result<Range, Status> {
    if range.len > u64::from(namespace.max_request_bytes) { Err(Status::INVALID_FIELD) } else { Ok(range) }
}

impl Namespace {
    /// Blocks as bytes of the device.
    ///
    /// # Errors
    /// They go beyond its end.
    #[inline]
    pub fn range(&self, first: u64, blocks: u64) -> Result<Range, Status> {
        match first.checked_add(blocks) {
            Some(end) if end <= self.blocks() => {
                Ok(Range { offset: first << self.block_shift, len: blocks << self.block_shift })
            }
            _ => Err(Status::LBA_RANGE),
        }
    }

    /// Ranges of a deallocation, from its data; those of no length left out.
    ///
    /// # Errors
    /// One of them goes beyond the end: then none is to be forgotten.
    pub fn deallocated(&self, data: &[u8]) -> Result<Vec<Range>, Status> {
        data.chunks_exact(RANGE_BYTES)
            .map(|range| self.range(u64_at(range, 8), u64::from(u32_at(range, 4))))
            .filter(|range| !matches!(range, Ok(range) if range.len == 0))
            .collect()
    }

    /// Source ranges of a copy, from its data, and where they go.
    ///
    /// # Errors
    /// One of them, or the place that they go to, goes beyond the end, or they are too long together.
    pub fn copied(&self, to: u64, data: &[u8]) -> Result<(Vec<Range>, Range), Status> {
        let ranges: Vec<Range> = data
            .chunks_exact(COPY_RANGE_BYTES)
            .map(|range| self.range(u64_at(range, 8), u64::from(u16_at(range, 16)) + 1))
            .collect::<Result<_, _>>()?;
        let len: u64 = ranges.iter().map(|range| range.len).sum();
        if len > u64::from(self.max_request_bytes) {
            return Err(Status::SIZE_LIMIT);
        }
        let target = self.range(to >> self.block_shift, len >> self.block_shift)?;
        Ok((ranges, target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::tests::namespace;

    fn entry(opcode: u8, first: u64, blocks: u32) -> Sqe {
        Sqe::new(opcode, 1, 1)
            .with(10, first as u32)
            .with(11, (first >> 32) as u32)
            .with(12, blocks.wrapping_sub(1) & 0xffff)
    }

    fn decode(entry: Sqe) -> Result<Command, Status> {
        Command::decode(&entry, &namespace())
    }

    #[test]
    fn blocks_beyond_the_end_are_refused_however_they_are_counted() {
        let end = namespace().blocks();
        let range = Range { offset: (end - 1) << 14, len: 1 << 14 };
        assert_eq!(decode(entry(nvm::READ, end - 1, 1)), Ok(Command::Read(range)));
        for (first, blocks) in [(end - 1, 2), (end, 1), (u64::MAX, 1), (u64::MAX - 3, 8)] {
            for opcode in [nvm::READ, nvm::WRITE, nvm::COMPARE, nvm::WRITE_ZEROES, nvm::VERIFY, nvm::COPY] {
                if opcode != nvm::COPY || first >= end {
                    assert_eq!(
                        decode(entry(opcode, first, blocks)),
                        Err(Status::LBA_RANGE),
                        "{opcode} {first} {blocks}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_request_that_is_too_large_is_refused_not_split() {
        assert!(decode(entry(nvm::WRITE, 0, 64)).is_ok());
        assert_eq!(decode(entry(nvm::WRITE, 0, 65)), Err(Status::INVALID_FIELD));
        assert_eq!(decode(entry(nvm::COMPARE, 0, 65)), Err(Status::INVALID_FIELD));
        assert!(decode(entry(nvm::WRITE_ZEROES, 0, 65_536)).is_ok(), "no data travel");
    }

    #[test]
    fn only_compare_and_write_may_be_fused() {
        assert!(decode(entry(nvm::COMPARE, 0, 1).with_fuse(Fuse::First)).is_ok());
        assert!(decode(entry(nvm::WRITE, 0, 1).with_fuse(Fuse::Second)).is_ok());
        for (opcode, fuse) in [(nvm::COMPARE, Fuse::Second), (nvm::WRITE, Fuse::First), (nvm::READ, Fuse::First)] {
            assert_eq!(decode(entry(opcode, 0, 1).with_fuse(fuse)), Err(Status::INVALID_FIELD));
        }
    }

    #[test]
    fn data_must_be_as_long_as_the_command_says() {
        let write = decode(entry(nvm::WRITE, 0, 1)).expect("sound");
        assert_eq!(
            write.data(&entry(nvm::WRITE, 0, 1).with_data(Data::InCapsule(16_384))),
            Ok(Data::InCapsule(16_384))
        );
        let short = entry(nvm::WRITE, 0, 1).with_data(Data::Transport(512));
        assert_eq!(write.data(&short), Err(Status::SGL_LENGTH_INVALID));
        let long = entry(nvm::WRITE, 0, 1).with_data(Data::Transport(65_536));
        assert!(write.data(&long).is_ok(), "what is behind counts for nothing");
        let read = decode(entry(nvm::READ, 0, 1)).expect("sound");
        let inside = entry(nvm::READ, 0, 1).with_data(Data::InCapsule(16_384));
        assert_eq!(read.data(&inside), Err(Status::SGL_TYPE_INVALID));
    }

    #[test]
    fn a_read_only_namespace_refuses_what_changes_it() {
        let fixed = Namespace { read_only: true, ..namespace() };
        for opcode in [nvm::WRITE, nvm::WRITE_ZEROES, nvm::COPY] {
            assert_eq!(Command::decode(&entry(opcode, 0, 1), &fixed), Err(Status::WRITE_PROTECTED));
        }
        let forget = entry(nvm::DATASET_MANAGEMENT, 0, 1).with(11, ATTRIBUTE_DEALLOCATE);
        assert_eq!(Command::decode(&forget, &fixed), Err(Status::WRITE_PROTECTED));
        for opcode in [nvm::READ, nvm::COMPARE, nvm::VERIFY] {
            assert!(Command::decode(&entry(opcode, 0, 1), &fixed).is_ok());
        }
    }

    #[test]
    fn ranges_are_all_sound_or_none_is() {
        let namespace = namespace();
        let range = |first: u64, blocks: u32| {
            let mut range = [0; RANGE_BYTES];
            range[4..8].copy_from_slice(&blocks.to_le_bytes());
            range[8..].copy_from_slice(&first.to_le_bytes());
            range
        };
        let sound = [range(3, 2), range(5, 0), range(9, 1)].concat();
        let expected = [Range { offset: 3 << 14, len: 2 << 14 }, Range { offset: 9 << 14, len: 1 << 14 }];
        assert_eq!(namespace.deallocated(&sound), Ok(expected.to_vec()));
        let wrong = [range(3, 2), range(u64::MAX, 2)].concat();
        assert_eq!(namespace.deallocated(&wrong), Err(Status::LBA_RANGE));
    }

    #[test]
    fn a_copy_is_at_most_as_long_as_a_write() {
        let namespace = namespace();
        let source = |first: u64, blocks: u16| {
            let mut range = [0; COPY_RANGE_BYTES];
            range[8..16].copy_from_slice(&first.to_le_bytes());
            range[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
            range
        };
        let (ranges, target) = namespace.copied(7 << 14, &[source(1, 2), source(9, 1)].concat()).expect("sound");
        assert_eq!((ranges.len(), target), (2, Range { offset: 7 << 14, len: 3 << 14 }));
        assert_eq!(namespace.copied(0, &[source(0, 60), source(0, 5)].concat()), Err(Status::SIZE_LIMIT));
        let last = namespace.bytes - (1 << 14);
        assert_eq!(namespace.copied(last, &source(0, 2)), Err(Status::LBA_RANGE));
    }
}
