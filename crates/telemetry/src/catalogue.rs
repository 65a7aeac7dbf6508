//! The metrics: names, units, where each comes from, and how seconds of it become minutes.

use serde::{Deserialize, Serialize};

/// Of what a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// Of each attached device.
    Device,
    /// Of the service's process.
    Service,
}

/// How a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A size.
    #[serde(rename = "bytes")]
    Bytes,
    /// Bytes a second.
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
    /// Something a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Per cent.
    #[serde(rename = "%")]
    Percent,
    /// One quantity over another.
    #[serde(rename = "ratio")]
    Ratio,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
    /// Degrees Celsius.
    #[serde(rename = "celsius")]
    Celsius,
    /// Power.
    #[serde(rename = "watts")]
    Watts,
    /// 0 or 1.
    #[serde(rename = "flag")]
    Flag,
    /// Nanoseconds for each byte.
    #[serde(rename = "ns/byte")]
    NanosecondsPerByte,
    /// Hours.
    #[serde(rename = "hours")]
    Hours,
}

impl Unit {
    /// As words say it behind a number.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::PerSecond => "/s",
            Unit::Microseconds => "us",
            Unit::Percent => "%",
            Unit::Ratio | Unit::Count | Unit::Flag => "",
            Unit::Celsius => "celsius",
            Unit::Watts => "watts",
            Unit::NanosecondsPerByte => "ns/byte",
            Unit::Hours => "hours",
        }
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Counted or timed here.
    Measured,
    /// Said by the model of an emulated card.
    Modelled,
}

/// What a longer span's value is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverTime {
    /// The mean of its seconds.
    Mean,
    /// The largest of its seconds.
    Max,
    /// The last of its seconds.
    Last,
    /// The percentile of all requests of the span.
    Percentile,
    /// The span's appended bytes over the span's bytes written by hosts.
    Amplification,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Its key, and its column in the history.
    pub name: &'static str,
    /// Of what it is.
    pub of: Of,
    /// What stands in front of it on a page.
    pub label: &'static str,
    /// How its value is read.
    pub unit: Unit,
    /// Where it comes from.
    pub source: Source,
    /// What a longer span's value is made of.
    pub over_time: OverTime,
    /// What it means.
    pub meaning: &'static str,
}

const fn device(
    name: &'static str,
    label: &'static str,
    unit: Unit,
    source: Source,
    over_time: OverTime,
    meaning: &'static str,
) -> Metric {
    Metric { name, of: Of::Device, label, unit, source, over_time, meaning }
}

const fn service(
    name: &'static str,
    label: &'static str,
    unit: Unit,
    over_time: OverTime,
    meaning: &'static str,
) -> Metric {
    Metric { name, of: Of::Service, label, unit, source: Source::Measured, over_time, meaning }
}

use OverTime::{Amplification, Last, Max, Mean, Percentile};
use Source::{Measured, Modelled};
use Unit::{
    Bytes, BytesPerSecond, Celsius, Count, Flag, Hours, Microseconds, NanosecondsPerByte, PerSecond, Percent, Ratio,
    Watts,
};

/// How far a latency reaches, for the meanings below.
const REACH: &str = "from the request's arrival in the service to the sending of its answer";

