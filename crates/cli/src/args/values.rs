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
    text.parse()
}

pub fn address_space(text: &str) -> Result<Capacity, String> {
    ::size::parse(text).map(Capacity::AddressSpace).map_err(|error| error.to_string())
}

pub fn zones(text: &str) -> Result<Capacity, String> {
    ::size::parse(text).map(Capacity::Zones).map_err(|error| error.to_string())
}

/// The seconds of a lease.
pub fn lease(text: &str) -> Result<u64, String> {
    let seconds: u64 =
        text.parse().map_err(|_| format!("expected a number of seconds, found '{}'", text.escape_debug()))?;
    let sound = |seconds: u64| seconds.checked_mul(1000).is_some_and(|ms| media::object::lease::LEASE_MS.contains(&ms));
    match seconds == 0 || sound(seconds) {
        true => Ok(seconds),
        false => Err("a lease is 2 to 3600 seconds, or 0 for none".into()),
    }
}

pub fn store_or_bucket(text: &str) -> Result<bucket::Address, String> {
    bucket::Address::parse_any(text).map_err(|error| error.to_string())
}

pub fn store(text: &str) -> Result<bucket::Address, String> {
    bucket::Address::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_one_of_four() {
        assert_eq!(sector("512"), Ok(512));
        assert_eq!(sector("4KiB"), Ok(4096));
        for text in ["0", "513", "8192", "x", "4294967808"] {
            assert!(sector(text).is_err(), "{text}");
        }
    }
}
