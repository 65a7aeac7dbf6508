//! Age groups after MiDAS (Oh, Kim, Kang and others: "MiDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number and Size
//! Configuration", FAST 2024). What is likely to be overwritten soon goes to a hot group, the rest to the first of a chain; what is still live when its LEB is groomed
//! goes on to the next group. A group is a queue: its oldest LEB is groomed, and in the last group the emptiest. Groups are as long as it pays: here
//! that is judged from how full LEBs are when they leave the group, where the original solves a Markov chain of all groups.

use super::{Destination, Eligible, GroomPolicy, LebView, Moved, Shape, Write};
use crate::types::LebId;

/// How fast the mean utilisation of a group's victims follows: one part in so many.
const FOLLOWS: f64 = 16.0;

/// The policy of age groups.
pub struct Midas {
    groups: u8,
    /// Mean utilisation of the LEBs that were groomed last, for each group.
    leaving: Vec<f64>,
    /// Mean lifespan of LEBs of the hot group, in sectors written.
    short: f64,
}

impl Midas {
    pub(super) fn new(shape: &Shape) -> Midas {
        let groups = shape.streams;
        Midas { groups, leaving: vec![0.5; groups.into()], short: shape.sectors as f64 / 4.0 }
    }

    /// Whether there is a group for what is overwritten soon.
    fn has_hot(&self) -> bool {
        self.groups > 2
    }
}

impl GroomPolicy for Midas {
    fn name(&self) -> &'static str {
        "midas"
    }

    fn host_streams(&self) -> u8 {
        if self.has_hot() { 2 } else { 1 }
    }

    fn streams(&self) -> u8 {
        self.groups
    }

    fn learns(&self) -> bool {
        true
    }

    fn place(&mut self, write: &Write) -> u8 {
        let soon = write.olds[0].is_some_and(|old| ((write.now - old.written.min(write.now)) as f64) < self.short);
        u8::from(self.has_hot() && !soon)
    }

    fn place_moved(&mut self, moved: &Moved) -> Destination {
        Destination::of((moved.stream + 1).min(self.groups - 1))
    }

    fn took(&mut self, victim: &LebView) {
        let group = usize::from(victim.data_stream().min(self.groups - 1));
        self.leaving[group] += (victim.utilisation() - self.leaving[group]) / FOLLOWS;
        if group == 0 {
            self.short += ((victim.now - victim.times.opened) as f64 - self.short) / FOLLOWS;
        }
    }

    fn score(&self, leb: &LebView) -> f64 {
        -leb.utilisation()
    }

    fn choose(&mut self, eligible: &Eligible) -> Option<LebId> {
        let last = usize::from(self.groups - 1);
        // The oldest of each queue, the emptiest of the last.
        let mut heads: Vec<Option<LebView>> = vec![None; last + 1];
        for leb in eligible.iter() {
            if leb.live == 0 {
                return Some(leb.id);
            }
            let group = usize::from(leb.data_stream()).min(last);
            let before = match heads[group] {
                None => true,
                Some(head) if group == last => leb.live < head.live,
                Some(head) => leb.closed < head.closed,
            };
            if before {
                heads[group] = Some(leb);
            }
        }
        // Those that leave early groups move on and may die there; in the last they are written for nothing else.
        let heads = heads.into_iter().flatten();
        heads.min_by(|a, b| a.utilisation().total_cmp(&b.utilisation())).map(|leb| leb.id)
    }
}
