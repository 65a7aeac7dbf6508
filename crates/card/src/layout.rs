//! From a data sheet and a format to the geometry that the layer works on.

use ftl::{Geometry, Policy, TRAILER_BYTES, max_sectors};
use media::nand::Shape;
use profile::Module;

/// The fewest pages in a block, and the fewest LEBs, that scaling down goes to: with less, the LEBs that the layer keeps
/// for itself would change the over-provisioning.
pub(crate) const PAGES_MIN: u32 = 16;
const LEBS_MIN: u32 = 384;
/// The most page buffers that a module is given, whatever its memory.
const BUFFERS_MAX: u64 = 1 << 16;

/// Why a format is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Sectors do not fit into pages.
    #[error("sectors of {sector} bytes: a page of this device takes sectors of {}", .fit.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    Sector {
        /// What was asked for.
        sector: u32,
        /// What there is, bytes.
        fit: Vec<u32>,
    },
    /// More than the flash holds.
    #[error(
        "a capacity of {bytes} bytes: this device has room for {min} to {max} bytes (the rest is reserve and room to groom in)"
    )]
    Capacity {
        /// What was asked for.
        bytes: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// The layer numbers slots with 32 bits.
    #[error(
        "sectors of {sector} bytes on {raw} bytes of flash are more than the layer can number; choose larger sectors or a smaller scale"
    )]
    Slots {
        /// What was asked for.
        sector: u32,
        /// Flash, bytes.
        raw: u64,
    },
    /// A cache is too small or too large.
    #[error("a cache of {}: of this device one can be made of {} to {}", size::show(*.bytes), size::show(*.min), size::show(*.max))]
    Cache {
        /// What was asked for.
        bytes: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Its groomer is none that the layer has.
    #[error("controller.groomer: '{name}': the layer has {}", Policy::ALL.iter().map(|policy| policy.name()).collect::<Vec<_>>().join(", "))]
    Groomer {
        /// What the data sheet says.
        name: String,
    },
}

/// How a module is laid out, perhaps scaled down.
#[derive(Clone, Debug)]
pub struct Layout {
    /// What the layer sees.
    pub geometry: Geometry,
    /// What the NAND model needs besides.
    pub shape: Shape,
    /// Host sectors.
    pub sectors: u64,
    /// How much smaller than the data sheet, as a factor of at least 1.
    pub scaled_by: f64,
    /// How its controller grooms.
    pub policy: Policy,
}

/// Blocks of a die by the data sheet, and how many of them are its reserve.
fn blocks_of_die(module: &Module) -> (u32, u32) {
    let (chips, nand) = (&module.chips, &module.nand);
    let block_bytes = u64::from(nand.planes * nand.page_bytes) * u64::from(nand.pages_per_block);
    let all = (chips.bytes / u64::from(nand.dies_per_chip) / block_bytes) as u32;
    (all, (f64::from(all) * module.controller.reserve_percent / 100.0).round() as u32)
}

/// How many times shorter blocks and how many times fewer of them there are at most.
fn divisors(module: &Module) -> (u32, u32) {
    let (all, reserve) = blocks_of_die(module);
    ((module.nand.pages_per_block / PAGES_MIN).max(1), ((all - reserve) / LEBS_MIN).max(1))
}

/// How many times smaller a module can be built at most.
pub fn largest_scale(module: &Module) -> u32 {
    let (shorter, fewer) = divisors(module);
    shorter * fewer
}

/// Flash of a module that host and groomer share, parity and reserve left out, bytes. Over-provisioning is how much more this is than
/// the host's capacity.
pub fn usable_bytes(module: &Module, sector: u32) -> u64 {
    shape(module, sector, 1).map_or(module.raw_bytes, |shape| shape.geometry.raw_bytes())
}

