//! Batches that lie on several members of RAID 0 or of a concatenation.
//!
//! One member, the *holder*, takes its part first, and beside it, in the same batch, a record of all other parts with their data. Only
//! when that is durable do the others take theirs, each in one batch with the record's head. So a crash leaves nothing of the batch, or
//! the record; and whose log has no such head gets its part from the record when the array is assembled.

use std::ops::Range;
use std::sync::Arc;

use device::{BatchOp, IoError, batch_slots};
use uuid::Uuid;

use crate::array::{Array, Job, hull};
use crate::command::What;
use crate::geometry::{Level, Piece, Shape};
use crate::wire::{Reader, record_head, seal};

/// Bytes of a piece in a record.
const PIECE_BYTES: usize = 24;
/// Bytes of a head before its pieces.
const HEAD_BYTES: usize = 72;

/// What one member does of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub member: usize,
    pub ops: Vec<BatchOp>,
    /// Where its data lie in the batch's, bytes; in the order of `ops`.
    pub data: Vec<Range<usize>>,
}

impl Part {
    fn bytes(&self) -> usize {
        self.data.iter().map(Range::len).sum()
    }

    fn gather(&self, data: &[u8]) -> Vec<u8> {
        self.data.iter().flat_map(|range| &data[range.clone()]).copied().collect()
    }
}

impl Shape {
    /// The parts of a batch, that of the holder first: it has the most data, so that the record has the least.
    pub(crate) fn parts(&self, ops: &[BatchOp]) -> Vec<Part> {
        let sector = self.sector_bytes as usize;
        let mut parts: Vec<Part> = Vec::new();
        let mut written = 0;
        for op in ops {
            let sectors = op.sectors();
            let count = sectors.end - sectors.start;
            let is_write = matches!(op, BatchOp::Write { .. });
            let pieces = if is_write { self.pieces(sectors.start, count) } else { self.runs(sectors.start, count) };
            for Piece { member, lba, before, count } in pieces {
                let at = parts.iter().position(|part| part.member == member).unwrap_or_else(|| {
                    parts.push(Part { member, ops: Vec::new(), data: Vec::new() });
                    parts.len() - 1
                });
                let part = &mut parts[at];
                if is_write {
                    part.ops.push(BatchOp::Write { lba, count: count as u32 });
                    let from = written + before as usize * sector;
                    part.data.push(from..from + count as usize * sector);
                } else {
                    part.ops.push(BatchOp::Trim { lba, count });
                }
            }
            written += if is_write { count as usize * sector } else { 0 };
        }
        if let Some((holder, _)) = parts.iter().enumerate().max_by_key(|(at, part)| (part.bytes(), usize::MAX - at)) {
            parts.swap(0, holder);
        }
        parts
    }

    /// Pieces that a record has room for.
    fn pieces_max(&self) -> usize {
        (self.sector_bytes as usize - HEAD_BYTES) / PIECE_BYTES
    }
}

impl Array {
    /// Whether a batch can be carried out whole: its parts lie on one member, or a record has room for them.
    pub(crate) fn check_parts(&self, ops: &[BatchOp]) -> Result<(), IoError> {
        if self.shape.level == Level::Raid1 {
            return Ok(());
        }
        let parts = self.shape.parts(ops);
        let Some((holder, others)) = parts.split_first() else { return Ok(()) };
        let pieces: usize = others.iter().map(|part| part.ops.len()).sum();
        let slots = |part: &Part| batch_slots(&part.ops, self.shape.sector_bytes);
        let recorded = others.iter().map(Part::bytes).sum::<usize>() as u64 / u64::from(self.shape.sector_bytes);
        // A member takes the largest request and a record's head.
        let fits = slots(holder) + recorded <= u64::from(self.shape.largest)
            && others.iter().all(|part| slots(part) <= u64::from(self.shape.largest));
        if others.is_empty() || pieces <= self.shape.pieces_max() && fits { Ok(()) } else { Err(IoError::Scattered) }
    }

    /// Whether a batch that touches some of these sectors has not reached all of its members: a read now would not show it.
    pub(crate) fn is_half_asked(&self, sectors: &Range<u64>) -> bool {
        let touches = |job: &Job| {
            matches!(job, Job::Change(change) if !change.then.is_empty()
                && change.sectors.start < sectors.end && sectors.start < change.sectors.end)
        };
        self.half_asked > 0 && self.jobs.values().any(touches)
    }

