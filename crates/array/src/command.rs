//! What an array asks of its members, and what they answer.

use std::ops::Range;
use std::sync::Arc;

use device::{BatchOp, Extent, Io, IoError};

/// A request to a member.
#[derive(Debug)]
pub struct Command {
    /// The member's position.
    pub member: usize,
    /// What its answer is told by.
    pub tag: u64,
    /// The request.
    pub what: What,
}

/// What is asked. Addresses and counts are in sectors of the member. Data is shared, since every copy of a mirror takes the same.
#[derive(Debug)]
pub enum What {
    /// Read into this buffer.
    Read {
        /// First sector.
        lba: u64,
        /// Comes back filled.
        buf: Vec<u8>,
    },
    /// Write.
    Write {
        /// First sector.
        lba: u64,
        /// Holds what is written.
        data: Arc<[u8]>,
        /// Where in `data` it lies.
        part: Range<usize>,
        /// Durable when answered.
        fua: bool,
    },
    /// Carry out all of these or none.
    Batch {
        /// Writes and trims.
        ops: Arc<[BatchOp]>,
        /// What the writes write, in the order of `ops`.
        data: Arc<[u8]>,
        /// Durable when answered.
        fua: bool,
    },
    /// Make sectors read as zeros, without space on media.
    Zeroes {
        /// First sector.
        lba: u64,
        /// How many.
        count: u64,
        /// Durable when answered.
        fua: bool,
    },
    /// Everything answered before is durable when this is answered.
    Flush,
    /// How far the sectors from `lba` on are all mapped, or all not.
    Extent {
        /// First sector.
        lba: u64,
        /// At most so many.
        max: u64,
    },
}

impl What {
    /// The same as a request to a device; nothing for [`What::Extent`], which is asked of `Device::extent`. The buffer of a read
    /// moves.
    pub fn io(&mut self) -> Option<Io<'_>> {
        Some(match self {
            What::Read { lba, buf } => Io::Read { lba: *lba, buf: std::mem::take(buf) },
            What::Write { lba, data, part, fua } => Io::Write { lba: *lba, data: &data[part.clone()], fua: *fua },
            What::Batch { ops, data, fua } => Io::Batch { ops, data, fua: *fua },
            What::Zeroes { lba, count, fua } => {
                Io::WriteZeroes { lba: *lba, count: *count, fua: *fua, allocate: false }
            }
            What::Flush => Io::Flush,
            What::Extent { .. } => return None,
        })
    }
}

impl What {
    /// Takes the buffer of a read back, when the device was busy.
    pub fn give_back(&mut self, io: Io<'_>) {
        if let (What::Read { buf, .. }, Io::Read { buf: back, .. }) = (self, io) {
            *buf = back;
        }
    }
}

/// A member's answer.
#[derive(Debug)]
pub enum Answer {
    /// It is done; with a read's filled buffer.
    Done(Option<Vec<u8>>),
    /// The run of sectors that was asked for.
    Extent(Extent),
}

/// How a member answers.
pub(crate) type Outcome = Result<Answer, IoError>;
