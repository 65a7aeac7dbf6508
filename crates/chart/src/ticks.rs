//! Where an axis has its ticks.

/// Steps within a power of ten.
const DECIMAL: [f64; 4] = [1.0, 2.0, 2.5, 5.0];
/// Steps in seconds or minutes that people count in.
const SIXTIETHS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0];
/// Ticks that any axis has at most, whatever it is asked for.
const MOST: usize = 64;

/// The distance between ticks so that `low..=high` has at most `most` of them, or none if no distance does.
pub(crate) fn step(low: f64, high: f64, most: usize, sixtieths: bool) -> Option<f64> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return None;
    }
    let most = most.clamp(2, MOST) as f64;
    let fits = |step: f64| ((high / step).floor() - (low / step).ceil() + 1.0) <= most;
    if sixtieths
        && span > 2.0
        && let Some(step) = SIXTIETHS.into_iter().find(|step| fits(*step))
    {
        return Some(step);
    }
    let power = (span / most).log10().floor() as i32;
    (power - 1..=power + 2)
        .flat_map(|power| DECIMAL.map(|step| step * 10f64.powi(power)))
        // Below the values' own precision there is nothing to tell apart.
        .find(|step| fits(*step) && low.abs().max(high.abs()) / step < 1e14)
}

/// Ticks of a linear axis: multiples of 1, 2, 2.5 or 5 times a power of ten within `low..=high`, at most `most` (2 to 64).
///
/// Ends that are no numbers, equal or in the wrong order give no ticks.
pub fn linear(low: f64, high: f64, most: usize) -> Vec<f64> {
    step(low, high, most, false).map_or_else(Vec::new, |step| multiples(low, high, step))
}

/// All multiples of a step within a range. A little slack, so that 0.3 counts as a multiple of 0.1.
pub(crate) fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let slack = 1e-9;
    let first = (low / step - slack).ceil();
    let last = (high / step + slack).floor();
    let count = (last - first).clamp(-1.0, (2 * MOST) as f64);
    (0..=count as i64)
        .filter(|_| count >= 0.0)
        .map(|place| {
            let tick = (first + place as f64) * step;
            if tick == 0.0 { 0.0 } else { tick }
        })
        .collect()
}

/// Ticks of a logarithmic axis: powers of `base` within `low..=high`, every second, third … of them if there were more than
/// `most` (2 to 64), and with base ten also their doubles and fives if there is room.
///
/// Ends that are not above zero, equal or in the wrong order give no ticks.
pub fn logarithmic(low: f64, high: f64, base: u32, most: usize) -> Vec<f64> {
    if !(low > 0.0 && high > low && high.is_finite() && base >= 2) {
        return Vec::new();
    }
    let most = most.clamp(2, MOST);
    let base = f64::from(base);
    let first = (low.ln() / base.ln() - 1e-9).ceil() as i32;
    let last = (high.ln() / base.ln() + 1e-9).floor() as i32;
    let powers: Vec<i32> = (first..=last).collect();
    if base == 10.0 {
        let between = |multiples: &[f64]| -> Vec<f64> {
            (first - 1..=last)
                .flat_map(|power| multiples.iter().map(move |multiple| multiple * 10f64.powi(power)))
                .filter(|tick| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9))
                .collect()
        };
        for multiples in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]] {
            let ticks = between(multiples);
            if ticks.len() <= most && ticks.len() >= 2 {
                return ticks;
            }
        }
    }
    if powers.len() < 2 {
        // Less than a power wide: nothing is lost by counting evenly.
        return linear(low, high, most);
    }
    let every = powers.len().div_ceil(most) as i32;
    powers.into_iter().filter(|power| power.rem_euclid(every) == 0).map(|power| base.powi(power)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_those_that_one_would_draw_by_hand() {
        assert_eq!(linear(0.0, 100.0, 6), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(linear(0.0, 1.0, 5), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(logarithmic(1.0, 1000.0, 10, 4), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(logarithmic(1.0, 64.0, 2, 8), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(logarithmic(1.0, 10.0, 10, 6), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(step(0.0, 60.0, 5, true), Some(15.0));
        assert!(linear(f64::NAN, 1.0, 5).is_empty());
        assert!(linear(2.0, 1.0, 5).is_empty());
        assert!(logarithmic(0.0, 1.0, 10, 5).is_empty());
    }
}
