//! The layer's vocabulary: requests in, commands out.

use std::ops::Range;

use crate::checkpoint::Anchor;
use crate::snapshot::SnapshotId;
use crate::trims::TrimRecord;

/// A place for one sector on media: LEB times [`crate::Geometry::slots_per_leb`] plus the slot in the LEB.
pub type Slot = u32;

/// The slot of a sector that is not mapped. Slot 0 always holds the header of LEB 0, never a host sector.
pub const NO_SLOT: Slot = 0;

/// A LEB, from 0.
pub type LebId = u32;

/// The caller's name for a request that is not answered on the spot: below [`crate::Config::requests`],
/// and not in use by another request.
pub type Tag = u32;

/// A page buffer of the device, below [`crate::Config::buffers`].
pub type BufId = u32;

/// A request, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Read `count` sectors from `lba` on.
    Read {
        /// First sector.
        lba: u64,
        /// How many.
        count: u32,
    },
    /// Read them as a snapshot sees them.
    ReadSnapshot {
        /// Which.
        id: SnapshotId,
        /// First sector.
        lba: u64,
        /// How many.
        count: u32,
    },
    /// Write them, all or none.
    Write {
        /// First sector.
        lba: u64,
        /// How many, at most [`crate::Config::max_request`].
        count: u32,
        /// Durable when answered.
        fua: bool,
    },
    /// Unmap them: they read as zeros.
    Trim {
        /// First sector.
        lba: u64,
        /// How many.
        count: u64,
        /// Durable when answered.
        fua: bool,
    },
    /// Carry out all of these or none, whatever a power cut leaves. No two of them may touch the same sector.
    Batch {
        /// In any order; the data of the writes stand one behind another in the order of these.
        ops: &'a [BatchOp],
        /// Durable when answered.
        fua: bool,
    },
    /// What was answered before is durable when this is answered.
    Flush,
}

/// An operation of a batch, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOp {
    /// Write `count` sectors from `lba` on.
    Write {
        /// First sector.
        lba: u64,
        /// How many, at least 1.
        count: u32,
    },
    /// Unmap them: they read as zeros.
    Trim {
        /// First sector.
        lba: u64,
        /// How many, at least 1.
        count: u64,
    },
}

impl BatchOp {
    /// The same so many sectors on.
    #[must_use]
    pub fn behind(&self, base: u64) -> BatchOp {
        match *self {
            BatchOp::Write { lba, count } => BatchOp::Write { lba: base + lba, count },
            BatchOp::Trim { lba, count } => BatchOp::Trim { lba: base + lba, count },
        }
    }

    /// The sectors that it touches.
    #[must_use]
    pub fn sectors(&self) -> Range<u64> {
        let (lba, count) = match *self {
            BatchOp::Write { lba, count } => (lba, u64::from(count)),
            BatchOp::Trim { lba, count } => (lba, count),
        };
        lba..lba.saturating_add(count)
    }
}

/// What [`crate::Ftl::submit`] did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Answered. The commands that came with it must still be carried out, in order.
    Done,
    /// Answered later through [`crate::Ftl::completion`].
    Pending,
    /// No room just now; nothing was changed. Ask again after some command completed.
    Busy,
    /// Refused; nothing was changed.
    Refused(Error),
}

/// Why a request or a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The backing store is full.
    #[error("no space left on the backing store")]
    NoSpace,
    /// As many sectors hold data as there is room for.
    #[error("no room for more data")]
    Full,
    /// The snapshot was deleted.
    #[error("there is no such snapshot")]
    NoSnapshot,
    /// The media failed, or what it gave failed its check.
    #[error("media error")]
    Media,
}

/// The answer to a pending request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which request.
    pub tag: Tag,
    /// How it ended.
    pub result: Result<(), Error>,
}

/// The kinds of slot on media. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A host sector.
    Data = 1,
    /// The first slot of a LEB: what the LEB is.
    LebHeader = 2,
    /// Trim records.
    Trims = 3,
    /// A piece of a checkpoint.
    Checkpoint = 4,
    /// Trim records of a batch, which count only together with the rest of it.
    BatchTrims = 5,
    /// A host sector that was moved while there were snapshots: in the place of index and remaining stands the slot that it came from.
    Moved = 6,
    /// A change of the snapshots.
    Snapshot = 7,
}

impl Kind {
    /// Whether a host sector stands there.
    pub const fn is_sector(self) -> bool {
        matches!(self, Kind::Data | Kind::Moved)
    }
}

impl TryFrom<u8> for Kind {
    type Error = u8;
    fn try_from(byte: u8) -> Result<Kind, u8> {
        Ok(match byte {
            1 => Kind::Data,
            2 => Kind::LebHeader,
            3 => Kind::Trims,
            4 => Kind::Checkpoint,
            5 => Kind::BatchTrims,
            6 => Kind::Moved,
            7 => Kind::Snapshot,
            other => return Err(other),
        })
    }
}

/// What stands behind a sector on media, apart from the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The slot that it was written to: a misplaced sector is known as such.
    pub slot: Slot,
    /// Its place in the order of everything ever appended.
    pub seq: u64,
    /// What the slot holds.
    pub kind: Kind,
    /// Host sector for [`Kind::Data`] and [`Kind::Moved`]; otherwise 0. Below 2^48.
    pub lba: u64,
    /// Its place in its write or batch, from 0.
    pub index: u16,
    /// How many slots of the write or batch follow.
    pub remaining: u16,
    /// `seq` minus the number below which everything was durable when this was appended; saturates.
    pub lag: u32,
}

