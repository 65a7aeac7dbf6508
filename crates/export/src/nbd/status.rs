//! What BLOCK_STATUS tells of a range.

use device::{SnapshotError, SnapshotId};

use super::proto::{CHANGED, allocation};
use super::request::Limits;
use crate::served::Served;

/// Extents in one answer at most, for all of its contexts: a client asks on from where it ends.
const MAX_EXTENTS: usize = 1024;
/// Runs looked at for one context of an answer at most, as neighbours are merged.
const MAX_RUNS: u32 = 4096;

/// What a metadata context tells of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// `base:allocation`: where it holds data.
    Allocation,
    /// `openvsl:changed:SNAPSHOT`: where it differs from an older snapshot.
    ChangedSince(SnapshotId),
}

/// Runs of bytes from sector `lba` with their flags, and how many runs were looked at. At least one, not beyond `count` sectors, neighbours
/// always different. `share` contexts share the answer.
///
/// # Errors
/// A snapshot that is looked at was deleted.
pub fn describe(
    device: &Served,
    (context, share): (Context, usize),
    (lba, count): (u64, u64),
    limits: &Limits,
    one: bool,
) -> Result<(Vec<(u32, u32)>, u32), SnapshotError> {
    let look = |lba: u64, max: u64| {
        Ok::<_, SnapshotError>(match context {
            Context::ChangedSince(old) => {
                let (count, differs) = device.compare(Some(old), limits.view, lba, max)?;
                (count, if differs.is_some() { CHANGED } else { 0 })
            }
            Context::Allocation => {
                let extent = device.extent_in(limits.view, lba, max)?;
                (extent.count, if extent.mapped { 0 } else { allocation::HOLE | allocation::ZERO })
            }
        })
    };
    let mut extents: Vec<(u32, u32)> = Vec::new();
    let mut at = 0;
    let mut runs = 0;
    let most = if one { 1 } else { MAX_EXTENTS / share.max(1) };
    while at < count && runs < MAX_RUNS {
        let (run, flags) = look(lba + at, count - at)?;
        runs += 1;
        let run = run.clamp(1, count - at);
        // The request's length is 32 bits wide, and the runs lie inside it.
        let bytes = (run * u64::from(limits.sector_bytes)) as u32;
        at += run;
        let full = extents.len() == most;
        match extents.last_mut() {
            Some((last, known)) if *known == flags => *last += bytes,
            _ if full => break,
            _ => extents.push((bytes, flags)),
        }
    }
    Ok((extents, runs))
}
