//! A small seeded generator, for models, simulated media, tests, and the one policy of the groomer that draws.

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): small, fast, and the same everywhere.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator; the same seed gives the same numbers.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed ^ 0x5DEE_CE66_D1CE_5EED)
    }

    /// The generator that has come to a state, which is what the published one calls its seed: other numbers than those of
    /// [`SplitMix64::new`] with the same one, for a second generator in the same run.
    pub fn from_state(state: u64) -> SplitMix64 {
        SplitMix64(state)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number from 0 to `limit` - 1; the bias is below limit / 2^64.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// True once in `n` times.
    #[inline]
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// True `ppm` times in a million.
    #[inline]
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers() {
        let mut random = SplitMix64::from_state(1_234_567);
        assert_eq!(
            [random.bits(), random.bits(), random.bits()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn chances_are_what_they_say() {
        let mut random = SplitMix64::new(1);
        let hits = (0..100_000).filter(|_| random.chance(250_000)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| random.chance(1_000_000) && !random.chance(0) && random.below(3) < 3));
    }
}
