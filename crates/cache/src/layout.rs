//! Where a volume stands on the cache device.
//!
//! The lower half of the cache device's sectors is for clean copies, which its groomer may lose; the upper half for what it must not
//! lose. Each volume has the same range in both: in the lower half the copies of its sectors; in the upper half the
//! sectors that are held, and behind these a mark for each region. The upper half begins with a header for each volume.

/// Position of the cache device among a volume's members.
pub const CACHE: usize = 0;
/// Position of the store behind.
pub const BEHIND: usize = 1;
/// Volumes of a cache device at most.
pub const VOLUMES_MAX: u64 = 64;
/// The smallest region that is marked by itself, bytes.
pub const REGION_BYTES: u64 = 4 << 20;
/// Of what a volume may use of its cache device it may hold one part in so many that is not behind yet.
pub const DIRTY_PART: u64 = 5;
/// Sectors of each half before the first volume.
const HEAD: u64 = 4096;
/// Regions of a volume at most.
const REGIONS_MAX: u64 = 8192;

/// Sectors, of a volume or a device.
pub type Range = std::ops::Range<u64>;

/// Where one volume stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the upper half begins.
    pub half: u64,
    /// Where the volume begins in either half.
    pub base: u64,
    /// Its sectors.
    pub sectors: u64,
    /// Sectors of a region, as a power of two.
    pub region_shift: u32,
}

impl Layout {
    /// Sectors of a region, as a power of two, of a volume of so many sectors: regions are no smaller than `least` sectors, and no more than
    /// 8,192.
    pub fn region_shift(sectors: u64, least: u64) -> u32 {
        sectors.div_ceil(REGIONS_MAX).max(least).max(1).next_power_of_two().ilog2()
    }

    /// Where the upper half of a cache device of so many sectors begins; what lies before it may be lost.
    pub fn half(sectors: u64) -> u64 {
        sectors / 2
    }

    /// Where the header of a volume lies.
    pub fn header(half: u64, number: u64) -> u64 {
        half + number
    }

    /// A place for a volume on a cache device of so many sectors, beside those that are there already.
    pub fn place(cache_sectors: u64, sectors: u64, region_shift: u32, others: &[Layout]) -> Option<Layout> {
        let half = Layout::half(cache_sectors);
        let mut taken: Vec<Range> = others.iter().map(|other| other.base..other.base + other.span()).collect();
        taken.sort_unstable_by_key(|range| range.start);
        let layout = |base| Layout { half, base, sectors, region_shift };
        let mut base = HEAD;
        for range in taken {
            if base + layout(base).span() <= range.start {
                break;
            }
            base = base.max(range.end);
        }
        let found = layout(base);
        (half > HEAD && base.checked_add(found.span())? <= half).then_some(found)
    }

    /// Sectors that it takes of either half.
    pub fn span(&self) -> u64 {
        self.sectors + self.regions()
    }

    /// How many regions there are.
    pub fn regions(&self) -> u64 {
        self.sectors.div_ceil(1 << self.region_shift)
    }

    /// The regions that sectors lie in.
    pub fn regions_of(&self, sectors: &Range) -> Range {
        if sectors.is_empty() {
            return 0..0;
        }
        sectors.start >> self.region_shift..((sectors.end - 1) >> self.region_shift) + 1
    }

    /// The sectors of a region.
    pub fn region(&self, region: u64) -> Range {
        let from = region << self.region_shift;
        from..(from + (1 << self.region_shift)).min(self.sectors)
    }

    /// Where the clean copy of a sector lies.
    pub fn clean(&self, sector: u64) -> u64 {
        self.base + sector
    }

    /// Where a sector is held.
    pub fn held(&self, sector: u64) -> u64 {
        self.half + self.base + sector
    }

    /// Where the mark of a region stands: it is marked if that sector is mapped.
    pub fn mark(&self, region: u64) -> u64 {
        self.held(self.sectors) + region
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_lie_beside_each_other() {
        let place = |sectors, others: &[Layout]| Layout::place(100_000, sectors, 4, others);
        let first = place(1000, &[]).expect("room");
        let second = place(2000, &[first]).expect("room");
        assert_eq!((first.base, first.regions(), second.base), (4096, 63, 4096 + 1063));
        assert_eq!(first.mark(62), 50_000 + 4096 + 1000 + 62);
        assert!(place(50_000, &[]).is_none(), "the lower half is smaller");
        // What was removed is used again.
        assert_eq!(place(900, &[second]).map(|layout| layout.base), Some(4096));
        assert_eq!(place(1100, &[second]).map(|layout| layout.base), Some(second.base + second.span()));
    }

    #[test]
    fn regions_are_few_and_not_too_small() {
        assert_eq!(Layout::region_shift(1 << 20, 1024), 10);
        assert_eq!(Layout::region_shift(1 << 30, 1024), 17);
        let layout = Layout { half: 1 << 20, base: 4096, sectors: 100, region_shift: 4 };
        assert_eq!((layout.regions_of(&(15..17)), layout.regions_of(&(5..5)), layout.region(6)), (0..2, 0..0, 96..100));
    }
}
