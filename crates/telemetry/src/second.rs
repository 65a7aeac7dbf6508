//! One second of one device, from what its thread counted.

use std::collections::BTreeMap;

use device::Status;
use export::{Observed, Sort};
use hdrhistogram::Histogram;

use crate::filling::Filling;

/// Values by the names of the catalogue. What is not known is not there.
pub type Values = BTreeMap<&'static str, f64>;

/// Latencies of one span by sort, nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Of reads, writes and flushes.
    sorts: [Option<Histogram<u32>>; PERCENTILES.len()],
}

/// The percentiles told of each sort.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// Their metrics, by sort.
const PERCENTILES: [[&str; QUANTILES.len()]; 3] = [
    ["read_p50_us", "read_p99_us", "read_p999_us"],
    ["write_p50_us", "write_p99_us", "write_p999_us"],
    ["flush_p50_us", "flush_p99_us", "flush_p999_us"],
];

impl From<Observed> for Latencies {
    fn from(observed: Observed) -> Latencies {
        let some = |sort: Sort| (!sort.latencies.is_empty()).then_some(sort.latencies);
        Latencies { sorts: [some(observed.reads), some(observed.writes), some(observed.flushes)] }
    }
}

impl Latencies {
    /// With those of another span.
    pub fn add(&mut self, other: &Latencies) {
        for (mine, theirs) in self.sorts.iter_mut().zip(&other.sorts) {
            match (mine, theirs) {
                // Both have the same bounds, so nothing is out of range.
                (Some(mine), Some(theirs)) => drop(mine.add(theirs)),
                (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
                (_, None) => {}
            }
        }
    }

    /// The percentiles, as metrics.
    pub fn percentiles(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.sorts.iter().zip(PERCENTILES).flat_map(|(histogram, names)| {
            let told = histogram.as_ref().map(|histogram| {
                let told = names.into_iter().zip(QUANTILES);
                told.map(|(name, quantile)| (name, histogram.value_at_quantile(quantile) as f64 / 1000.0))
            });
            told.into_iter().flatten()
        })
    }
}

/// What the next second's figures are differences to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Previous {
    appended: u64,
    host_written: u64,
    groomed: u64,
    media_written: u64,
    cpu_ns: u64,
    filling: Option<Filling>,
}

/// One second.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Its metrics.
    pub values: Values,
    /// Latencies, for the percentiles of longer spans.
    pub latencies: Latencies,
    /// Bytes appended.
    pub appended: u64,
    /// Bytes written by hosts, as the layer counted them.
    pub host_written: u64,
}

impl Second {
    /// From what a device's thread counted, and its figures. The first time there is nothing that rates
    /// could be differences to, and they are left out.
    pub fn of_device(observed: Observed, status: &Status, sector_bytes: u32, before: &mut Option<Previous>) -> Second {
        let now = Previous {
            appended: status
                .host_written_bytes
                .saturating_add(status.groomed_bytes)
                .saturating_add(status.padding_bytes)
                .saturating_add(status.metadata_bytes),
            host_written: status.host_written_bytes,
            groomed: status.groomed_bytes,
            media_written: status.media_written_bytes,
            cpu_ns: observed.cpu_ns,
            filling: filling(status.store_free_bytes, observed.seconds.max(1e-3), before.as_ref()),
        };
        let seconds = observed.seconds.max(1e-3);
        let mut values = Values::new();
        rates(&mut values, &observed, seconds);
        figures(&mut values, status, sector_bytes);
        insert(&mut values, "store_left_hours", now.filling.map(|filling| filling.hours()));
        values.insert("queue_depth_max", f64::from(observed.depth_max));
        values.insert("clients", f64::from(observed.clients));
        let mut second = Second { values, latencies: observed.into(), appended: 0, host_written: 0 };
        if let Some(before) = before.replace(now) {
            let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            let values = &mut second.values;
            values.insert("groomed_bytes_per_s", per_second(now.groomed, before.groomed));
            values.insert("media_written_bytes_per_s", per_second(now.media_written, before.media_written));
            values.insert("cpu_percent", per_second(now.cpu_ns, before.cpu_ns) / 1e7);
            second.appended = now.appended.saturating_sub(before.appended);
            second.host_written = now.host_written.saturating_sub(before.host_written);
            if second.host_written > 0 {
                values.insert("write_amplification", second.appended as f64 / second.host_written as f64);
            }
        }
        second.values.extend(second.latencies.percentiles());
        second
    }

