//! Which labels share a stream, and how many streams pay for themselves.
//!
//! A group of N sectors that is written at the rate r and has S slots more than it fills is groomed as a device of its own would be: for little room,
//! its writes are amplified N / 2S times (Desnoyers, "Analytic Models of SSD Write Performance", 2014, to first order). Room shared out at its
//! best goes by sqrt(r N), and all groups together then cost (Σ sqrt(r N))² / 2S (as in Stoica and Ailamaki, "Improving Flash Write Performance by Using Update
//! Frequency", VLDB 2013). The sum is least for neighbours in the order of hazard; dynamic programming finds them. Each stream keeps a
//! LEB open, which is room that is lost: where separation gains less than that, nothing is separated.
//!
//! What the host writes and what the groomer moves are grouped each by itself: what is written together often dies together, and would not
//! if sectors of other ages came in between.

use super::label::{BINS, is_moved};
use super::tally::Tally;
use crate::leb::DATA_STREAMS;
use crate::policy::Shape;

/// Nothing is separated before this share of the sectors is known.
const KNOWN_MIN: f64 = 1.0 / 64.0;
/// LEBs that the layer keeps free, about: no room for anybody.
const KEPT_FREE: f64 = 8.0;

/// The groups in use, from the shortest lives to the longest.
pub(super) struct Groups {
    of: [u8; BINS],
    count: u8,
}

impl Default for Groups {
    fn default() -> Groups {
        Groups { of: [0; BINS], count: 1 }
    }
}

impl Groups {
    /// The group of a bin of labels.
    pub fn of(&self, bin: usize) -> u8 {
        self.of[bin]
    }

    /// How many there are.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Chooses them anew, for the labels of what was moved or of what was not, and so many streams.
    pub fn choose(&mut self, tally: &Tally, shape: &Shape, moved: bool, streams: u8) {
        let mut order: [usize; BINS] = std::array::from_fn(|bin| bin);
        order.sort_by(|a, b| tally.hazard(*b).total_cmp(&tally.hazard(*a)));
        // Sectors and rates up to each place.
        let mut sums = [(0.0, 0.0); BINS + 1];
        for (at, bin) in order.into_iter().enumerate() {
            let live = if is_moved(bin) == moved { tally.live(bin).max(0.0) } else { 0.0 };
            sums[at + 1] = (sums[at].0 + live, sums[at].1 + live * tally.hazard(bin));
        }
        let live = sums[BINS].0;
        if live < shape.sectors as f64 * KNOWN_MIN {
            return;
        }
        let table = Table::new(&sums, streams.into());
        let leb = f64::from(shape.slots_per_leb);
        let all: f64 = (0..BINS).map(|bin| tally.live(bin)).sum();
        let room = (f64::from(shape.lebs) - KEPT_FREE) * leb - all;
        let costs = (0..table.rows.len()).map(|more| {
            let room = (room - more as f64 * leb).max(leb);
            table.cost(more).powi(2) / room
        });
        let (mut more, mut least) = (0, f64::INFINITY);
        for (at, cost) in costs.enumerate() {
            if cost < least {
                (more, least) = (at, cost);
            }
        }
        let begins = table.begins(more);
        for (at, bin) in order.into_iter().enumerate() {
            self.of[bin] = begins.iter().filter(|begin| at >= **begin).count() as u8;
        }
        self.count = begins.len() as u8 + 1;
    }
}

/// The least cost of the first places in a number of groups, and where the last of them begins.
struct Table {
    rows: Vec<[(f64, usize); BINS + 1]>,
}

impl Table {
    fn new(sums: &[(f64, f64); BINS + 1], most: usize) -> Table {
        let cost = |from: usize, to: usize| {
            let (sectors, rate) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
            (sectors * rate).max(0.0).sqrt()
        };
        let mut rows = vec![std::array::from_fn(|to| (cost(0, to), 0))];
        while rows.len() < most.min(DATA_STREAMS.into()) {
            let last: &[(f64, usize); BINS + 1] = &rows[rows.len() - 1];
            let row = std::array::from_fn(|to| {
                let splits = (0..to).map(|from| (last[from].0 + cost(from, to), from));
                splits.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0))
            });
            rows.push(row);
        }
        Table { rows }
    }

    /// Of all places in one group and `more`.
    fn cost(&self, more: usize) -> f64 {
        self.rows[more][BINS].0
    }

    /// Where the groups after the first begin.
    fn begins(&self, more: usize) -> Vec<usize> {
        let mut to = BINS;
        let mut begins: Vec<usize> = (1..=more)
            .rev()
            .map(|row| {
                to = self.rows[row][to].1;
                to
            })
            .collect();
        begins.reverse();
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::super::label::Label;
    use super::*;

    const SHAPE: Shape = Shape { sectors: 100_000, lebs: 480, slots_per_leb: 256, streams: 6 };

    /// Sectors by level and lifetime, for ten drive writes.
    fn grouped(kinds: &[(u8, u64, u64)]) -> Groups {
        let mut tally = Tally::new(SHAPE.sectors);
        for (level, sectors, _) in kinds {
            (0..*sectors).for_each(|_| tally.born(Label(*level)));
        }
        for round in 1..=320 {
            for (level, sectors, lifetime) in kinds {
                for _ in 0..sectors * (SHAPE.sectors / 32) / lifetime {
                    tally.died(Label(*level));
                    tally.born(Label(*level));
                }
            }
            tally.advance(round * SHAPE.sectors / 32);
        }
        let mut groups = Groups::default();
        groups.choose(&tally, &SHAPE, false, SHAPE.streams);
        groups
    }

    #[test]
    fn what_dies_alike_stays_together_whatever_it_is_called() {
        let groups = grouped(&[(21, 30_000, 100_000), (31, 30_000, 100_000), (51, 40_000, 100_000)]);
        assert_eq!(groups.count(), 1);
    }

    #[test]
    fn what_dies_sooner_goes_apart() {
        let groups = grouped(&[(21, 20_000, 25_000), (23, 40_000, 400_000), (51, 40_000, 400_000)]);
        assert_eq!(groups.count(), 2);
        assert_eq!([21, 23, 51].map(|level| groups.of(Label(level).bin())), [0, 1, 1]);
    }

    #[test]
    fn there_are_never_more_groups_than_streams() {
        let kinds: Vec<_> = (0..10).map(|i| (11 + 4 * i, 10_000, 1000u64 << i)).collect();
        let groups = grouped(&kinds);
        assert!((3..=6).contains(&groups.count()), "{}", groups.count());
    }
}
