//! From sizes to a geometry: how a module is laid out on its backing files.

use ftl::{Geometry, TRAILER_BYTES};

use crate::{Capacity, FormatError, zones};

/// Slots in a page on files and in memory: 256 KiB of 4 KiB sectors, large enough for the disk's full sequential speed.
const PAGE_BYTES: u32 = 256 * 1024;
/// Files are programmed in pieces of this size: the page of the host's memory and of most disks.
const UNIT_BYTES: u32 = 4096;
/// The smallest LEB: twice the largest request.
const LEB_MIN: u64 = 2 << 20;
/// The largest LEB: a few are set aside on the backing store from the start, also on a sparse device.
const LEB_MAX: u64 = 256 << 20;
/// LEBs that a module has at most, where the largest LEB allows it.
const LEBS: u64 = 4096;
/// Backing files that a module has at most: what parity can tell apart.
const FILES_MAX: u32 = 64;
/// The largest request, bytes; the original's limit too.
pub(crate) const MAX_REQUEST_BYTES: u32 = 1 << 20;

/// The layout for a raw capacity. The store may come out up to one LEB larger.
/// It lies on `dies` backing files, `parity` of which hold parity in every stripe.
pub(crate) fn layout(raw_bytes: u64, sector_bytes: u32, dies: u32, parity: u32) -> Result<Geometry, FormatError> {
    if ![512, 1024, 2048, 4096].contains(&sector_bytes) {
        return Err(FormatError::Invalid {
            name: "sector size",
            value: sector_bytes.to_string(),
            expected: "512, 1024, 2048 or 4096 bytes".into(),
        });
    }
    if dies == 0 || parity >= dies || parity > 2 || dies > FILES_MAX {
        return Err(FormatError::Invalid {
            name: "parity",
            value: format!("{parity} of {dies} files"),
            expected: format!("0, 1 or 2, and less than the number of files, of which there can be {FILES_MAX}"),
        });
    }
    let data = u64::from(dies - parity);
    let slots_per_page = PAGE_BYTES / sector_bytes;
    // A power of two of LEBs is not needed, a power of two of bytes in each keeps them aligned with anything below.
    let leb_bytes = (raw_bytes / LEBS).max(1).next_power_of_two().clamp(LEB_MIN, LEB_MAX) * data;
    let pages_per_block = (leb_bytes / data / u64::from(PAGE_BYTES)) as u32;
    let blocks = raw_bytes.div_ceil(leb_bytes);
    let slots = u128::from(blocks) * u128::from(leb_bytes) / u128::from(sector_bytes);
    if slots >= u128::from(u32::MAX) {
        return Err(FormatError::Invalid {
            name: "raw size",
            value: format!("{raw_bytes} bytes"),
            expected: format!("less than {} bytes with {sector_bytes}-byte sectors", u64::from(sector_bytes) << 32),
        });
    }
    Ok(Geometry {
        dies,
        parity,
        blocks: blocks as u32,
        pages_per_block,
        slots_per_page,
        sector_bytes,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: UNIT_BYTES,
    })
}

/// Tiny modules have at most so many LEBs.
#[cfg(feature = "simulation")]
const TINY_BLOCKS: u32 = 4;

