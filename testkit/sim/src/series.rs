//! Many seeds, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Failure, Report, Watch, Wish, run};

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
}

/// What a series did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Seeds that were run: the first ones, where a watch ended it.
    pub seeds: u64,
    /// What they did together.
    pub sum: Report,
}

impl Series {
    /// Runs it.
    ///
    /// # Errors
    /// The lowest seed that broke a promise, and how.
    pub fn run(&self, watch: &dyn Watch) -> Result<Held, (u64, Failure)> {
        let next = AtomicU64::new(self.from);
        let end = self.from.saturating_add(self.seeds);
        let broken: Mutex<Option<(u64, Failure)>> = Mutex::new(None);
        // Seeds from here on need not be tried any more.
        let stop = AtomicU64::new(end);
        let held = Mutex::new(Held::default());
        let work = || {
            let mut mine = Held::default();
            loop {
                // Asked first: what is counted off is run.
                if watch.is_over() {
                    break;
                }
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= stop.load(Ordering::Relaxed) {
                    break;
                }
                watch.begins(seed);
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
