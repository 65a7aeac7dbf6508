//! Reads: zeros where nothing was written, a copy of what is still in a buffer, and the medium for the rest. The groomer's reads go the same way.

use crate::layer::{Ftl, id};
use crate::snapshot::SnapshotId;
use crate::types::{Admission, Command, Error, Header, LebId, NO_SLOT, ReadFor, Slot, Tag};

/// A read request that waits for media.
#[derive(Clone, Copy, Default)]
pub(crate) struct PendingRead {
    pub parts: u32,
    pub error: Option<Error>,
    /// Nobody asked for it yet.
    pub ahead: bool,
}

/// A media read under way.
#[derive(Clone, Copy)]
pub(crate) struct MediaRead {
    pub leb: LebId,
    pub purpose: ReadFor,
    pub page: u32,
    pub at: u32,
    pub count: u32,
}

impl Ftl {
    pub(crate) fn read(&mut self, tag: Tag, lba: u64, count: u32) -> Admission {
        self.stats.host_read_sectors += u64::from(count);
        if self.groomer.evict.is_on() {
            self.note_reads(lba, count);
        }
        self.read_sectors(tag, lba, count, false, |ftl, lba| ftl.map.get(lba))
    }

    /// Reads what a snapshot or a clone sees.
    pub(crate) fn read_snapshot(&mut self, tag: Tag, id: SnapshotId, lba: u64, count: u32) -> Admission {
        if let Some((address, of)) = self.find_clone(id).map(|clone| (clone.address(0), clone.of)) {
            self.stats.host_read_sectors += u64::from(count);
            return self.read_sectors(tag, lba, count, false, |ftl, lba| ftl.see_in_clone(address, of, lba));
        }
        if !self.views.exists(id) {
            return Admission::Refused(Error::NoSnapshot);
        }
        self.stats.host_read_sectors += u64::from(count);
        self.read_sectors(tag, lba, count, false, |ftl, lba| ftl.see(id, lba))
    }

    /// Reads what nobody has asked for yet: it counts neither as the host's nor, where it fails, as an error of a read. Answered as
    /// [`Ftl::submit`] does.
    pub fn read_ahead(&mut self, tag: Tag, lba: u64, count: u32) -> Admission {
        self.read_sectors(tag, lba, count, true, |ftl, lba| ftl.map.get(lba))
    }

    /// The host was given so many sectors that were read ahead.
    pub fn count_read(&mut self, count: u32) {
        self.groomer.ahead.quiet = false;
        self.stats.host_read_sectors += u64::from(count);
    }

    /// Reads sectors, of which `at_slot` says where each lies.
    #[inline(always)]
    fn read_sectors(
        &mut self,
        tag: Tag,
        lba: u64,
        count: u32,
        ahead: bool,
        at_slot: impl Fn(&Ftl, u64) -> Slot,
    ) -> Admission {
        assert!(lba + u64::from(count) <= self.map.sectors() && count > 0);
        let geometry = self.config.geometry;
        let mut parts = 0;
        let mut first = 0;
        while first < count {
            let slot = at_slot(self, lba + u64::from(first));
            let mut run = 1;
            if slot == NO_SLOT {
                while first + run < count && at_slot(self, lba + u64::from(first + run)) == NO_SLOT {
                    run += 1;
                }
                self.commands.push(Command::Zero { tag, first, count: run });
                first += run;
                continue;
            }
            let at = slot % geometry.slots_per_page;
            while first + run < count
                && at + run < geometry.slots_per_page
                && at_slot(self, lba + u64::from(first + run)) == slot + run
            {
                run += 1;
            }
            let leb = slot / geometry.slots_per_leb();
            let buffered = match self.lebs[leb].buffered {
                0 => None,
                _ => self.buffers.find(slot / geometry.slots_per_page),
            };
            match buffered {
                Some(buf) => self.commands.push(Command::Copy { tag, first, count: run, buf, at }),
                None => {
                    let lba = lba + u64::from(first);
                    self.read_media(slot, run, ReadFor::Request { tag, first, lba, begins: parts == 0 });
                    parts += 1;
                }
            }
            first += run;
        }
        if parts == 0 {
            return Admission::Done;
        }
        self.pending_reads[tag as usize] = PendingRead { parts, error: None, ahead };
        Admission::Pending
    }

    pub(crate) fn read_media(&mut self, slot: u32, count: u32, purpose: ReadFor) {
        let geometry = &self.config.geometry;
        let (page, at) = geometry.locate(slot);
        let min_seq = self.lebs[page.block].opened;
        self.lebs[page.block].readers += 1;
        let n = slot % geometry.slots_per_leb() / geometry.slots_per_page;
        let read = Some(MediaRead { leb: page.block, purpose, page: n, at, count });
        let which = match self.free_reads.pop() {
            Some(which) => {
                self.media_reads[which as usize] = read;
                which
            }
            None => {
                self.media_reads.push(read);
                self.media_reads.len() as u32 - 1
            }
        };
        let mark = if purpose == ReadFor::Optimise { id::KEPT } else { 0 };
        let id = id::READ | mark | u64::from(which);
        self.commands.push(Command::Read { id, page, at, count, slot, min_seq, purpose });
    }

    /// Ends a media read's book-keeping.
    pub(crate) fn take_read(&mut self, which: u32) -> MediaRead {
        let read = self.media_reads[which as usize].take().expect("a read that is under way");
        // The id of one that is kept stays its own: what came with it is found by that.
        if read.purpose != ReadFor::Optimise {
            self.free_reads.push(which);
        }
        self.lebs[read.leb].readers -= 1;
        read
    }

    pub(crate) fn read_done(&mut self, which: u32, result: Result<(), Error>) {
        let read = self.take_read(which);
        let ReadFor::Request { tag, .. } = read.purpose else {
            // The medium failed it as a whole: none of its sectors can be moved.
            let unreadable = vec![None; read.count as usize];
            self.groom_read_done(id::READ | u64::from(which), &read, &unreadable);
            return;
        };
        let pending = &mut self.pending_reads[tag as usize];
        pending.parts -= 1;
        pending.error = pending.error.or(result.err());
        if pending.parts == 0 {
            let result = pending.error.map_or(Ok(()), Err);
            self.stats.read_errors += u64::from(result.is_err() && !pending.ahead);
            self.answer(tag, result);
        }
    }

    /// A groom read is done: for each of its slots the header that stands there, `None` where the check failed.
    pub fn groomed(&mut self, command: u64, headers: &[Option<Header>]) {
        let (_, which) = id::split(command);
        let read = self.take_read(which as u32);
        assert_eq!(headers.len(), read.count as usize);
        self.groom_read_done(command, &read, headers);
        self.work();
    }
}
