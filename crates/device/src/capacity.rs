//! Capacities of formats, as people write them.

use std::fmt;
use std::str::FromStr;

use card::Format;
use serde::{Deserialize, Serialize};

/// What stands before the size of an address space, where a capacity is asked for.
const ADDRESS_SPACE: &str = "address-space:";
/// The same before the size of zones.
const ZONES: &str = "zones:";

/// How much of the raw size the host sees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capacity {
    /// What the data sheet says.
    Advertised,
    /// 110 % of it, or as much as the raw size allows.
    Maximum,
    /// The reviewed high-performance format: what the card's data sheet says, and 80 % of the advertised where there is no card.
    HighPerformance,
    /// 70 % of it: improved write performance.
    ImprovedWrite,
    /// 50 % of it: maximum write performance.
    MaximumWrite,
    /// Bytes.
    Bytes(u64),
    /// Per cent of the advertised capacity.
    Percent(f64),
    /// Bytes that the host can address, more than there is room for: how much of it may hold data follows from the raw size.
    AddressSpace(u64),
    /// As many zones of so many bytes as make up what the data sheet says.
    Zones(u64),
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Capacity, String> {
        match text {
            "advertised" => Ok(Capacity::Advertised),
            "maximum" => Ok(Capacity::Maximum),
            "high-performance" => Ok(Capacity::HighPerformance),
            "improved-write" => Ok(Capacity::ImprovedWrite),
            "maximum-write" => Ok(Capacity::MaximumWrite),
            text if text.starts_with(ADDRESS_SPACE) => {
                let size = size::parse(&text[ADDRESS_SPACE.len()..]);
                size.map(Capacity::AddressSpace).map_err(|error| error.to_string())
            }
            text if text.starts_with(ZONES) => {
                size::parse(&text[ZONES.len()..]).map(Capacity::Zones).map_err(|error| error.to_string())
            }
            text if text.ends_with('%') => {
                let percent = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
                let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 10_000.0);
                percent.map(Capacity::Percent).ok_or_else(|| "expected a percentage above 0, such as 80%".into())
            }
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                size::parse(text).map(Capacity::Bytes).map_err(|error| error.to_string())
            }
            _ => Err("expected advertised, maximum, high-performance, improved-write, maximum-write, a percentage such as 80%, or a size such as 10GiB".into()),
        }
    }
}

/// As it is parsed.
impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Capacity::Advertised => "advertised",
            Capacity::Maximum => "maximum",
            Capacity::HighPerformance => "high-performance",
            Capacity::ImprovedWrite => "improved-write",
            Capacity::MaximumWrite => "maximum-write",
            Capacity::Bytes(bytes) => return write!(f, "{bytes}"),
            Capacity::Percent(percent) => return write!(f, "{percent}%"),
            Capacity::AddressSpace(bytes) => return write!(f, "{ADDRESS_SPACE}{bytes}"),
            Capacity::Zones(bytes) => return write!(f, "{ZONES}{bytes}"),
        })
    }
}

/// On a card, whose modules know these by other names.
impl From<Capacity> for Format {
    fn from(capacity: Capacity) -> Format {
        match capacity {
            Capacity::Advertised => Format::Stock,
            Capacity::Maximum => Format::Maximum,
            Capacity::HighPerformance => Format::HighPerformance,
            Capacity::ImprovedWrite => Format::ImprovedWrite,
            Capacity::MaximumWrite => Format::MaximumWrite,
            Capacity::Bytes(bytes) | Capacity::AddressSpace(bytes) | Capacity::Zones(bytes) => Format::Bytes(bytes),
            Capacity::Percent(percent) => Format::Percent(percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_parse() {
        for (text, expected) in [
            ("advertised", Capacity::Advertised),
            ("maximum", Capacity::Maximum),
            ("high-performance", Capacity::HighPerformance),
            ("improved-write", Capacity::ImprovedWrite),
            ("maximum-write", Capacity::MaximumWrite),
            ("80%", Capacity::Percent(80.0)),
            ("62.5 %", Capacity::Percent(62.5)),
            ("10GiB", Capacity::Bytes(10 << 30)),
            ("address-space:1PiB", Capacity::AddressSpace(1 << 50)),
            ("zones:64MiB", Capacity::Zones(64 << 20)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        }
        for text in ["", "%", "-5%", "0%", "nan%", "inf%", "80%%", "huge", "all", "10 parsecs"] {
            assert!(text.parse::<Capacity>().is_err(), "{text}");
        }
    }
}
