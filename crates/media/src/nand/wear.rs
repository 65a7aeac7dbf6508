//! Wear: how often blocks were erased, which of them fail of it, and the spare blocks that take their place.
//!
//! Every physical block has a life in program and erase cycles, drawn from a Weibull distribution: a fraction of
//! [`FAILED_WHEN_RATED`] has failed at the rated number of cycles, and failures gather quickly behind it ([`SHAPE`]). Both are
//! assumptions: no vendor published the curve. A block that fails its erase is replaced by a spare one of the same die. When the
//! die has no spare left, the whole LEB is given up, and its other blocks become spares of their dies.

use std::collections::HashMap;

use random::SplitMix64;

/// Share of blocks that have failed when all have seen the rated cycles.
pub const FAILED_WHEN_RATED: f64 = 0.01;
/// Shape of the Weibull distribution.
pub const SHAPE: f64 = 8.0;

/// A spare block that stands in for a failed one.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    /// How many blocks served here before it.
    generation: u32,
    /// Erases of the LEB when it began.
    since: u32,
}

/// The wear of a module.
#[derive(Debug)]
pub struct Wear {
    seed: u64,
    rated: u32,
    dies: u32,
    /// By LEB.
    erases: Vec<u32>,
    /// By LEB: the number of erases at which its next block fails.
    fails_at: Vec<u32>,
    /// By die.
    spares: Vec<u32>,
    /// Spares of a die when new.
    spares_when_new: u32,
    replaced: HashMap<(u32, u32), Replacement>,
    bad_blocks: u64,
    retired_lebs: u32,
}

impl Wear {
    /// Blocks when new. `spares` are those of one die that are good.
    pub fn new(seed: u64, rated: u32, dies: u32, lebs: u32, spares: u32) -> Wear {
        let mut wear = Wear {
            seed,
            rated: rated.max(1),
            dies,
            erases: vec![0; lebs as usize],
            fails_at: Vec::new(),
            spares: vec![spares; dies as usize],
            spares_when_new: spares,
            replaced: HashMap::new(),
            bad_blocks: 0,
            retired_lebs: 0,
        };
        wear.fails_at = (0..lebs).map(|leb| wear.next_failure(leb)).collect();
        wear
    }

    /// Erases of a LEB, as a share of the rated cycles.
    pub(super) fn share(&self, leb: u32) -> f64 {
        f64::from(self.erases[leb as usize]) / f64::from(self.rated)
    }

    /// Cycles that the block of this generation lives.
    fn life(&self, die: u32, leb: u32, generation: u32) -> u32 {
        let place = u64::from(die) << 32 | u64::from(leb);
        let mut random =
            SplitMix64::new(self.seed ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(generation) << 56);
        let uniform = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        // F(rated) = FAILED_WHEN_RATED fixes the scale; the quantile function does the rest.
        let scale = f64::from(self.rated) * (-(1.0 - FAILED_WHEN_RATED).ln()).powf(-1.0 / SHAPE);
        (scale * (-(1.0 - uniform).ln()).powf(1.0 / SHAPE)).max(1.0) as u32
    }

    fn failure_of(&self, die: u32, leb: u32) -> u32 {
        let Replacement { generation, since } =
            self.replaced.get(&(die, leb)).copied().unwrap_or(Replacement { generation: 0, since: 0 });
        since.saturating_add(self.life(die, leb, generation))
    }

    fn next_failure(&self, leb: u32) -> u32 {
        (0..self.dies).map(|die| self.failure_of(die, leb)).min().unwrap_or(u32::MAX)
    }

    /// A LEB is erased. Returns whether it can still be used.
    pub fn erase(&mut self, leb: u32) -> bool {
        self.erases[leb as usize] += 1;
        let erases = self.erases[leb as usize];
        if erases < self.fails_at[leb as usize] {
            return true;
        }
        for die in 0..self.dies {
            if self.failure_of(die, leb) > erases {
                continue;
            }
            self.bad_blocks += 1;
            if self.spares[die as usize] == 0 {
                self.retire(leb, die);
                return false;
            }
            self.spares[die as usize] -= 1;
            let generation = self.replaced.get(&(die, leb)).map_or(1, |old| old.generation + 1);
            self.replaced.insert((die, leb), Replacement { generation, since: erases });
        }
        self.fails_at[leb as usize] = self.next_failure(leb);
        true
    }

    fn retire(&mut self, leb: u32, failed: u32) {
        self.retired_lebs += 1;
        self.fails_at[leb as usize] = u32::MAX;
        for (die, spares) in (0..).zip(&mut self.spares) {
            *spares += u32::from(die != failed);
        }
    }

    /// Uses the spare blocks of all dies up at once, for fault drills. Gives how many each had.
    pub fn use_up_spares(&mut self) -> Vec<u32> {
        std::mem::replace(&mut self.spares, vec![0; self.dies as usize])
    }

