//! What devices did in a span of time: the difference of two reports.

use card::{Busy, EraseCounts, Health, Report};
use serde::Serialize;

/// What devices did in a span of time. What they cannot tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceUse {
    /// Bytes that the host read.
    pub host_read_bytes: u64,
    /// Bytes that the host wrote.
    pub host_written_bytes: u64,
    /// Bytes that were written to media.
    pub media_written_bytes: u64,
    /// Bytes on media for each byte that the host wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<WriteAmplification>,
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
    /// Years until the rated cycles of all flash are used up at this rate of writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub years_to_wear_out: Option<f64>,
}

/// Bytes on media for each byte that the host wrote: the total, and what it is made of beside the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
            media_written_bytes: media,
            write_amplification,
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
            years_to_wear_out: after
                .rated_cycles
                .filter(|_| media > 0 && after.raw_bytes > 0)
                .map(|cycles| lifetime(cycles) / media as f64 * seconds / YEAR),
        }
    }
}

/// Several devices as one: what can be added is added, of states the worst counts.
pub fn combined(reports: impl IntoIterator<Item = Report>) -> Report {
    let mut reports = reports.into_iter();
    let mut sum = reports.next().unwrap_or_default();
    let mut devices = 1.0;
    for next in reports {
        sum.host_read_bytes += next.host_read_bytes;
        sum.host_written_bytes += next.host_written_bytes;
        sum.groomed_bytes += next.groomed_bytes;
        sum.parity_bytes += next.parity_bytes;
        sum.padding_bytes += next.padding_bytes;
        sum.metadata_bytes += next.metadata_bytes;
        sum.erases += next.erases;
        sum.erase_counts = both(sum.erase_counts, next.erase_counts, |one, two| spread(one, two, devices));
        for (sum, next) in
            [(&mut sum.dies, next.dies), (&mut sum.data_path, next.data_path), (&mut sum.link, next.link)]
        {
            sum.nanos += next.nanos;
            sum.count += next.count;
        }
        sum.joules += next.joules;
        sum.celsius = both(sum.celsius, next.celsius, f64::max);
        sum.reserve_percent = both(sum.reserve_percent, next.reserve_percent, f64::min);
        sum.health = both(sum.health, next.health, Ord::max);
        sum.rated_cycles = both(sum.rated_cycles, next.rated_cycles, Ord::min);
        sum.raw_bytes += next.raw_bytes;
        devices += 1.0;
    }
    sum
}

fn both<T>(one: Option<T>, two: Option<T>, with: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(with(one, two)),
        (one, two) => one.or(two),
    }
}

/// Erase counts of `weight` devices of one size, and of one more.
fn spread(one: EraseCounts, two: EraseCounts, weight: f64) -> EraseCounts {
    let mean = (one.mean * weight + two.mean) / (weight + 1.0);
    let squares = |counts: EraseCounts| counts.deviation.powi(2) + (counts.mean - mean).powi(2);
    EraseCounts {
        min: one.min.min(two.min),
        max: one.max.max(two.max),
        mean,
        deviation: ((squares(one) * weight + squares(two)) / (weight + 1.0)).sqrt(),
    }
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
    fn without_writes_there_is_no_amplification_and_no_end() {
        let report = Report { raw_bytes: 1000, rated_cycles: Some(3000), ..Report::default() };
        let used = DeviceUse::between(&report, &report, 1.0);
        assert_eq!((used.write_amplification, used.years_to_wear_out), (None, None));
    }

    #[test]
    fn devices_are_combined() {
        let counts = |min, max, mean, deviation| Some(EraseCounts { min, max, mean, deviation });
        let one = Report {
            erase_counts: counts(1, 3, 2.0, 0.0),
            health: Some(Health::Warning),
            raw_bytes: 5,
            ..Report::default()
        };
        let two = Report {
            erase_counts: counts(2, 8, 4.0, 0.0),
            health: Some(Health::Healthy),
            raw_bytes: 7,
            ..Report::default()
        };
        let sum = combined([one, two]);
        assert_eq!(sum.erase_counts, counts(1, 8, 3.0, 1.0));
        assert_eq!((sum.health, sum.raw_bytes), (Some(Health::Warning), 12));
    }
}
