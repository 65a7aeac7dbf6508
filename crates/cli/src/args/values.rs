//! Sizes, percentages and capacities as users write them.

use device::Capacity;

pub fn size(text: &str) -> Result<u64, String> {
    ::size::parse(text).map_err(|error| error.to_string())
}

pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 10_000.0 => Ok(percent),
        _ => Err("expected a percentage above 0, such as 28 or 28%".into()),
    }
}

pub fn sector(text: &str) -> Result<u32, String> {
    match ::size::parse(text) {
        Ok(bytes @ (512 | 1024 | 2048 | 4096)) => Ok(bytes as u32),
        _ => Err("expected 512, 1024, 2048 or 4096".into()),
    }
}

pub fn capacity(text: &str) -> Result<Capacity, String> {
    match text {
        "advertised" => Ok(Capacity::Advertised),
        "maximum" => Ok(Capacity::Maximum),
        "improved-write" => Ok(Capacity::ImprovedWrite),
        "maximum-write" => Ok(Capacity::MaximumWrite),
        text if text.ends_with('%') => percent(text).map(Capacity::Percent),
        text if text.starts_with(|c: char| c.is_ascii_digit()) => size(text).map(Capacity::Bytes),
        _ => Err("expected advertised, maximum, improved-write, maximum-write, a percentage such as 80%, or a size such as 10GiB".into()),
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
            ("improved-write", Capacity::ImprovedWrite),
            ("maximum-write", Capacity::MaximumWrite),
            ("80%", Capacity::Percent(80.0)),
            ("62.5 %", Capacity::Percent(62.5)),
            ("10GiB", Capacity::Bytes(10 << 30)),
        ] {
            assert_eq!(capacity(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "-5%", "0%", "nan%", "inf%", "huge", "10 parsecs"] {
            assert!(capacity(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sectors_are_one_of_four() {
        assert_eq!(sector("512"), Ok(512));
        assert_eq!(sector("4KiB"), Ok(4096));
        for text in ["0", "513", "8192", "x", "4294967808"] {
            assert!(sector(text).is_err(), "{text}");
        }
    }
}
