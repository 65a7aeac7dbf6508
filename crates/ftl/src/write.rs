//! Writes: admitted at the groomer's pace, appended as one batch, and mapped.

use crate::layer::Ftl;
use crate::leb::Stream;
use crate::types::{Admission, Command, Header, Kind, NO_SLOT, Source, Tag};

impl Ftl {
    pub(crate) fn write(&mut self, tag: Tag, lba: u64, count: u32, fua: bool) -> Admission {
        assert!(lba + u64::from(count) <= self.map.sectors() && (1..=self.config.max_request).contains(&count));
        if let Some(error) = self.refusal() {
            return Admission::Refused(error);
        }
        let wanted = self.place_write(lba, count);
        let Some(stream) = self.host_stream(wanted, count) else { return self.no_room() };
        if !self.groomer.pace.admits() {
            self.work();
            return Admission::Busy;
        }
        self.groomer.pace.charge(count);
        self.note_write(lba, count);
        self.append_batch(tag, lba, count, stream);
        self.stats.host_written_sectors += u64::from(count);
        self.after_append(tag, fua)
    }

    /// Appends a batch to a stream and maps it.
    pub(crate) fn append_batch(&mut self, tag: Tag, lba: u64, count: u32, stream: Stream) {
        // The batch's numbers follow each other, also where a LEB is opened in the middle of it.
        let seq = self.seq;
        self.batch = Some(seq);
        self.seq += u64::from(count);
        let mut first = 0;
        while first < count {
            let run = self.reserve(stream, count - first);
            let header = Header {
                slot: run.slot,
                seq: seq + u64::from(first),
                kind: Kind::Data,
                lba: lba + u64::from(first),
                index: first as u16,
                remaining: (count - first - 1) as u16,
                lag: self.lag_of(seq + u64::from(first)),
            };
            let source = Source::Request { tag, first };
            self.commands.push(Command::Stage { buf: run.buf, at: run.at, count: run.count, header, source });
            for i in 0..run.count {
                let old = self.map.set(header.lba + u64::from(i), run.slot + i);
                if old != NO_SLOT {
                    self.lebs.set_dead(old);
                }
                self.lebs.set_live(run.slot + i, self.groomer.note((first + i) as usize));
            }
            first += run.count;
            self.commit(stream, run);
        }
        self.batch = None;
    }

    /// Answers what was just appended: at once, or when it is durable.
    pub(crate) fn after_append(&mut self, tag: Tag, fua: bool) -> Admission {
        self.work();
        if !fua {
            return Admission::Done;
        }
        self.wait_durable(tag)
    }
}
