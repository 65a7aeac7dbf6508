//! From a data sheet to a module that is a cache: so much of its flash as the cache is to have room for.

use ftl::{Geometry, Policy, room};
use profile::Module;

use crate::layout::{Layout, LayoutError, PAGES_MIN, shape};

/// The fewest LEBs of a cache: with less, the groomer would leave a large part of the cache behind at once.
const LEBS_MIN: u32 = 64;

/// Lays a module out as a cache with room for `bytes` in sectors of `sector` bytes, or of all of its flash, and with at least so many
/// addresses. As with [`crate::layout()`], blocks become shorter first, down to 16 pages, then fewer; dies, rates and times stay.
///
/// # Errors
/// The sector size does not fit the module, or the module cannot have room for just so much.
pub(crate) fn cache_layout(
    module: &Module,
    bytes: Option<u64>,
    sector: u32,
    sectors: u64,
) -> Result<Layout, LayoutError> {
    let mut shape = shape(module, sector, 1)?;
    let full = shape.geometry;
    let with = |pages_per_block: u32, blocks: u32| Geometry { pages_per_block, blocks, ..full };
    let room_of = |geometry: &Geometry| room(geometry, u64::MAX) * u64::from(sector);
    let shortest = full.pages_per_block.min(PAGES_MIN);
    let (min, max) = (room_of(&with(shortest, LEBS_MIN.min(full.blocks))), room_of(&full));
    let asked = bytes.unwrap_or(max);
    if asked < min || asked > max {
        return Err(LayoutError::Cache { bytes: asked, min, max });
    }
    let pages = full.pages_per_block / (max / asked).clamp(1, u64::from(full.pages_per_block / shortest)) as u32;
    // The room grows with the blocks: the fewest that have it. Shorter blocks hold a little less in all, since each begins with a header.
    let (mut below, mut blocks) = (LEBS_MIN.min(full.blocks) - 1, full.blocks);
    while blocks - below > 1 {
        let middle = below + (blocks - below) / 2;
        if room_of(&with(pages, middle)) >= asked { blocks = middle } else { below = middle }
    }
    let geometry = with(pages, blocks);
    shape.spares = (u64::from(shape.spares) * u64::from(blocks) / u64::from(full.blocks)) as u32;
    (shape.geometry, shape.erase_divisor) = (geometry, full.pages_per_block / pages);
    Ok(Layout {
        geometry,
        shape,
        // More than there are slots, or the address space would not count as sparse.
        sectors: sectors.max(geometry.slots() + 1).next_multiple_of(2),
        scaled_by: full.slots() as f64 / geometry.slots() as f64,
        policy: Policy::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module() -> Module {
        profile::find("iodrive-320-mlc").expect("a sheet").flash().expect("a flash card").module.clone()
    }

    #[test]
    fn a_cache_has_the_room_that_was_asked_for() {
        for bytes in [1 << 30, 10 << 30, 100 << 30, 300 << 30] {
            let layout = cache_layout(&module(), Some(bytes), 4096, 1 << 30).expect("it fits");
            let (room, leb) =
                (room(&layout.geometry, u64::MAX) * 4096, u64::from(layout.geometry.slots_per_leb()) * 4096);
            assert!((bytes..bytes + 2 * leb).contains(&room), "{bytes}: {room}");
            assert_eq!((layout.geometry.dies, layout.sectors), (100, 1 << 30));
        }
    }

    #[test]
    fn all_of_the_flash_is_a_cache_with_a_sparse_address_space() {
        let layout = cache_layout(&module(), None, 4096, 8).expect("it fits");
        let full = shape(&module(), 4096, 1).expect("it fits").geometry;
        assert_eq!((layout.geometry, layout.scaled_by), (full, 1.0));
        assert!(ftl::is_sparse(&layout.geometry, layout.sectors) && layout.sectors.is_multiple_of(2));
    }

    #[test]
    fn what_is_too_small_or_too_large_is_refused_with_what_is_possible() {
        for bytes in [1 << 20, 1 << 40] {
            let error = cache_layout(&module(), Some(bytes), 4096, 8).expect_err("it does not fit");
            let LayoutError::Cache { min, max, .. } = error else { panic!("{error}") };
            assert!(min < 1 << 30 && max > 300 << 30, "{min} {max}");
            assert!(
                cache_layout(&module(), Some(min), 4096, 8).is_ok()
                    && cache_layout(&module(), Some(max), 4096, 8).is_ok()
            );
        }
    }
}