    /// Of the service itself.
    pub fn of_service(values: Values) -> Second {
        Second { values, ..Second::default() }
    }
}

fn rates(values: &mut Values, observed: &Observed, seconds: f64) {
    let sorts: [(&Sort, &str, Option<&str>, Option<&str>); 4] = [
        (&observed.reads, "read_iops", Some("read_bytes_per_s"), Some("read_max_us")),
        (&observed.writes, "write_iops", Some("write_bytes_per_s"), Some("write_max_us")),
        (&observed.trims, "trim_iops", Some("trim_bytes_per_s"), None),
        (&observed.flushes, "flush_iops", None, Some("flush_max_us")),
    ];
    let mut waited_ns = 0;
    for (sort, iops, bytes, most) in sorts {
        waited_ns += sort.sum_ns;
        insert(values, iops, Some(sort.count() as f64 / seconds));
        if let Some(bytes) = bytes {
            insert(values, bytes, Some(sort.bytes as f64 / seconds));
        }
        if let Some(most) = most {
            insert(values, most, (sort.count() > 0).then(|| sort.max_ns as f64 / 1000.0));
        }
    }
    values.insert("failed_iops", observed.failed as f64 / seconds);
    values.insert("queue_depth", waited_ns as f64 / 1e9 / seconds);
}

fn figures(values: &mut Values, status: &Status, sector_bytes: u32) {
    let percent = |part: f64, whole: f64| (whole > 0.0).then(|| 100.0 * part / whole);
    values.insert("grooming", flag(status.grooming));
    insert(values, "free_percent", percent(f64::from(status.free_lebs), f64::from(status.lebs)));
    insert(values, "reserve_percent", status.reserve_percent);
    insert(values, "celsius", status.celsius);
    insert(values, "watts", status.watts);
    insert(values, "power_limit_watts", status.power_limit_watts);
    insert(values, "throttle_ns_per_byte", status.hold_ns_per_byte);
    let held_back = status.hold_ns_per_byte.is_some_and(|hold| hold > 0.0);
    let at_limit = status.watts.zip(status.power_limit_watts).map(|(watts, limit)| held_back && watts >= 0.9 * limit);
    // With the limit overridden nothing is limited by it any more: an alert of it is over.
    let at_limit = at_limit.or(status.power_override.filter(|on| *on).map(|_| false));
    insert(values, "power_limited", at_limit.map(flag));
    insert(values, "write_reduced", status.write_reduced.map(flag));
    insert(values, "worn_out", status.worn_out.map(flag));
    insert(values, "pacing_late_percent", status.pacing.as_ref().map(|pacing| pacing.pacing_late_minute_percent));
    values.insert("mapped_bytes", status.mapped_sectors as f64 * f64::from(sector_bytes));
    insert(values, "allocated_bytes", status.allocated_bytes.map(|bytes| bytes as f64));
    insert(values, "store_free_bytes", status.store_free_bytes.map(|bytes| bytes as f64));
    values.insert("store_full", flag(status.store_full));
    values.insert("memory_bytes", status.memory_bytes as f64);
    values.insert("map_memory_bytes", status.map_memory_bytes as f64);
    values.insert("read_errors", status.read_errors as f64);
    values.insert("damaged_sectors", status.damaged_sectors as f64);
    values.insert("unreadable_sectors", status.unreadable.len() as f64);
    values.insert("lost_dies", status.lost_dies.len() as f64);
    values.insert("vanished_files", status.vanished.len() as f64);
}

/// How the file system under the device fills, after one more look at it.
fn filling(free: Option<u64>, seconds: f64, before: Option<&Previous>) -> Option<Filling> {
    let free = free?;
    let Some(mut filling) = before.and_then(|before| before.filling) else { return Some(Filling::new(free)) };
    filling.look(free, seconds);
    Some(filling)
}

fn flag(on: bool) -> f64 {
    f64::from(u8::from(on))
}

fn insert(values: &mut Values, name: &str, value: Option<f64>) {
    if let (Some(metric), Some(value)) = (crate::catalogue::find(crate::Of::Device, name), value)
        && value.is_finite()
    {
        values.insert(metric.name, value);
    }
}