    /// Carries a batch out; what it touches is `touched`.
    pub(crate) fn batch(&mut self, tag: u64, touched: Vec<Range<u64>>, ops: &[BatchOp], data: &[u8], fua: bool) {
        let mut parts = self.shape.parts(ops);
        let on = |member| Piece { member, lba: 0, before: 0, count: 0 };
        if parts.len() < 2 {
            let Some(part) = parts.pop() else { return };
            let what = What::Batch { data: part.gather(data).into(), ops: part.ops.into(), fua };
            let job = self.change_job(tag, hull(&touched), 1, None);
            return self.send(job, on(part.member), what);
        }
        let sectors = hull(&touched);
        let Some((slot, number)) = self.log.take(touched) else {
            unreachable!("a batch that needs a slot waits for one")
        };
        self.logged_writes += 1;
        let sector = self.shape.sector_bytes as usize;
        let holder = parts.remove(0);
        let theirs: Vec<Vec<u8>> = parts.iter().map(|part| part.gather(data)).collect();
        let recorded = theirs.concat();
        let pieces = parts.iter().flat_map(|part| part.ops.iter().map(|op| (part.member, *op)));
        let record = BatchRecord {
            number,
            holder: holder.member,
            pieces: pieces.collect(),
            data_crc: crc_fast::crc32_iscsi(&recorded),
        };
        let head = record.encode(self.uuid, slot, sector);
        let job = self.change_job(tag, sectors, 1, Some(slot));
        let sends = parts.into_iter().zip(theirs).map(|(part, bytes)| {
            let record_at = BatchOp::Write { lba: self.shape.slot_at(part.member, slot), count: 1 };
            let ops: Arc<[BatchOp]> = part.ops.into_iter().chain([record_at]).collect();
            (on(part.member), What::Batch { ops, data: [&bytes[..], &head].concat().into(), fua })
        });
        let sends: Vec<(Piece, What)> = sends.collect();
        if let Some(Job::Change(change)) = self.jobs.get_mut(&job) {
            change.then = sends;
            self.half_asked += 1;
        }
        let count = 1 + (recorded.len() / sector) as u32;
        let record_at = BatchOp::Write { lba: self.shape.slot_at(holder.member, slot), count };
        let bytes = [&holder.gather(data)[..], &head, &recorded].concat().into();
        let ops = holder.ops.into_iter().chain([record_at]).collect();
        // Nobody else may begin before this is durable.
        self.send(job, on(holder.member), What::Batch { ops, data: bytes, fua: true });
    }
}

/// The head of a record of a batch. Programs that do not know it take it for one that fits no array, and refuse to assemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchRecord {
    /// Raised with each.
    pub number: u64,
    /// Whose log has the data.
    pub holder: usize,
    /// What the other members do, each with what follows it there.
    pub pieces: Vec<(usize, BatchOp)>,
    /// CRC-32C of the data behind the holder's head, in the order of the pieces.
    pub data_crc: u32,
}

impl BatchRecord {
    /// As it stands in slot `slot` of the log, of the holder and of the others.
    pub fn encode(&self, array: Uuid, slot: usize, sector: usize) -> Vec<u8> {
        let mut out = record_head(array, slot, self.number, self.data_crc);
        out.extend((self.pieces.len() as u64).to_le_bytes());
        out.extend(0u32.to_le_bytes());
        out.extend((self.holder as u32).to_le_bytes());
        out.extend([0; 16]);
        debug_assert_eq!(out.len(), HEAD_BYTES);
        for (member, op) in &self.pieces {
            let (sectors, kind) = (op.sectors(), u32::from(matches!(op, BatchOp::Trim { .. })));
            out.extend(sectors.start.to_le_bytes());
            out.extend((sectors.end - sectors.start).to_le_bytes());
            out.extend((*member as u32).to_le_bytes());
            out.extend(kind.to_le_bytes());
        }
        seal(out, sector)
    }

    /// The rest of a head, behind its number; nothing where it is another record's.
    pub fn decode(mut from: Reader<'_>, number: u64, data_crc: u32) -> Option<BatchRecord> {
        let (count, mark, holder) = (from.u64()?, from.u32()?, from.u32()?);
        let zeros = from.array::<16>()?;
        if mark != 0 || zeros != [0; 16] {
            return None;
        }
        let piece = |_| {
            let (lba, count, member, kind) = (from.u64()?, from.u64()?, from.u32()?, from.u32()?);
            let op = match kind {
                0 => BatchOp::Write { lba, count: u32::try_from(count).ok()? },
                1 => BatchOp::Trim { lba, count },
                _ => return None,
            };
            Some((member as usize, op))
        };
        let pieces: Option<Vec<_>> = (0..count).map(piece).collect();
        Some(BatchRecord { number, holder: holder as usize, pieces: pieces?, data_crc })
    }

    /// Whether it can be carried out in an array of this shape.
    pub fn fits(&self, shape: &Shape) -> bool {
        let lies = |(member, op): &(usize, BatchOp)| {
            let (sectors, data) = (op.sectors(), shape.data.get(*member).copied().unwrap_or(0));
            *member != self.holder && !sectors.is_empty() && sectors.end <= data
        };
        self.holder < shape.count() && self.pieces.iter().all(lies) && self.data_sectors() <= u64::from(shape.largest)
    }

