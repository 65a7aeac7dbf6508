//! Writes: admitted at the groomer's pace, appended as a whole, and mapped.

use crate::layer::Ftl;
use crate::leb::Stream;
use crate::types::{Admission, Command, Header, Kind, NO_SLOT, Slot, Source, Tag};

/// Slots that count together or not at all: their numbers follow each other, also where a LEB is opened in the middle of them.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// Number of the first.
    seq: u64,
    slots: u32,
}

impl Ftl {
    pub(crate) fn write(&mut self, tag: Tag, lba: u64, count: u32, fua: bool) -> Admission {
        assert!(self.has_sectors(lba, count.into()) && (1..=self.config.max_request).contains(&count));
        if let Some(error) = self.refusal() {
            return Admission::Refused(error);
        }
        if self.may_lack_room(count.into())
            && let Some(answer) = self.lacks_room(self.newly_live(lba, count.into()))
        {
            return answer;
        }
        let wanted = self.place_write(lba, count);
        let Some(stream) = self.host_stream(wanted, count) else { return self.no_room() };
        if !self.groomer.pace.admits() {
            self.work();
            return Admission::Busy;
        }
        self.groomer.pace.charge(count);
        self.note_write(lba, count);
        let group = self.begin_group(count);
        self.append_sectors(tag, (lba, count), (group, 0), 0, stream);
        self.batch = None;
        self.stats.host_written_sectors += u64::from(count);
        self.after_append(tag, fua)
    }

    /// Gives the next slots their numbers. [`Ftl::batch`] goes back to nothing when all of them are appended.
    #[inline]
    pub(crate) fn begin_group(&mut self, slots: u32) -> Group {
        let group = Group { seq: self.seq, slots };
        self.batch = Some(self.seq);
        self.seq += u64::from(slots);
        group
    }

    /// The header of a slot of a group.
    #[inline]
    pub(crate) fn group_header(&self, group: Group, index: u32, kind: Kind, slot: Slot, lba: u64) -> Header {
        let seq = group.seq + u64::from(index);
        let remaining = (group.slots - index - 1) as u16;
        Header { slot, seq, kind, lba, index: index as u16, remaining, lag: self.lag_of(seq) }
    }

    /// Appends sectors to a stream and maps them: `index` is the place of the first in its group, `from` in the request's data.
    #[inline(always)]
    pub(crate) fn append_sectors(
        &mut self,
        tag: Tag,
        (lba, count): (u64, u32),
        (group, index): (Group, u32),
        from: u32,
        stream: Stream,
    ) {
        let mut first = 0;
        while first < count {
            let run = self.reserve(stream, count - first);
            let header = self.group_header(group, index + first, Kind::Data, run.slot, lba + u64::from(first));
            let source = Source::Request { tag, first: from + first };
            self.commands.push(Command::Stage { buf: run.buf, at: run.at, count: run.count, header, source });
            for i in 0..run.count {
                if self.has_views {
                    self.set_beside_views(header.lba + u64::from(i), run.slot + i);
                } else {
                    let old = self.map.set(header.lba + u64::from(i), run.slot + i);
                    if old != NO_SLOT {
                        self.lebs.set_dead(old);
                    }
                }
                self.lebs.set_live(run.slot + i, self.groomer.note((first + i) as usize));
            }
            if let Some(owners) = &mut self.lebs.owners {
                owners.add(header.lba, run.slot, run.count);
            }
            first += run.count;
            self.commit(stream, run);
        }
    }

    /// Answers what was just appended: at once, or when it is durable.
    pub(crate) fn after_append(&mut self, tag: Tag, fua: bool) -> Admission {
        if self.has_views {
            self.resize();
        }
        self.work();
        if !fua {
            return Admission::Done;
        }
        self.wait_durable(tag)
    }
}
