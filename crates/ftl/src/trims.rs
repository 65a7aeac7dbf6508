//! Trims, and their records: several share a slot as long as its page is not programmed.

use crate::layer::Ftl;
use crate::snapshot::clones::is_windowed;
use crate::types::{Admission, BufId, Command, Header, Kind, Source, Tag};

/// Bytes of one record: seq u64, lba u64, count u64, little-endian.
const RECORD_BYTES: u32 = 24;

/// One trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimRecord {
    /// Its place in the order of everything ever appended; in a batch that of its slot.
    pub seq: u64,
    /// First sector.
    pub lba: u64,
    /// How many; at least 1.
    pub count: u64,
}

/// A slot that still takes records.
pub(crate) struct OpenTrims {
    pub buf: BufId,
    pub at: u32,
    pub header: Header,
    pub records: Vec<TrimRecord>,
}

impl Ftl {
    pub(crate) fn trim(&mut self, tag: Tag, lba: u64, count: u64, fua: bool) -> Admission {
        assert!(self.has_sectors(lba, count) && count > 0);
        if let Some(error) = self.refusal() {
            return Admission::Refused(error);
        }
        // Nothing mapped there: nothing to remember. What is durable of it follows from older records.
        let shows = match is_windowed(lba) {
            true => self.clones.shows((&self.map, &self.views), lba, count).0,
            false => self.map.run(lba, count) != (count, false),
        };
        if shows {
            if self.has_views
                && let Some(answer) = self.lacks_index_room(self.trim_bytes(lba, count))
            {
                return answer;
            }
            if !self.record_trim(lba, count) {
                return self.no_room();
            }
            self.unmap(lba, count);
        }
        self.stats.host_trimmed_sectors += count;
        self.after_append(tag, fua)
    }

    /// Forgets sectors whose trim is recorded.
    pub(crate) fn unmap(&mut self, lba: u64, count: u64) {
        let before = self.live_sectors();
        if is_windowed(lba) {
            self.unmap_in_clone(lba, count);
            return self.note_leaving(before - self.live_sectors());
        }
        if self.has_views {
            let (mut at, end) = (lba, lba + count);
            while let Some(next) = self.map.next_mapped(at).filter(|next| *next < end) {
                let old = self.map.get(next);
                self.groomer.discarded(self.lebs.note(self.lebs.place(old)));
                self.supersede(next, old);
                at = next + 1;
            }
            self.map.clear(lba, count, |_| {});
            self.groomer.trimmed(lba, count);
            return self.note_leaving(before - self.live_sectors());
        }
        let (lebs, groomer) = (&mut self.lebs, &mut self.groomer);
        self.map.clear(lba, count, |slot| {
            groomer.discarded(lebs.note(lebs.place(slot)));
            lebs.set_dead(slot);
        });
        self.groomer.trimmed(lba, count);
        self.note_leaving(before - self.live_sectors());
    }

    /// Appends a trim record; `false` when there is no room.
    pub(crate) fn record_trim(&mut self, lba: u64, count: u64) -> bool {
        let capacity = records_in_slot(self.config.geometry.sector_bytes);
        if let Some(open) = &mut self.trims
            && open.records.len() < capacity
        {
            let record = TrimRecord { seq: self.seq, lba, count };
            open.records.push(record);
            self.commands.push(Command::Record { header: open.header, record });
            self.seq += 1;
            return true;
        }
        // The first stream's, or where that has no LEB open and may open none, another one's: as long as the others have room the groomer may see
        // no need to free any.
        let stream = self.host_stream_with_room(1, 0);
        let Some(stream) = stream else { return false };
        // A full slot can be staged only when its page is programmed or another takes its place.
        if let Some(full) = self.trims.take() {
            let source = Source::Meta(encode(&full.records));
            self.commands.push(Command::Stage { buf: full.buf, at: full.at, count: 1, header: full.header, source });
        }
        let run = self.reserve(stream, 1);
        let header = self.meta_header(Kind::Trims, run.slot);
        let record = TrimRecord { seq: self.seq, lba, count };
        self.seq += 1;
        self.commands.push(Command::Record { header, record });
        self.trims = Some(OpenTrims { buf: run.buf, at: run.at, header, records: vec![record] });
        self.commit(stream, run);
        true
    }
}

/// Records that a slot has room for: the count of them stands in the place of the first.
pub(crate) fn records_in_slot(sector_bytes: u32) -> usize {
    (sector_bytes / RECORD_BYTES) as usize - 1
}

/// The bytes of a slot of records: count u64, 16 reserved, then the records.
pub fn encode(records: &[TrimRecord]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((records.len() + 1) * RECORD_BYTES as usize);
    bytes.extend((records.len() as u64).to_le_bytes());
    bytes.extend([0; 16]);
    for record in records {
        bytes.extend(record.seq.to_le_bytes());
        bytes.extend(record.lba.to_le_bytes());
        bytes.extend(record.count.to_le_bytes());
    }
    bytes
}

/// The records of a slot; `None` when the bytes make no sense.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<TrimRecord>> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let count = usize::try_from(word(0)?).ok().filter(|count| *count <= bytes.len() / RECORD_BYTES as usize)?;
    (1..=count)
        .map(|i| {
            let at = i * RECORD_BYTES as usize;
            Some(TrimRecord { seq: word(at)?, lba: word(at + 8)?, count: word(at + 16)? })
        })
        .collect()
}