    /// Sectors of data behind the holder's head.
    pub fn data_sectors(&self) -> u64 {
        self.pieces.iter().map(|(_, op)| written(op)).sum()
    }

    /// The members that take part, but for the holder.
    pub fn members(&self) -> impl Iterator<Item = usize> {
        let mut members: Vec<usize> = self.pieces.iter().map(|(member, _)| *member).collect();
        members.sort_unstable();
        members.dedup();
        members.into_iter()
    }

    /// What a member does, and its data of those behind the holder's head.
    pub fn part(&self, member: usize, data: &[u8], sector: usize) -> (Vec<BatchOp>, Vec<u8>) {
        let (mut ops, mut bytes, mut at) = (Vec::new(), Vec::new(), 0);
        for (whose, op) in &self.pieces {
            let len = written(op) as usize * sector;
            if *whose == member {
                ops.push(*op);
                bytes.extend(&data[at..at + len]);
            }
            at += len;
        }
        (ops, bytes)
    }
}

fn written(op: &BatchOp) -> u64 {
    if let BatchOp::Write { count, .. } = op { u64::from(*count) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Member;
    use crate::wire::LogRecord;

    fn shape(level: Level, count: u128) -> Shape {
        let member = |number| Member {
            uuid: Uuid::from_u128(number),
            sectors: 2_000,
            sector_bytes: 512,
            max_request_bytes: 64 << 10,
        };
        let members: Vec<Member> = (1..=count).map(member).collect();
        Shape::new(level, &members, 8 << 10, 4 << 20).expect("fits")
    }

    #[test]
    fn each_sector_of_a_batch_is_in_one_part_with_its_data() {
        let shape = shape(Level::Raid0, 3);
        let ops = [
            BatchOp::Write { lba: 10, count: 12 },
            BatchOp::Trim { lba: 40, count: 100 },
            BatchOp::Write { lba: 200, count: 3 },
        ];
        let parts = shape.parts(&ops);
        assert!(parts.iter().all(|part| part.bytes() <= parts[0].bytes()), "the holder has the most: {parts:?}");
        let mut seen = std::collections::BTreeMap::new();
        for part in &parts {
            let mut data = part.data.iter().flat_map(|range| range.clone().step_by(512));
            for op in &part.ops {
                for lba in op.sectors() {
                    let from = matches!(op, BatchOp::Write { .. }).then(|| data.next().expect("data for each"));
                    assert!(seen.insert((part.member, lba), from).is_none());
                }
            }
        }
        let places = ops.iter().flat_map(BatchOp::sectors).map(|lba| shape.pieces(lba, 1)[0]);
        let written = (0..12).map(Some).chain((0..100).map(|_| None)).chain((12..15).map(Some));
        let expected = places.zip(written).map(|(piece, at)| ((piece.member, piece.lba), at.map(|at: usize| at * 512)));
        assert_eq!(seen, expected.collect());
    }

    #[test]
    fn a_record_comes_back_and_is_taken_apart() {
        let (shape, array) = (shape(Level::Raid0, 3), Uuid::from_u128(9));
        let pieces = vec![
            (0, BatchOp::Write { lba: 4, count: 2 }),
            (0, BatchOp::Trim { lba: 20, count: 500 }),
            (2, BatchOp::Write { lba: 7, count: 1 }),
        ];
        let record = BatchRecord { number: 12, holder: 1, pieces, data_crc: 5 };
        assert!(record.fits(&shape));
        let head = record.encode(array, 3, 512);
        assert_eq!(LogRecord::decode(&head, array, 3), Some(LogRecord::Batch(record.clone())));
        assert_eq!(LogRecord::decode(&head, array, 4), None);
        assert_eq!(record.members().collect::<Vec<_>>(), [0, 2]);
        let data: Vec<u8> = (0..3u8).flat_map(|sector| [sector; 512]).collect();
        assert_eq!(record.part(2, &data, 512), (vec![record.pieces[2].1], vec![2; 512]));
        assert_eq!(record.part(0, &data, 512).1, data[..1024]);
        for pieces in [
            vec![(1, BatchOp::Write { lba: 4, count: 2 })],
            vec![(3, BatchOp::Write { lba: 4, count: 2 })],
            vec![(0, BatchOp::Trim { lba: u64::MAX, count: 2 })],
            vec![(0, BatchOp::Write { lba: 4, count: 0 })],
            vec![(0, BatchOp::Write { lba: 4, count: shape.largest + 1 })],
        ] {
            assert!(!BatchRecord { pieces, ..record.clone() }.fits(&shape));
        }
    }
}