/// The flash of a module in sectors of `sector` bytes, about `scale` times smaller, whatever its format.
///
/// Scaling makes blocks shorter first, down to 16 pages, then takes fewer of them, down to 384; the reserve keeps its share of
/// the flash, and an erase its share of the time.
///
/// # Errors
/// The sector size does not fit the module.
pub fn shape(module: &Module, sector: u32, scale: u32) -> Result<Shape, LayoutError> {
    let (chips, nand) = (&module.chips, &module.nand);
    let page_bytes = nand.planes * nand.page_bytes;
    let sizes = module.format.sector_bytes.iter().copied();
    let fit: Vec<u32> = sizes.filter(|size| page_bytes % size == 0 && (page_bytes / size).is_power_of_two()).collect();
    if !fit.contains(&sector) {
        return Err(LayoutError::Sector { sector, fit });
    }
    let slots_per_page = page_bytes / sector;
    let (all, reserve) = blocks_of_die(module);
    let usable = all - reserve;

    let (shortest, fewest) = divisors(module);
    let shorter = shortest.min(scale.max(1));
    let fewer = (scale.max(1) / shorter).clamp(1, fewest);
    let geometry = Geometry {
        dies: chips.count * nand.dies_per_chip,
        parity: chips.parity * nand.dies_per_chip,
        blocks: usable / fewer,
        pages_per_block: whole_word_lines(nand.pages_per_block / shorter, nand.program_us.len() as u32),
        slots_per_page,
        sector_bytes: sector,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: slots_per_page * (sector + TRAILER_BYTES),
    };
    if geometry.slots() >= u64::from(u32::MAX) {
        let pages = u64::from(geometry.blocks) * u64::from(geometry.pages_per_block) * u64::from(geometry.dies);
        return Err(LayoutError::Slots { sector, raw: pages * u64::from(page_bytes) });
    }
    let bad = (f64::from(all) * nand.factory_bad_percent / 100.0).round() as u32;
    let spares = reserve.saturating_sub(bad) / fewer;
    // The cache keeps its share of the flash.
    let cached = nand.slc_cache.as_ref().map_or(0.0, |cache| cache.bytes as f64 / module.raw_bytes as f64);
    let slc_pages = (cached * f64::from(all) * f64::from(nand.pages_per_block) / f64::from(shorter * fewer)) as u32;
    Ok(Shape { geometry, dies_per_chip: nand.dies_per_chip, spares, erase_divisor: shorter, slc_pages })
}

/// Pages of a block, as many as fill their word lines where several are programmed in one shot: a shot left out would make blocks faster.
const fn whole_word_lines(pages: u32, shot: u32) -> u32 {
    if shot > 2 { pages / shot * shot } else { pages }
}

/// Lays a module out for `capacity` bytes (of the full size) in sectors of `sector` bytes, about `scale` times smaller: see
/// [`shape`]. Capacity keeps its share of the flash. The LEBs that the layer keeps for itself do not shrink: a capacity that leaves little
/// beside it is laid out less small, as far as it must be.
///
/// # Errors
/// The sector size or the capacity do not fit the module.
pub fn layout(module: &Module, capacity: u64, sector: u32, scale: u32) -> Result<Layout, LayoutError> {
    let mut scale = scale.max(1);
    loop {
        match at_scale(module, capacity, sector, scale) {
            Err(LayoutError::Capacity { .. }) if scale > 1 => scale -= (scale / 8).max(1),
            done => return done,
        }
    }
}

fn at_scale(module: &Module, capacity: u64, sector: u32, scale: u32) -> Result<Layout, LayoutError> {
    let shape = shape(module, sector, scale)?;
    let geometry = shape.geometry;
    let (all, reserve) = blocks_of_die(module);
    let full = f64::from(all - reserve) * f64::from(module.nand.pages_per_block);
    let scaled_by = full / (f64::from(geometry.blocks) * f64::from(geometry.pages_per_block));
    let most = max_sectors(&geometry);
    let sectors = (capacity as f64 / f64::from(sector) / scaled_by) as u64;
    if sectors == 0 || sectors > most {
        let max = (most as f64 * f64::from(sector) * scaled_by) as u64;
        return Err(LayoutError::Capacity { bytes: capacity, min: u64::from(sector), max });
    }
    let groomer = &module.controller.groomer;
    let policy = Policy::from_name(groomer).ok_or_else(|| LayoutError::Groomer { name: groomer.clone() })?;
    Ok(Layout { geometry, shape, sectors, scaled_by, policy })
}

