//! What devices did in a span of time: the difference of two reports.

use card::{Busy, CacheReport, EraseCounts, Health, ObjectsReport, Report, SnapshotUse};
use serde::{Deserialize, Serialize};

use super::objects::ObjectsUse;

/// What devices did in a span of time. What they cannot tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Bytes that the host wrote.
    pub host_written_bytes: u64,
    /// Of these, bytes of each placement from 0 on, where anything was written to another than 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed_bytes: Vec<u64>,
    /// Bytes that were written to media.
    pub media_written_bytes: u64,
    /// Bytes on media for each byte that the host wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<WriteAmplification>,
    /// Times that a page was read again, because its data are old.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_retries: u64,
    /// Pages of its own map that a drive read from flash.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub map_reads: u64,
    /// Erase blocks erased.
    pub erases: u64,
    /// Share of time that a die was busy, on average over the dies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die_utilisation: Option<f64>,
    /// Share of time that the controller's data path was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_path_utilisation: Option<f64>,
    /// Share of time that the link to the host was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_utilisation: Option<f64>,
    /// Energy taken, joules.
    pub joules: f64,
    /// Power on average, watts.
    pub watts: f64,
    /// Erases of blocks, at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase_counts: Option<EraseCounts>,
    /// Temperature of the warmest at the end, degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<f64>,
    /// Reserve of spare blocks of the worst at the end, per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_percent: Option<f64>,
    /// Health of the worst at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// What its snapshots came to by the end, where it makes some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotUse>,
    /// Years until the rated cycles of all flash are used up at this rate of writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub years_to_wear_out: Option<f64>,
    /// What the cache in front of the device did, where there is one. The rest is then about the device behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheUse>,
    /// What a device on objects did to its store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsUse>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a cache in front of a device did in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheUse {
    /// What it has room for, bytes.
    pub room_bytes: u64,
    /// Share of the bytes that the host read which came from the cache; `None` where it read nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_ratio: Option<f64>,
    /// Bytes that the host read from the cache.
    pub hit_bytes: u64,
    /// Bytes that the host read from behind.
    pub missed_bytes: u64,
    /// Bytes copied into the cache.
    pub filled_bytes: u64,
    /// Bytes written behind from the cache.
    pub written_back_bytes: u64,
    /// Bytes that were not behind yet at the end.
    pub dirty_bytes: u64,
    /// The most that were not, from the beginning of the run to the end of the span.
    pub dirty_peak_bytes: u64,
    /// The most that may be held for that, bytes.
    pub dirty_limit_bytes: u64,
    /// What its flash did: host is there who reads and writes the cache.
    pub module: Box<DeviceUse>,
}

impl CacheUse {
    fn between(before: &CacheReport, after: &CacheReport, seconds: f64) -> CacheUse {
        let (hit, missed) = (after.hit_bytes - before.hit_bytes, after.missed_bytes - before.missed_bytes);
        CacheUse {
            room_bytes: after.room_bytes,
            hit_ratio: (hit + missed > 0).then(|| hit as f64 / (hit + missed) as f64),
            hit_bytes: hit,
            missed_bytes: missed,
            filled_bytes: after.filled_bytes - before.filled_bytes,
            written_back_bytes: after.written_back_bytes - before.written_back_bytes,
            dirty_bytes: after.dirty_bytes,
            dirty_peak_bytes: after.dirty_peak_bytes,
            dirty_limit_bytes: after.dirty_limit_bytes,
            module: Box::new(DeviceUse::between(&before.module, &after.module, seconds)),
        }
    }
}

/// Bytes on media for each byte that the host wrote: the total, and what it is made of beside the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteAmplification {
    /// All of it.
    pub total: f64,
    /// Moved by the groomer.
    pub groomed: f64,
    /// Parity.
    pub parity: f64,
    /// Left empty.
    pub padding: f64,
    /// Headers, trim records and checkpoints.
    pub metadata: f64,
}

/// Seconds in a year of 365.25 days.
const YEAR: f64 = 31_557_600.0;

