//! Hedged reads: a request that the store takes unusually long to answer is sent once more, and the
//! first answer counts.
//!
//! A few requests to every store take a hundred times as long as the rest, and the same request
//! sent again seldom does. *Unusual* means longer than 19 of the 20 last answers took. Each further
//! request for the same bytes waits twice as long as the one before.
//!
//! A store that is slow altogether is not asked much more often: an account pays for the further
//! requests, and each first request adds a tenth of the price of one.

use std::collections::{BTreeSet, VecDeque};

/// How many of the last answers say how long an answer usually takes.
const RECENT: usize = 64;
/// With fewer answers than this, nothing is known.
const ENOUGH: usize = 16;
/// The wait while nothing is known, milliseconds.
const UNKNOWN_MS: u64 = 500;
/// The shortest wait, milliseconds. A request that is sent earlier is answered behind the first one.
const SOONEST_MS: u64 = 10;
/// How many first requests pay for a further one.
const PRICE: u32 = 10;
/// How many further requests the account can save for.
const SAVED: u32 = 8;

/// Which requests are sent again, and when.
#[derive(Debug)]
pub(super) struct Hedge {
    /// How long the last answers took, milliseconds.
    recent: VecDeque<u64>,
    /// Requests without an answer: when each is sent again, its number, and how long it waits then.
    waiting: BTreeSet<(u64, u64, u64)>,
    account: u32,
    count: u64,
}

impl Default for Hedge {
    fn default() -> Hedge {
        let account = SAVED * PRICE;
        Hedge { recent: VecDeque::new(), waiting: BTreeSet::new(), account, count: 0 }
    }
}

impl Hedge {
    /// The request of this number is sent for the first time.
    pub fn asked(&mut self, number: u64, now_ms: u64) {
        self.account = (self.account + 1).min(SAVED * PRICE);
        let wait = self.usual_ms() + 1;
        self.waiting.insert((now_ms + wait, number, wait));
    }

    /// The request of this number is not sent again. `took_ms` says how long its answer took, where
    /// it succeeded.
    pub fn answered(&mut self, number: u64, took_ms: Option<u64>) {
        self.waiting.retain(|(_, waiting, _)| *waiting != number);
        if let Some(took) = took_ms {
            self.recent.push_back(took);
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
    }

    /// The number of the next request that is to be sent again now.
    pub fn due(&mut self, now_ms: u64) -> Option<u64> {
        if self.account < PRICE {
            return None;
        }
        let first = *self.waiting.first().filter(|(at, ..)| *at <= now_ms)?;
        self.waiting.remove(&first);
        let (_, number, waited) = first;
        self.waiting.insert((now_ms + 2 * waited, number, 2 * waited));
        self.account -= PRICE;
        self.count += 1;
        Some(number)
    }

    /// When [`Hedge::due`] has the next one, if nothing changes until then.
    pub fn next_ms(&self) -> Option<u64> {
        (self.account >= PRICE).then(|| self.waiting.first().map(|(at, ..)| *at)).flatten()
    }

    /// How many requests were sent again so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Forgets the requests that have no answer.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }

    /// What 19 of 20 answers take at most, milliseconds.
    fn usual_ms(&self) -> u64 {
        if self.recent.len() < ENOUGH {
            return UNKNOWN_MS;
        }
        let mut sorted: Vec<u64> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        sorted[sorted.len() * 19 / 20].max(SOONEST_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_than_most_is_asked_for_again_within_the_account() {
        let mut hedge = Hedge::default();
        for number in 0..100 {
            hedge.asked(number, 0);
            hedge.answered(number, Some(30 + number % 10));
        }
        hedge.asked(100, 1000);
        assert_eq!((hedge.due(1039), hedge.next_ms()), (None, Some(1040)));
        assert_eq!((hedge.due(1040), hedge.next_ms()), (Some(100), Some(1120)));
        assert_eq!((hedge.due(1119), hedge.due(1120)), (None, Some(100)), "it waits twice as long");
        hedge.answered(100, None);
        assert_eq!(hedge.next_ms(), None);
        // A store that answers nothing is asked a tenth more often.
        (200..1200).for_each(|number| hedge.asked(number, 2000));
        let hedged = std::iter::from_fn(|| hedge.due(9999)).count();
        assert_eq!((hedged, hedge.next_ms()), (SAVED as usize, None));
    }
}
