//! The pace of host writes while free space is short.
//!
//! Grooming LEBs whose live slots are `v` of `S` frees `S - v` for every `v` that are moved: a write may be taken for every `v / (S - v)` moves. What that
//! costs is averaged over the last victims, since a full LEB may follow on an empty one, and corrected by a gain that falls with the free
//! space: at gain 1 it stands still, above it shrinks, below it recovers. Brakes are harder than acceleration: free space that is
//! used up stops writes, free space that is left does no harm. So writes are slowed down to what the groomer can sustain, and evenly.

use crate::checkpoint::further_lebs;
use crate::layer::Config;
use crate::leb::DATA_STREAMS;
use crate::space::HOST_RESERVE;

/// The most of the space between the marks that one round of grooming frees.
const ROUND_SHARE: f64 = 0.75;
/// The price of grooming is averaged over so many times the space between the marks.
const PRICE_ROOMS: f64 = 8.0;

/// How the groomer and host writes share the device when free space is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pacing {
    /// The groomer begins early, and every write waits for its share of the work.
    #[default]
    Steady,
    /// The groomer begins early and works in rounds of so many bytes, as some cards do: writes wait until it has made room for them, then
    /// run unhindered until that is used up. A round is no longer than what lies between the marks of free space leaves room for.
    Rounds(u64),
    /// The groomer begins when nothing is left for the host, and writes wait until it has freed a LEB.
    OnDemand,
}

/// What freeing space costs at present: sums over the last victims, older ones fading.
#[derive(Clone, Copy)]
struct Price {
    moved: f64,
    freed: f64,
    keep: f64,
}

impl Price {
    /// Until victims say more: what uniform traffic costs to first order, as if one LEB had been seen.
    fn new(config: &Config, kept_lebs: u32, window_lebs: f64) -> Price {
        let leb = f64::from(config.geometry.slots_per_leb());
        let spare = f64::from(config.geometry.blocks.saturating_sub(kept_lebs)) * leb - config.room() as f64;
        let (moved, freed) = (config.room() as f64, 2.0 * spare.max(leb));
        let share = leb / (moved + freed);
        Price { moved: moved * share, freed: freed * share, keep: 1.0 - 1.0 / window_lebs.max(1.0) }
    }

    fn add(&mut self, moved: u32, freed: u32) {
        self.moved = self.moved * self.keep + f64::from(moved);
        self.freed = self.freed * self.keep + f64::from(freed);
    }

    /// Moves for each slot that is freed.
    fn moves(&self) -> f64 {
        self.moved / self.freed.max(1.0)
    }
}

/// Where what is done changes with the free space.
struct Marks {
    start: f64,
    low: f64,
    demand: (f64, f64),
    start_lebs: u32,
}

impl Marks {
    fn new(config: &Config, further: u32) -> Marks {
        // What a recovery may need is not there to be used.
        let kept = 2 * further;
        let start_lebs = kept + start_lebs(config.geometry.blocks);
        let leb = f64::from(config.geometry.slots_per_leb());
        let (start, low) = (f64::from(start_lebs) * leb, f64::from(kept + HOST_RESERVE as u32) * leb);
        // What is left of the open LEBs may be too little in each of them.
        let rest = f64::from(DATA_STREAMS) * f64::from(config.max_request + config.geometry.slots_per_page);
        Marks { start, low, demand: (low + rest, low + rest.max(leb)), start_lebs }
    }
}

/// The governor of host writes. All amounts are slots.
pub(crate) struct Pace {
    pacing: Pacing,
    /// Below this much free space the groomer works and writes are charged.
    start: f64,
    /// What host writes never get.
    low: f64,
    /// Where the groomer begins when it does so on demand, and where it ends.
    demand: (f64, f64),
    start_lebs: u32,
    free: f64,
    credit: f64,
    /// The most that may be saved up: small enough that a burst cannot outrun the groomer.
    most: f64,
    /// What `most` is without rounds.
    most_steady: f64,
    short: bool,
    /// Writes wait: in rounds for the end of this one, on demand for a LEB.
    stopped: bool,
    /// Over the last victims.
    price: Price,
    /// Moves for each slot that is freed, under uniform traffic.
    uniform: f64,
}

impl Pace {
    pub fn new(config: &Config) -> Pace {
        let leb = f64::from(config.geometry.slots_per_leb());
        let most = f64::from(config.max_request * 4);
        let Marks { start, low, demand, start_lebs } = Marks::new(config, further_lebs(config, 0));
        Pace {
            pacing: Pacing::Steady,
            start,
            low,
            demand,
            start_lebs,
            free: f64::MAX,
            credit: most,
            most,
            most_steady: most,
            short: false,
            stopped: false,
            price: Price::new(config, start_lebs, (start - low) / leb * PRICE_ROOMS),
            uniform: Price::new(config, start_lebs, 1.0).moves(),
        }
    }

    /// A checkpoint takes so many LEBs beyond its first from now on.
    pub fn set_further(&mut self, config: &Config, further: u32) {
        let Marks { start, low, demand, start_lebs } = Marks::new(config, further);
        (self.start, self.low, self.demand, self.start_lebs) = (start, low, demand, start_lebs);
        if self.free < f64::MAX {
            self.look();
        }
    }

    /// Paces writes in another way from now on; a round is given in slots.
    pub fn set_pacing(&mut self, pacing: Pacing) {
        let round = match pacing {
            Pacing::Rounds(slots) => slots as f64,
            Pacing::Steady | Pacing::OnDemand => 0.0,
        };
        self.pacing = if pacing == Pacing::Rounds(0) { Pacing::Steady } else { pacing };
        self.most = self.most_steady.max(round.min((self.start - self.low) * ROUND_SHARE));
        self.credit = self.most;
        self.stopped = false;
        self.short = false;
        if self.free < f64::MAX {
            self.look();
        }
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
        self.look();
    }