/// Page buffers that a module's memory has room for.
pub fn buffer_pages(module: &Module, geometry: &Geometry) -> u32 {
    let page = u64::from(geometry.slots_per_page * geometry.sector_bytes);
    (module.controller.buffer_bytes / page).min(BUFFERS_MAX) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 blocks of 64 pages a die: 100 of them reserve, 10 of those bad.
    fn module() -> Module {
        let profile = profile::find("iodrive-320-mlc").expect("a sheet");
        let mut module = profile.flash().expect("a flash card").module.clone();
        (module.nand.planes, module.nand.page_bytes, module.nand.pages_per_block) = (2, 4096, 64);
        module.chips.bytes = u64::from(module.nand.dies_per_chip) * 1000 * 64 * 8192;
        (module.controller.reserve_percent, module.nand.factory_bad_percent) = (10.0, 1.0);
        module
    }

    #[test]
    fn blocks_become_shorter_first_and_then_fewer() {
        let module = module();
        let laid_out = |scale| {
            let shape = shape(&module, 4096, scale).expect("it fits");
            (shape.geometry.pages_per_block, shape.geometry.blocks, shape.spares, shape.erase_divisor)
        };
        assert_eq!(laid_out(1), (64, 900, 90, 1));
        assert_eq!(laid_out(3), (21, 900, 90, 3));
        assert_eq!(laid_out(4), (16, 900, 90, 4));
        assert_eq!(laid_out(8), (16, 450, 45, 4));
        assert_eq!(laid_out(1000), (16, 450, 45, 4), "no fewer than 384");
    }

    #[test]
    fn capacity_keeps_its_share() {
        let module = module();
        let data = u64::from(module.chips.count - module.chips.parity) * module.chips.bytes / 10 * 9;
        for scale in [1, 4, 8] {
            let layout = layout(&module, data / 2, 4096, scale).expect("it fits");
            assert_eq!(layout.scaled_by, f64::from(scale));
            assert_eq!(layout.sectors, data / 2 / 4096 / u64::from(scale));
        }
        let error = layout(&module, data, 4096, 1).expect_err("no room to groom in");
        assert!(matches!(error, LayoutError::Capacity { max, .. } if max < data && max > data / 100 * 95), "{error}");
    }

    #[test]
    fn a_groomer_that_there_is_not_is_refused() {
        let mut module = module();
        module.controller.groomer = "lazy".into();
        let words = layout(&module, 1 << 30, 4096, 1).expect_err("no groomer").to_string();
        assert!(words.contains("'lazy'") && words.contains("greedy"), "{words}");
    }

    #[test]
    fn a_capacity_that_leaves_little_is_scaled_down_less() {
        let module = module();
        let most = |scale| match at_scale(&module, u64::MAX, 4096, scale) {
            Err(LayoutError::Capacity { max, .. }) => max,
            other => panic!("{other:?}"),
        };
        assert!(most(8) < most(1), "{} {}", most(8), most(1));
        let between = (most(8) + most(1)) / 2;
        let layout = layout(&module, between, 4096, 8).expect("it fits less small");
        assert!((1.0..8.0).contains(&layout.scaled_by), "{}", layout.scaled_by);
    }

    #[test]
    fn a_buffer_holds_whole_pages_up_to_a_bound() {
        let mut module = module();
        let geometry = shape(&module, 4096, 1).expect("it fits").geometry;
        module.controller.buffer_bytes = 10 * 8192 + 8191;
        assert_eq!(buffer_pages(&module, &geometry), 10);
        module.controller.buffer_bytes = 1 << 40;
        assert_eq!(buffer_pages(&module, &geometry), 65_536);
    }
}
