//! The low-level format of a flash module: how much of it the host may use.

use std::fmt;
use std::str::FromStr;

/// How much capacity a format gives.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Format {
    /// The advertised capacity.
    #[default]
    Stock,
    /// As much as the vendor's tools allow.
    Maximum,
    /// "Improved write performance".
    ImprovedWrite,
    /// "Maximum write performance".
    MaximumWrite,
    /// The reviewed "high-performance mode".
    HighPerformance,
    /// Per cent of the advertised capacity.
    Percent(f64),
    /// Bytes of a module at full scale.
    Bytes(u64),
}

impl Format {
    /// Capacity of a module at full scale, bytes; `None` where the module has no such format.
    pub fn bytes(self, module: &profile::Module) -> Option<u64> {
        let percent = |percent: f64| (module.advertised_bytes as f64 * percent / 100.0) as u64;
        let limits = &module.format;
        let choice = [limits.maximum_percent, limits.improved_write_percent, limits.maximum_write_percent] != [100; 3];
        match self {
            // The sheet of a drive whose maker gives no tool to format it.
            chosen if chosen != Format::Stock && !choice => None,
            Format::Stock => Some(module.advertised_bytes),
            Format::Maximum => Some(percent(limits.maximum_percent.into())),
            Format::ImprovedWrite => Some(percent(limits.improved_write_percent.into())),
            Format::MaximumWrite => Some(percent(limits.maximum_write_percent.into())),
            Format::HighPerformance => module.high_performance_bytes,
            Format::Percent(value) => Some(percent(value)),
            Format::Bytes(bytes) => Some(bytes),
        }
    }
}

/// The names of the formats; the first that fits is how one is printed.
const NAMES: [(&str, Format); 7] = [
    ("stock", Format::Stock),
    ("advertised-capacity", Format::Stock),
    ("maximum-capacity", Format::Maximum),
    ("improved-write-performance", Format::ImprovedWrite),
    ("maximum-write-performance", Format::MaximumWrite),
    ("high-performance", Format::HighPerformance),
    ("", Format::Stock),
];

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, format)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*format);
        }
        if let Some(value) = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok())
            && value > 0.0
            && value.is_finite()
        {
            return Ok(Format::Percent(value));
        }
        match text.parse::<u64>() {
            Ok(bytes) if bytes > 0 => Ok(Format::Bytes(bytes)),
            _ => {
                let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
                Err(format!(
                    "'{text}' is no format; there are: {}, a percentage of the advertised capacity such as 80%, bytes of a module",
                    names.join(", ")
                ))
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::Percent(value) => write!(f, "{value}%"),
            Format::Bytes(bytes) => write!(f, "{bytes}"),
            named => f.write_str(NAMES.iter().find(|(_, it)| it == named).map_or("", |(name, _)| name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_as_they_are_written() {
        for text in ["stock", "maximum-capacity", "improved-write-performance", "high-performance", "80%", "1000000"] {
            assert_eq!(text.parse::<Format>().expect("a format").to_string(), text);
        }
        assert_eq!("advertised-capacity".parse(), Ok(Format::Stock));
        for text in ["huge", "-5%", "0", "0%", "nan%"] {
            let message = text.parse::<Format>().expect_err("no format");
            assert!(message.starts_with(&format!("'{text}' is no format; there are: stock, ")), "{message}");
        }
    }

    #[test]
    fn capacities_are_those_that_fujitsu_prints() {
        let card = profile::find("iodrive-320-mlc").expect("a sheet");
        let module = &card.flash().expect("a card").module;
        let gigabytes = |format: Format| format.bytes(module).map(|bytes| bytes / 1_000_000_000);
        assert_eq!(gigabytes(Format::Maximum), Some(352));
        assert_eq!(gigabytes(Format::ImprovedWrite), Some(224));
        assert_eq!(gigabytes(Format::MaximumWrite), Some(160));
    }
}
