//! Many seeds, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Failure, Report, Wish, run};

/// Which seeds, and how.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The first seed.
    pub from: u64,
    /// How many.
    pub seeds: u64,
    /// What they are for.
    pub wish: Wish,
    /// Each is run twice, and must come to the same.
    pub twice: bool,
    /// How many at the same time.
    pub threads: usize,
    /// No further seed is begun after that time.
    pub at_most: Option<Duration>,
}

/// What a series did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Seeds that were run.
    pub seeds: u64,
    /// What they did together.
    pub sum: Report,
}

impl Series {
    /// Runs it.
    ///
    /// # Errors
    /// The lowest seed that broke a promise, and how.
    pub fn run(&self) -> Result<Held, (u64, Failure)> {
        let began = Instant::now();
        let next = AtomicU64::new(self.from);
        let end = self.from.saturating_add(self.seeds);
        let broken: Mutex<Option<(u64, Failure)>> = Mutex::new(None);
        // Seeds from here on need not be tried any more.
        let stop = AtomicU64::new(end);
        let held = Mutex::new(Held::default());
        let work = || {
            let mut mine = Held::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= stop.load(Ordering::Relaxed) || self.at_most.is_some_and(|most| began.elapsed() > most) {
                    break;
                }
                match self.once(seed) {
                    Ok(report) => {
                        mine.seeds += 1;
                        mine.sum += report;
                    }
                    Err(failure) => {
                        stop.fetch_min(seed, Ordering::Relaxed);
                        let mut broken = broken.lock().expect("nobody panics with it");
                        if broken.as_ref().is_none_or(|(known, _)| seed < *known) {
                            *broken = Some((seed, failure));
                        }
                    }
                }
            }
            let mut held = held.lock().expect("nobody panics with it");
            held.seeds += mine.seeds;
            held.sum += mine.sum;
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(work);
            }
        });
        match broken.into_inner().expect("nobody panics with it") {
            Some(broken) => Err(broken),
            None => Ok(held.into_inner().expect("nobody panics with it")),
        }
    }

    fn once(&self, seed: u64) -> Result<Report, Failure> {
        let first = Failure::caught(|| run(seed, &self.wish))?;
        if self.twice {
            let second = Failure::caught(|| run(seed, &self.wish))?;
            if first != second {
                return Err(Failure::Wrong(format!("run twice it gave {first:?} and then {second:?}")));
            }
        }
        Ok(first)
    }
}
