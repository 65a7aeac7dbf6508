//! Numbers as people read them.

use serde::Serialize;

/// In what something is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A number, with the name of what is counted ("IO/s", "reads"), or none.
    Count(String),
    /// Seconds of latency: printed in ns, µs, ms or s.
    Seconds,
    /// Seconds since the beginning: printed in s, min, h or days.
    Elapsed,
    /// Bytes: printed with binary prefixes.
    Bytes,
    /// Bytes a second: printed with decimal prefixes, as reviews do.
    BytesPerSecond,
    /// Hundredths.
    Percent,
    /// A ratio.
    #[default]
    Plain,
}

/// A unit with the prefix that suits some range.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefixed {
    /// Base units in one of these.
    pub factor: f64,
    /// How it is called.
    pub name: String,
}

const DECIMAL: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
const BINARY: [(f64, &str); 6] = [
    (1_125_899_906_842_624.0, "PiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1024.0, "KiB"),
    (1.0, "B"),
];
const LATENCY: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
const ELAPSED: [(f64, &str); 4] = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")];

/// The first entry that is not above `value`, or the last.
fn fitting<'a>(table: &[(f64, &'a str)], value: f64) -> (f64, &'a str) {
    let found = table.iter().find(|(factor, _)| value >= *factor * 0.999_999);
    *found.unwrap_or(&table[table.len() - 1])
}

impl Unit {
    /// A number of something.
    pub fn count(name: impl Into<String>) -> Unit {
        Unit::Count(name.into())
    }

    /// One prefix for values up to `most`, so that a column or axis needs it only once.
    pub fn prefixed(&self, most: f64) -> Prefixed {
        let most = if most.is_finite() { most.abs() } else { 0.0 };
        let (factor, name) = match self {
            // Reviews print requests a second in full; a prefix is needed from a million upwards.
            Unit::Count(name) => {
                let (factor, prefix) = if most >= 2e6 { fitting(&DECIMAL, most) } else { (1.0, "") };
                (factor, format!("{prefix}{}{name}", if prefix.is_empty() || name.is_empty() { "" } else { " " }))
            }
            Unit::Seconds => named(if most > 0.0 { fitting(&LATENCY, most) } else { (1e-3, "ms") }),
            // Three minutes are better read as 180 s, three hours as 180 min.
            Unit::Elapsed => named(fitting(&ELAPSED, most / 3.0)),
            Unit::Bytes => named(fitting(&BINARY, most)),
            Unit::BytesPerSecond => {
                // Reviews and data sheets say MB/s throughout.
                let (factor, prefix) = if most >= 1e10 { (1e9, "G") } else { (1e6, "M") };
                (factor, format!("{prefix}B/s"))
            }
            Unit::Percent => (1.0, "%".to_string()),
            Unit::Plain => (1.0, String::new()),
        };
        Prefixed { factor, name }
    }

    /// The base unit's name, for files that programs read.
    pub fn base(&self) -> &str {
        match self {
            Unit::Count(name) => name,
            Unit::Seconds | Unit::Elapsed => "s",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::Percent => "%",
            Unit::Plain => "",
        }
    }

    /// One value with the prefix that suits it.
    pub fn one(&self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_string();
        }
        let Prefixed { factor, name } = match self {
            Unit::BytesPerSecond if value.abs() < 1e6 => Prefixed { factor: 1e3, name: "kB/s".to_string() },
            Unit::Elapsed => {
                let (factor, name) = fitting(&ELAPSED, value.abs());
                Prefixed { factor, name: name.to_string() }
            }
            unit => unit.prefixed(value),
        };
        with_unit(&significant(value / factor, 4), &name)
    }
}

fn named((factor, name): (f64, &str)) -> (f64, String) {
    (factor, name.to_string())
}

/// A number and its unit with a space that does not break.
pub(crate) fn with_unit(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_string() } else { format!("{number}\u{a0}{unit}") }
}

/// A number with so many digits that count, thousands separated: 12,345.6, 0.00123.
pub fn digits(value: f64, digits: u8) -> String {
    significant(value, i32::from(digits.clamp(1, 15)))
}

/// As [`digits`].
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    if !value.is_finite() {
        return "–".to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-9..15).contains(&magnitude) {
        return format!("{value:.*e}", (digits - 1).max(0) as usize);
    }
    let decimals = (digits - 1 - magnitude).clamp(0, 12) as usize;
    let text = grouped(value, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A number with a fixed count of decimals, thousands separated.
pub(crate) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    // A rounded zero has no sign.
    if value < 0.0 && text.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0') {
        out.push('−');
    }
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated_and_digits_that_count_are_kept() {
        assert_eq!(significant(1_234_567.0, 4), "1,234,567");
        assert_eq!(significant(12_345.67, 4), "12,346");
        assert_eq!(significant(0.001_234_5, 3), "0.00123");
        assert_eq!(significant(100.0, 4), "100");
        assert_eq!(significant(-2.5, 3), "−2.5");
        assert_eq!(significant(-0.0, 3), "0");
        assert_eq!(grouped(-0.04, 1), "0.0");
        assert_eq!(significant(1e300, 3), "1.00e300");
    }

    #[test]
    fn prefixes_suit_the_value() {
        assert_eq!(Unit::Seconds.one(0.000_25), "250\u{a0}µs");
        assert_eq!(Unit::Seconds.one(1.5), "1.5\u{a0}s");
        assert_eq!(Unit::Bytes.one(65_536.0), "64\u{a0}KiB");
        assert_eq!(Unit::BytesPerSecond.one(1.5e9), "1,500\u{a0}MB/s");
        assert_eq!(Unit::Elapsed.one(5400.0), "1.5\u{a0}h");
        assert_eq!(Unit::count("IO/s").one(140_000.0), "140,000\u{a0}IO/s");
        assert_eq!(Unit::count("IO/s").one(2_500_000.0), "2.5\u{a0}M IO/s");
        assert_eq!(Unit::Percent.one(f64::NAN), "–");
    }
}
