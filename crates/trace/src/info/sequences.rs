//! Requests that begin where another ended.

use serde::Serialize;

use crate::record::{Op, Record};

/// How many requests back are looked at: one for a single stream, more for streams side by side.
const BACK: usize = 32;

/// Ends of the last requests, and how many were taken up.
#[derive(Clone, Debug)]
pub struct Sequences {
    /// Ends with their volumes, the oldest overwritten first.
    ends: [(u64, u32); BACK],
    next: usize,
    requests: [u64; 2],
    behind_last: [u64; 2],
    behind_any: [u64; 2],
}

impl Default for Sequences {
    fn default() -> Sequences {
        let nowhere = (u64::MAX, 0);
        Sequences { ends: [nowhere; BACK], next: 0, requests: [0; 2], behind_last: [0; 2], behind_any: [0; 2] }
    }
}

impl Sequences {
    /// A read or a write.
    #[inline]
    pub fn add(&mut self, record: &Record) {
        let op = usize::from(record.op == Op::Write);
        self.requests[op] += 1;
        let begin = (record.offset, record.volume);
        let last = self.ends[(self.next + BACK - 1) % BACK];
        self.behind_last[op] += u64::from(last == begin);
        self.behind_any[op] += u64::from(self.ends.contains(&begin));
        self.ends[self.next] = (record.end(), record.volume);
        self.next = (self.next + 1) % BACK;
    }

    /// What it comes to.
    pub fn shares(&self) -> Vec<Sequential> {
        [(1, &self.behind_last), (BACK, &self.behind_any)]
            .map(|(last, counts)| {
                let share = |count: u64, of: u64| (of > 0).then(|| 100.0 * count as f64 / of as f64);
                let [reads, writes] = self.requests;
                Sequential {
                    last,
                    percent: share(counts[0] + counts[1], reads + writes).unwrap_or(0.0),
                    reads_percent: share(counts[0], reads),
                    writes_percent: share(counts[1], writes),
                }
            })
            .into()
    }
}

/// Share of reads and writes that begin where one of the last ones ended, whether that read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sequential {
    /// How many of the last ones are looked at.
    pub last: usize,
    /// Of all, per cent.
    pub percent: f64,
    /// Of reads.
    pub reads_percent: Option<f64>,
    /// Of writes.
    pub writes_percent: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_side_by_side_are_seen_further_back() {
        let mut sequences = Sequences::default();
        for at in 0..1000u64 {
            let (stream, step) = (at % 4, at / 4);
            sequences.add(&Record { offset: (stream << 30) + step * 4096, bytes: 4096, ..Record::default() });
        }
        let [one, many] = sequences.shares()[..] else { panic!("two") };
        assert_eq!((one.last, one.percent), (1, 0.0));
        assert_eq!((many.percent, many.reads_percent, many.writes_percent), (99.6, Some(99.6), None));
    }

    #[test]
    fn another_volume_is_another_place() {
        let mut sequences = Sequences::default();
        sequences.add(&Record { offset: 0, bytes: 4096, ..Record::default() });
        sequences.add(&Record { offset: 4096, bytes: 4096, volume: 1, ..Record::default() });
        assert_eq!(sequences.shares()[0].percent, 0.0);
    }
}
