//! What a power cut leaves of a change that no sync covered.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use serde::{Deserialize, Serialize};

use crate::inode::Change;

/// What a disk writes whole or not at all.
const SECTOR: u64 = 512;
/// What a file system's cache writes back together; it may be torn between sectors all the same.
const PAGE: u64 = 4096;

/// How the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Cut {
    /// Everything goes that no sync covered.
    Drop,
    /// By this seed each change that no sync covered is lost, kept or torn, now and then with a bit flipped.
    Torn(u64),
    /// The same without flipped bits: a disk that does nothing worse than tear writes.
    Tears(u64),
}

/// Decides what a power cut leaves; the same seed decides the same.
pub struct Dice {
    random: SplitMix64,
    flips: bool,
}

impl Dice {
    /// Dice for one cut; with `flips`, some bits of what reaches the store are flipped.
    pub fn new(seed: u64, flips: bool) -> Dice {
        Dice { random: SplitMix64::seed_from_u64(seed), flips }
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// What reaches the store: nothing, all of it, or some of its pieces; now and then with a bit flipped.
    pub fn remains(&mut self, change: &Change) -> Vec<Change> {
        match self.below(3) {
            0 => Vec::new(),
            1 => vec![self.flipped(change.clone())],
            _ => self.pieces(change),
        }
    }

    fn pieces(&mut self, change: &Change) -> Vec<Change> {
        let range = change.range();
        match change {
            // All or nothing: a journal does them.
            Change::Resize(_) | Change::Allocate { .. } => vec![change.clone()],
            Change::Punch(_) => {
                let pieces = split(range.start, range.end, PAGE);
                pieces
                    .into_iter()
                    .filter(|_| self.below(2) == 0)
                    .map(|(start, end)| Change::Punch(start..end))
                    .collect()
            }
            Change::Write { at, data } => {
                let unit = if self.below(2) == 0 { SECTOR } else { PAGE };
                let mut kept = Vec::new();
                for (start, end) in split(range.start, range.end, unit) {
                    let end = match self.below(8) {
                        0..4 => continue,
                        // Torn: a beginning of it, in whole sectors.
                        4 => (start + self.below(PAGE / SECTOR) * SECTOR).min(end),
                        _ => end,
                    };
                    let piece = data[(start - at) as usize..(end - at) as usize].to_vec();
                    kept.push(self.flipped(Change::Write { at: start, data: piece }));
                }
                kept
            }
        }
    }

    fn flipped(&mut self, mut change: Change) -> Change {
        if let Change::Write { data, .. } = &mut change
            && self.flips
            && !data.is_empty()
            && self.below(256) == 0
        {
            let bit = self.below(8 * data.len() as u64);
            data[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        change
    }
}

/// Pieces of a range, cut where the offset is a multiple of `unit`.
fn split(start: u64, end: u64, unit: u64) -> Vec<(u64, u64)> {
    let mut pieces = Vec::new();
    let mut at = start;
    while at < end {
        let next = ((at / unit + 1) * unit).min(end);
        pieces.push((at, next));
        at = next;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_at_multiples() {
        assert_eq!(split(500, 1600, 512), [(500, 512), (512, 1024), (1024, 1536), (1536, 1600)]);
        assert_eq!(split(512, 512, 512), []);
    }

    #[test]
    fn the_same_seed_decides_the_same() {
        let change = Change::Write { at: 0, data: (0..=255).cycle().take(65536).collect() };
        let (mut a, mut b) = (Dice::new(7, true), Dice::new(7, true));
        for _ in 0..20 {
            assert_eq!(a.remains(&change), b.remains(&change));
        }
    }
}