impl Header {
    /// The slot that a [`Kind::Moved`] sector came from.
    pub const fn moved_from(&self) -> Slot {
        (self.index as Slot) << 16 | self.remaining as Slot
    }

    /// The header of the `i`-th sector after this one in a run of consecutive sectors.
    #[must_use]
    pub fn nth(&self, i: u32) -> Header {
        let step = i as u16;
        Header {
            slot: self.slot + i,
            seq: self.seq + u64::from(i),
            lba: self.lba + u64::from(i),
            index: self.index + step,
            remaining: self.remaining - step,
            lag: self.lag.saturating_add(i),
            ..*self
        }
    }
}

/// The address of a page: the same block number on every die makes a LEB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageAddr {
    /// Die, from 0.
    pub die: u32,
    /// Erase block on the die, from 0: the number of the LEB.
    pub block: u32,
    /// Page in the erase block, from 0.
    pub page: u32,
}

/// Where staged bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the payload of a write, beginning with its `first` sector.
    Request {
        /// Which request.
        tag: Tag,
        /// Sector of the request.
        first: u32,
    },
    /// From a groom read that completed, beginning with slot `first` of the page.
    Groom {
        /// Which read.
        id: u64,
        /// Slot of the page.
        first: u32,
    },
    /// These bytes, padded with zeros to a sector.
    Meta(Vec<u8>),
}

/// What a read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFor {
    /// Sectors `first..` of a read request; their addresses are `lba..`.
    Request {
        /// Which request.
        tag: Tag,
        /// Sector of the request.
        first: u32,
        /// Host sector expected in the first slot.
        lba: u64,
        /// It is the first read of its request, which pays what a request costs.
        begins: bool,
    },
    /// The groomer: report with [`crate::Ftl::groomed`] what each slot holds.
    Groom,
    /// A single sector that is to be written elsewhere; reported as for the groomer.
    Relocate,
    /// Sectors that are to be written once more by address; reported as for the groomer.
    Optimise,
}

/// What the layer wants done. Commands are carried out in the order they come out; those marked *async* may
/// finish in any order and are reported with [`crate::Ftl::complete`].
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Give buffer `buf` fresh memory.
    Take {
        /// Which buffer.
        buf: BufId,
        /// The page that it will hold.
        page: PageAddr,
        /// When the page's LEB was opened: nothing that is staged there is older.
        opened: u64,
    },
    /// What the buffer held is on media, and nobody reads it from there any more.
    Release {
        /// Which buffer.
        buf: BufId,
    },
    /// A trim's record, which is staged later, together with others in one slot. Until then it stands in the layer's memory only.
    Record {
        /// The header of the slot.
        header: Header,
        /// The record.
        record: TrimRecord,
    },
    /// Fill slots of a buffer with zeros: nothing will stand in them, and what redundancy is made of must be known to those who solve for it.
    Blank {
        /// Which buffer.
        buf: BufId,
        /// First slot of the page.
        at: u32,
        /// How many.
        count: u32,
    },
    /// Put `count` sectors with their headers into a buffer.
    Stage {
        /// Which buffer.
        buf: BufId,
        /// Slot in the page.
        at: u32,
        /// How many slots; the headers are [`Header::nth`].
        count: u32,
        /// Header of the first.
        header: Header,
        /// Where the sectors come from.
        source: Source,
    },
    /// Nothing more is appended to the LEB: what redundancy it has may be completed.
    Finish {
        /// Which LEB.
        leb: LebId,
    },
    /// The groom read's buffer is no longer needed.
    Forget {
        /// Which read.
        id: u64,
    },
    /// Sectors of a read request that are zeros.
    Zero {
        /// Which request.
        tag: Tag,
        /// Sector of the request.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Sectors of a read request that are still in a buffer.
    Copy {
        /// Which request.
        tag: Tag,
        /// Sector of the request.
        first: u32,
        /// How many.
        count: u32,
        /// Which buffer.
        buf: BufId,
        /// Slot in the page.
        at: u32,
    },
    /// *Async.* Read slots of one page and check them.
    Read {
        /// For `complete` (or `groomed`).
        id: u64,
        /// Which page.
        page: PageAddr,
        /// First slot in the page.
        at: u32,
        /// How many slots.
        count: u32,
        /// The slot number of the first.
        slot: Slot,
        /// Anything older than this is stale.
        min_seq: u64,
        /// What it is for.
        purpose: ReadFor,
    },
    /// *Async.* Program bytes of a page from its buffer.
    Program {
        /// For `complete`.
        id: u64,
        /// Which page.
        page: PageAddr,
        /// First byte.
        start: u32,
        /// One past the last byte.
        end: u32,
        /// From which buffer.
        buf: BufId,
    },
    /// *Async.* Make the LEB's space sure.
    Allocate {
        /// For `complete`.
        id: u64,
        /// Which LEB.
        leb: LebId,
        /// Fill it as well: flushes will cut it into many programs, and where blocks were written before, a file system has nothing
        /// to note of them.
        fill: bool,
    },
    /// *Async.* Erase the LEB.
    Erase {
        /// For `complete`.
        id: u64,
        /// Which LEB.
        leb: LebId,
    },
    /// *Async.* Make every program that is complete durable.
    Sync {
        /// For `complete`.
        id: u64,
    },
    /// *Async.* Make this the device's anchor, durably: the new checkpoint counts from then on.
    Anchor {
        /// For `complete`.
        id: u64,
        /// The anchor.
        anchor: Box<Anchor>,
    },
}
