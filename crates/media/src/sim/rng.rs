//! Seeded randomness that is the same on every platform.

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; the same seed gives the same numbers.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product; the bias is below `bound / 2^64`.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// True `ppm` times in a million.
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn gives_the_published_numbers() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!(
            [rng.number(), rng.number(), rng.number()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn chances_are_what_they_say() {
        let mut rng = Rng::new(1);
        let hits = (0..100_000).filter(|_| rng.chance(250_000)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| rng.chance(1_000_000) && !rng.chance(0) && rng.below(3) < 3));
    }
}
