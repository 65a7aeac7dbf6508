//! Sizes, spans of a device and durations in the text of a workload.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes: written as a number or as text such as `"64KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A part of a device: bytes, or per cent of its capacity (`"25%"`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// So many bytes.
    Bytes(u64),
    /// A share of the device's capacity, per cent.
    Percent(f64),
}

impl Extent {
    /// Bytes of it on a device of this capacity.
    pub fn of(self, capacity: u64) -> u64 {
        match self {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(percent) => (capacity as f64 * percent / 100.0) as u64,
        }
    }

    /// Whether it is a share of the device.
    pub fn is_share(self) -> bool {
        matches!(self, Extent::Percent(_))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Bytes(bytes) => f.write_str(&size::exact(*bytes)),
            Extent::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl std::str::FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Extent, String> {
        match text.strip_suffix('%') {
            Some(number) => match number.trim().parse::<f64>() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Extent::Percent(percent)),
                _ => Err(format!("'{text}' is not a share of a device; expected 0% to 100%")),
            },
            None => size::parse(text).map(Extent::Bytes).map_err(|error| error.to_string()),
        }
    }
}

/// A span of time: written as seconds, or as text such as `"30s"`, `"100ms"` or `"6h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(pub Duration);

impl Time {
    /// Whole nanoseconds, at most what 64 bits hold.
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl std::str::FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        if let Ok(seconds) = text.trim().parse::<f64>() {
            return seconds_to_time(seconds);
        }
        let duration = humantime::parse_duration(text).map_err(|_| {
            format!("'{text}' is not a duration; expected seconds, or a number and a unit such as 30s, 100ms or 6h")
        })?;
        limited(duration)
    }
}

/// Longest span: a virtual clock of nanoseconds must not overflow, whatever a few phases add up to.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A span that is not too long.
pub(crate) fn limited(duration: Duration) -> Result<Time, String> {
    if duration > LONGEST { Err("a duration of more than ten years".into()) } else { Ok(Time(duration)) }
}

fn seconds_to_time(seconds: f64) -> Result<Time, String> {
    let duration = Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("{seconds} is not a duration; expected seconds from 0 upwards"))?;
    limited(duration)
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&size::exact(self.0))
    }
}

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

/// Takes a number or a text.
struct Quantity<T> {
    expected: &'static str,
    number: fn(f64) -> Result<T, String>,
    whole: fn(u64) -> Result<T, String>,
    text: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        (self.whole)(value).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        let value = u64::try_from(value).map_err(|_| E::custom(format!("{value}: expected {}", self.expected)))?;
        (self.whole)(value).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        (self.number)(value).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
        (self.text)(value).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        deserializer.deserialize_any(Quantity {
            expected: "a size such as \"4KiB\" or 4096",
            number: |number| Err(format!("{number} is not a whole number of bytes")),
            whole: |bytes| Ok(Bytes(bytes)),
            text: |text| size::parse(text).map(Bytes).map_err(|error| error.to_string()),
        })
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Extent, D::Error> {
        deserializer.deserialize_any(Quantity {
            expected: "a size such as \"32GB\", or a share of the device such as \"25%\"",
            number: |number| Err(format!("{number} is not a whole number of bytes; a share is written \"{number}%\"")),
            whole: |bytes| Ok(Extent::Bytes(bytes)),
            text: str::parse,
        })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        deserializer.deserialize_any(Quantity {
            expected: "a duration: seconds, or text such as \"30s\" or \"6h\"",
            number: seconds_to_time,
            whole: |seconds| limited(Duration::from_secs(seconds)),
            text: str::parse,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_numbers_and_text() {
        let time = |text: &str| serde_json::from_str::<Time>(text).map(Time::nanos).map_err(|error| error.to_string());
        assert_eq!(time("2"), Ok(2_000_000_000));
        assert_eq!(time("0.5"), Ok(500_000_000));
        assert_eq!(time("\"100ms\""), Ok(100_000_000));
        assert_eq!(time("\"90\""), Ok(90_000_000_000));
        assert!(time("\"soon\"").expect_err("text").contains("'soon' is not a duration"));
        assert!(time("-1").expect_err("negative").contains("expected a duration"));
        assert!(time("\"99years\"").expect_err("long").contains("ten years"));
        let extent = |text: &str| serde_json::from_str::<Extent>(text).map_err(|error| error.to_string());
        assert_eq!(extent("\"25%\"").map(|extent| extent.of(1000)), Ok(250));
        assert_eq!(extent("\"1KiB\"").map(|extent| extent.of(9)), Ok(1024));
        assert!(extent("\"101%\"").expect_err("share").contains("'101%' is not a share"));
        assert!(extent("0.5").expect_err("fraction").contains("a share is written"));
        assert!(serde_json::from_str::<Bytes>("1.5").is_err());
    }

    #[test]
    fn quantities_are_written_as_they_are_read() {
        for text in ["\"4KiB\"", "\"1000\""] {
            let bytes: Bytes = serde_json::from_str(text).expect("a size");
            assert_eq!(serde_json::to_string(&bytes).expect("text"), text);
        }
        for text in ["\"12.5%\"", "\"1GiB\""] {
            let extent: Extent = serde_json::from_str(text).expect("an extent");
            assert_eq!(serde_json::to_string(&extent).expect("text"), text);
        }
        let time: Time = serde_json::from_str("\"6h\"").expect("a duration");
        assert_eq!(serde_json::to_string(&time).expect("text"), "\"6h\"");
    }
}
