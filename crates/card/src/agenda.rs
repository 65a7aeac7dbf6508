//! What happens when: the one queue of events that the models here share.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::device::{Answer, Failure, Nanos};

/// Things to do, by the moment they are due; what is due at the same moment comes in the order it was put in.
#[derive(Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Entry<T>>,
    serial: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Nanos,
    serial: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        // The earliest is the greatest: the heap gives the greatest first.
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { heap: BinaryHeap::new(), serial: 0 }
    }
}

impl<T> Agenda<T> {
    /// Puts something in.
    pub fn put(&mut self, at: Nanos, what: T) {
        self.serial += 1;
        self.heap.push(Entry { at, serial: self.serial, what });
    }

    /// When the next thing is due.
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The next thing that is due by `now`, and when it was due.
    pub fn take(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }
}

/// Answers that wait for their moment.
#[derive(Debug, Default)]
pub struct Answers(Agenda<(u32, Result<(), Failure>)>);

impl Answers {
    /// Answers a tag at a moment.
    pub fn put(&mut self, at: Nanos, tag: u32, result: Result<(), Failure>) {
        self.0.put(at, (tag, result));
    }

    /// When the next answer is due.
    pub fn next_at(&self) -> Option<Nanos> {
        self.0.next_at()
    }

    /// The next answer that is due by `now`.
    pub fn take(&mut self, now: Nanos) -> Option<Answer> {
        self.0.take(now).map(|(at, (tag, result))| Answer { tag, at, result })
    }
}

/// How long so many bytes take at a rate.
pub fn transfer(bytes: u64, bytes_per_s: u64) -> Nanos {
    let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s.max(1)));
    Nanos::try_from(nanos).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_ties_keep_their_order() {
        let mut agenda = Agenda::default();
        for (at, what) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            agenda.put(at, what);
        }
        assert_eq!(agenda.take(2), None);
        let order: Vec<char> = std::iter::from_fn(|| agenda.take(9)).map(|(_, what)| what).collect();
        assert_eq!(order, ['a', 'b', 'c', 'd']);
    }

    #[test]
    fn bytes_take_their_time() {
        assert_eq!(transfer(4096, 1_000_000_000), 4096);
        assert_eq!(transfer(1, 3_000_000_000), 1, "begun nanoseconds count");
    }
}