    /// Gives spare blocks back that were taken away, besides those that came meanwhile.
    pub fn give_spares_back(&mut self, taken: &[u32]) {
        for (spares, taken) in self.spares.iter_mut().zip(taken) {
            *spares += taken;
        }
    }

    /// Erases of every LEB.
    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Erases that a block is rated for.
    pub fn rated(&self) -> u32 {
        self.rated
    }

    /// Blocks that went bad since the module was new.
    pub fn bad_blocks(&self) -> u64 {
        self.bad_blocks
    }

    /// LEBs given up for want of spare blocks.
    pub fn retired_lebs(&self) -> u32 {
        self.retired_lebs
    }

    /// Spare blocks left on the die that has the fewest, per cent of what a die had when new. A LEB given up ends it at 0.
    pub fn reserve_percent(&self) -> f64 {
        if self.retired_lebs > 0 || self.spares_when_new == 0 {
            return if self.bad_blocks == 0 { 100.0 } else { 0.0 };
        }
        let least = self.spares.iter().copied().min().unwrap_or(0);
        f64::from(least) * 100.0 / f64::from(self.spares_when_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_fails_by_the_rated_cycles() {
        let wear = Wear::new(7, 10_000, 50, 2000, 10);
        let failed = (0..2000).flat_map(|leb| (0..50).map(move |die| (die, leb)));
        let failed = failed.filter(|(die, leb)| wear.life(*die, *leb, 0) <= 10_000).count();
        assert!((800..1200).contains(&failed), "{failed} of 100,000");
    }

    #[test]
    fn spares_stand_in_until_there_are_none() {
        let mut wear = Wear::new(3, 20, 4, 30, 6);
        let mut usable = [true; 30];
        let mut reserve = 100.0;
        let mut first_retired = None;
        for cycle in 0..60 {
            for leb in 0..30 {
                if usable[leb as usize] {
                    usable[leb as usize] = wear.erase(leb);
                }
            }
            assert!(wear.reserve_percent() <= reserve, "the reserve only falls");
            reserve = wear.reserve_percent();
            if wear.retired_lebs() > 0 && first_retired.is_none() {
                first_retired = Some(cycle);
            }
        }
        assert!(first_retired.is_some_and(|cycle| cycle > 10), "{first_retired:?}");
        assert_eq!(reserve, 0.0);
        assert_eq!(wear.retired_lebs() as usize, usable.iter().filter(|usable| !**usable).count());
    }

    #[test]
    fn failures_gather_behind_the_rated_cycles() {
        let wear = Wear::new(7, 10_000, 50, 2000, 10);
        let lives = (0..2000).flat_map(|leb| (0..50).map(move |die| (die, leb)));
        let failed = lives.filter(|(die, leb)| wear.life(*die, *leb, 0) <= 8_000).count();
        // 0.8 to the eighth power of one in a hundred.
        assert!((120..220).contains(&failed), "{failed} of 100,000");
    }

    #[test]
    fn a_spare_block_begins_its_own_life() {
        let mut wear = Wear::new(5, 1000, 2, 4, 3);
        let first = wear.failure_of(1, 2);
        wear.replaced.insert((1, 2), Replacement { generation: 1, since: first });
        assert_eq!(wear.failure_of(1, 2), first + wear.life(1, 2, 1));
        assert_ne!(wear.life(1, 2, 0), wear.life(1, 2, 1));
        // The first block of a LEB to go decides when the LEB is looked at again.
        let mut wear = Wear::new(5, 1000, 2, 4, 3);
        let first = wear.fails_at[0];
        assert_eq!(first, wear.failure_of(0, 0).min(wear.failure_of(1, 0)));
        assert!((0..first).all(|_| wear.erase(0)));
        assert_eq!((wear.bad_blocks(), wear.replaced.len()), (1, 1));
        assert!(wear.replaced.values().all(|new| (new.generation, new.since) == (1, first)));
        assert_eq!(wear.fails_at[0], wear.failure_of(0, 0).min(wear.failure_of(1, 0)));
        assert!(wear.fails_at[0] > first);
    }

    #[test]
    fn blocks_of_a_retired_leb_become_spares_of_their_dies() {
        let mut wear = Wear::new(5, 1000, 3, 4, 4);
        wear.spares = vec![0, 1, 4];
        assert_eq!(wear.reserve_percent(), 0.0, "the die with the fewest counts");
        wear.spares[0] = 2;
        assert_eq!(wear.reserve_percent(), 25.0);
        wear.retire(2, 0);
        assert_eq!((wear.spares.as_slice(), wear.retired_lebs()), ([2, 2, 5].as_slice(), 1));
    }
}
