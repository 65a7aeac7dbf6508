//! Where data stand on a device, or what differs from a snapshot, for a host that asks.

use device::SnapshotError;
use nvme::Namespace;
use nvme::nvm::Range;
use nvme::vendor::Mapped;

use crate::served::Served;

/// Mapped sectors that one command looks at, at most: looking takes the device's thread, and so long that others do not feel it.
const SECTORS: u64 = 1 << 18;
/// So many sectors without data cost as much to look at as one with data.
const EMPTY_SHIFT: u32 = 8;
/// What a look at what snapshots see costs, at least.
const LOOK: u64 = 1 << 7;

/// The first ranges of blocks with data in a range of the device, so many at most. A block has data when any of its sectors has. With
/// `since` those that differ from that snapshot. A block differs when any of its sectors does.
///
/// # Errors
/// A snapshot that is looked at was deleted.
pub(super) fn ranges(
    device: &Served,
    range: Range,
    most: usize,
    since: Option<u64>,
    namespace: &Namespace,
) -> Result<Mapped, SnapshotError> {
    let (shift, view) = (device.info().sector_bytes.trailing_zeros(), namespace.snapshot);
    let sectors = 1u64 << (u32::from(namespace.block_shift) - shift);
    let (mut at, end) = (range.offset >> shift, (range.offset + range.len) >> shift);
    let (mut looked, mut mapped) = (0, Mapped::default());
    while at < end && looked < SECTORS {
        // How many sectors, and whether they hold data, where they are to be told of.
        let (count, told) = match (since, view) {
            (Some(since), _) => device.compare(Some(since), view, at, end - at)?,
            (None, Some(_)) => {
                let extent = device.extent_in(view, at, end - at)?;
                (extent.count, extent.mapped.then_some(true))
            }
            (None, None) => {
                let here = device.extent(at, 1).mapped;
                let limit = if here { SECTORS } else { SECTORS << EMPTY_SHIFT };
                (device.extent(at, (end - at).min(limit)).count, here.then_some(true))
            }
        };
        if let Some(holds) = told
            && !put(&mut mapped, (at, at + count), holds, sectors, most)
        {
            break;
        }
        let cost = if told.is_some() { count } else { 1 + (count >> EMPTY_SHIFT) };
        looked += if since.or(view).is_some() { cost.max(LOOK) } else { cost };
        at += count;
    }
    let told = mapped.ranges.last().map_or(0, |(first, blocks, _)| first + blocks);
    mapped.next = told.max(at / sectors);
    Ok(mapped)
}

/// Adds a run of sectors to ranges of blocks; false where that would be more than `most`. What is empty in part only counts as holding
/// data.
fn put(mapped: &mut Mapped, (at, end): (u64, u64), holds: bool, sectors: u64, most: usize) -> bool {
    let (first, behind) = (at / sectors, end.div_ceil(sectors));
    let (inner, inner_end) = (at.div_ceil(sectors), end / sectors);
    let parts = match holds || inner >= inner_end {
        true => [(first, behind, true), (behind, behind, true), (behind, behind, true)],
        false => [(first, inner, true), (inner, inner_end, false), (inner_end, behind, true)],
    };
    for (first, behind, holds) in parts {
        let full = mapped.ranges.len() >= most;
        match mapped.ranges.last_mut() {
            _ if first == behind => {}
            Some((start, blocks, known)) if *known == holds && *start + *blocks >= first => *blocks = behind - *start,
            _ if full => return false,
            _ => mapped.ranges.push((first, behind - first, holds)),
        }
    }
    true
}
