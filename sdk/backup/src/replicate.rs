//! From one device to another, again and again.

use std::ops::Range;

use openvsl::Device;

use crate::backup::{Found, read};
use crate::writes::{Writes, check_fits};
use crate::{BackupError, Progress};

/// The moment up to which a replica was made: the snapshots of both devices that show it, by
/// [`Capabilities::snapshot`](openvsl::Capabilities::snapshot).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// Of the device that is replicated.
    pub source: u64,
    /// Of its replica.
    pub target: u64,
}

/// Makes `target` hold what the snapshot does that `source` shows, and flushes it. With a base only what the source changed since then is
/// copied, and what somebody changed on the target, an interrupted replication among them. Sector sizes may differ. Returns how many bytes of data
/// were copied.
///
/// # Errors
/// [`BackupError::NoSnapshot`] if the source shows none, [`BackupError::NotOlder`] if the base is not older, [`BackupError::TooSmall`] or
/// [`BackupError::SectorSize`] if the target does not fit: nothing was changed then. If a device fails or `progress` returned false, the target holds
/// a part of what changed, and the next replication from the same base completes it.
pub fn replicate(
    source: &Device,
    target: &Device,
    base: Option<Base>,
    progress: impl FnMut(Progress) -> bool,
) -> Result<u64, BackupError> {
    let (from, to) = (source.capabilities(), target.capabilities());
    let shown = from.snapshot.ok_or(BackupError::NoSnapshot)?;
    if base.is_some_and(|base| base.source >= shown) {
        return Err(BackupError::NotOlder { since: "the replica".into() });
    }
    check_fits(from.sector_bytes, from.sectors, target)?;
    let mut copy =
        Copy { source, writes: Writes::to(target), sector: from.sector_bytes.into(), data_bytes: 0, progress };
    let (sector, target_bytes) = (u64::from(to.sector_bytes), to.sectors * u64::from(to.sector_bytes));
    match base {
        None => copy.all_of(0..target_bytes)?,
        Some(base) => {
            for changed in target.changes(base.target, ..) {
                let (changed, _) = changed?;
                copy.all_of(changed.start * sector..changed.end * sector)?;
            }
            copy.ranges(source.changes(base.source, ..))?;
        }
    }
    copy.writes.wait()?;
    target.flush()?;
    Ok(copy.data_bytes)
}

/// A copy under way.
struct Copy<'a, P> {
    source: &'a Device,
    writes: Writes<'a>,
    /// Bytes of a sector of the source.
    sector: u64,
    data_bytes: u64,
    progress: P,
}

impl<P: FnMut(Progress) -> bool> Copy<'_, P> {
    /// Makes the target hold what the source shows in these bytes; behind the source's end, nothing.
    fn all_of(&mut self, bytes: Range<u64>) -> Result<(), BackupError> {
        let sectors = self.source.capabilities().sectors;
        let end = sectors * self.sector;
        let within = bytes.start / self.sector..bytes.end.div_ceil(self.sector).min(sectors);
        if !within.is_empty() {
            self.ranges(with_gaps(self.source, within))?;
        }
        match bytes.start.max(end) {
            behind if behind < bytes.end => self.writes.clear(behind, bytes.end),
            _ => Ok(()),
        }
    }

    /// Copies these ranges of the source.
    fn ranges(&mut self, ranges: impl Iterator<Item = Found>) -> Result<(), BackupError> {
        let (source, sectors) = (self.source, self.source.capabilities().sectors);
        read(source, ranges, |piece, data| {
            let (from, to) = (piece.lba() * self.sector, piece.end() * self.sector);
            match data {
                Some(data) => {
                    self.data_bytes += data.len() as u64;
                    self.writes.put(from, &data)?;
                }
                None => self.writes.clear(from, to)?,
            }
            let progress = Progress { lba: piece.end(), sectors, data_bytes: self.data_bytes };
            if (self.progress)(progress) { Ok(()) } else { Err(BackupError::Stopped) }
        })
    }
}

/// The ranges of a device that hold data, and those between them that do not.
fn with_gaps(device: &Device, within: Range<u64>) -> impl Iterator<Item = Found> {
    let Range { start, end } = within;
    let mut at = start;
    let held = device.ranges(start..end).map(Some).chain([None]);
    held.flat_map(move |held| {
        let (range, error) = match held {
            Some(Ok(range)) => (range, None),
            Some(Err(error)) => (at..at, Some(Err(error))),
            None => (end..end, None),
        };
        let gap = at..range.start;
        at = range.end;
        let parts = [(gap, false), (range, true)].into_iter().filter(|(range, _)| !range.is_empty());
        error.into_iter().chain(parts.map(Ok))
    })
}
