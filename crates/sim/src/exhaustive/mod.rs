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

mod operations;
mod run;
mod spy;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::operations::OPERATIONS;
use self::run::{Run, Shape};
use crate::Failure;

/// How many operations there are.
pub const KINDS: usize = OPERATIONS.len();

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Sequences of operations, each on two shapes and in two rhythms.
    pub sequences: u64,
    /// Moments at which the power failed.
    pub moments: u64,
    /// States that it left.
    pub states: u64,
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

/// Tries all sequences of up to `longest` operations; recoveries are cut as well in those of up to `recovered`.
///
/// # Errors
/// The first sequence in which a promise was broken, and how.
pub fn exhaust(longest: usize, recovered: usize, threads: usize) -> Result<Scope, (String, Failure)> {
    device::allow_tiny_modules();
    let sequences = operations::sequences(longest);
    let next = AtomicUsize::new(0);
    let seen = Seen::new();
    let broken: Mutex<Option<(usize, String, Failure)>> = Mutex::new(None);
    let scope = Mutex::new(Scope::default());
    let work = || {
        let mut mine = Scope::default();
        'all: loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(sequence) = sequences.get(number) else { break };
            mine.sequences += 1;
            for shape in [Shape::Plain, Shape::Parity] {
                for patient in [false, true] {
                    let recovered = sequence.len() <= recovered;
                    if let Err(failure) =
                        run::caught(Run { shape, patient, sequence, recovered, seen: &seen }, &mut mine)
                    {
                        let how = if patient { "waiting after each" } else { "without waiting" };
                        let mut broken = broken.lock().expect("nobody panics with it");
                        if broken.as_ref().is_none_or(|(known, ..)| number < *known) {
                            *broken = Some((number, format!("{sequence:?} on {shape:?}, {how}"), failure));
                        }
                        next.store(sequences.len(), Ordering::Relaxed);
                        break 'all;
                    }
                }
            }
        }
        scope.lock().expect("nobody panics with it").add(&mine);
    };
    std::thread::scope(|threads_of| {
        for _ in 0..threads.max(1) {
            threads_of.spawn(work);
        }
    });
    match broken.into_inner().expect("nobody panics with it") {
        Some((_, what, failure)) => Err((what, failure)),
        None => Ok(scope.into_inner().expect("nobody panics with it")),
    }
}
