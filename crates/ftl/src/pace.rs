//! The pace of host writes while free space is short.
//!
//! Moving the `v` live slots of a LEB of `S` slots frees `S - v`: each moved slot therefore earns the host
//! `(S - v) / v` slots. Earned as they come, times a gain that falls with the free space, they slow
//! host writes down smoothly: at gain 1 the free space stands still, above it shrinks, below it recovers.

use crate::Geometry;
use crate::space::HOST_RESERVE;

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
}

impl Pace {
    pub fn new(geometry: &Geometry, max_request: u32) -> Pace {
        let start_lebs = start_lebs(geometry.blocks);
        let leb = f64::from(geometry.slots_per_leb());
        let most = f64::from(max_request * 4);
        Pace {
            start: f64::from(start_lebs) * leb,
            low: HOST_RESERVE as f64 * leb,
            start_lebs,
            free: f64::MAX,
            credit: most,
            most,
        }
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
        self.credit > 0.0
    }

    /// A write was taken.
    #[inline]
    pub fn charge(&mut self, slots: u32) {
        if self.is_short() {
            self.credit -= f64::from(slots);
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
    }

    /// The groomer cannot work until a checkpoint is done: a little goes on all the same.
    pub fn trickle(&mut self, slots: u32) {
        self.credit = (self.credit + f64::from(slots)).min(self.most);
    }
}

/// Free LEBs below which the groomer works, on a module of so many LEBs: one in a hundred on top of the reserve.
pub(crate) fn start_lebs(lebs: u32) -> u32 {
    HOST_RESERVE as u32 + (lebs / 100).max(4)
}
