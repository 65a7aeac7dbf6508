//! Sizes as people write and read them.

/// Units, with the bytes in one. A bare letter is binary, as it is for fio and qemu-img.
const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
];

/// Why a size does not parse; the message says what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// No number in front.
    #[error("'{0}' is not a size; expected a number and a unit, such as 64MiB, 10GiB, 320GB or plain bytes")]
    Number(String),
    /// An unknown unit.
    #[error(
        "'{unit}' is not a unit of size; expected B, KiB, MiB, GiB, TiB, PiB (1024) or kB, MB, GB, TB, PB (1000); K, M, G, T, P count in 1024"
    )]
    Unit {
        /// What stood there.
        unit: String,
    },
    /// Not a whole number of bytes.
    #[error("'{0}' is not a whole number of bytes")]
    Fraction(String),
    /// Beyond 64 bits.
    #[error("'{0}' is more than 16 EiB")]
    TooLarge(String),
}

/// Parses a size: digits, perhaps a fraction, perhaps a unit.
///
/// # Errors
/// See [`SizeError`].
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let unit = unit.trim();
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let malformed = || SizeError::Number(text.into());
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err(malformed());
    }
    let lower = unit.to_ascii_lowercase();
    let (_, factor) =
        UNITS.iter().find(|(name, _)| *name == lower).ok_or_else(|| SizeError::Unit { unit: unit.into() })?;
    let too_large = || SizeError::TooLarge(text.into());
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let bytes = whole.checked_mul(*factor).ok_or_else(too_large)?;
    if fraction.is_empty() {
        return Ok(bytes);
    }
    if *factor == 1 {
        return Err(SizeError::Fraction(text.into()));
    }
    // In whole numbers, rounded down: a size must not depend on how binary fractions are rounded.
    let scale =
        u32::try_from(fraction.len()).ok().and_then(|digits| 10u128.checked_pow(digits)).ok_or_else(malformed)?;
    let parts =
        fraction.parse::<u128>().ok().and_then(|parts| parts.checked_mul(u128::from(*factor))).ok_or_else(malformed)?;
    let parts = u64::try_from(parts / scale).map_err(|_| too_large())?;
    bytes.checked_add(parts).ok_or_else(too_large)
}

/// A size for people: decimal as drives are sold, binary as memory is counted. Block sizes are binary only.
pub fn show(bytes: u64) -> String {
    if (1 << 10..1 << 20).contains(&bytes) && bytes.is_multiple_of(1 << 10) {
        return format!("{} KiB", bytes >> 10);
    }
    match (scaled(bytes, 1000, &["B", "kB", "MB", "GB", "TB", "PB", "EB"]), bytes < 1000) {
        (decimal, true) => decimal,
        (decimal, false) => {
            format!("{decimal} ({})", scaled(bytes, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]))
        }
    }
}

/// A size for tables of people: decimal alone, as drives are sold.
pub fn short(bytes: u64) -> String {
    scaled(bytes, 1000, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A size that parses back to the same number of bytes.
pub fn exact(bytes: u64) -> String {
    let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, one)| bytes > 0 && bytes.is_multiple_of(*one)) {
        Some((unit, one)) => format!("{}{unit}", bytes / one),
        None => bytes.to_string(),
    }
}

fn scaled(bytes: u64, step: u64, units: &[&str]) -> String {
    let mut unit = 0;
    let mut one: u64 = 1;
    while unit + 1 < units.len() && bytes / step >= one {
        one = one.saturating_mul(step);
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{:.2} {}", bytes as f64 / one as f64, units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1_000", 1000),
            ("512B", 512),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("64KiB", 64 << 10),
            ("64 kib", 64 << 10),
            ("64kB", 64_000),
            ("1.5GiB", 3 << 29),
            (" 2.5 MB ", 2_500_000),
            ("1.0001KiB", 1024),
            ("1.1TiB", 1_209_462_790_553),
            ("320GB", 320_000_000_000),
            ("10TiB", 10 << 40),
            ("1P", 1 << 50),
            ("16383PiB", 16383 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn other_things_do_not() {
        for (text, message) in [
            ("", "'' is not a size"),
            ("GiB", "'GiB' is not a size"),
            ("-1", "'-1' is not a size"),
            ("1.", "'1.' is not a size"),
            ("1.2.3", "'1.2.3' is not a size"),
            (".5G", "'.5G' is not a size"),
            ("10Gi", "'Gi' is not a unit"),
            ("10 parsecs", "'parsecs' is not a unit"),
            ("0x10", "'x10' is not a unit"),
            ("0.3", "'0.3' is not a whole number of bytes"),
            ("0.0000000000000000000000000000000000000001K", "is not a size"),
            ("16384PiB", "more than 16 EiB"),
            ("99999999999999999999", "more than 16 EiB"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn exact_sizes_parse_back() {
        for (bytes, text) in [(0, "0"), (1000, "1000"), (4096, "4KiB"), (3 << 29, "1536MiB"), (2 << 40, "2TiB")] {
            assert_eq!(exact(bytes), text);
            assert_eq!(parse(text), Ok(bytes));
        }
    }

    #[test]
    fn sizes_are_shown_both_ways() {
        assert_eq!(show(0), "0 B");
        assert_eq!(show(999), "999 B");
        assert_eq!(show(4096), "4 KiB");
        assert_eq!(show(5000), "5.00 kB (4.88 KiB)");
        assert_eq!(show(320_000_000_000), "320.00 GB (298.02 GiB)");
        assert_eq!(show(u64::MAX), "18.45 EB (16.00 EiB)");
    }
}
