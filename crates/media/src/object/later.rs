//! What is tried again, and when: exponential back-off with jitter from a seeded generator.

use std::collections::BTreeMap;

use random::SplitMix64;

/// The delay before the first repetition, milliseconds.
const FIRST_MS: u64 = 100;
/// The longest, milliseconds.
const LONGEST_MS: u64 = 20_000;

/// Things that wait for their moment.
pub(super) struct Later<T> {
    random: SplitMix64,
    /// By moment, milliseconds, and in the order in which they came.
    waiting: BTreeMap<(u64, u64), T>,
    next: u64,
}

impl<T> Later<T> {
    pub fn new(seed: u64) -> Later<T> {
        Later { random: SplitMix64::new(seed), waiting: BTreeMap::new(), next: 0 }
    }

    /// `item` failed so many times, at least once: its turn comes again later.
    pub fn put(&mut self, now_ms: u64, failures: u32, item: T) {
        let longest = FIRST_MS.checked_shl(failures.saturating_sub(1)).unwrap_or(LONGEST_MS).min(LONGEST_MS);
        // Whoever fails together comes back apart.
        let delay = longest / 2 + self.random.below(longest / 2 + 1);
        self.waiting.insert((now_ms + delay, self.next), item);
        self.next += 1;
    }

    /// The next one whose moment has come.
    pub fn due(&mut self, now_ms: u64) -> Option<T> {
        let first = self.waiting.first_entry().filter(|first| first.key().0 <= now_ms)?;
        Some(first.remove())
    }

    /// When the next moment is.
    pub fn next_ms(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// All of them, at once.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(&mut self.waiting).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_a_bound_and_differ() {
        let mut later = Later::new(1);
        let mut delays = Vec::new();
        for failures in 1..40 {
            later.put(1000, failures, failures);
            let at = later.next_ms().expect("it waits");
            assert_eq!(later.due(at - 1), None);
            assert_eq!(later.due(at), Some(failures));
            delays.push(at - 1000);
        }
        assert!(delays[0] >= 50 && delays[0] <= 100);
        assert!(delays[10..].iter().all(|delay| (10_000..=20_000).contains(delay)), "{delays:?}");
        assert!(delays[20] != delays[21], "{delays:?}");
    }
}
