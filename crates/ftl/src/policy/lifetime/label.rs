//! What is remembered of a sector: seven bits.
//!
//! | bits | meaning |
//! |---|---|
//! | 0-5 | level: the logarithm of its lifetime, in quarter octaves; 63 stands for 16 drive writes, 2 for 2^-11.25, 1 for what was written only once |
//! | 6 | the groomer moved it since the host wrote it |
//!
//! 0: nothing is known. The lifetime is the time from one write to the next, in sectors that the host writes meanwhile, half of it from the last
//! interval, a quarter from the one before and so on (in logarithms). What is moved at a greater age than that gets its age for a lifetime: then nobody
//! knows better.

/// Labels are counted in bins of half an octave, those that were moved apart.
pub(super) const BINS: usize = 64;
/// From this one on.
pub(super) const MOVED_BINS: usize = BINS / 2;

/// The level of what was written once: how long it lives is not known.
const ONCE: u8 = 1;
/// The least level that stands for a lifetime.
const LEAST: u64 = 2;
const LEVELS: u64 = 63;
const LEVEL: u8 = 63;
const MOVED: u8 = 0x40;
/// Levels are worked out in so many parts of one.
const PARTS: u64 = 64;

/// The label of a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Label(pub u8);

impl Label {
    /// Of what is written for the first time.
    pub const FIRST: Label = Label(ONCE);

    /// Which bin it is counted in; 0, that of the unknown, is counted nowhere.
    #[inline]
    pub fn bin(self) -> usize {
        usize::from(self.0 & (MOVED | LEVEL)) / 2
    }

    /// Nothing is known.
    #[inline]
    pub fn is_unknown(self) -> bool {
        self.0 == 0
    }

    /// The groomer moved it since the host wrote it.
    #[inline]
    pub fn is_moved(self) -> bool {
        self.0 & MOVED != 0
    }

    /// In parts of a level.
    #[inline]
    fn level(self) -> u64 {
        u64::from(self.0 & LEVEL) * PARTS
    }

    /// Of what was overwritten after a lifetime of this level. The salt decides of the rounding.
    #[inline]
    pub fn overwritten(self, last: u64, salt: u64) -> Label {
        let mean = if self.0 & LEVEL <= ONCE { last } else { (self.level() + last) / 2 };
        Label(rounded(mean, salt))
    }

    /// Of what the groomer moves at an age of this level. The salt decides of the rounding.
    #[inline]
    pub fn moved(self, age: u64, salt: u64) -> Label {
        let older = rounded(age, salt);
        Label(if age > self.level() { older } else { self.0 & LEVEL } | MOVED)
    }
}

/// The scale of lifetimes on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The logarithm of the lifetime of level 0, in parts of a level.
    floor: u64,
}

/// The base-2 logarithm in quarter octaves, in parts of one: straight lines between powers of two.
#[inline]
fn log(x: u64) -> u64 {
    // A binary fraction is stored as just that: its exponent, and what stands behind the highest bit.
    const BELOW: u32 = f64::MANTISSA_DIGITS - 1 - (4 * PARTS).trailing_zeros();
    const ONE: u64 = 1.0f64.to_bits() >> BELOW;
    // Signed numbers convert faster, and no clock goes that far.
    ((x.clamp(1, i64::MAX as u64) as i64 as f64).to_bits() >> BELOW) - ONE
}

impl Scale {
    pub fn new(sectors: u64) -> Scale {
        let floor = (log(sectors) + 4 * 4 * PARTS).saturating_sub(LEVELS * PARTS);
        Scale { floor }
    }

    /// The level of a lifetime, in parts of one.
    #[inline]
    pub fn level(&self, lifetime: u64) -> u64 {
        log(lifetime).saturating_sub(self.floor).clamp(LEAST * PARTS, LEVELS * PARTS)
    }
}

/// A whole level of those from [`LEAST`] to [`LEVELS`], up as often as the parts say: means of many levels then stay right however often they are rounded.
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
        for x in [1u64, 2, 3, 5, 100, 4095, 4096, 123_456_789, i64::MAX as u64] {
            let exact = (x as f64).log2() * 4.0;
            let here = log(x) as f64 / PARTS as f64;
            assert!((here - exact).abs() < 0.36, "{x}: {here} for {exact}");
        }
        assert_eq!(log(u64::MAX), log(i64::MAX as u64), "no clock goes that far");
    }

    #[test]
    fn a_lifetime_is_learnt_in_two_writes_and_forgotten_in_as_many() {
        let scale = Scale::new(1 << 18);
        let hot = scale.overwritten(Label::FIRST, 1 << 10, 1);
        let cold = scale.overwritten(Label::FIRST, 1 << 20, 1);
        assert_eq!(i32::from(cold.0) - i32::from(hot.0), 40, "ten octaves");
        let mut label = cold;
        for salt in 0..3 {
            label = scale.overwritten(label, 1 << 10, salt);
        }
        assert!(label.0.abs_diff(hot.0) <= 6, "{label:?} {hot:?}");
    }

    #[test]
    fn what_survives_is_older_than_it_was_taken_for() {
        let scale = Scale::new(1 << 18);
        let hot = scale.overwritten(Label::FIRST, 1 << 10, 1);
        assert!(!hot.is_moved());
        let young = scale.moved(hot, 1 << 8, 7);
        assert!(young.is_moved() && young.0 & 63 == hot.0 & 63);
        let old = scale.moved(hot, 1 << 16, 7);
        assert!(u32::from(old.0 & 63).abs_diff(u32::from(hot.0 & 63) + 24) <= 1);
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
        for sectors in [1u64, 8, 100] {
            let scale = Scale::new(sectors);
            for lifetime in [0, 1, sectors, u64::MAX] {
                let label = scale.moved(scale.overwritten(Label::FIRST, lifetime, 3), lifetime, 5);
                assert!(!label.is_unknown() && label.bin() < BINS);
            }
        }
    }
}
