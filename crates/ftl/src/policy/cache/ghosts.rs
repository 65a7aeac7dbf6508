//! What a cache left behind lately: four bytes for each sector that it can hold.
//!
//! A bucket has eight places, so that what is looked for stands in half a cache line; the oldest of a bucket goes for a new one.

/// Ghosts of a bucket.
const WAYS: usize = 8;
/// Bits of the uses that a sector had.
const USES_BITS: u32 = 2;
/// Bits of the moment when it was left behind.
const TIME_BITS: u32 = 12;
const TIME_MASK: u32 = (1 << TIME_BITS) - 1;
/// Moments into which a cache's worth of sectors left behind is divided: the clock goes round in eight of them.
const MOMENTS: u64 = 512;

/// What was left behind lately. Each is a fingerprint of its sector, what it was used, and when it went; zero where there is none.
pub(super) struct Ghosts {
    places: Box<[u32]>,
    /// Sectors left behind.
    left: u64,
    /// Sectors of a moment.
    moment: u64,
    /// Moments for which a ghost counts.
    lasts: u32,
}

impl Ghosts {
    /// For a cache of so many sectors.
    pub fn new(sectors: u64) -> Ghosts {
        let buckets = sectors.div_ceil(WAYS as u64).max(1) as usize;
        let moment = (sectors / MOMENTS).max(1);
        // As many as the queue of what is kept can hold, nine tenths of the cache, which is what S3-FIFO remembers.
        let lasts = (sectors * 9 / 10 / moment) as u32;
        Ghosts { places: vec![0; buckets * WAYS].into(), left: 0, moment, lasts }
    }

    /// A sector, used so often, is left behind.
    pub fn add(&mut self, lba: u64, uses: u8) {
        let (bucket, print) = self.find(lba);
        let now = self.now();
        self.left += 1;
        let places = &mut self.places[bucket..bucket + WAYS];
        let age = |place: u32| if place == 0 { u32::MAX } else { now.wrapping_sub(place) & TIME_MASK };
        let oldest = places.iter_mut().max_by_key(|place| age(**place)).expect("a bucket has places");
        let uses = u32::from(uses).min((1 << USES_BITS) - 1);
        *oldest = print << (USES_BITS + TIME_BITS) | uses << TIME_BITS | now;
    }

    /// How often a sector had been used that was left behind lately.
    pub fn uses(&self, lba: u64) -> Option<u8> {
        let at = self.place(lba)?;
        Some((self.places[at] >> TIME_BITS) as u8 & ((1 << USES_BITS) - 1))
    }

    /// A sector is there again.
    pub fn forget(&mut self, lba: u64) {
        if let Some(at) = self.place(lba) {
            self.places[at] = 0;
        }
    }

    pub fn memory(&self) -> usize {
        self.places.len() * size_of::<u32>()
    }

    fn place(&self, lba: u64) -> Option<usize> {
        let (bucket, print) = self.find(lba);
        let now = self.now();
        (bucket..bucket + WAYS).find(|at| {
            let place = self.places[*at];
            place >> (USES_BITS + TIME_BITS) == print && now.wrapping_sub(place) & TIME_MASK <= self.lasts
        })
    }

    fn now(&self) -> u32 {
        (self.left / self.moment) as u32 & TIME_MASK
    }

    /// The first place of a sector's bucket, and its fingerprint, which is never zero.
    fn find(&self, lba: u64) -> (usize, u32) {
        let hash = lba.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The upper bits of the product are the good ones.
        let hash = hash ^ hash >> 32;
        let buckets = (self.places.len() / WAYS) as u64;
        let bucket = ((hash & 0xffff_ffff) * buckets) >> 32;
        (bucket as usize * WAYS, (hash >> (32 + USES_BITS + TIME_BITS)) as u32 | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_found_until_nine_tenths_of_a_cache_were_left_behind_after_it() {
        let mut ghosts = Ghosts::new(10_000);
        ghosts.add(7, 2);
        (100..8_000).for_each(|lba| ghosts.add(lba, 0));
        let found = (100..8_000).filter(|lba| ghosts.uses(*lba) == Some(0)).count();
        assert!(found > 7_400, "{found} of 7900: few are lost to full buckets");
        assert_eq!(ghosts.uses(7), Some(2));
        (10_000..12_000).for_each(|lba| ghosts.add(lba, 0));
        assert_eq!(ghosts.uses(7), None);
        let strangers = (20_000..120_000).filter(|lba| ghosts.uses(*lba).is_some()).count();
        assert!(strangers < 50, "{strangers} of 100000 are taken for others");
    }

    #[test]
    fn an_old_ghost_counts_no_more_though_nothing_took_its_place() {
        let mut ghosts = Ghosts::new(8);
        (7..14).for_each(|lba| ghosts.add(lba, 1));
        assert_eq!(ghosts.uses(7), Some(1));
        ghosts.add(14, 1);
        assert_eq!((ghosts.uses(7), ghosts.uses(8)), (None, Some(1)));
    }

    #[test]
    fn what_is_there_again_is_no_ghost() {
        let mut ghosts = Ghosts::new(100);
        ghosts.add(7, 9);
        assert_eq!(ghosts.uses(7), Some(3), "as far as it is counted");
        ghosts.forget(7);
        assert_eq!(ghosts.uses(7), None);
    }
}
