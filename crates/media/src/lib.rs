//! Where bits live: memory, files and block devices, behind one seam.
//!
//! [`Media`] is that seam: geometry, submit a command, collect what is done. Commands run
//! concurrently and finish in any order; only [`Command::Sync`] orders anything: when it and all
//! that were submitted before it are done, and none has failed, every program that was *done before
//! it was submitted* survives a power cut.

pub mod arena;
pub mod backing;
mod cached;
pub mod drill;
pub mod file;
pub mod flashback;
mod growing;
mod lock;
mod maintain;
pub mod memory;
pub mod nand;
pub mod object;
pub mod page;
pub mod ring;
pub mod sim;
mod space;
mod stack;
pub mod staged;
mod transfer;
mod under;
pub mod witness;

pub use backing::{Backing, OpenError};
pub use cached::CachedFile;
pub use file::{FileMedia, FileOptions};
pub use flashback::{DieState, Flashback};
pub use ftl::{Geometry, PageAddr};
pub use growing::Growing;
pub use memory::Memory;
pub use page::{Page, PageBuf};
pub use space::FileSystem;
pub use stack::{Base, Drilled, Stack};
pub use under::is_same_disk;
pub use witness::{Witness, WitnessError};

use std::ops::Range;

/// What a medium can be told to do.
#[derive(Debug)]
pub enum Command {
    /// Read `bytes` of a page. Done with a [`Slice`] of at least those bytes.
    Read {
        /// Which page.
        at: PageAddr,
        /// Which of its bytes; any alignment.
        bytes: Range<u32>,
    },
    /// Read `bytes` of a page, whole slots, as far as redundancy can tell what they should be: the slots that pass their check and
    /// are not older than `min_seq`; zeros in the place of others. A medium without redundancy fails it with
    /// [`MediaError::Lost`].
    Rebuild {
        /// Which page.
        at: PageAddr,
        /// Which of its bytes.
        bytes: Range<u32>,
        /// The lowest sequence number that serves.
        min_seq: u64,
    },
    /// Program `bytes` of a page from the same bytes of `page`.
    /// Those bytes of the buffer must stay as they are until the program is done.
    Program {
        /// Which page.
        at: PageAddr,
        /// Which of its bytes: whole program units, never programmed before since the last erase.
        bytes: Range<u32>,
        /// The page's buffer, from [`Media::page`].
        page: Page,
    },
    /// Make sure that the block's space exists on every die before it is written
    /// (a file reserves it, so that a full disk shows here and not in a program).
    Allocate {
        /// Which block, on every die.
        block: u32,
    },
    /// Like [`Command::Allocate`], for a block whose content nobody needs: where the store has something to note of blocks that are
    /// written for the first time, they are written now, so that a [`Command::Sync`] of what is programmed there has less to do.
    /// The block then reads as before or as zeros; until a sync a power cut can undo it, on each die and page by itself.
    Fill {
        /// Which block, on every die.
        block: u32,
    },
    /// Forget a block's content on every die; its space goes back to whoever lent it.
    /// It then reads as zeros, or as before where the backing store cannot forget (some block
    /// devices); until a [`Command::Sync`] a power cut can undo it, on each die and page by itself.
    Erase {
        /// Which block, on every die.
        block: u32,
    },
    /// Make every program that is done durable.
    Sync,
    /// Write one of the two label copies on every die, durably when done. At most [`LABEL_BYTES`];
    /// what a shorter one leaves of the copy is unspecified. A power cut can tear it.
    WriteLabel {
        /// 0 or 1.
        copy: u8,
        /// The bytes, one entry a die.
        bytes: Vec<Vec<u8>>,
    },
}

/// Room for one label copy (the superblock), bytes. Two copies stand in front of the first block.
pub const LABEL_BYTES: u32 = 64 * 1024;

/// Bytes in front of block 0 of every die: two label copies, rest reserved.
pub const LABEL_AREA_BYTES: u64 = 1024 * 1024;

/// Part of a buffer that the medium filled.
#[derive(Debug)]
pub struct Slice {
    /// The buffer.
    pub page: Page,
    /// Where in it the bytes that were asked for begin.
    pub offset: usize,
    /// How many bytes were asked for.
    pub len: usize,
}

impl Slice {
    /// The bytes that were asked for.
    pub fn bytes(&self) -> &[u8] {
        self.page.bytes(self.offset..self.offset + self.len)
    }
}

/// A command that is done.
#[derive(Debug)]
pub struct Done {
    /// The id given to [`Media::submit`].
    pub id: u64,
    /// What a read gave (`None` for every other command), or why it failed.
    pub result: Result<Option<Slice>, MediaError>,
}

