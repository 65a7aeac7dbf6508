//! What a disk's memory holds of the platter: ranges that were read, the last of which grows while the head stays.

use std::collections::VecDeque;

use crate::device::Nanos;

/// Ranges of the platter in memory.
#[derive(Debug)]
pub struct Segments {
    held: VecDeque<Segment>,
    count: usize,
    bytes: u64,
    /// The newest range grows: the head reads on.
    growing: Option<Growth>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
}

/// The head reads on from `from`, where it was at `since`.
#[derive(Clone, Copy, Debug)]
struct Growth {
    from: u64,
    since: Nanos,
    bytes_per_s: u64,
    /// Where it stops: the memory's or the disk's end.
    limit: u64,
}

impl Growth {
    fn reached(&self, now: Nanos) -> u64 {
        let passed = u128::from(now - self.since) * u128::from(self.bytes_per_s) / 1_000_000_000;
        self.limit.min(self.from.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX)))
    }
}

impl Segments {
    /// So many ranges of so many bytes.
    pub fn new(count: usize, bytes: u64) -> Self {
        Segments { held: VecDeque::with_capacity(count + 1), count, bytes, growing: None }
    }

    /// When a range will be in memory without the head being moved: now, or when it has read so far. `None` if it has to be fetched.
    pub fn ready(&self, now: Nanos, start: u64, end: u64) -> Option<Nanos> {
        for (at, segment) in self.held.iter().enumerate() {
            if start < segment.start {
                continue;
            }
            if end <= segment.end {
                return Some(now);
            }
            let Some(growth) = self.growing.filter(|_| at + 1 == self.held.len()) else { continue };
            let reached = growth.reached(now);
            if end <= reached {
                return Some(now);
            }
            // Nothing is gained by waiting for a place far ahead. A head that has not stopped yet reads on for a request that goes
            // further than it would by itself.
            let near = start <= reached.saturating_add(self.bytes / 4);
            if near && (end <= growth.limit || reached < growth.limit) {
                let rest = u128::from(end - reached) * 1_000_000_000;
                return Some(now + rest.div_ceil(u128::from(growth.bytes_per_s.max(1))) as Nanos);
            }
        }
        None
    }

    /// The head leaves: what it read until now stays. Gives the byte that it stands over.
    pub fn freeze(&mut self, now: Nanos) -> Option<u64> {
        let growth = self.growing.take()?;
        let reached = growth.reached(now);
        if let Some(segment) = self.held.back_mut() {
            segment.end = segment.end.max(reached);
        }
        Some(reached)
    }

    /// A read ended at `now`, and the head reads on. A read within the growing range goes on with it, which moves along.
    pub fn read(&mut self, now: Nanos, start: u64, end: u64, bytes_per_s: u64, disk_end: u64) {
        let reached = self.growing.map(|growth| growth.reached(now).saturating_add(1));
        let joins =
            self.held.back().is_some_and(|it| it.start <= start) && reached.is_some_and(|reached| end <= reached);
        if joins {
            self.freeze(now);
            if let Some(segment) = self.held.back_mut() {
                segment.end = segment.end.max(end);
                segment.start = segment.start.max(segment.end.saturating_sub(self.bytes));
                let from = segment.end;
                self.growing = Some(Growth { from, since: now, bytes_per_s, limit: self.limit(end, from, disk_end) });
            }
            return;
        }
        self.freeze(now);
        if self.held.len() == self.count {
            self.held.pop_front();
        }
        self.held.push_back(Segment { start, end });
        self.growing = Some(Growth { from: end, since: now, bytes_per_s, limit: self.limit(end, end, disk_end) });
    }

    /// How far the head reads on behind a read that ended at `end`: half of the range's memory.
    fn limit(&self, end: u64, from: u64, disk_end: u64) -> u64 {
        end.saturating_add(self.bytes / 2).max(from).min(disk_end)
    }

    /// What is written is no longer as it was read.
    pub fn written(&mut self, now: Nanos, start: u64, end: u64) {
        self.freeze(now);
        self.held.retain(|segment| segment.end <= start || end <= segment.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_grows_at_the_platters_rate_up_to_its_memory() {
        let mut segments = Segments::new(2, 2000);
        segments.read(1_000, 100, 200, 1_000_000_000, u64::MAX);
        assert_eq!(segments.ready(1_000, 100, 200), Some(1_000));
        assert_eq!(segments.ready(1_000, 200, 300), Some(1_100), "a nanosecond a byte");
        assert_eq!(segments.ready(1_150, 200, 300), Some(1_150));
        assert_eq!(segments.ready(9_000, 200, 1_200), Some(9_000));
        assert_eq!(segments.ready(9_000, 200, 1_201), None, "half of its memory ahead");
        assert_eq!(segments.ready(1_900, 200, 5_000), Some(5_800), "a head that has not stopped reads on");
        assert_eq!(segments.ready(9_000, 90, 200), None);
    }

    #[test]
    fn it_stays_when_the_head_leaves_and_goes_when_it_is_written() {
        let mut segments = Segments::new(2, 2000);
        segments.read(0, 100, 200, 1_000_000_000, u64::MAX);
        assert_eq!(segments.freeze(50), Some(250));
        assert_eq!(segments.ready(900, 200, 250), Some(900));
        assert_eq!(segments.ready(900, 200, 251), None);
        segments.written(900, 240, 260);
        assert_eq!(segments.ready(900, 100, 200), None);
    }

    #[test]
    fn the_oldest_range_makes_room() {
        let mut segments = Segments::new(2, 2000);
        for start in [0, 10_000, 20_000] {
            segments.read(start, start, start + 100, 1, u64::MAX);
        }
        assert_eq!(segments.ready(30_000, 0, 100), None);
        assert_eq!(segments.ready(30_000, 10_000, 10_100), Some(30_000));
    }
}
