//! What people write for the parts of a simulation.

use std::ops::RangeInclusive;

use card::{Arrangement, Nanos, Pacing, Policy};

/// So many times smaller a device is built where nothing is said.
pub const USUAL_SCALE: u32 = 64;
/// So many times smaller one may be asked for.
pub const SCALES: RangeInclusive<u32> = 1..=65_536;
/// Air in front of a card, degrees Celsius.
pub const AMBIENT_CELSIUS: RangeInclusive<f64> = -40.0..=85.0;
/// Airflow, linear feet a minute.
pub const AIRFLOW_LFM: RangeInclusive<f64> = 0.0..=10_000.0;
/// Shortest interval of the series.
pub const SHORTEST_INTERVAL: Nanos = 1_000_000;

/// How the groomer and host writes share a module: `steady`, `on-demand` or `rounds:SIZE`.
///
/// # Errors
/// What was expected.
pub fn pacing(text: &str) -> Result<Pacing, String> {
    match (text, text.strip_prefix("rounds:")) {
        ("steady", _) => Ok(Pacing::Steady),
        ("on-demand", _) => Ok(Pacing::OnDemand),
        (_, Some(bytes)) => size::parse(bytes).map(Pacing::Rounds).map_err(|error| error.to_string()),
        _ => Err("expected steady, on-demand, or rounds:SIZE such as rounds:8MiB".into()),
    }
}

/// A policy of the groomer, by its name.
///
/// # Errors
/// What was expected.
pub fn policy(text: &str) -> Result<Policy, String> {
    let names = || Policy::ALL.iter().map(|policy| policy.name()).collect::<Vec<_>>().join(", ");
    Policy::from_name(text).ok_or_else(|| format!("expected one of {}", names()))
}

/// How the modules of a card are used: `single`, `both`, `raid0`, `raid0-3` to `raid0-8`, `raid1`.
///
/// # Errors
/// What was expected.
pub fn arrangement(text: &str) -> Result<Arrangement, String> {
    if text == "both" { Ok(Arrangement::BothModules) } else { text.parse() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacings_parse() {
        assert_eq!(pacing("steady"), Ok(Pacing::Steady));
        assert_eq!(pacing("on-demand"), Ok(Pacing::OnDemand));
        assert_eq!(pacing("rounds:8MiB"), Ok(Pacing::Rounds(8 << 20)));
        for text in ["", "rounds", "rounds:", "rounds:much", "even"] {
            assert!(pacing(text).is_err(), "{text}");
        }
    }
}
