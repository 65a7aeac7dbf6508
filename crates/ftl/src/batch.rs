//! Batches: scattered writes and trims, all of which are carried out or none.
//!
//! On media a batch is what a write is: slots whose numbers follow each other, each with its place among them, which recovery takes
//! only when all of them are there. The trims come first, in slots of their own: a trim by itself shares a slot with others, and
//! would reach the media apart from the rest of its batch.

use crate::layer::Ftl;
use crate::leb::Stream;
use crate::trims::{self, TrimRecord, records_in_slot};
use crate::types::{Admission, BatchOp, Command, Kind, Source, Tag};
use crate::write::Group;

/// Slots that a batch takes, of which there may be [`crate::Config::max_request`]: one for each sector that it writes, and as many as the
/// records of its trims fill.
pub fn batch_slots(ops: &[BatchOp], sector_bytes: u32) -> u64 {
    let written: u64 = writes(ops).map(|(_, count)| u64::from(count)).sum();
    written + trims(ops).count().div_ceil(records_in_slot(sector_bytes)) as u64
}

fn writes(ops: &[BatchOp]) -> impl Iterator<Item = (u64, u32)> {
    ops.iter().filter_map(|op| match *op {
        BatchOp::Write { lba, count } => Some((lba, count)),
        BatchOp::Trim { .. } => None,
    })
}

fn trims(ops: &[BatchOp]) -> impl Iterator<Item = (u64, u64)> {
    ops.iter().filter_map(|op| match *op {
        BatchOp::Trim { lba, count } => Some((lba, count)),
        BatchOp::Write { .. } => None,
    })
}

impl Ftl {
    // By itself, so that a plain write, which is far more frequent, keeps its registers to itself.
    #[inline(never)]
    pub(crate) fn write_batch(&mut self, tag: Tag, ops: &[BatchOp], fua: bool) -> Admission {
        let slots = batch_slots(ops, self.config.geometry.sector_bytes);
        let is_inside = |op: &BatchOp| {
            let sectors = op.sectors();
            !sectors.is_empty() && self.has_sectors(sectors.start, sectors.end - sectors.start)
        };
        assert!(ops.iter().all(is_inside) && (1..=u64::from(self.config.max_request)).contains(&slots));
        let slots = slots as u32;
        if let Some(error) = self.refusal() {
            return Admission::Refused(error);
        }
        if self.may_lack_room(slots.into())
            && let Some(answer) = self.lacks_room(self.mapped_by(ops))
        {
            return answer;
        }
        if self.has_views
            && let Some(answer) =
                self.lacks_index_room(trims(ops).map(|(lba, count)| self.trim_bytes(lba, count)).sum())
        {
            return answer;
        }
        // What is written together is likely to be overwritten together: all of it goes where its first sectors go.
        let wanted = writes(ops).next().map_or(0, |(lba, count)| self.place_write(lba, count));
        let Some(stream) = self.host_stream(wanted, slots) else { return self.no_room() };
        if !self.groomer.pace.admits() {
            self.work();
            return Admission::Busy;
        }
        self.groomer.pace.charge(slots);
        self.append_ops(tag, ops, slots, stream);
        self.after_append(tag, fua)
    }

    /// Sectors that a batch maps beyond those that it unmaps: its trims are there when its writes are.
    fn mapped_by(&self, ops: &[BatchOp]) -> u64 {
        let new: u64 = writes(ops).map(|(lba, count)| self.newly_live(lba, count.into())).sum();
        new.saturating_sub(trims(ops).map(|(lba, count)| self.freed_by(lba, count)).sum())
    }

    /// Nothing else may be appended in between, nor a checkpoint begin: recovery would find a part of the batch only.
    fn append_ops(&mut self, tag: Tag, ops: &[BatchOp], slots: u32, stream: Stream) {
        let group = self.begin_group(slots);
        let mut index = self.append_trims(ops, group, stream);
        let mut from = 0;
        for (lba, count) in writes(ops) {
            self.place_write(lba, count);
            self.note_write(lba, count);
            self.append_sectors(tag, (lba, count), (group, index), from, stream);
            self.stats.host_written_sectors += u64::from(count);
            (index, from) = (index + count, from + count);
        }
        self.batch = None;
    }

    /// Appends the records of a batch's trims and unmaps what they name; gives the number of slots. All of them are recorded, also
    /// those of sectors that are not mapped: the trim that unmapped them may be lost, and the batch not.
    fn append_trims(&mut self, ops: &[BatchOp], group: Group, stream: Stream) -> u32 {
        let mut trims = trims(ops).peekable();
        let mut index = 0;
        while trims.peek().is_some() {
            let run = self.reserve(stream, 1);
            let header = self.group_header(group, index, Kind::BatchTrims, run.slot, 0);
            let room = records_in_slot(self.config.geometry.sector_bytes);
            let records: Vec<TrimRecord> =
                trims.by_ref().take(room).map(|(lba, count)| TrimRecord { seq: header.seq, lba, count }).collect();
            let source = Source::Meta(trims::encode(&records));
            self.commands.push(Command::Stage { buf: run.buf, at: run.at, count: 1, header, source });
            self.stats.metadata_slots += 1;
            self.commit(stream, run);
            for TrimRecord { lba, count, .. } in records {
                self.unmap(lba, count);
                self.stats.host_trimmed_sectors += count;
            }
            index += 1;
        }
        index
    }
}