/// Why a media command failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    /// The backing store has no room left.
    #[error("no space left on the backing store")]
    NoSpace,
    /// The backing store ended before the bytes that were asked for.
    #[error("the backing store is shorter than its format says")]
    Truncated,
    /// The operating system refused or failed the command.
    #[error("{0}")]
    Os(rustix::io::Errno),
    /// The operating system failed a command for all dies on some of them.
    #[error("die {}: {error}", .dies.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    Dies {
        /// Which dies.
        dies: Vec<u32>,
        /// Why, on the first of them.
        error: rustix::io::Errno,
    },
    /// The die is out of service, or what it held cannot be rebuilt.
    #[error("lost with a die that is out of service")]
    Lost,
    /// Another host has taken the device over.
    #[error("another host has taken the device over")]
    Fenced,
}

impl From<rustix::io::Errno> for MediaError {
    fn from(error: rustix::io::Errno) -> MediaError {
        match error {
            rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT => MediaError::NoSpace,
            error => MediaError::Os(error),
        }
    }
}

/// A medium. Used from one thread.
pub trait Media {
    /// Its shape.
    fn geometry(&self) -> &Geometry;

    /// A page buffer to fill and program, [`Geometry::page_bytes`] long. Its content is unspecified.
    fn page(&mut self) -> Page;

    /// Takes a command. A medium that finishes it on the spot returns it done; otherwise it comes
    /// out of [`Media::poll`] later.
    fn submit(&mut self, id: u64, command: Command) -> Option<Done>;

    /// The next finished command, never waiting. It makes no system call: what was submitted goes to the kernel
    /// when its user waits, here or on the ring.
    fn poll(&mut self) -> Option<Done>;

    /// Whether [`Media::poll`] has something that no completion of the ring will announce.
    fn has_done(&self) -> bool {
        false
    }

    /// Waits until [`Media::poll`] has something, when commands are under way; at once otherwise.
    fn wait(&mut self);

    /// Reads one label copy of one die, at attach: [`LABEL_BYTES`], zeros where nothing was written.
    ///
    /// # Errors
    /// The medium could not be read.
    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError>;

    /// Bytes of the backing store in use now, over all dies (a sparse file's blocks), if known.
    fn allocated_bytes(&self) -> Option<u64>;

    /// Bytes left on the file systems of its backing files, the least of them; `None` where nobody knows.
    fn free_bytes(&self) -> Option<u64>;

    /// Up to which byte of a block, counted over its pages on one die, something may stand in it that was written once; all of it where nobody
    /// knows.
    fn written_end(&mut self, block: u32) -> u64 {
        match self.inner() {
            Some(inner) => inner.written_end(block),
            None => self.geometry().block_bytes(),
        }
    }

    /// The medium that this one stands in front of. What a decorator does not do itself goes there, so that none can forget to pass
    /// it on; where there is none, the medium cannot do it.
    fn inner(&mut self) -> Option<&mut dyn Media>;

    /// Does nothing with a die from now on: commands for all dies pass it by, others for it fail.
    fn leave_out(&mut self, die: u32) {
        if let Some(inner) = self.inner() {
            inner.leave_out(die);
        }
    }

    /// Uses a die again that was left out.
    fn take_back(&mut self, die: u32) {
        if let Some(inner) = self.inner() {
            inner.take_back(die);
        }
    }

    /// Lets go of the backing file of a die that was left out, lock and all, so that it can be opened again.
    fn let_go(&mut self, die: u32) {
        if let Some(inner) = self.inner() {
            inner.let_go(die);
        }
    }

    /// Takes another backing file in the place of a die that was left out.
    ///
    /// # Errors
    /// It does not fit, or this medium has no backing files.
    fn replace(&mut self, die: u32, backing: Backing) -> Result<(), MediaError> {
        self.inner().map_or(UNABLE, |inner| inner.replace(die, backing))
    }

    /// Its backing files, to be made longer before [`Media::grow`].
    ///
    /// # Errors
    /// The process has no descriptor left.
    fn growing(&mut self) -> Result<Vec<Growing>, OpenError> {
        self.inner().map_or(Ok(Vec::new()), |inner| inner.growing())
    }

    /// Has so many blocks from now on, no fewer than before; the new ones hold nothing.
    ///
    /// # Errors
    /// A backing file is too short, or this medium cannot do it.
    fn grow(&mut self, blocks: u32) -> Result<(), MediaError> {
        let _ = blocks;
        UNABLE
    }

    /// Changes bytes of a page where they lie, behind everybody's back, at once: how fault drills make rot and torn writes.
    /// `change` is given the bytes as they are.
    ///
    /// # Errors
    /// It failed, or this medium cannot do it.
    fn tamper(&mut self, at: PageAddr, bytes: Range<u32>, change: &mut dyn FnMut(&mut [u8])) -> Result<(), MediaError> {
        self.inner().map_or(UNABLE, |inner| inner.tamper(at, bytes, change))
    }
}

/// What a medium answers that cannot do something.
const UNABLE: Result<(), MediaError> = Err(MediaError::Os(rustix::io::Errno::NOTSUP));
