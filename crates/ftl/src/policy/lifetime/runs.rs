//! What is written one after the other.
//!
//! Labels are rounded up or down by chance. Those of a run, sectors that follow each other in their addresses and in the order in which they come, are
//! rounded alike: those of a file that were alike before stay so, and together. What is written here and there is rounded each by itself: were it not,
//! erase blocks would differ, and writes be slow and fast in turn.

/// So many runs that go on in turn are known, as those of several files.
const RUNS: usize = 4;
/// What begins less than so many sectors behind a run belongs to it.
const GAP: u32 = 32;

/// The runs that were written last.
#[derive(Default)]
pub(super) struct Runs {
    /// Where each ended. A module has fewer than 2^32 sectors.
    ends: [u32; RUNS],
    salts: [u64; RUNS],
    /// Which of them is forgotten next.
    next: usize,
}

/// The run of a write.
#[derive(Clone, Copy, Default)]
pub(super) struct Member {
    at: usize,
    /// Decides of the rounding of all that is written in the run.
    pub salt: u64,
}

impl Runs {
    /// Where a write would belong. It may be asked about more than once: who has no room for it now comes again.
    #[inline]
    pub fn of(&self, lba: u64, now: u64) -> Member {
        // All at once, without a branch: most belong to none.
        let near = self.ends.map(|end| u32::from((lba as u32).wrapping_sub(end) < GAP));
        let mask = near.iter().zip(0..).fold(0, |mask, (near, at)| mask | near << at);
        match mask {
            0 => Member { at: self.next, salt: lba ^ now },
            mask => {
                let at = mask.trailing_zeros() as usize % RUNS;
                Member { at, salt: self.salts[at] }
            }
        }
    }

    /// What belongs to a run is written, and ends there.
    #[inline]
    pub fn wrote(&mut self, Member { at, salt }: Member, end: u64) {
        (self.ends[at], self.salts[at]) = (end as u32, salt);
        if at == self.next {
            self.next = (at + 1) % RUNS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(runs: &mut Runs, lba: u64, count: u64, now: u64) -> u64 {
        let member = runs.of(lba, now);
        runs.wrote(member, lba + count);
        member.salt
    }

    #[test]
    fn files_that_are_written_at_once_are_a_run_each() {
        let mut runs = Runs::default();
        let files = [1000, 50_000, 7_000_000];
        let first = files.map(|lba| write(&mut runs, lba, 16, 5));
        for request in 1..100 {
            // Pages of a file may be left out here and there.
            let salts = files.map(|lba| write(&mut runs, lba + 20 * request, 16, 40 * request));
            assert_eq!(salts, first);
        }
        assert!(first[0] != first[1] && first[1] != first[2]);
    }

    #[test]
    fn what_is_written_here_and_there_is_rounded_by_chance() {
        let mut runs = Runs::default();
        let places = (1..100).map(|n: u64| n * 7919 % 100_000);
        let mut salts: Vec<u64> = places.map(|lba| write(&mut runs, lba, 1, 3)).collect();
        salts.sort_unstable();
        salts.dedup();
        assert!(salts.len() > 95, "{}", salts.len());
        // Backwards, or the same place again, is no run.
        assert_ne!(write(&mut runs, 500, 8, 1), write(&mut runs, 492, 8, 2));
        assert_ne!(write(&mut runs, 600, 8, 1), write(&mut runs, 600, 8, 2));
    }
}
