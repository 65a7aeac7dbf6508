//! The threads that ask.

use card::Nanos;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

use crate::generate::{Feed, Placer, Plan, Source};
use crate::workload::{Arrivals, Load};

/// One thread.
#[derive(Debug)]
pub struct Thread {
    /// Which load it belongs to.
    pub load: u32,
    /// Which device it uses.
    pub device: u32,
    /// Requests that it keeps outstanding at most.
    pub depth: u32,
    /// Requests that it has outstanding.
    pub outstanding: u32,
    /// When its processor is free.
    pub cpu_free: Nanos,
    /// It has nothing more to ask.
    pub done: bool,
    /// Its requests.
    pub source: Source,
    /// What its writes belong together with, where that is said.
    pub placer: Option<Placer>,
    /// When its requests are due, in an open loop.
    pub gate: Option<Gate>,
    /// Where its requests come from, and when they are due, if that is a trace.
    pub feed: Option<Feed>,
    /// Somebody will look again when the next request is due.
    pub armed: bool,
}

/// When the requests of an open loop are due.
#[derive(Debug)]
pub struct Gate {
    /// The next one: fractions of nanoseconds are carried on, so that the rate is exact.
    due: f64,
    /// Mean distance, nanoseconds.
    gap: f64,
    arrivals: Arrivals,
    random: Xoshiro256PlusPlus,
}

impl Gate {
    /// When the next request is due.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.due as Nanos
    }

    /// The request that was due is made: the one after it.
    #[inline]
    pub fn step(&mut self) {
        self.due += match self.arrivals {
            Arrivals::Fixed => self.gap,
            Arrivals::Poisson => {
                let gap: f64 = Exp1.sample(&mut self.random);
                gap * self.gap
            }
        };
    }
}

impl Thread {
    /// Thread `number` of a load, on `device`, where it is the `place`-th of the load's `beside` threads.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        load: &Load,
        at: usize,
        number: u32,
        device: u32,
        devices: u32,
        plan: &Plan,
        left: u64,
        seed: u64,
        now: Nanos,
    ) -> Thread {
        // On a device the load's threads are those with the same remainder.
        let beside = (load.threads - 1 - device) / devices + 1;
        // One request ahead of each of many threads hides as much as many ahead of one.
        let distance = (16 / load.threads as usize).clamp(1, 8);
        let gate = load.rate.as_ref().map(|rate| {
            let gap = 1e9 * f64::from(load.threads) / rate.per_second;
            let mut gate = Gate {
                due: now as f64,
                gap,
                arrivals: rate.arrivals,
                random: Xoshiro256PlusPlus::seed_from_u64(!seed),
            };
            match rate.arrivals {
                // Evenly, one thread after the other.
                Arrivals::Fixed => gate.due += gap * f64::from(number) / f64::from(load.threads),
                Arrivals::Poisson => gate.step(),
            }
            gate
        });
        Thread {
            load: at as u32,
            device,
            depth: load.depth(),
            outstanding: 0,
            cpu_free: now,
            done: false,
            source: Source::new(plan, seed, number / devices, beside, left, distance),
            placer: Placer::new(&plan.placements, plan.choose, seed),
            gate,
            feed: None,
            armed: false,
        }
    }

    /// When its next request is due. `None`: as soon as there is room.
    #[inline]
    pub fn due(&self) -> Option<Nanos> {
        match &self.gate {
            Some(gate) => Some(gate.due()),
            None => self.feed.as_ref().and_then(Feed::due),
        }
    }
}

/// A seed for each part of a run, far from all others.
pub fn seed_of(run: u64, phase: usize, load: usize, thread: u32) -> u64 {
    let mut seed = run;
    for part in [phase as u64, load as u64, u64::from(thread)] {
        seed = SplitMix64::seed_from_u64(seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64();
    }
    seed
}