    #[inline]
    fn look(&mut self) {
        if self.pacing == Pacing::OnDemand {
            let (begin, end) = self.demand;
            self.short = self.free < if self.short { end } else { begin };
            self.stopped = self.short;
            return;
        }
        self.short = self.free < self.start;
        if !self.short {
            self.credit = self.most;
            self.stopped = false;
        }
    }

    /// Whether space is short, so that the groomer must work.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Whether a write may be taken now.
    #[inline]
    pub fn admits(&self) -> bool {
        self.credit > 0.0 && !self.stopped
    }

    /// A write was taken.
    #[inline]
    pub fn charge(&mut self, slots: u32) {
        if self.short && self.pacing != Pacing::OnDemand {
            self.credit -= f64::from(slots);
            self.stopped = matches!(self.pacing, Pacing::Rounds(_)) && self.credit <= 0.0;
        }
    }

    /// The groomer takes a LEB for the space in it, `live` of its slots live.
    pub fn took(&mut self, live: u32, slots: u32) {
        if self.short {
            self.price.add(live, slots - live);
        }
    }

    /// Moves for each slot that is freed under uniform traffic, to first order.
    pub fn uniform_price(&self) -> f64 {
        self.uniform
    }

    /// The groomer moved `moved` slots out of a LEB with `live` live ones of `slots` (with none live, it freed it).
    pub fn earn(&mut self, moved: u32, live: u32, slots: u32) {
        let earned = match live {
            0 => f64::from(slots),
            _ if self.pacing == Pacing::Steady => f64::from(moved) / self.price.moves().max(f64::from(slots).recip()),
            _ => f64::from(moved) * f64::from(slots - live) / f64::from(live),
        };
        self.credit_with(earned);
    }

    /// The groomer freed so many slots without moving anything.
    pub fn earn_slots(&mut self, slots: u32) {
        self.credit_with(f64::from(slots));
    }

    fn credit_with(&mut self, earned: f64) {
        let middle = (self.start + self.low) / 2.0;
        let room = ((self.free - self.low) / (middle - self.low)).clamp(0.05, 4.0);
        let gain = if room > 1.0 { room.sqrt() } else { room };
        self.credit = (self.credit + earned * gain).min(self.most);
        if matches!(self.pacing, Pacing::Rounds(_)) {
            self.stopped &= self.credit < self.most;
        }
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

    const LEB: u32 = 1000;

    /// A pace of 384 LEBs of 1000 slots in the middle between its marks, where the gain is 1.
    fn short() -> Pace {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 384,
            pages_per_block: LEB,
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
            pace.earn(1, 500, LEB);
            moved += 1;
        }
        (written, moved)
    }

    #[test]
    fn without_rounds_every_earned_slot_lets_a_write_through() {
        let mut pace = short();
        (0..20).for_each(|_| pace.took(500, LEB));
        round(&mut pace);
        let (written, moved) = round(&mut pace);
        assert!(written == 8 && moved <= 9, "{written} {moved}");
    }

    #[test]
    fn in_rounds_writes_wait_until_all_of_it_is_earned() {
        let mut pace = short();
        pace.set_pacing(Pacing::Rounds(2000));
        assert_eq!(round(&mut pace), (2000, 2000));
        assert_eq!(round(&mut pace), (2000, 2000));
        pace.set_pacing(Pacing::Rounds(1 << 40));
        assert_eq!(round(&mut pace), (3000, 3000), "no more than there is room for");
        // With nothing to groom, or enough free again, nobody waits.
        while pace.admits() {
            pace.charge(8);
        }
        pace.earn(10, 500, LEB);
        assert!(!pace.admits());
        pace.end_round();
        assert!(pace.admits());
    }

    /// Victims that are nearly empty and nearly full in turn, as under hot and cold data: the writes that each lets through.
    #[test]
    fn a_full_victim_slows_writes_down_no_more_than_an_empty_one() {
        let mut pace = short();
        let mut through = Vec::new();
        for n in 0..40 {
            let live = if n % 2 == 0 { 100 } else { 900 };
            pace.took(live, LEB);
            let mut written = 0;
            for _ in 0..live {
                pace.earn(1, live, LEB);
                while pace.admits() {
                    pace.charge(1);
                    written += 1;
                }
            }
            through.push(f64::from(written) / f64::from(live));
        }
        let late = &through[20..];
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!(late.iter().all(|writes| (writes / mean - 1.0).abs() < 0.25), "writes for each move: {late:?}");
        assert!((0.8..1.25).contains(&mean), "half of what is moved and freed is freed: {mean}");
    }

    #[test]
    fn on_demand_writes_run_until_nothing_is_left_and_wait_for_a_leb() {
        let mut pace = short();
        pace.set_pacing(Pacing::OnDemand);
        assert!(!pace.is_short() && pace.admits(), "there is room for two LEBs more");
        pace.set_free(3055);
        assert!(!pace.is_short() && pace.admits());
        pace.set_free(3053);
        assert!(pace.is_short() && !pace.admits());
        pace.earn(500, 500, LEB);
        assert!(!pace.admits(), "moves alone free nothing");
        pace.set_free(3999);
        assert!(pace.is_short() && !pace.admits());
        pace.set_free(4001);
        assert!(!pace.is_short() && pace.admits());
    }

    #[test]
    fn an_empty_victim_lets_writes_through_at_once() {
        let mut pace = short();
        while pace.admits() {
            pace.charge(8);
        }
        pace.took(0, LEB);
        pace.earn(0, 0, LEB);
        assert!(pace.admits());
    }
}
