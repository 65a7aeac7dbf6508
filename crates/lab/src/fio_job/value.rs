//! Values of fio's options.

use std::time::Duration;

use crate::workload::{Bytes, Extent, Sizes, Time, Weighted, Zone, limited};

/// A size; units count in 1024, as fio's do by default.
pub fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    // fio's kb is its k.
    let plain = match lower.strip_suffix('b') {
        Some(rest) if rest.ends_with(['k', 'm', 'g', 't', 'p']) => rest,
        _ => &lower,
    };
    size::parse(plain).map_err(|error| error.to_string())
}

/// A size, or a share of the device.
pub fn extent(text: &str) -> Result<Extent, String> {
    if text.ends_with('%') { text.parse() } else { bytes(text).map(Extent::Bytes) }
}

/// A time: seconds when no unit is given.
pub fn time(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let wrong = || format!("'{text}' is no time; expected seconds, or a whole number and d, h, m, s, ms or us");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let nanos: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "d" | "day" | "days" => 86_400_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "m" | "min" | "minute" | "minutes" => 60_000_000_000,
        "" | "s" | "sec" | "second" | "seconds" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        _ => return Err(wrong()),
    };
    let time = number.checked_mul(nanos).map(Duration::from_nanos).ok_or_else(wrong)?;
    limited(time).map(|Time(time)| time).map_err(|problem| format!("'{text}' is {problem}"))
}

/// A whole number.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is no whole number"))
}

/// A percentage.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>();
    number
        .ok()
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| format!("'{text}' is no percentage; expected 0 to 100"))
}

/// A switch.
pub fn switch(text: Option<&str>) -> Result<bool, String> {
    match text {
        None | Some("1" | "true") => Ok(true),
        Some("0" | "false") => Ok(false),
        Some(other) => Err(format!("'{other}' is neither 0 nor 1")),
    }
}

/// Values for reads and for writes: `a` for both, or `a,b`; a third is that of trims.
pub fn directions<T: Clone + PartialEq>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(Option<T>, Option<T>), String> {
    let parts =
        text.split(',').map(|part| if part.trim().is_empty() { Ok(None) } else { parse(part.trim()).map(Some) });
    let parts: Vec<Option<T>> = parts.collect::<Result<_, _>>()?;
    match parts.as_slice() {
        [both] => Ok((both.clone(), both.clone())),
        [read, write] => Ok((read.clone(), write.clone())),
        [read, write, trim] if trim == write => Ok((read.clone(), write.clone())),
        [_, _, _] => Err(format!("'{text}': trims are of the same size as writes here")),
        _ => Err(format!("'{text}': expected one value, or one for reads and one for writes")),
    }
}

/// All multiples of the smaller that are not above the larger, alike.
pub fn range(text: &str) -> Result<Sizes, String> {
    let (low, high) = text.split_once('-').ok_or_else(|| format!("'{text}' is no range; expected such as 1k-4k"))?;
    let (low, high) = (bytes(low.trim())?, bytes(high.trim())?);
    if low == 0 || low > high || high / low > 1024 {
        return Err(format!(
            "'{text}' is no range; expected the smaller size first, and the larger at most 1024 times that"
        ));
    }
    Ok(Sizes::Mix((1..=high / low).map(|times| Weighted { size: Bytes(low * times), weight: 1.0 }).collect()))
}

/// Sizes with percentages: `4k/60:64k/40`; what has none shares what is left.
pub fn split(text: &str) -> Result<Sizes, String> {
    let mut list = Vec::new();
    for part in text.split(':') {
        let (one, share) = match part.split_once('/') {
            Some((one, share)) if !share.trim().is_empty() => (one, Some(percent(share.trim())?)),
            Some((one, _)) => (one, None),
            None => (part, None),
        };
        list.push((bytes(one.trim())?, share));
    }
    let given: f64 = list.iter().filter_map(|(_, share)| *share).sum();
    let without = list.iter().filter(|(_, share)| share.is_none()).count();
    if given > 100.0 + 1e-9 || (without == 0 && given < 100.0 - 1e-9) {
        return Err(format!("'{text}': percentages come to {given}, not to 100"));
    }
    let rest = (100.0 - given) / without.max(1) as f64;
    let weighted = list.into_iter().map(|(size, share)| Weighted { size: Bytes(size), weight: share.unwrap_or(rest) });
    Ok(Sizes::Mix(weighted.collect()))
}

/// Zones: `60/10:30/20:8/30:2/40`, percentages of accesses and of space.
pub fn zones(text: &str) -> Result<Vec<Zone>, String> {
    text.split(':')
        .map(|part| {
            let (accesses, space) = part
                .split_once('/')
                .ok_or_else(|| format!("'{part}' is no zone; expected accesses/space in per cent"))?;
            Ok(Zone { accesses: percent(accesses.trim())?, space: percent(space.trim())? })
        })
        .collect()
}
