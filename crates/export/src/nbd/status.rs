//! What BLOCK_STATUS tells of a range.

use device::Device;

use super::request::Limits;

/// Extents in one answer at most: a client asks on from where it ends.
const MAX_EXTENTS: usize = 1024;
/// Runs looked at for one answer at most, as neighbours are merged.
const MAX_RUNS: u32 = 4096;

/// Runs of bytes from sector `lba`, each mapped or not, and how many runs were looked at.
/// At least one, not beyond `count` sectors, neighbours always different.
pub fn describe(device: &Device, (lba, count): (u64, u64), limits: &Limits, one: bool) -> (Vec<(u32, bool)>, u32) {
    let mut extents: Vec<(u32, bool)> = Vec::new();
    let mut at = 0;
    let mut runs = 0;
    let most = if one { 1 } else { MAX_EXTENTS };
    while at < count && runs < MAX_RUNS {
        let run = match limits.view {
            None => device.extent(lba + at, count - at),
            Some(id) => device.snapshot_extent(id, lba + at, count - at),
        };
        runs += 1;
        // The request's length is 32 bits wide, and the runs lie inside it.
        let bytes = (run.count.clamp(1, count - at) * u64::from(limits.sector_bytes)) as u32;
        at += run.count.clamp(1, count - at);
        let full = extents.len() == most;
        match extents.last_mut() {
            Some((last, mapped)) if *mapped == run.mapped => *last += bytes,
            _ if full => break,
            _ => extents.push((bytes, run.mapped)),
        }
    }
    (extents, runs)
}
