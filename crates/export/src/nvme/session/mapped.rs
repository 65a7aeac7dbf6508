//! Where data stand on a device, for a host that asks.

use device::{Device, Extent};
use nvme::nvm::Range;
use nvme::vendor::Mapped;

/// Mapped sectors that one command looks at, at most: looking takes the device's thread, and so long that others do not feel it.
const SECTORS: u64 = 1 << 18;
/// So many sectors without data cost as much to look at as one with data.
const EMPTY_SHIFT: u32 = 8;

/// The first ranges of blocks with data in a range of the device, so many at most. A block has data when any of its sectors has.
pub(super) fn ranges(device: &Device, range: Range, most: usize, block_shift: u8) -> Mapped {
    let shift = device.info().sector_bytes.trailing_zeros();
    let sectors = 1u64 << (u32::from(block_shift) - shift);
    let (mut at, end) = (range.offset >> shift, (range.offset + range.len) >> shift);
    let (mut looked, mut mapped) = (0, Mapped::default());
    while at < end && looked < SECTORS {
        let Extent { mapped: here, .. } = device.extent(at, 1);
        let limit = if here { SECTORS } else { SECTORS << EMPTY_SHIFT };
        let Extent { count, .. } = device.extent(at, (end - at).min(limit));
        if here {
            let (first, behind) = (at / sectors, (at + count).div_ceil(sectors));
            let full = mapped.ranges.len() == most;
            match mapped.ranges.last_mut() {
                Some((start, blocks)) if *start + *blocks >= first => *blocks = behind - *start,
                _ if full => break,
                _ => mapped.ranges.push((first, behind - first)),
            }
        }
        looked += if here { count } else { 1 + (count >> EMPTY_SHIFT) };
        at += count;
    }
    let told = mapped.ranges.last().map_or(0, |(first, blocks)| first + blocks);
    mapped.next = told.max(at / sectors);
    mapped
}
