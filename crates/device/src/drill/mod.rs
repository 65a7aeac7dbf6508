//! Fault drills: what goes wrong by command, on devices that are marked for it.
//!
//! The faults of the medium live in [`media::drill`]; what a card as a whole does (heat, the end of its life) in its controller.
//! A drill lasts until it is undone. A power cut ends the device: whoever drives it drops it and attaches it again.

mod carry_out;
mod error;
mod kind;

use std::fmt;
use std::path::PathBuf;

use media::drill::{CutReport, DrillMedia, Faults};
use media::{Base, Drilled};

pub use media::drill::Unsynced;

pub use self::error::DrillError;
pub use self::kind::Drill;

use crate::store::Store;
use crate::superblock::Superblock;
use crate::{FormatError, Info, Io, IoError};

/// Drills that go on after a power cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CarriedDrills {
    active: Vec<Drill>,
    faults: Faults,
}

impl CarriedDrills {
    /// Which they are.
    pub fn active(&self) -> &[Drill] {
        &self.active
    }
}

/// How the power of a device was cut.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerCut {
    /// What became of what no sync covered.
    pub report: CutReport,
    /// Drills that go on when it is switched on.
    pub drills: CarriedDrills,
}

impl fmt::Display for PowerCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CutReport { unsynced, seed, dropped, kept, torn } = self.report;
        let how = unsynced.name();
        write!(f, "not synced: {dropped} programs lost, {kept} kept, {torn} torn ({how}, seed {seed})")
    }
}

/// The drills of a device.
#[derive(Default)]
pub(crate) struct Drills {
    active: Vec<Drill>,
    /// Writes until the power goes.
    cut_at_write: Option<(u64, Unsynced, u64)>,
    ignore_flushes: bool,
    off: Option<PowerCut>,
}

impl Drills {
    /// What becomes of a request: as it is to be carried out, or its answer.
    pub fn admit<'a>(&self, io: Io<'a>) -> Result<Io<'a>, Result<Option<Vec<u8>>, IoError>> {
        if self.off.is_some() {
            return Err(Err(IoError::Media));
        }
        if !self.ignore_flushes {
            return Ok(io);
        }
        Ok(match io {
            Io::Flush => return Err(Ok(None)),
            Io::Write { lba, data, .. } => Io::Write { lba, data, fua: false },
            Io::Trim { lba, count, .. } => Io::Trim { lba, count, fua: false },
            Io::WriteZeroes { lba, count, allocate, .. } => Io::WriteZeroes { lba, count, fua: false, allocate },
            Io::Batch { ops, data, .. } => Io::Batch { ops, data, fua: false },
            io @ (Io::Read { .. } | Io::ReadSnapshot { .. }) => io,
        })
    }
}

/// Puts faults on command in front of a medium, where the device is marked for drills.
pub(crate) fn with_drills(media: Base, superblock: &Superblock, carried: &CarriedDrills) -> Drilled {
    if !superblock.drills {
        return Drilled::Plain(media);
    }
    let mut drill = DrillMedia::new(media, superblock.emulation.is_none());
    drill.set_faults(carried.faults.clone());
    Drilled::Drill(Box::new(drill))
}

/// Marks a detached device for drills, of which these are all the files; or takes the mark away.
///
/// # Errors
/// It cannot be opened, or a file is missing.
pub fn mark_for_drills(paths: &[PathBuf], on: bool) -> Result<Info, FormatError> {
    let mut store = Store::open(paths)?;
    let mut superblock = store.superblock.clone();
    superblock.drills = on;
    store.write(&mut superblock, &mut || true)?;
    Ok(Info::of(&superblock, &store.paths()))
}
