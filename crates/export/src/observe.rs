//! What a device thread counts of its clients' requests, for whoever looks once a second.
//!
//! The thread owns all of it, so a request costs no atomic operation and no lock. Times are taken twice a round, not twice a
//! request: when the round's requests are looked at, and when their answers are sent. A request's latency is from the
//! round in which its header was read to the end of the round in which its answer was sent.

use std::time::Instant;

use hdrhistogram::Histogram;

use crate::request::Command;

/// Latencies below this are told apart no further, nanoseconds.
const SHORTEST: u64 = 64;
/// Latencies above this count as this in percentiles, nanoseconds: a hundred seconds.
const LONGEST: u64 = 100_000_000_000;
/// Decimal digits to which latencies are told apart.
const DIGITS: u8 = 2;

/// Requests of one sort.
#[derive(Clone, Debug)]
pub struct Sort {
    /// Latencies of those answered, nanoseconds.
    pub latencies: Histogram<u32>,
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// The longest latency, nanoseconds.
    pub max_ns: u64,
    /// All latencies together, nanoseconds.
    pub sum_ns: u64,
}

impl Default for Sort {
    fn default() -> Sort {
        // Fails only for bounds that make no sense, and these are constants.
        let latencies = Histogram::new_with_bounds(SHORTEST, LONGEST, DIGITS).expect("constant bounds make sense");
        Sort { latencies, bytes: 0, max_ns: 0, sum_ns: 0 }
    }
}

impl Sort {
    /// Requests answered.
    pub fn count(&self) -> u64 {
        self.latencies.len()
    }

    fn answered(&mut self, latency_ns: u64, count: u32) {
        self.latencies.saturating_record_n(latency_ns, count);
        self.max_ns = self.max_ns.max(latency_ns);
        self.sum_ns += latency_ns * u64::from(count);
    }
}

/// What happened between two looks.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Reads.
    pub reads: Sort,
    /// Writes, those of zeroes that allocate and batches among them.
    pub writes: Sort,
    /// Trims, and zeroings that may give space back.
    pub trims: Sort,
    /// Flushes.
    pub flushes: Sort,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that waited so long that the log says what for.
    pub long_waits: u64,
    /// The most requests that were in the service at once.
    pub depth_max: u32,
    /// How long it took from look to look, seconds.
    pub seconds: f64,
    /// Clients connected at the end.
    pub clients: u32,
    /// Processor time that the device's thread has had since it began, nanoseconds.
    pub cpu_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Trim,
    Flush,
}

/// The thread's side.
pub struct Observer {
    since: Instant,
    /// When the present round began, nanoseconds since `since`.
    round: u64,
    /// Answered in this round: the sort, when its header was read, how many alike. Empty between rounds; kept for its memory.
    answered: Vec<(Kind, u64, u32)>,
    seen: Observed,
    /// When somebody looked last, nanoseconds since `since`.
    looked: u64,
}

