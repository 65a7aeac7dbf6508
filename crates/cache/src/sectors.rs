//! A set of sectors that takes memory only where there are some: 64 of them in a word.

use std::collections::BTreeMap;

use crate::layout::Range;

#[derive(Debug, Default)]
pub(crate) struct Sectors {
    words: BTreeMap<u64, u64>,
    count: u64,
}

/// The words that sectors lie in, and which of their bits.
fn words(sectors: &Range) -> impl Iterator<Item = (u64, u64)> + use<> {
    let (start, end) = (sectors.start, sectors.end);
    (start / 64..end.div_ceil(64)).map(move |word| {
        let from = start.max(word * 64) - word * 64;
        let bits = end.min(word * 64 + 64) - word * 64 - from;
        (word, (u64::MAX >> (64 - bits)) << from)
    })
}

impl Sectors {
    /// Puts sectors in.
    pub fn insert(&mut self, sectors: &Range) {
        if sectors.is_empty() {
            return;
        }
        for (word, bits) in words(sectors) {
            let known = self.words.entry(word).or_default();
            self.count += u64::from((bits & !*known).count_ones());
            *known |= bits;
        }
    }

    /// Takes sectors out; how many were in.
    pub fn remove(&mut self, sectors: &Range) -> u64 {
        let before = self.count;
        if sectors.is_empty() {
            return 0;
        }
        let first = sectors.start / 64;
        let known: Vec<u64> = self.words.range(first..sectors.end.div_ceil(64)).map(|(word, _)| *word).collect();
        for word in known {
            let part = sectors.start.max(word * 64)..sectors.end.min(word * 64 + 64);
            let Some((_, bits)) = words(&part).next() else { continue };
            let Some(known) = self.words.get_mut(&word) else { continue };
            self.count -= u64::from((bits & *known).count_ones());
            *known &= !bits;
            if *known == 0 {
                self.words.remove(&word);
            }
        }
        before - self.count
    }

    /// How many are in.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn contains(&self, sector: u64) -> bool {
        self.words.get(&(sector / 64)).is_some_and(|word| word >> (sector % 64) & 1 == 1)
    }

    /// How many of these are in.
    pub fn count_in(&self, sectors: &Range) -> u64 {
        if sectors.is_empty() || self.count == 0 {
            return 0;
        }
        let known = self.words.range(sectors.start / 64..sectors.end.div_ceil(64));
        let bits = known.map(|(word, known)| {
            let part = sectors.start.max(word * 64)..sectors.end.min(word * 64 + 64);
            words(&part).next().map_or(0, |(_, bits)| (bits & known).count_ones())
        });
        bits.map(u64::from).sum()
    }

    /// Sectors as runs that are in, or are not.
    pub fn runs(&self, sectors: &Range) -> Vec<(Range, bool)> {
        if self.count == 0 && !sectors.is_empty() {
            return vec![(sectors.clone(), false)];
        }
        let mut runs: Vec<(Range, bool)> = Vec::new();
        for sector in sectors.clone() {
            let is_in = self.contains(sector);
            match runs.last_mut() {
                Some((run, known)) if *known == is_in => run.end = sector + 1,
                _ => runs.push((sector..sector + 1, is_in)),
            }
        }
        runs
    }

    /// All of them, in order, as runs.
    pub fn all(&self) -> Vec<Range> {
        let mut runs: Vec<Range> = Vec::new();
        for (word, bits) in &self.words {
            for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                let sector = word * 64 + bit;
                match runs.last_mut() {
                    Some(run) if run.end == sector => run.end += 1,
                    _ => runs.push(sector..sector + 1),
                }
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_counted_once() {
        let mut sectors = Sectors::default();
        sectors.insert(&(60..70));
        sectors.insert(&(65..200));
        assert_eq!((sectors.count(), sectors.count_in(&(0..64)), sectors.count_in(&(199..500))), (140, 4, 1));
        assert_eq!(sectors.remove(&(0..61)), 1);
        assert_eq!(sectors.remove(&(128..129)), 1);
        assert_eq!(sectors.all(), [61..128, 129..200]);
        assert_eq!(sectors.runs(&(126..131)), [(126..128, true), (128..129, false), (129..131, true)]);
        assert_eq!(sectors.remove(&(0..1 << 40)), 138);
        assert!(sectors.words.is_empty() && sectors.remove(&(5..5)) == 0);
    }
}
