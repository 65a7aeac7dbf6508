//! The pace of host writes while free space is short.
//!
//! Moving the `v` live slots of a LEB of `S` slots frees `S - v`: each moved slot therefore earns the host
//! `(S - v) / v` slots. Earned as they come, times a gain that falls with the free space, they slow
//! host writes down smoothly: at gain 1 the free space stands still, above it shrinks, below it recovers.

use crate::checkpoint::further_lebs;
use crate::layer::Config;
use crate::space::HOST_RESERVE;

/// The most of the space between the marks that one round of grooming frees.
const ROUND_SHARE: f64 = 0.75;

/// The governor of host writes. All amounts are slots.
pub(crate) struct Pace {
    /// Below this much free space the groomer works and writes are charged.
    start: f64,
    /// What host writes never get.
    low: f64,
    start_lebs: u32,
    free: f64,
    credit: f64,
    /// The most that may be saved up: small enough that a burst cannot outrun the groomer.
    most: f64,
    /// Writes are stopped until `most` is saved up, then go on until it is used up.
    rounds: bool,
    /// In rounds: writes wait for the end of this one.
    stopped: bool,
}

impl Pace {
    pub fn new(config: &Config) -> Pace {
        // What a recovery may need is not there to be used.
        let kept = further_lebs(config);
        let start_lebs = kept + start_lebs(config.geometry.blocks);
        let leb = f64::from(config.geometry.slots_per_leb());
        let most = f64::from(config.max_request * 4);
        Pace {
            start: f64::from(start_lebs) * leb,
            low: f64::from(kept + HOST_RESERVE as u32) * leb,
            start_lebs,
            free: f64::MAX,
            credit: most,
            most,
            rounds: false,
            stopped: false,
        }
    }

    /// The groomer works in rounds of so many slots: host writes wait until it has earned them, then go on until they are used up. A round
    /// is no longer than what lies between the two marks of free space leaves room for.
    pub fn set_round(&mut self, slots: u64) {
        self.rounds = slots > 0;
        self.most = self.most.max((slots as f64).min((self.start - self.low) * ROUND_SHARE));
        self.credit = self.most;
    }

    /// The groomer has nothing to gain now: what was earned may be used.
    pub fn end_round(&mut self) {
        self.stopped = false;
    }

    /// Free LEBs below which the groomer works.
    pub fn start_lebs(&self) -> u32 {
        self.start_lebs
    }

    /// Tells how much is free.
    #[inline]
    pub fn set_free(&mut self, slots: u64) {
        self.free = slots as f64;
        if self.free >= self.start {
            self.credit = self.most;
            self.stopped = false;
        }
    }

    /// Whether space is short, so that the groomer must work.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.free < self.start
    }

    /// Whether a write may be taken now.
    #[inline]
    pub fn admits(&self) -> bool {
        self.credit > 0.0 && !self.stopped
    }

    /// A write was taken.
    #[inline]
    pub fn charge(&mut self, slots: u32) {
        if self.is_short() {
            self.credit -= f64::from(slots);
            self.stopped = self.rounds && self.credit <= 0.0;
        }
    }

    /// The groomer moved `moved` slots out of a LEB with `live` live ones of `slots` (with none live, it freed it).
    pub fn earn(&mut self, moved: u32, live: u32, slots: u32) {
        let earned = match live {
            0 => f64::from(slots),
            _ => f64::from(moved) * f64::from(slots - live) / f64::from(live),
        };
        let middle = (self.start + self.low) / 2.0;
        let gain = ((self.free - self.low) / (middle - self.low)).clamp(0.05, 4.0);
        self.credit = (self.credit + earned * gain).min(self.most);
        self.stopped &= self.credit < self.most;
    }

    /// The groomer cannot work until a checkpoint is done: a little goes on all the same.
    pub fn trickle(&mut self, slots: u32) {
        self.credit = (self.credit + f64::from(slots)).min(self.most);
        self.stopped = false;
    }
}

/// Free LEBs below which the groomer works, on a module of so many LEBs: one in a hundred on top of the reserve.
pub(crate) fn start_lebs(lebs: u32) -> u32 {
    HOST_RESERVE as u32 + (lebs / 100).max(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Geometry, Policy};

    /// A pace of 384 LEBs of 1000 slots in the middle between its marks, where the gain is 1.
    fn short() -> Pace {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 384,
            pages_per_block: 1000,
            slots_per_page: 1,
            sector_bytes: 4096,
            trailer_bytes: crate::geometry::TRAILER_BYTES,
            unit_bytes: 4128,
        };
        let mut pace = Pace::new(&Config {
            geometry,
            sectors: 300_000,
            max_request: 8,
            buffers: 0,
            requests: 0,
            checkpoint_interval: 0,
            erase_before_program: true,
            power_protected: true,
            policy: Policy::Greedy,
        });
        pace.set_free(5000);
        assert!(pace.is_short());
        pace
    }

    /// Writes until no more are admitted, then grooms until some are; gives how many slots each of it took.
    fn round(pace: &mut Pace) -> (u32, u32) {
        let (mut written, mut moved) = (0, 0);
        while pace.admits() {
            pace.charge(8);
            written += 8;
        }
        while !pace.admits() {
            pace.earn(1, 500, 1000);
            moved += 1;
        }
        (written, moved)
    }

    #[test]
    fn without_rounds_every_earned_slot_lets_a_write_through() {
        let mut pace = short();
        round(&mut pace);
        let (written, moved) = round(&mut pace);
        assert!(written == 8 && moved <= 8, "{written} {moved}");
    }

    #[test]
    fn in_rounds_writes_wait_until_all_of_it_is_earned() {
        let mut pace = short();
        pace.set_round(2000);
        assert_eq!(round(&mut pace), (2000, 2000));
        assert_eq!(round(&mut pace), (2000, 2000));
        pace.set_round(1 << 40);
        assert_eq!(round(&mut pace), (3000, 3000), "no more than there is room for");
        // With nothing to groom, or enough free again, nobody waits.
        while pace.admits() {
            pace.charge(8);
        }
        pace.earn(10, 500, 1000);
        assert!(!pace.admits());
        pace.end_round();
        assert!(pace.admits());
    }
}
