//! Samples as they stand in a journal: a mergeable histogram in text, with the exact figures beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::{Latency, Samples};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It trims.
    Trim,
}

impl Kind {
    /// All of them, in the order of results.
    pub const ALL: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Trim => "trim",
        }
    }
}

/// Requests of one kind and size in one span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What they did.
    pub op: Kind,
    /// Bytes of each; 0 where sizes were mixed and could not be told apart.
    pub size: u64,
    /// How many.
    pub requests: u64,
    /// Bytes of them all.
    pub bytes: u64,
    /// Shortest, nanoseconds.
    pub min_ns: u64,
    /// Longest, nanoseconds.
    pub max_ns: u64,
    /// Mean, nanoseconds.
    pub mean_ns: f64,
    /// Standard deviation, nanoseconds.
    pub stddev_ns: f64,
    /// The histogram in HdrHistogram's V2 compressed encoding, as Base64: what its tools in every language read.
    pub hdr: String,
}

/// Why a cell cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the histogram of {op} of {size} B is damaged: {problem}")]
pub struct Damaged {
    op: &'static str,
    size: u64,
    problem: String,
}

impl Cell {
    /// Of these samples; `None` where there are none.
    pub fn new(op: Kind, size: u64, samples: &Samples) -> Option<Cell> {
        if samples.count() == 0 {
            return None;
        }
        let moments = samples.moments();
        Some(Cell {
            op,
            size,
            requests: samples.count(),
            bytes: samples.bytes(),
            min_ns: moments.min_ns,
            max_ns: moments.max_ns,
            mean_ns: moments.mean_ns,
            stddev_ns: moments.stddev_ns,
            hdr: encoded(samples.histogram()),
        })
    }

    /// The histogram.
    ///
    /// # Errors
    /// The text is no histogram, or not of as many samples as are said.
    pub fn histogram(&self) -> Result<Histogram<u64>, Damaged> {
        let damaged = |problem: String| Damaged { op: self.op.name(), size: self.size, problem };
        let bytes = STANDARD.decode(&self.hdr).map_err(|error| damaged(error.to_string()))?;
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut &bytes[..]).map_err(|error| damaged(error.to_string()))?;
        if histogram.len() != self.requests {
            return Err(damaged(format!("it holds {} samples of {}", histogram.len(), self.requests)));
        }
        Ok(histogram)
    }
}

/// A histogram as text.
fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Only a histogram whose counts do not fit 64 bits, or a buffer that takes no bytes, could fail.
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("a histogram fits into memory");
    STANDARD.encode(bytes)
}

/// Cells added up: the histogram of all their requests, exactly as if it had been one.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    samples: Option<Samples>,
}

impl Pool {
    /// Of all of these.
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Result<Pool, Damaged> {
        let mut pool = Pool::default();
        for cell in cells {
            pool.add(cell)?;
        }
        Ok(pool)
    }

    /// Adds one.
    ///
    /// # Errors
    /// It is damaged.
    pub fn add(&mut self, cell: &Cell) -> Result<(), Damaged> {
        let histogram = cell.histogram()?;
        let samples = self.samples.get_or_insert_with(Samples::new);
        samples.add_cell(cell, &histogram).map_err(|problem| Damaged { op: cell.op.name(), size: cell.size, problem })
    }

    /// All of it as one cell; `None` where there is nothing.
    pub fn cell(&self, op: Kind, size: u64) -> Option<Cell> {
        Cell::new(op, size, self.samples.as_ref()?)
    }

    /// How many requests.
    pub fn requests(&self) -> u64 {
        self.samples.as_ref().map_or(0, Samples::count)
    }

    /// Bytes of them.
    pub fn bytes(&self) -> u64 {
        self.samples.as_ref().map_or(0, Samples::bytes)
    }

    /// What their latencies come to; percentiles that the samples cannot carry are left out.
    pub fn latency(&self) -> Latency {
        self.samples.as_ref().map_or_else(Latency::default, Samples::latency)
    }

    /// Every bucket that holds something: its middle in nanoseconds, and how many.
    pub fn bins(&self) -> Vec<(u64, u64)> {
        self.samples.as_ref().map_or_else(Vec::new, Samples::bins)
    }

    /// For each bucket that holds something, its upper end in nanoseconds and the share of requests that took longer:
    /// the curve of exceedance.
    pub fn exceedance(&self) -> Vec<(u64, f64)> {
        let Some(samples) = &self.samples else { return Vec::new() };
        let all = samples.count() as f64;
        let mut below = 0u64;
        let buckets = samples.histogram().iter_recorded();
        buckets
            .map(|bucket| {
                below += bucket.count_at_value();
                (bucket.value_iterated_to(), 1.0 - below as f64 / all)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: impl Iterator<Item = u64>) -> Samples {
        let mut samples = Samples::new();
        values.for_each(|ns| samples.record(ns, 4096));
        samples
    }

    #[test]
    fn cells_added_up_are_the_histogram_of_all_samples() {
        let values = |part: u64| (0..20_000u64).filter(move |at| at % 7 == part).map(|at| 1_000 + at * at % 9_999_991);
        let cells: Vec<Cell> = (0..7).filter_map(|part| Cell::new(Kind::Read, 4096, &samples(values(part)))).collect();
        let json = serde_json::to_string(&cells).expect("JSON");
        let back: Vec<Cell> = serde_json::from_str(&json).expect("cells");
        assert_eq!(back, cells);
        let pool = Pool::of(&back).expect("sound");
        let all = samples((0..7).flat_map(values));
        assert_eq!(pool.bins(), all.bins());
        let (merged, whole) = (pool.latency(), all.latency());
        assert_eq!((merged.samples, merged.min_ns, merged.max_ns), (whole.samples, whole.min_ns, whole.max_ns));
        assert_eq!(merged.percentiles, whole.percentiles);
        assert!((merged.mean_ns / whole.mean_ns - 1.0).abs() < 1e-12);
        assert!((merged.stddev_ns / whole.stddev_ns - 1.0).abs() < 1e-9);
        assert_eq!(pool.bytes(), all.bytes());
    }

    #[test]
    fn what_was_damaged_is_refused() {
        let cell = Cell::new(Kind::Write, 512, &samples([5, 6, 7].into_iter())).expect("samples");
        let refused = |cell: Cell| Pool::of([&cell]).expect_err("damaged").to_string();
        assert!(refused(Cell { hdr: "???".into(), ..cell.clone() }).contains("write of 512 B"));
        assert!(refused(Cell { hdr: String::new(), ..cell.clone() }).contains("damaged"));
        assert!(refused(Cell { requests: 4, ..cell.clone() }).contains("3 samples of 4"));
        assert!(Cell::new(Kind::Read, 512, &Samples::new()).is_none());
        assert_eq!(Pool::default().latency(), Latency::default());
    }

    #[test]
    fn exceedance_falls_from_one_to_nothing() {
        let cell = Cell::new(Kind::Read, 4096, &samples(1..=1000)).expect("samples");
        let curve = Pool::of([&cell]).expect("sound").exceedance();
        assert_eq!(curve.len(), 1000);
        assert!((curve[0].1 - 0.999).abs() < 1e-9 && curve[999].1.abs() < 1e-9);
        assert!(curve.windows(2).all(|pair| pair[0].1 > pair[1].1 && pair[0].0 < pair[1].0));
    }
}
