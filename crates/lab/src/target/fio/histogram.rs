//! fio's histograms over time: `write_hist_log`.

use std::collections::BTreeMap;
use std::path::Path;

use super::output::{Totals, cell_of_bins};
use crate::run::Interval;
use crate::stats::Kind;

/// Buckets of each power of two.
const BUCKETS: u64 = 64;
/// The same, as bits.
const BUCKET_BITS: u32 = 6;

/// Requests of each kind in each interval: buckets by their number.
type Logged = BTreeMap<(u64, usize), BTreeMap<usize, u64>>;

/// The middle of a bucket, as fio's own `plat_idx_to_val` has it.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < BUCKETS << 1 {
        return bucket;
    }
    let error_bits = ((bucket >> BUCKET_BITS) - 1) as u32;
    let base = 1u64 << (error_bits + BUCKET_BITS);
    base + ((bucket % BUCKETS) << error_bits) + ((1 << error_bits) >> 1)
}

/// A job's results over time, from the logs of its threads in a directory. What came after the last whole interval is what the logs lack of
/// the totals.
///
/// # Errors
/// A log cannot be read, or is none.
pub fn series(
    directory: &Path,
    prefix: &str,
    interval_ms: u64,
    size: Option<u64>,
    totals: &Totals,
) -> Result<Vec<Interval>, String> {
    let mut logged = Logged::new();
    let entries = std::fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", directory.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(prefix) && name.contains("_clat_hist") {
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            read(&text, interval_ms, &mut logged).map_err(|problem| format!("{}{problem}", path.display()))?;
        }
    }
    Ok(intervals(&logged, interval_ms, size, totals))
}

fn read(text: &str, interval_ms: u64, logged: &mut Logged) -> Result<(), String> {
    for (at, line) in text.lines().enumerate() {
        let expected = || format!(":{}: expected a time, a direction, a size and counts of buckets", at + 1);
        let mut fields = line.split(',').map(|field| field.trim().parse::<u64>());
        let mut field = || fields.next().and_then(Result::ok).ok_or_else(expected);
        let (time, direction, _) = (field()?, field()?, field()?);
        if direction > 2 {
            return Err(expected());
        }
        // A log is written a little after its interval is over.
        let interval = (time / interval_ms.max(1)).max(1);
        let counts = logged.entry((interval, direction as usize)).or_default();
        for (bucket, count) in fields.enumerate() {
            let count = count.map_err(|_| expected())?;
            if count > 0 {
                *counts.entry(bucket).or_default() += count;
            }
        }
    }
    Ok(())
}

fn intervals(logged: &Logged, interval_ms: u64, size: Option<u64>, totals: &Totals) -> Vec<Interval> {
    let last = logged.keys().map(|(interval, _)| *interval).max().unwrap_or(0);
    let length = interval_ms as f64 / 1000.0;
    let mut left: [BTreeMap<u64, u64>; 3] =
        std::array::from_fn(|at| totals.completion[at].iter().copied().collect::<BTreeMap<u64, u64>>());
    // Bytes of a request on average, where sizes are mixed.
    let mean_size = |at: usize| {
        let flow = [&totals.ops.read, &totals.ops.write, &totals.ops.trim][at];
        size.map_or_else(|| flow.bytes as f64 / flow.requests.max(1) as f64, |size| size as f64)
    };
    let bytes = |at: usize, bins: &[(u64, u64)]| {
        (bins.iter().map(|(_, count)| count).sum::<u64>() as f64 * mean_size(at)).round() as u64
    };
    let mut series = Vec::new();
    let mut before = 0;
    for interval in 1..=last {
        let mut cells = Vec::new();
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            let Some(counts) = logged.get(&(interval, at)) else { continue };
            let bins: Vec<(u64, u64)> = counts.iter().map(|(bucket, count)| (middle(*bucket), *count)).collect();
            for (ns, count) in &bins {
                if let Some(rest) = left[at].get_mut(ns) {
                    *rest = rest.saturating_sub(*count);
                }
            }
            if !bins.is_empty() {
                cells.push(cell_of_bins(kind, size.unwrap_or(0), &bins, bytes(at, &bins)));
            }
        }
        // An interval in which nothing was answered has no line.
        if cells.is_empty() && interval < last && !logged.keys().any(|(it, _)| *it == interval) {
            continue;
        }
        let end_seconds = interval as f64 * length;
        series.push(Interval { end_seconds, seconds: (interval - before) as f64 * length, cells, device: None });
        before = interval;
    }
    let rest = totals.seconds - before as f64 * length;
    let cells: Vec<_> = Kind::ALL
        .into_iter()
        .enumerate()
        .filter_map(|(at, kind)| {
            let bins: Vec<(u64, u64)> =
                left[at].iter().filter(|(_, count)| **count > 0).map(|(ns, count)| (*ns, *count)).collect();
            (!bins.is_empty()).then(|| cell_of_bins(kind, size.unwrap_or(0), &bins, bytes(at, &bins)))
        })
        .collect();
    if rest > 0.0 && !cells.is_empty() {
        series.push(Interval { end_seconds: totals.seconds, seconds: rest, cells, device: None });
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_fios() {
        // Pairs of bucket and middle as fio 3.33 prints them.
        assert_eq!((middle(0), middle(127)), (0, 127));
        assert_eq!((middle(128), middle(129)), (129, 131));
        assert_eq!(middle(192), 258);
    }

    #[test]
    fn a_damaged_log_is_named() {
        let mut logged = Logged::new();
        read("501, 0, 4096, 0, 3\n1001, 1, 4096, 2", 500, &mut logged).expect("sound");
        assert_eq!(logged[&(1, 0)], BTreeMap::from([(1, 3)]));
        assert_eq!(logged[&(2, 1)], BTreeMap::from([(0, 2)]));
        for text in ["rubbish", "501, 7, 4096, 0", "501, 0, 4096, x"] {
            assert!(read(text, 500, &mut logged).expect_err(text).starts_with(":1: expected a time"));
        }
    }
}
