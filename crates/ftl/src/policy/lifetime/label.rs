//! What is noted of a sector: six bits, or fewer where there is much spare space, so that the policy never takes more than a byte a sector.
//!
//! | bits | meaning |
//! |---|---|
//! | 0 | where it lies the host wrote it; otherwise the groomer moved it there |
//! | 1-5 | level: the logarithm of its lifetime, in half octaves; 31 stands for 16 drive writes, 2 for 2^-10.5, 1 for what was written only once |
//!
//! With each bit less a level stands for twice as many octaves; the highest one still stands for 16 drive writes.
//!
//! 1: nothing is known; 0 is no label, but how the layer notes a dead slot. The lifetime is the time from one write to the next, in sectors that the host writes meanwhile, half of it from the last
//! interval, a quarter from the one before and so on (in logarithms). What is moved at a greater age than that gets its age for a lifetime: then nobody
//! knows better.

use crate::slots::UNNOTED;

/// Labels are counted one by one.
pub(super) const BINS: usize = 1 << BITS;
/// Bits of a label, and the fewest with which something can be told apart.
const BITS: u32 = 6;
const BITS_MIN: u32 = 3;
/// Bits a sector for labels: the policy may take eight, and one is left to its books. What tells dead slots every policy has.
const BITS_A_SECTOR: u64 = 7;

/// The level of what was written once: how long it lives is not known.
const ONCE: u8 = 1;
/// The least level that stands for a lifetime.
const LEAST: u64 = 2;
/// The bit of what the host wrote where it lies.
const WRITTEN: u8 = 1;
const MOVED: u8 = 0;
/// Levels are worked out in so many parts of one.
const PARTS: u64 = 64;
/// Levels in an octave.
const OCTAVE: u64 = 2;
/// The highest level stands for so many octaves more than a drive write.
const HIGHEST: u64 = 4;

/// The label of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(pub u8);

impl Label {
    /// Of what nothing is known of.
    pub const UNKNOWN: Label = Label(UNNOTED);
    /// Of what is written for the first time.
    pub const FIRST: Label = Label(ONCE << 1 | WRITTEN);

    /// Which bin it is counted in; that of the unknown is counted nowhere.
    #[inline]
    pub fn bin(self) -> usize {
        usize::from(self.0) % BINS
    }

    /// Nothing is known.
    #[inline]
    pub fn is_unknown(self) -> bool {
        self == Label::UNKNOWN
    }

    /// The groomer moved it since the host wrote it.
    #[inline]
    pub fn is_moved(self) -> bool {
        is_moved(self.bin())
    }

    #[inline]
    fn level(self) -> u8 {
        self.0 >> 1
    }

    /// The same in parts of a level.
    #[inline]
    fn parts(self) -> u64 {
        u64::from(self.level()) * PARTS
    }

    /// Of what was overwritten after a lifetime of this level. The salt decides of the rounding.
    #[inline]
    pub fn overwritten(self, last: u64, salt: u64) -> Label {
        let mean = if self.level() <= ONCE { last } else { (self.parts() + last) / 2 };
        Label(rounded(mean, salt) << 1 | WRITTEN)
    }

    /// Of what the groomer moves at an age of this level. The salt decides of the rounding.
    #[inline]
    pub fn moved(self, age: u64, salt: u64) -> Label {
        let older = rounded(age, salt);
        Label((if age > self.parts() { older } else { self.level() }) << 1 | MOVED)
    }
}

/// Whether a bin is one of what the groomer moved.
#[inline]
pub(super) fn is_moved(bin: usize) -> bool {
    bin % 2 == usize::from(MOVED)
}

/// The scale of lifetimes on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Bits that a label has less than [`BITS`].
    coarse: u32,
    /// The logarithm of the lifetime of the least level, in parts of a level of [`BITS`] bits.
    floor: u64,
    /// The highest level, in parts of one.
    top: u64,
}

/// The base-2 logarithm in parts of a level: straight lines between powers of two.
#[inline]
fn log(x: u64) -> u64 {
    const ONE: u64 = OCTAVE * PARTS;
    let x = x.max(1);
    let zeros = x.leading_zeros();
    // The highest bits: from a whole octave to two.
    let mantissa = x << zeros >> (63 - ONE.trailing_zeros());
    u64::from(63 - zeros) * ONE + mantissa - ONE
}

