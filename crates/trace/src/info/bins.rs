//! A fixed number of bins over a range that nobody knows in advance: when it outgrows them, two become one.

/// Bins at most; at least half as many are in use once the range is known.
pub const MOST: usize = 512;

/// What two bins come to together.
pub trait Merge: Default + Clone {
    /// Takes what another holds.
    fn merge(&mut self, other: &Self);
}

/// The bins.
#[derive(Clone, Debug)]
pub struct Bins<T> {
    /// What a bin spans, as a power of two times the unit.
    width: u64,
    bins: Vec<T>,
}

impl<T: Merge> Bins<T> {
    /// That begin with so narrow ones.
    pub fn new(width: u64) -> Bins<T> {
        Bins { width, bins: Vec::new() }
    }

    /// The bin of a place.
    #[inline]
    pub fn at(&mut self, place: u64) -> &mut T {
        let mut at = place / self.width;
        if at >= self.bins.len() as u64 {
            while at >= MOST as u64 {
                self.halve();
                at = place / self.width;
            }
            if at >= self.bins.len() as u64 {
                self.bins.resize_with(at as usize + 1, T::default);
            }
        }
        // Just made large enough.
        &mut self.bins[at as usize]
    }

    #[cold]
    fn halve(&mut self) {
        // A width beyond half of all numbers needs no more than two bins, and is never doubled.
        self.width = self.width.saturating_mul(2);
        let pairs = std::mem::take(&mut self.bins);
        self.bins = pairs
            .chunks(2)
            .map(|pair| {
                let mut sum = pair[0].clone();
                if let Some(second) = pair.get(1) {
                    sum.merge(second);
                }
                sum
            })
            .collect();
    }

    /// What each spans.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// All of them, from 0.
    pub fn all(&self) -> &[T] {
        &self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Merge for u64 {
        fn merge(&mut self, other: &u64) {
            *self += other;
        }
    }

    #[test]
    fn nothing_is_lost_when_bins_are_put_together() {
        let mut bins = Bins::<u64>::new(10);
        for place in 0..100_000 {
            *bins.at(place) += 1;
        }
        assert_eq!(bins.all().iter().sum::<u64>(), 100_000);
        assert_eq!(bins.width(), 320);
        assert!(bins.all()[..312].iter().all(|count| *count == 320));
        *bins.at(u64::MAX) += 1;
        assert!(bins.all().len() <= MOST);
        assert_eq!(bins.all().iter().sum::<u64>(), 100_001);
    }
}