impl DeviceUse {
    /// From one report to another, `seconds` later.
    pub fn between(before: &Report, after: &Report, seconds: f64) -> DeviceUse {
        let host = after.host_written_bytes - before.host_written_bytes;
        let groomed = after.groomed_bytes - before.groomed_bytes;
        let parity = after.parity_bytes - before.parity_bytes;
        let padding = after.padding_bytes - before.padding_bytes;
        let metadata = after.metadata_bytes - before.metadata_bytes;
        let media = host + groomed + parity + padding + metadata;
        let each = |bytes: u64| bytes as f64 / host as f64;
        // A device that says nothing of its flash has none that the host could wear out.
        let write_amplification = (host > 0 && after.raw_bytes > 0).then(|| WriteAmplification {
            total: each(media),
            groomed: each(groomed),
            parity: each(parity),
            padding: each(padding),
            metadata: each(metadata),
        });
        let utilisation = |before: Busy, after: Busy| {
            let whole = f64::from(after.count) * seconds * 1e9;
            (whole > 0.0).then(|| (after.nanos - before.nanos) as f64 / whole)
        };
        let joules = after.joules - before.joules;
        let lifetime = |cycles: u32| after.raw_bytes as f64 * f64::from(cycles);
        DeviceUse {
            host_read_bytes: after.host_read_bytes - before.host_read_bytes,
            host_written_bytes: host,
            placed_bytes: placed(&before.placed_bytes, &after.placed_bytes),
            media_written_bytes: media,
            write_amplification,
            read_retries: after.read_retries - before.read_retries,
            map_reads: after.map_reads - before.map_reads,
            erases: after.erases - before.erases,
            die_utilisation: utilisation(before.dies, after.dies),
            data_path_utilisation: utilisation(before.data_path, after.data_path),
            link_utilisation: utilisation(before.link, after.link),
            joules,
            watts: if seconds > 0.0 { joules / seconds } else { 0.0 },
            erase_counts: after.erase_counts,
            celsius: after.celsius,
            reserve_percent: after.reserve_percent,
            health: after.health,
            snapshots: after.snapshots,
            years_to_wear_out: after
                .rated_cycles
                .filter(|_| media > 0 && after.raw_bytes > 0)
                .map(|cycles| lifetime(cycles) / media as f64 * seconds / YEAR),
            cache: after.cache.as_ref().map(|after| {
                let none = CacheReport::default();
                CacheUse::between(before.cache.as_ref().unwrap_or(&none), after, seconds)
            }),
            objects: after.objects.as_ref().map(|after| {
                let none = ObjectsReport::default();
                ObjectsUse::between(before.objects.as_ref().unwrap_or(&none), after, seconds)
            }),
        }
    }
}

/// What was written to each placement; nothing where nobody named one.
fn placed(before: &[u64], after: &[u64]) -> Vec<u64> {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    let placed: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    if placed.iter().skip(1).all(|bytes| *bytes == 0) { Vec::new() } else { placed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_adds_up() {
        let before = Report { host_written_bytes: 100, raw_bytes: 1000, ..Report::default() };
        let after = Report {
            host_written_bytes: 300,
            groomed_bytes: 300,
            parity_bytes: 25,
            padding_bytes: 50,
            metadata_bytes: 25,
            dies: Busy { nanos: 1_500_000_000, count: 3 },
            joules: 40.0,
            rated_cycles: Some(10_000),
            raw_bytes: 1000,
            ..Report::default()
        };
        let used = DeviceUse::between(&before, &after, 2.0);
        let amplification = used.write_amplification.expect("the host wrote");
        assert_eq!(amplification.total, 3.0);
        assert_eq!((amplification.groomed, amplification.parity), (1.5, 0.125));
        assert_eq!((amplification.padding, amplification.metadata), (0.25, 0.125));
        assert_eq!(used.die_utilisation, Some(0.25));
        assert_eq!(used.link_utilisation, None);
        assert_eq!(used.watts, 20.0);
        // 10^7 bytes can be written, 300 a second are.
        let years = used.years_to_wear_out.expect("rated");
        assert!((years * YEAR - 1e7 / 300.0).abs() < 1e-6, "{years}");
    }

    #[test]
    fn placements_are_told_where_one_was_named() {
        let report = |placed: &[u64]| Report { placed_bytes: placed.to_vec(), ..Report::default() };
        let used =
            |before: &[u64], after: &[u64]| DeviceUse::between(&report(before), &report(after), 1.0).placed_bytes;
        assert_eq!(used(&[10, 5, 0], &[30, 5, 7]), [20, 0, 7]);
        assert_eq!(used(&[], &[1, 2]), [1, 2], "before the device was there");
        assert!(used(&[10, 5], &[30, 5]).is_empty(), "nobody named one in between");
    }

    #[test]
    fn without_writes_there_is_no_amplification_and_no_end() {
        let report = Report { raw_bytes: 1000, rated_cycles: Some(3000), ..Report::default() };
        let used = DeviceUse::between(&report, &report, 1.0);
        assert_eq!((used.write_amplification, used.years_to_wear_out), (None, None));
    }
}
