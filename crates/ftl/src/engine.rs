//! The interpreter of the layer's commands: every device carries them out through it, whether it holds bytes, on which medium and in
//! whatever time.

use std::ops::Range;

use crate::layer::Ftl;
use crate::types::{BufId, Command, Header, LebId, PageAddr, ReadFor, Slot, Source};

/// Slots of one page that the layer asks for, see [`Command::Read`].
#[derive(Clone, Copy, Debug)]
pub struct SlotRead {
    /// Which page.
    pub page: PageAddr,
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

/// Carries out what the layer wants done.
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
    fn program(&mut self, id: u64, page: PageAddr, bytes: Range<u32>, buf: BufId);

    /// See [`Command::Erase`].
    fn erase(&mut self, id: u64, leb: LebId);

    /// A command that concerns a store's room or what survives a power cut. Where neither is at stake it is done at once.
    fn secure(&mut self, id: u64, _command: &Command) {
        self.layer().complete(id, Ok(()));
    }

    /// A command that concerns bytes in buffers and of reads. Where there are none, there is nothing to do.
    fn handle(&mut self, _command: &Command) {}

    /// Carries out every command there is. `payload` belongs to the write that is being taken.
    #[inline]
    fn carry_out(&mut self, payload: Self::Payload<'_>) {
        while let Some(commands) = self.layer().commands() {
            for command in &commands {
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
            Command::Erase { id, leb } => self.erase(id, leb),
            Command::Allocate { id, .. } | Command::Sync { id } | Command::Anchor { id, .. } => {
                self.secure(id, command);
            }
            Command::Take { .. }
            | Command::Release { .. }
            | Command::Record { .. }
            | Command::Blank { .. }
            | Command::Copy { .. }
            | Command::Zero { .. }
            | Command::Finish { .. }
            | Command::Forget { .. } => self.handle(command),
        }
    }
}
