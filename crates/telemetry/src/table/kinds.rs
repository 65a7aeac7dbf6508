//! What rows of the table have in common: units, sources, spans.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the words that `Unit::name` gives")]
pub enum Unit {
    Text,
    Flag,
    Count,
    Bytes,
    BytesPerSecond,
    PerSecond,
    Percent,
    Ratio,
    Celsius,
    Watts,
    Microseconds,
    Seconds,
    NanosecondsPerByte,
    Hours,
    /// A moment, seconds since 1970.
    Time,
    List,
}

impl Unit {
    /// Its name in the list of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Text => "text",
            Unit::Flag => "flag",
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::PerSecond => "1/s",
            Unit::Percent => "%",
            Unit::Ratio => "ratio",
            Unit::Celsius => "celsius",
            Unit::Watts => "watts",
            Unit::Microseconds => "us",
            Unit::Seconds => "s",
            Unit::NanosecondsPerByte => "ns/byte",
            Unit::Hours => "hours",
            Unit::Time => "time",
            Unit::List => "list",
        }
    }

    /// Its name in the list of fields, whose flags read yes or no.
    pub fn of_field(self) -> &'static str {
        if self == Unit::Flag { "yes/no" } else { self.name() }
    }

    /// As words say it behind a number.
    pub fn behind(self) -> &'static str {
        match self {
            Unit::PerSecond => "/s",
            Unit::Ratio | Unit::Count | Unit::Flag => "",
            other => other.name(),
        }
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Counted, timed or read here.
    Measured,
    /// Said by the model of an emulated card.
    Modelled,
    /// Somebody said so: when it was made, attached or configured.
    Set,
}

impl Source {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Source::Measured => "measured",
            Source::Modelled => "modelled",
            Source::Set => "set",
        }
    }
}

/// What a longer span's value is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl OverTime {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            OverTime::Mean => "mean",
            OverTime::Max => "max",
            OverTime::Last => "last",
            OverTime::Percentile => "percentile",
            OverTime::Amplification => "amplification",
        }
    }
}
