//! What time it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Now, milliseconds since 1970.
pub fn now_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

/// Now, seconds since 1970.
pub fn now_s() -> u64 {
    since_1970().as_secs()
}

/// The first second of the year 10000, from which on four digits are too few.
const TOO_LATE: u64 = 253_402_300_800;

/// A time as text: seconds since 1970. Nothing where it is too late for that, as in a format that somebody forged.
pub fn show(seconds: u64) -> Option<String> {
    let moment = (seconds < TOO_LATE).then(|| UNIX_EPOCH + Duration::from_secs(seconds));
    moment.map(|moment| humantime::format_rfc3339_seconds(moment).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_while_a_year_has_four_digits() {
        assert_eq!(show(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(show(TOO_LATE - 1).as_deref(), Some("9999-12-31T23:59:59Z"));
        assert_eq!((show(TOO_LATE), show(u64::MAX)), (None, None));
    }
}
