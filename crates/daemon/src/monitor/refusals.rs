//! Requests of strangers that were refused: counted, and told in the log now and then. They are kept out of the audit log, which is about
//! what people did, and which they could otherwise push that out of.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the log tells of them.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The count.
#[derive(Default)]
pub struct Refusals(Mutex<Count>);

#[derive(Default)]
struct Count {
    /// Since the last second was looked at.
    second: u64,
    /// Since the log told of them.
    untold: u64,
    told: Option<Instant>,
}

impl Refusals {
    /// One more.
    pub fn note(&self) {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        count.second += 1;
        count.untold += 1;
        if count.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            tracing::warn!(
                requests = count.untold,
                "refused requests to the API that would have changed something, of nobody who has signed in"
            );
            (count.untold, count.told) = (0, Some(Instant::now()));
        }
    }

    /// How many came since this was asked last.
    pub fn take(&self) -> u64 {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).second)
    }
}
