//! Everything that can happen on a tiny module: every short sequence of operations, every moment at which the power can fail, and every
//! state that it can leave then.
//!
//! Two dies of four blocks of four pages, plain and with parity. After each state the device is attached, read as a whole, held against the
//! model and checked for its books; with parity also with either die gone. A module so small has no room to groom in, so sequences that
//! would need it end with a write that is not taken.
//!
//! Two things are done once instead of often, where they are the same by construction: moments that leave the same states under the same
//! promises, and states that hold the same bytes under the same promises; "the same" is a hash of 64 bits. Power cuts in the beginning
//! of a sequence are those of the shorter sequence that it begins with, and are tried there.

mod moments;
mod operations;
mod run;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::operations::Behind;
use self::operations::{OPERATIONS, Operation};
use self::run::{Run, Shape};
use crate::{Failure, Watch};

/// How many operations there are.
pub const KINDS: usize = OPERATIONS.len();

/// Which sequences, and how.
#[derive(Clone, Copy, Debug)]
pub struct Exhaustive {
    /// All of up to so many operations.
    pub longest: usize,
    /// Recoveries are cut as well in those of up to so many.
    pub recovered: usize,
    /// The first that is tried; they are counted from 1.
    pub from: u64,
    /// How many at the same time.
    pub threads: usize,
    /// What each begins with.
    pub behind: Behind,
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Those that were tried, each on two shapes and in two rhythms: the first ones, where a watch ended it.
    pub sequences: u64,
    /// Moments at which the power failed.
    pub moments: u64,
    /// States that it left.
    pub states: u64,
    /// States that a death of the process alone left, at the same moments.
    pub killed: u64,
    /// Those that differ, and were attached and compared.
    pub distinct: u64,
    /// Of the states, those of a power cut during a recovery.
    pub in_recovery: u64,
}

impl Scope {
    fn add(&mut self, other: &Scope) {
        self.sequences += other.sequences;
        self.moments += other.moments;
        self.states += other.states;
        self.killed += other.killed;
        self.distinct += other.distinct;
        self.in_recovery += other.in_recovery;
    }
}

/// What was seen already, by hash.
pub(crate) struct Seen(Vec<Mutex<HashSet<u64>>>);

impl Seen {
    fn new() -> Seen {
        Seen((0..64).map(|_| Mutex::default()).collect())
    }

    /// Whether it is new.
    pub fn insert(&self, digest: u64) -> bool {
        self.0[(digest >> 58) as usize].lock().expect("nobody panics with it").insert(digest)
    }
}

impl Exhaustive {
    /// How many sequences there are.
    pub fn all(&self) -> u64 {
        operations::sequences(self.longest, self.behind).len() as u64
    }

    /// Tries them.
    ///
    /// # Errors
    /// The first sequence in which a promise was broken, and how.
    pub fn run(&self, watch: &dyn Watch) -> Result<Scope, (String, Failure)> {
        device::allow_tiny_modules();
        let sequences = operations::sequences(self.longest, self.behind);
        let next = AtomicU64::new(self.from);
        let seen = Seen::new();
        let broken: Mutex<Option<(u64, String, Failure)>> = Mutex::new(None);
        let scope = Mutex::new(Scope::default());
        let work = || {
            let mut mine = Scope::default();
            // Asked first: what is counted off is tried.
            while !watch.is_over() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(sequence) = sequences.get(number as usize - 1) else { break };
                watch.begins(number);
                mine.sequences += 1;
                if let Err((how, failure)) = self.attempt(sequence, &seen, &mut mine) {
                    let mut broken = broken.lock().expect("nobody panics with it");
                    if broken.as_ref().is_none_or(|(known, ..)| number < *known) {
                        *broken = Some((number, format!("{sequence:?} {how}"), failure));
                    }
                    next.store(sequences.len() as u64 + 1, Ordering::Relaxed);
                    break;
                }
            }
            scope.lock().expect("nobody panics with it").add(&mine);
        };
        std::thread::scope(|threads| {
            for _ in 0..self.threads.max(1) {
                threads.spawn(work);
            }
        });
        match broken.into_inner().expect("nobody panics with it") {
            Some((_, what, failure)) => Err((what, failure)),
            None => Ok(scope.into_inner().expect("nobody panics with it")),
        }
    }

    /// One sequence, on both shapes and in both rhythms.
    fn attempt(&self, sequence: &[Operation], seen: &Seen, scope: &mut Scope) -> Result<(), (String, Failure)> {
        for shape in [Shape::Plain, Shape::Parity] {
            for patient in [false, true] {
                let recovered = sequence.len() <= self.recovered + self.behind.len();
                run::caught(Run { shape, patient, sequence, recovered, seen }, scope).map_err(|failure| {
                    let rhythm = if patient { "waiting after each" } else { "without waiting" };
                    (format!("on {shape:?}, {rhythm}"), failure)
                })?;
            }
        }
        Ok(())
    }
}