impl Observer {
    /// Nothing seen yet.
    pub fn new() -> Observer {
        Observer { since: Instant::now(), round: 0, answered: Vec::new(), seen: Observed::default(), looked: 0 }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Now, milliseconds since it began; by the same clock as [`Observer::arrival`].
    pub fn now_ms(&self) -> u64 {
        self.now() / 1_000_000
    }

    /// A round begins.
    #[inline]
    pub fn round_begins(&mut self) {
        self.round = self.now();
    }

    /// When the present round began: the arrival of what is read in it.
    #[inline]
    pub fn arrival(&self) -> u64 {
        self.round
    }

    /// A request is answered, with so many bytes if it succeeded.
    #[inline]
    pub fn answered(&mut self, command: Command, arrived: u64, done: Option<u64>) {
        let bytes = done.unwrap_or(0);
        let kind = match command {
            Command::Read => {
                self.seen.reads.bytes += bytes;
                Kind::Read
            }
            Command::Write { .. }
            | Command::Append { .. }
            | Command::WriteZeroes { allocate: true, .. }
            | Command::Batch { .. } => {
                self.seen.writes.bytes += bytes;
                Kind::Write
            }
            Command::Trim { .. } | Command::WriteZeroes { .. } | Command::Zone(_) => {
                self.seen.trims.bytes += bytes;
                Kind::Trim
            }
            Command::Flush => Kind::Flush,
        };
        self.seen.failed += u64::from(done.is_none());
        match self.answered.last_mut() {
            Some((last, since, count)) if *last == kind && *since == arrived => *count += 1,
            _ => self.answered.push((kind, arrived, 1)),
        }
    }

    /// One of the requests that were answered had waited long.
    #[cold]
    pub fn waited_long(&mut self) {
        self.seen.long_waits += 1;
    }

    /// The round's answers are sent; so many requests are still under way.
    #[inline]
    pub fn round_ends(&mut self, under_way: usize) {
        if self.answered.is_empty() {
            return;
        }
        let now = self.now();
        let mut depth = under_way as u32;
        for (kind, arrived, count) in self.answered.drain(..) {
            let sort = match kind {
                Kind::Read => &mut self.seen.reads,
                Kind::Write => &mut self.seen.writes,
                Kind::Trim => &mut self.seen.trims,
                Kind::Flush => &mut self.seen.flushes,
            };
            sort.answered(now.saturating_sub(arrived), count);
            depth += count;
        }
        self.seen.depth_max = self.seen.depth_max.max(depth);
    }

    /// What was seen since the last look. `fresh` takes its place, so that nothing is allocated here.
    pub fn look(&mut self, fresh: Observed, clients: usize) -> Observed {
        let mut seen = std::mem::replace(&mut self.seen, fresh);
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        seen.cpu_ns = cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64;
        seen.clients = clients as u32;
        let now = self.now();
        seen.seconds = (now - std::mem::replace(&mut self.looked, now)) as f64 / 1e9;
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_sort_and_only_when_their_round_ends() {
        let mut observer = Observer::new();
        observer.round_begins();
        let arrived = observer.arrival();
        for _ in 0..3 {
            observer.answered(Command::Write { fua: false, placement: 0 }, arrived, Some(4096));
        }
        observer.answered(Command::Read, arrived, Some(512));
        observer.answered(Command::Read, arrived, None);
        observer.answered(Command::Flush, arrived, Some(0));
        assert_eq!(observer.seen.writes.count(), 0);
        std::thread::sleep(std::time::Duration::from_millis(2));
        observer.round_ends(4);
        let seen = observer.look(Observed::default(), 2);
        assert_eq!((seen.writes.count(), seen.writes.bytes), (3, 3 * 4096));
        assert_eq!((seen.reads.count(), seen.reads.bytes, seen.failed), (2, 512, 1));
        assert_eq!((seen.flushes.count(), seen.trims.count()), (1, 0));
        assert_eq!((seen.depth_max, seen.clients), (10, 2));
        assert!(seen.writes.max_ns >= 2_000_000 && seen.writes.sum_ns >= 3 * 2_000_000, "{seen:?}");
        assert!(seen.cpu_ns > 0);
        assert!(seen.seconds >= 0.002, "{}", seen.seconds);
        let next = observer.look(Observed::default(), 0);
        assert_eq!((next.writes.count(), next.reads.count(), next.depth_max), (0, 0, 0));
    }

    #[test]
    fn a_request_that_waits_for_rounds_is_as_late_as_it_is() {
        let mut observer = Observer::new();
        observer.round_begins();
        let arrived = observer.arrival();
        observer.round_ends(1);
        std::thread::sleep(std::time::Duration::from_millis(3));
        observer.round_begins();
        observer.answered(Command::Read, arrived, Some(4096));
        observer.round_ends(0);
        assert!(observer.seen.reads.max_ns >= 3_000_000, "{}", observer.seen.reads.max_ns);
    }
}