#[cfg(feature = "simulation")]
static TINY_ALLOWED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// From now on this process takes modules of four LEBs, which hold no more than what needs no groomer: the simulator tries everything
/// that can happen in their short lives.
#[cfg(feature = "simulation")]
pub fn allow_tiny_modules() {
    TINY_ALLOWED.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// The sectors of a tiny module, where such are allowed.
fn tiny_sectors(geometry: &Geometry) -> Option<u64> {
    #[cfg(feature = "simulation")]
    if geometry.blocks <= TINY_BLOCKS && TINY_ALLOWED.load(std::sync::atomic::Ordering::Relaxed) {
        return Some(u64::from(geometry.slots_per_leb() / 2));
    }
    let _ = geometry;
    None
}

/// The most sectors that a host may have on this geometry.
pub fn max_sectors(geometry: &Geometry) -> u64 {
    tiny_sectors(geometry).unwrap_or_else(|| ftl::max_sectors(geometry))
}

/// The most sectors of a host's address space: what the map keeps for those that are never written stays small.
const ADDRESS_SPACE_MAX: u64 = 1 << 38;

/// Whether a host may have so many sectors on this geometry, with this policy of the groomer: as many as may hold data at once, or an
/// address space above the raw capacity.
pub(crate) fn are_sectors(sectors: u64, geometry: &Geometry, policy: ftl::Policy) -> bool {
    match ftl::is_sparse(geometry, sectors) {
        true => sectors <= ADDRESS_SPACE_MAX && ftl::room(geometry, sectors) > 0 && !policy.keeps_each_sector(),
        false => (1..=max_sectors(geometry)).contains(&sectors),
    }
}

/// The fewest and the most sectors of a sparse address space on this geometry.
pub(crate) fn sectors_within(geometry: &Geometry) -> (u64, u64) {
    (geometry.slots() + 1, ADDRESS_SPACE_MAX)
}

/// Host sectors for a capacity.
pub(crate) fn sectors(capacity: Capacity, advertised: u64, geometry: &Geometry) -> Result<u64, FormatError> {
    let bytes = match capacity {
        Capacity::Advertised => advertised as f64,
        Capacity::Maximum => {
            (advertised as f64 * 1.1).min((max_sectors(geometry) * u64::from(geometry.sector_bytes)) as f64)
        }
        Capacity::HighPerformance => advertised as f64 * 0.8,
        Capacity::ImprovedWrite => advertised as f64 * 0.7,
        Capacity::MaximumWrite => advertised as f64 * 0.5,
        Capacity::Bytes(bytes) => bytes as f64,
        Capacity::Percent(percent) => advertised as f64 * percent / 100.0,
        Capacity::AddressSpace(bytes) => return address_space(bytes, geometry),
        Capacity::Zones(bytes) => return zones::shape(bytes, advertised, geometry).map(|zones| zones.sectors()),
    };
    let sectors = (bytes / f64::from(geometry.sector_bytes)) as u64;
    let max = max_sectors(geometry);
    if sectors == 0 || sectors > max || bytes.is_nan() {
        return Err(FormatError::Invalid {
            name: "capacity",
            value: format!("{bytes} bytes"),
            expected: format!(
                "{} to {} bytes on a raw capacity of {} bytes (the rest is what the groomer works in)",
                geometry.sector_bytes,
                max * u64::from(geometry.sector_bytes),
                geometry.raw_bytes()
            ),
        });
    }
    Ok(sectors)
}

/// Host sectors of an address space.
fn address_space(bytes: u64, geometry: &Geometry) -> Result<u64, FormatError> {
    let sectors = bytes / u64::from(geometry.sector_bytes);
    if ftl::is_sparse(geometry, sectors) && are_sectors(sectors, geometry, ftl::Policy::default()) {
        return Ok(sectors);
    }
    let sector = u64::from(geometry.sector_bytes);
    Err(FormatError::Invalid {
        name: "address space",
        value: format!("{bytes} bytes"),
        expected: match ftl::room(geometry, u64::MAX) {
            0 => format!("a larger raw capacity than {} bytes", geometry.raw_bytes()),
            _ => format!(
                "more than the raw capacity of {} bytes, and at most {} with {sector}-byte sectors",
                geometry.raw_bytes(),
                ADDRESS_SPACE_MAX * sector
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size from the smallest to the largest gives a layout that holds what it says.
    #[test]
    fn layouts_hold_what_they_say() {
        for sector in [512, 1024, 2048, 4096] {
            for shift in 26..42 {
                let raw = (1u64 << shift) + 12345;
                match layout(raw, sector, 1, 0) {
                    Ok(geometry) => {
                        assert!(geometry.raw_bytes() >= raw);
                        assert!(geometry.raw_bytes() < raw + LEB_MAX);
                        assert!(MAX_REQUEST_BYTES / sector + 1 < geometry.slots_per_leb());
                        let host = max_sectors(&geometry) * u64::from(sector);
                        assert!(shift < 28 || host as f64 > raw as f64 * 0.85, "{host} of {raw}");
                    }
                    Err(_) => assert!(raw >= (u64::from(sector) << 32) - LEB_MAX),
                }
            }
        }
    }
}
