//! What the host does later: a queue ordered by time, and by age where times are the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use card::Nanos;

/// Something that the host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The thread has worked on a request and comes to the driver's lock: its tag.
    Lock(u32),
    /// The thread has seen a request's answer: its tag.
    Seen(u32),
    /// A thread's next arrival is due: its number.
    Arrival(u32),
}

/// Bits of a tag or a thread's number.
const NUMBER_BITS: u32 = 24;
/// Bits of the kind.
const KIND_BITS: u32 = 2;

/// Events to come. Each is one number, so that ordering them is one comparison: time, then age, then what it is.
#[derive(Debug, Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<u128>>,
    age: u64,
}

impl Events {
    /// The moment of the first.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse(key)| (key >> 64) as Nanos)
    }

    /// Something to happen.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: Event) {
        let (kind, number) = match event {
            Event::Lock(tag) => (0, tag),
            Event::Seen(tag) => (1, tag),
            Event::Arrival(thread) => (2, thread),
        };
        self.age += 1;
        let low = self.age << (NUMBER_BITS + KIND_BITS) | kind << NUMBER_BITS | u64::from(number);
        self.heap.push(Reverse(u128::from(at) << 64 | u128::from(low)));
    }

    /// The first, if it is due.
    #[inline]
    pub fn due(&mut self, now: Nanos) -> Option<Event> {
        if self.next() > now {
            return None;
        }
        let Reverse(key) = self.heap.pop()?;
        let number = (key as u64 & ((1 << NUMBER_BITS) - 1)) as u32;
        Some(match key as u64 >> NUMBER_BITS & ((1 << KIND_BITS) - 1) {
            0 => Event::Lock(number),
            1 => Event::Seen(number),
            _ => Event::Arrival(number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_age() {
        let mut events = Events::default();
        events.push(20, Event::Lock(1));
        events.push(10, Event::Seen(0xff_ffff));
        events.push(10, Event::Arrival(0));
        assert_eq!(events.next(), 10);
        assert_eq!(events.due(9), None);
        assert_eq!(events.due(10), Some(Event::Seen(0xff_ffff)));
        assert_eq!(events.due(10), Some(Event::Arrival(0)));
        assert_eq!(events.due(10), None);
        assert_eq!(events.due(Nanos::MAX), Some(Event::Lock(1)));
        assert_eq!(events.next(), Nanos::MAX);
    }
}
