//! The writes and trims of a recorded trace, with the sectors that it touches numbered one after the other.

use std::path::Path;

use ftl::Request;
use trace::{Op, Reader, TraceError, Wanted};

use super::medium::LARGEST;

/// Bytes of a sector.
const SECTOR: u64 = 4096;
/// The most sectors that a trace's requests may touch together: 16 TiB of traffic.
const MOST: u64 = 1 << 32;

/// A trace made ready.
#[derive(Debug)]
pub struct Recorded {
    /// Sectors that it writes.
    pub sectors: u64,
    requests: Vec<Request<'static>>,
}

impl Recorded {
    /// Reads a trace; its reads and flushes are left out.
    ///
    /// # Errors
    /// It cannot be read, or writes nothing.
    pub fn read(path: &Path, wanted: &Wanted) -> Result<Recorded, TraceError> {
        let unusable = |problem: &str| TraceError::Unusable { path: path.into(), problem: problem.into() };
        let mut spans = Vec::new();
        let mut sum = 0u64;
        for record in Reader::open(path, wanted)? {
            let record = record?;
            let span = match record.op {
                Op::Write => (record.offset / SECTOR, record.end().div_ceil(SECTOR)),
                Op::Trim => (record.offset.div_ceil(SECTOR), record.end() / SECTOR),
                Op::Read | Op::Flush => continue,
            };
            if span.0 < span.1 {
                if record.op == Op::Write {
                    sum += span.1 - span.0;
                }
                if sum > MOST {
                    return Err(unusable("more than 16 TiB written; expected a shorter trace"));
                }
                spans.push((record.op, span.0, span.1));
            }
        }
        let touched = Touched::of(spans.iter().filter(|(op, ..)| *op == Op::Write).map(|(_, from, to)| (*from, *to)));
        let sectors = touched.sectors();
        if sectors == 0 || sectors >= u64::from(u32::MAX) {
            return Err(unusable("nothing written, or more than 16 TiB of different sectors"));
        }
        let mut requests = Vec::new();
        for (op, from, to) in spans {
            for (mut lba, end) in touched.places(from, to) {
                if op == Op::Trim {
                    requests.push(Request::Trim { lba, count: end - lba, fua: false });
                    continue;
                }
                while lba < end {
                    let count = (end - lba).min(u64::from(LARGEST)) as u32;
                    requests.push(Request::Write { lba, count, fua: false });
                    lba += u64::from(count);
                }
            }
        }
        Ok(Recorded { sectors, requests })
    }

    /// Its requests, once.
    pub fn requests(&self) -> &[Request<'static>] {
        &self.requests
    }
}

/// The ranges that are written, by address, each with the number of its first sector.
struct Touched(Vec<(u64, u64, u64)>);

impl Touched {
    fn of(spans: impl Iterator<Item = (u64, u64)>) -> Touched {
        let mut spans: Vec<(u64, u64)> = spans.collect();
        spans.sort_unstable();
        let mut ranges: Vec<(u64, u64, u64)> = Vec::new();
        for (from, to) in spans {
            match ranges.last_mut() {
                Some((_, end, _)) if *end >= from => *end = to.max(*end),
                _ => ranges.push((from, to, 0)),
            }
        }
        let mut number = 0;
        for (from, to, first) in &mut ranges {
            *first = number;
            number += *to - *from;
        }
        Touched(ranges)
    }

    fn sectors(&self) -> u64 {
        self.0.last().map_or(0, |(from, to, first)| first + to - from)
    }

    /// The numbers of what is touched of a range, in runs.
    fn places(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let begin = self.0.partition_point(|(_, end, _)| *end <= from);
        self.0[begin..].iter().take_while(move |(start, ..)| *start < to).map(move |(start, end, first)| {
            let (low, high) = (from.max(*start), to.min(*end));
            (first + low - start, first + high - start)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_is_numbered_without_holes() {
        let touched = Touched::of([(100, 104), (10, 12), (103, 110), (12, 13)].into_iter());
        assert_eq!(touched.sectors(), 13);
        assert_eq!(touched.places(10, 13).collect::<Vec<_>>(), [(0, 3)]);
        assert_eq!(touched.places(0, 1000).collect::<Vec<_>>(), [(0, 3), (3, 13)]);
        assert_eq!(touched.places(105, 106).collect::<Vec<_>>(), [(8, 9)]);
        assert_eq!(touched.places(13, 100).count(), 0);
    }
}
