//! What the layer asks of the flash, and what the flash says to it.

use ftl::{Command, Header, Kind, ReadFor, Source, Tag};
use media::PageAddr;
use media::nand::Class;

use super::{Module, PASS};

/// Slots whose places in the map are fetched into the cache together: where pages of the host's memory are small, each takes a walk
/// through page tables, and these go on side by side.
const SLOTS_TOGETHER: u32 = 32;
/// So far ahead of a groom read they are; the groomer goes through a LEB from end to end.
const SLOTS_AHEAD: u32 = 64;

/// A groom read under way, by its number.
#[derive(Clone, Copy, Default)]
pub(super) struct GroomRead {
    slot: u32,
    count: u32,
}

impl Module {
    /// Carries out what the layer wants done.
    pub(super) fn carry_out(&mut self) {
        let mut commands = self.commands.take().unwrap_or_default();
        while self.ftl.take_commands(&mut commands) {
            for command in commands.iter() {
                self.execute(command);
            }
        }
        self.commands = Some(commands);
        while let Some(completion) = self.ftl.completion() {
            self.read_done(completion.tag, completion.result);
            self.next_reads();
        }
    }

    /// A read has ended: one that waited takes its place. Those that are done at once leave theirs to the next.
    fn next_reads(&mut self) {
        while !self.free_tags.is_empty()
            && let Some((tag, request)) = self.reads_waiting.pop_front()
        {
            self.read(tag, request);
        }
    }

    #[inline]
    fn execute(&mut self, command: &Command) {
        let sector = self.layout.geometry.sector_bytes;
        match *command {
            Command::Stage { count, ref header, ref source, .. } => {
                let slots = header.slot as usize..(header.slot + count) as usize;
                match source {
                    Source::Meta(_) => self.owners[slots].fill(0),
                    Source::Request { .. } | Source::Groom { .. } => {
                        for (owner, lba) in self.owners[slots].iter_mut().zip(header.lba + 1..) {
                            *owner = lba as u32;
                        }
                    }
                }
            }
            Command::Program { id, page, .. } => {
                let bytes = self.layout.geometry.slots_per_page * sector;
                self.nand.program(self.now, id, PageAddr { die: page.die, block: page.leb, page: page.page }, bytes);
            }
            Command::Read { id, page, count, slot, purpose, .. } => {
                let class = match purpose {
                    ReadFor::Request { tag, .. } => {
                        Class::Host { first: std::mem::take(&mut self.reading[tag as usize].fresh) }
                    }
                    ReadFor::Groom | ReadFor::Relocate => {
                        self.expect_groomed(id, slot, count);
                        Class::Groom
                    }
                };
                let at = PageAddr { die: page.die, block: page.leb, page: page.page };
                self.nand.read(self.now, id, at, count * sector, class);
            }
            Command::Erase { id, leb } => self.nand.erase(self.now, id, leb),
            Command::Allocate { id, .. } | Command::Sync { id } | Command::Anchor { id, .. } => {
                self.ftl.complete(id, Ok(()));
            }
            Command::Take { .. }
            | Command::Record { .. }
            | Command::Release { .. }
            | Command::Blank { .. }
            | Command::Finish { .. }
            | Command::Forget { .. }
            | Command::Zero { .. }
            | Command::Copy { .. } => {}
        }
    }

    /// Remembers a groom read, and fetches the books of sectors that come soon into the cache.
    fn expect_groomed(&mut self, id: u64, slot: u32, count: u32) {
        let number = (id & 0xffff_ffff) as usize;
        if self.groom_reads.len() <= number {
            self.groom_reads.resize(number + 1, GroomRead::default());
        }
        self.groom_reads[number] = GroomRead { slot, count };
        let ahead = slot + SLOTS_AHEAD;
        let begin = ahead - ahead % SLOTS_TOGETHER;
        if begin == self.fetched {
            return;
        }
        self.fetched = begin;
        let slots = begin..(begin + SLOTS_TOGETHER).min(self.owners.len() as u32);
        for slot in slots {
            let owner = self.owners[slot as usize];
            if owner != 0 && self.ftl.lebs().is_live(slot) {
                self.ftl.hint(u64::from(owner) - 1);
            }
        }
        // Owners lie in the order of slots.
        self.owners.prefetch((ahead + 8 * SLOTS_TOGETHER) as usize);
    }

    /// Tells the layer what the flash finished.
    pub(super) fn flash_done(&mut self, id: u64, ok: bool) {
        let number = (id & 0xffff_ffff) as usize;
        if id & PASS == PASS {
            self.read_done(number as Tag, Ok(()));
            self.next_reads();
            return self.carry_out();
        }
        let groomed = self.groom_reads.get_mut(number).filter(|_| id >> 56 == 1).map(std::mem::take);
        if let Some(GroomRead { slot, count: count @ 1.. }) = groomed {
            let mut headers = std::mem::take(&mut self.headers);
            headers.clear();
            let owners = &self.owners[slot as usize..(slot + count) as usize];
            headers.extend((slot..).zip(owners).map(|(slot, owner)| {
                let lba = u64::from(*owner).checked_sub(1)?;
                Some(Header { slot, seq: 0, kind: Kind::Data, lba, index: 0, remaining: 0, lag: 0 })
            }));
            self.ftl.groomed(id, &headers);
            self.headers = headers;
        } else {
            let result = if ok { Ok(()) } else { Err(ftl::Error::Media) };
            self.ftl.complete(id, result);
            let bad_blocks = self.nand.wear().bad_blocks();
            if bad_blocks != self.bad_blocks {
                self.bad_blocks = bad_blocks;
                self.update_health();
            }
        }
        self.carry_out();
    }
}