/// Every metric.
pub const METRICS: &[Metric] = &[
    device("read_iops", "Reads", PerSecond, Measured, Mean, "read requests answered"),
    device("write_iops", "Writes", PerSecond, Measured, Mean, "write requests answered"),
    device("trim_iops", "Trims", PerSecond, Measured, Mean, "trims and zeroings answered"),
    device("flush_iops", "Flushes", PerSecond, Measured, Mean, "flush requests answered"),
    device("failed_iops", "Failures", PerSecond, Measured, Mean, "requests answered with an error"),
    device("read_bytes_per_s", "Read bandwidth", BytesPerSecond, Measured, Mean, "bytes read by hosts"),
    device("write_bytes_per_s", "Write bandwidth", BytesPerSecond, Measured, Mean, "bytes written by hosts"),
    device("trim_bytes_per_s", "Trim bandwidth", BytesPerSecond, Measured, Mean, "bytes trimmed or zeroed by hosts"),
    device("read_p50_us", "Read latency, median", Microseconds, Measured, Percentile, REACH),
    device("read_p99_us", "Read latency, p99", Microseconds, Measured, Percentile, REACH),
    device("read_p999_us", "Read latency, p99.9", Microseconds, Measured, Percentile, REACH),
    device("read_max_us", "Read latency, most", Microseconds, Measured, Max, REACH),
    device("write_p50_us", "Write latency, median", Microseconds, Measured, Percentile, REACH),
    device("write_p99_us", "Write latency, p99", Microseconds, Measured, Percentile, REACH),
    device("write_p999_us", "Write latency, p99.9", Microseconds, Measured, Percentile, REACH),
    device("write_max_us", "Write latency, most", Microseconds, Measured, Max, REACH),
    device("flush_p50_us", "Flush latency, median", Microseconds, Measured, Percentile, REACH),
    device("flush_p99_us", "Flush latency, p99", Microseconds, Measured, Percentile, REACH),
    device("flush_p999_us", "Flush latency, p99.9", Microseconds, Measured, Percentile, REACH),
    device("flush_max_us", "Flush latency, most", Microseconds, Measured, Max, REACH),
    device(
        "queue_depth",
        "Queue depth",
        Ratio,
        Measured,
        Mean,
        "requests in the service at a time, by Little's law: their latencies together over the time",
    ),
    device(
        "queue_depth_max",
        "Queue depth, most",
        Count,
        Measured,
        Max,
        "the most requests that were in the service at once",
    ),
    device("clients", "Clients", Count, Measured, Last, "connected NBD clients"),
    device(
        "write_amplification",
        "Write amplification",
        Ratio,
        Measured,
        Amplification,
        "everything appended for each byte that hosts wrote in this time",
    ),
    device("groomed_bytes_per_s", "Groomer", BytesPerSecond, Measured, Mean, "moved by the groomer"),
    device("media_written_bytes_per_s", "Written to media", BytesPerSecond, Measured, Mean, "everything programmed"),
    device("grooming", "Grooming", Flag, Measured, Mean, "free space is short: the groomer works and writes are paced"),
    device(
        "free_percent",
        "Free erase blocks",
        Percent,
        Measured,
        Mean,
        "logical erase blocks that hold nothing, of all",
    ),
    device(
        "reserve_percent",
        "Reserve",
        Percent,
        Modelled,
        Last,
        "spare blocks left, of those when new; emulated cards",
    ),
    device("celsius", "Temperature", Celsius, Modelled, Max, "inside an emulated card"),
    device("watts", "Power", Watts, Modelled, Mean, "what an emulated card takes"),
    device("power_limit_watts", "Power limit", Watts, Modelled, Last, "above it an emulated card holds writes back"),
    device(
        "throttle_ns_per_byte",
        "Writes held back",
        NanosecondsPerByte,
        Modelled,
        Mean,
        "for heat, power or the end of its life; emulated cards",
    ),
    device(
        "pacing_late_percent",
        "Late answers",
        Percent,
        Measured,
        Last,
        "answers of an emulated card more than 20 us later than the model's, in the last minute",
    ),
    device(
        "power_limited",
        "Limited by power",
        Flag,
        Modelled,
        Max,
        "an emulated card holds writes back at its power limit",
    ),
    device("write_reduced", "Writes reduced", Flag, Modelled, Max, "an emulated card's reserve is used up"),
    device("worn_out", "Worn out", Flag, Modelled, Max, "an emulated card takes no more writes"),
    device("failed", "Failed", Flag, Measured, Max, "it could not be attached, or its writes fail"),
    device(
        "unclean_attach",
        "Unclean attach",
        Flag,
        Measured,
        Last,
        "it was not detached cleanly before it was attached",
    ),
    device("mapped_bytes", "Data held", Bytes, Measured, Last, "sectors that hold data, in bytes"),
    device("allocated_bytes", "Space on the store", Bytes, Measured, Last, "what the backing store uses"),
    device(
        "store_free_bytes",
        "Free on the store",
        Bytes,
        Measured,
        Last,
        "left on the file system under the device; not known for block devices",
    ),
    device(
        "store_left_hours",
        "Store full in",
        Hours,
        Measured,
        Last,
        "at the rate at which its file system filled in the last hour; a year where it does not fill",
    ),
    device("store_full", "Store full", Flag, Measured, Max, "the store has no room for what is written"),
    device("memory_bytes", "Memory of the layer", Bytes, Measured, Last, "map, tables and buffers"),
    device("map_memory_bytes", "Memory of the map", Bytes, Measured, Last, "the forward map alone"),
    device(
        "cpu_percent",
        "Processor time of the layer",
        Percent,
        Measured,
        Mean,
        "of the device's thread; 100 is one processor",
    ),
    device("read_errors", "Read errors", Count, Measured, Last, "reads that failed, since the format"),
    device(
        "damaged_sectors",
        "Damaged sectors",
        Count,
        Measured,
        Last,
        "found unreadable by the groomer, since the format",
    ),
    device(
        "unreadable_sectors",
        "Unreadable sectors",
        Count,
        Measured,
        Last,
        "asked for or scrubbed, and cannot be read",
    ),
    device("lost_dies", "Lost dies", Count, Measured, Last, "files out of service or being rebuilt"),
    device("vanished_files", "Vanished files", Count, Measured, Last, "in use, and deleted, moved or replaced"),
    service(
        "cpu_percent",
        "Processor time",
        Percent,
        Mean,
        "of the whole service, devices included; 100 is one processor",
    ),
    service("memory_bytes", "Memory", Bytes, Last, "of the whole service, devices included: what is resident"),
    service("streams", "Streams", Count, Last, "connected readers of the live stream"),
    service("requests", "API requests", PerSecond, Mean, "requests to the API"),
    service(
        "refused",
        "Refused",
        PerSecond,
        Mean,
        "requests to the API that would have changed something, of nobody who has signed in",
    ),
];

/// The metric of a name.
pub fn find(of: Of, name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.of == of && metric.name == name)
}

/// Those of devices, or of the service.
pub fn of(of: Of) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |metric| metric.of == of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_single() {
        for (at, metric) in METRICS.iter().enumerate() {
            assert!(
                metric.name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_'),
                "{metric:?}"
            );
            assert!(
                !METRICS[..at].iter().any(|other| other.name == metric.name && other.of == metric.of),
                "{metric:?}"
            );
            assert_eq!(find(metric.of, metric.name), Some(metric));
        }
        assert_eq!(find(Of::Service, "read_iops"), None);
    }
}