impl Scale {
    /// For so many sectors in so many slots: as many bits as there is room for.
    pub fn new(sectors: u64, slots: u64) -> Scale {
        let mut bits = (BITS_MIN..=BITS).rev();
        let bits = bits.find(|bits| slots * u64::from(*bits - 1) <= sectors * BITS_A_SECTOR);
        let bits = bits.unwrap_or(BITS_MIN);
        let top = ((1 << (bits - 1)) - 1) * PARTS;
        let span = (top - LEAST * PARTS) << (BITS - bits);
        Scale { coarse: BITS - bits, floor: (log(sectors) + HIGHEST * OCTAVE * PARTS).saturating_sub(span), top }
    }

    /// Bits of a label.
    pub fn bits(&self) -> u32 {
        BITS - self.coarse
    }

    /// The level of a lifetime, in parts of one.
    #[inline]
    pub fn level(&self, lifetime: u64) -> u64 {
        let above = log(lifetime).saturating_sub(self.floor) >> self.coarse;
        (LEAST * PARTS + above).min(self.top)
    }
}

/// A whole level, up as often as the parts say: means of many levels then stay right however often they are rounded.
#[inline]
fn rounded(parts: u64, salt: u64) -> u8 {
    let chance = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
    ((parts + chance) / PARTS) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Scale {
        fn overwritten(&self, label: Label, lifetime: u64, salt: u64) -> Label {
            label.overwritten(self.level(lifetime), salt)
        }

        fn moved(&self, label: Label, age: u64, salt: u64) -> Label {
            label.moved(self.level(age), salt)
        }
    }

    #[test]
    fn logarithms_are_near() {
        for x in [1u64, 2, 3, 5, 100, 4095, 4096, 123_456_789, u64::MAX] {
            let exact = (x as f64).log2();
            let here = log(x) as f64 / (OCTAVE * PARTS) as f64;
            assert!((here - exact).abs() < 0.09, "{x}: {here} for {exact}");
        }
        assert_eq!(log(0), log(1));
    }

    #[test]
    fn a_lifetime_is_learnt_in_two_writes_and_forgotten_in_as_many() {
        for (spare, octaves) in [(0, 2), (150_000, 1)] {
            let scale = Scale::new(1 << 18, (1 << 18) + spare);
            let hot = scale.overwritten(Label::FIRST, 1 << 10, 1);
            let cold = scale.overwritten(Label::FIRST, 1 << 20, 1);
            assert_eq!(cold.level() - hot.level(), 10 * octaves, "ten octaves");
            let mut label = cold;
            for salt in 0..3 {
                label = scale.overwritten(label, 1 << 10, salt);
            }
            assert!(label.level().abs_diff(hot.level()) <= 2 * octaves, "{label:?} {hot:?}");
        }
    }

    #[test]
    fn labels_are_coarser_where_much_space_is_spare() {
        for (spare, bits) in [(0, 6), (40, 6), (41, 5), (75, 5), (76, 4), (133, 4), (134, 3), (250, 3)] {
            let scale = Scale::new(100_000, 1000 * (100 + spare));
            assert_eq!(scale.bits(), bits, "{spare} % spare");
            let longest = scale.overwritten(Label::FIRST, 1_600_000, 0);
            assert_eq!(usize::from(longest.0), (1 << bits) - 1, "the highest level is still that of 16 drive writes");
            assert_eq!(longest, scale.overwritten(Label::FIRST, u64::MAX, u64::MAX));
        }
    }

    #[test]
    fn what_survives_is_older_than_it_was_taken_for() {
        let scale = Scale::new(1 << 18, 1 << 18);
        let hot = scale.overwritten(Label::FIRST, 1 << 10, 1);
        assert!(!hot.is_moved());
        let young = scale.moved(hot, 1 << 8, 7);
        assert!(young.is_moved() && young.level() == hot.level());
        let old = scale.moved(hot, 1 << 16, 7);
        assert!(old.level().abs_diff(hot.level() + 12) <= 1);
        // The next write is the host's again.
        assert!(!scale.overwritten(old, 100, 7).is_moved());
    }

    #[test]
    fn rounding_keeps_the_mean() {
        let sum: u64 = (0..10_000).map(|salt| u64::from(rounded(20 * PARTS + 16, salt))).sum();
        assert!((202_300..202_700).contains(&sum), "{sum}");
    }

    #[test]
    fn tiny_devices_have_a_scale() {
        for (sectors, slots) in [(1, 1000), (8, 8), (100, 200)] {
            let scale = Scale::new(sectors, slots);
            for lifetime in [0, 1, sectors, u64::MAX] {
                let label = scale.moved(scale.overwritten(Label::FIRST, lifetime, 3), lifetime, 5);
                assert!(!label.is_unknown() && label.0 < 1 << scale.bits());
            }
        }
    }
}
