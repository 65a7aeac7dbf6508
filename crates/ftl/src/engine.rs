//! The interpreter of the layer's commands: every device carries them out through it, whether it holds bytes, on which medium and in
//! whatever time.

use std::ops::Range;

use crate::checkpoint::Anchor;
use crate::layer::Ftl;
use crate::trims::TrimRecord;
use crate::types::{BufId, Command, Header, LebId, PageAt, ReadFor, Slot, Source, Tag};

/// Slots of one page that the layer asks for, see [`Command::Read`].
#[derive(Clone, Copy, Debug)]
pub struct SlotRead {
    /// Which page.
    pub page: PageAt,
    /// First slot in the page.
    pub at: u32,
    /// How many slots.
    pub count: u32,
    /// The slot number of the first.
    pub slot: Slot,
    /// Anything older than this is stale.
    pub min_seq: u64,
    /// What it is for.
    pub purpose: ReadFor,
}

impl SlotRead {
    /// The slots.
    pub fn slots(&self) -> Range<Slot> {
        self.slot..self.slot + self.count
    }
}

/// Carries out what the layer wants done. Each function is the [`Command`] of its name; those that do nothing by themselves concern
/// bytes, which not every engine keeps.
pub trait Engine {
    /// What comes with the write that is being taken: its bytes, where bytes are kept.
    type Payload<'a>: Copy;

    /// The layer whose commands these are.
    fn layer(&mut self) -> &mut Ftl;

    /// See [`Command::Stage`].
    fn stage(&mut self, buf: BufId, at: u32, count: u32, header: &Header, source: &Source, payload: Self::Payload<'_>);

    /// See [`Command::Read`].
    fn read(&mut self, id: u64, read: SlotRead);

    /// See [`Command::Program`].
    fn program(&mut self, id: u64, page: PageAt, bytes: Range<u32>, buf: BufId);

    /// See [`Command::Erase`].
    fn erase(&mut self, id: u64, leb: LebId);

    /// See [`Command::Allocate`].
    fn allocate(&mut self, id: u64, _leb: LebId) {
        self.layer().complete(id, Ok(()));
    }

    /// See [`Command::Sync`].
    fn sync(&mut self, id: u64) {
        self.layer().complete(id, Ok(()));
    }

    /// See [`Command::Anchor`].
    fn anchor(&mut self, id: u64, _anchor: &Anchor) {
        self.layer().complete(id, Ok(()));
    }

    /// See [`Command::Take`].
    fn take(&mut self, _buf: BufId, _page: PageAt, _opened: u64) {}

    /// See [`Command::Release`].
    fn release(&mut self, _buf: BufId) {}

    /// See [`Command::Record`].
    fn record(&mut self, _header: &Header, _record: &TrimRecord) {}

    /// See [`Command::Blank`].
    fn blank(&mut self, _buf: BufId, _at: u32, _count: u32) {}

    /// See [`Command::Copy`].
    fn copy(&mut self, _tag: Tag, _first: u32, _count: u32, _buf: BufId, _at: u32) {}

    /// See [`Command::Zero`].
    fn zero(&mut self, _tag: Tag, _first: u32, _count: u32) {}

    /// See [`Command::Finish`].
    fn finish(&mut self, _leb: LebId) {}

    /// See [`Command::Forget`].
    fn forget(&mut self, _id: u64) {}

    /// Carries out every command there is. `payload` belongs to the write that is being taken.
    #[inline]
    fn carry_out(&mut self, payload: Self::Payload<'_>) {
        while let Some(commands) = self.layer().take_commands() {
            for command in commands.iter() {
                self.execute(command, payload);
            }
            self.layer().carried_out(commands);
        }
    }

    /// Carries out one command.
    #[inline]
    fn execute(&mut self, command: &Command, payload: Self::Payload<'_>) {
        match *command {
            Command::Stage { buf, at, count, ref header, ref source } => {
                self.stage(buf, at, count, header, source, payload);
            }
            Command::Program { id, page, start, end, buf } => self.program(id, page, start..end, buf),
            Command::Read { id, page, at, count, slot, min_seq, purpose } => {
                self.read(id, SlotRead { page, at, count, slot, min_seq, purpose });
            }
            Command::Take { buf, page, opened } => self.take(buf, page, opened),
            Command::Release { buf } => self.release(buf),
            Command::Record { ref header, ref record } => self.record(header, record),
            Command::Blank { buf, at, count } => self.blank(buf, at, count),
            Command::Copy { tag, first, count, buf, at } => self.copy(tag, first, count, buf, at),
            Command::Zero { tag, first, count } => self.zero(tag, first, count),
            Command::Finish { leb } => self.finish(leb),
            Command::Forget { id } => self.forget(id),
            Command::Allocate { id, leb } => self.allocate(id, leb),
            Command::Erase { id, leb } => self.erase(id, leb),
            Command::Sync { id } => self.sync(id),
            Command::Anchor { id, ref anchor } => self.anchor(id, anchor),
        }
    }
}
