//! What an array asks of its members, and what they answer.

use std::ops::Range;
use std::sync::Arc;

use device::{
    BatchOp, Device, Extent, Io, IoError, LayerError, Snapshot, SnapshotChange, SnapshotError, SnapshotId, Submitted,
};

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
    /// Read what the member held when it made this snapshot.
    ReadSnapshot {
        /// Its own number of the snapshot.
        id: SnapshotId,
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
    /// Change its snapshots; durable with the next flush.
    Snapshot(SnapshotChange),
}

/// What became of a request that a device was handed.
#[derive(Debug)]
pub enum Handed {
    /// It is answered.
    Answered(Result<Answer, IoError>),
    /// The device answers it under the tag.
    Pending,
    /// It is to be handed again, once the device has done something.
    Busy,
}

impl What {
    /// Hands it to a device under a tag. The buffer of a read moves, and comes back where the device is busy.
    pub fn hand_to(&mut self, device: &mut Device, tag: u64) -> Handed {
        let io = match self {
            What::Read { lba, buf } => Io::Read { lba: *lba, buf: std::mem::take(buf) },
            What::ReadSnapshot { id, lba, buf } => Io::ReadSnapshot { id: *id, lba: *lba, buf: std::mem::take(buf) },
            What::Write { lba, data, part, fua } => Io::Write { lba: *lba, data: &data[part.clone()], fua: *fua },
            What::Batch { ops, data, fua } => Io::Batch { ops, data, fua: *fua },
            What::Zeroes { lba, count, fua } => {
                Io::WriteZeroes { lba: *lba, count: *count, fua: *fua, allocate: false }
            }
            What::Flush => Io::Flush,
            What::Extent { lba, max } => return Handed::Answered(Ok(Answer::Extent(device.extent(*lba, *max)))),
            What::Snapshot(change) => return change_snapshots(device, change),
        };
        let back = match device.submit(tag, io) {
            Submitted::Done(result) => return Handed::Answered(result.map(Answer::Done)),
            Submitted::Pending => return Handed::Pending,
            Submitted::Busy(Io::Read { buf, .. } | Io::ReadSnapshot { buf, .. }) => Some(buf),
            Submitted::Busy(_) => None,
        };
        if let (What::Read { buf, .. } | What::ReadSnapshot { buf, .. }, Some(back)) = (self, back) {
            *buf = back;
        }
        Handed::Busy
    }
}

fn change_snapshots(device: &mut Device, change: &SnapshotChange) -> Handed {
    let answer = match device.begin_snapshot_change(change) {
        Ok(false) => return Handed::Busy,
        Err(SnapshotError::Failed(LayerError::Media)) => return Handed::Answered(Err(IoError::Media)),
        Err(error) => Err(error),
        Ok(true) => Ok(match change {
            SnapshotChange::Create { name, .. } => device.snapshot_named(name).cloned(),
            _ => None,
        }),
    };
    Handed::Answered(Ok(Answer::Snapshot(answer)))
}

/// A member's answer.
#[derive(Debug)]
pub enum Answer {
    /// It is done; with a read's filled buffer.
    Done(Option<Vec<u8>>),
    /// The run of sectors that was asked for.
    Extent(Extent),
    /// The snapshot that was made; nothing for another change.
    Snapshot(Result<Option<Snapshot>, SnapshotError>),
}

/// How a member answers.
pub(crate) type Outcome = Result<Answer, IoError>;
