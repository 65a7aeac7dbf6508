//! When something is steady: the rule of the SNIA Solid State Storage Performance Test Specification.
//!
//! Over a window of the last rounds, the range of the tracked figure must lie within a share of its mean, and so must the rise
//! or fall of the least-squares line through it.

use serde::{Deserialize, Serialize};

/// The rule's bounds; without any, those of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Rounds of the window.
    #[serde(default = "five")]
    pub window: u32,
    /// Most rounds; what is not steady by then is not steady.
    #[serde(default = "twenty_five")]
    pub at_most: u32,
    /// Largest less smallest figure of the window, at most so many per cent of the mean.
    #[serde(default = "twenty")]
    pub range_percent: f64,
    /// Rise or fall of the least-squares line over the window, at most so many per cent of the mean.
    #[serde(default = "ten")]
    pub slope_percent: f64,
}

fn five() -> u32 {
    5
}

fn twenty_five() -> u32 {
    25
}

fn twenty() -> f64 {
    20.0
}

fn ten() -> f64 {
    10.0
}

impl Default for Rule {
    fn default() -> Rule {
        Rule { window: five(), at_most: twenty_five(), range_percent: twenty(), slope_percent: ten() }
    }
}

/// What the rule says of a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Number of the window's first round, from 1.
    pub first_round: u32,
    /// Figures of its rounds.
    pub values: Vec<f64>,
    /// Their mean: what is reported.
    pub mean: f64,
    /// Largest less smallest.
    pub range: f64,
    /// Most that it may be.
    pub range_allowed: f64,
    /// Rise of the least-squares line from one round to the next.
    pub slope: f64,
    /// The line at round 0.
    pub intercept: f64,
    /// How far the line rises or falls from the window's first round to its last.
    pub excursion: f64,
    /// Most that it may be.
    pub excursion_allowed: f64,
    /// Both are within their bounds.
    pub steady: bool,
}

impl Rule {
    /// The rule in words.
    pub fn text(&self) -> String {
        format!(
            "window of {} rounds, at most {}; range at most {} % of the mean, rise or fall of the least-squares line at most {} %",
            self.window, self.at_most, self.range_percent, self.slope_percent
        )
    }

    /// The last window of these rounds; `None` when there are fewer than a window has.
    pub fn window(&self, rounds: &[f64]) -> Option<Window> {
        let count = self.window.max(2) as usize;
        let first = rounds.len().checked_sub(count)?;
        let values = &rounds[first..];
        let number = count as f64;
        let mean = values.iter().sum::<f64>() / number;
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
        // Rounds are numbered from 1.
        let at = |index: usize| (first + index + 1) as f64;
        let middle = (at(0) + at(count - 1)) / 2.0;
        let products: f64 = values.iter().enumerate().map(|(index, value)| (at(index) - middle) * (value - mean)).sum();
        let squares: f64 = (0..count).map(|index| (at(index) - middle).powi(2)).sum();
        let slope = products / squares;
        let rise = slope * (number - 1.0);
        let excursion = rise.abs();
        let (range, range_allowed) = (high - low, self.range_percent / 100.0 * mean.abs());
        let excursion_allowed = self.slope_percent / 100.0 * mean.abs();
        // A hair more, because twenty per cent of a mean is not exact in binary.
        let within = |measured: f64, allowed: f64| measured <= allowed * (1.0 + 1e-12);
        Some(Window {
            first_round: first as u32 + 1,
            values: values.to_vec(),
            mean,
            range,
            range_allowed,
            slope,
            intercept: mean - slope * middle,
            excursion,
            excursion_allowed,
            steady: within(range, range_allowed) && within(excursion, excursion_allowed),
        })
    }

    /// What the rule says of a course over time: the rates of its last fifth, cut into as many slices of one length as the window has
    /// rounds. What is counted is given interval by interval, as seconds and number; an interval on the border of two slices counts in
    /// both by its share, so that a last interval which is shorter than the others weighs no more than it lasted. `None` where there are
    /// fewer intervals in the last fifth than slices.
    pub fn course(&self, intervals: &[(f64, f64)]) -> Option<Window> {
        let slices = self.window.max(2) as usize;
        let total: f64 = intervals.iter().map(|(seconds, _)| seconds).sum();
        let (from, length) = (total * 0.8, total * 0.2 / slices as f64);
        let mut counts = vec![0.0; slices];
        let (mut begin, mut within) = (0.0, 0);
        for (seconds, count) in intervals.iter().filter(|(seconds, _)| *seconds > 0.0) {
            let end = begin + seconds;
            within += usize::from((begin + end) / 2.0 > from);
            for (at, slice) in counts.iter_mut().enumerate() {
                let (low, high) = (from + at as f64 * length, from + (at + 1) as f64 * length);
                let shared = (end.min(high) - begin.max(low)).max(0.0);
                *slice += count * shared / seconds;
            }
            begin = end;
        }
        if within < slices || length <= 0.0 {
            return None;
        }
        let rates: Vec<f64> = counts.iter().map(|count| count / length).collect();
        self.window(&rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: mean 100, range 20 of 20 allowed; slope (-2*90 - 100 + 100 + 2*110) / 10 = 4, excursion 16 of 10.
    #[test]
    fn a_range_within_bounds_is_not_enough_when_the_line_rises() {
        let window = Rule::default().window(&[90.0, 100.0, 100.0, 100.0, 110.0]).expect("five rounds");
        assert_eq!((window.mean, window.range, window.range_allowed), (100.0, 20.0, 20.0));
        assert_eq!((window.slope, window.excursion, window.excursion_allowed), (4.0, 16.0, 10.0));
        assert_eq!((window.intercept, window.first_round), (88.0, 1));
        assert!(!window.steady);
    }

    /// Mean 100, range exactly 20; slope (-2*100 - 110 + 90 + 2*100) / 10 = -2, excursion 8.
    #[test]
    fn the_bounds_themselves_are_within() {
        let window = Rule::default().window(&[7.0, 100.0, 110.0, 100.0, 90.0, 100.0]).expect("five rounds");
        assert_eq!((window.first_round, window.mean, window.range), (2, 100.0, 20.0));
        assert_eq!((window.slope, window.excursion), (-2.0, 8.0));
        // At round 4, the middle of rounds 2 to 6, the line is at the mean.
        assert_eq!(window.intercept, 108.0);
        assert!(window.steady);
    }

    /// Mean 100, slope 2.5: excursion exactly 10. A hair steeper is not steady.
    #[test]
    fn a_slope_of_exactly_ten_per_cent_is_steady() {
        let line = |slope: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|at| 100.0 + slope * at);
        assert!(Rule::default().window(&line(2.5)).expect("five rounds").steady);
        assert!(!Rule::default().window(&line(2.51)).expect("five rounds").steady);
        assert!(!Rule::default().window(&line(-2.51)).expect("five rounds").steady);
    }

    /// Flat but for one outlier: mean 104, range 22 of 20.8 allowed.
    #[test]
    fn one_outlier_breaks_the_range() {
        let window = Rule::default().window(&[100.0, 100.0, 121.0, 100.0, 99.0]).expect("five rounds");
        assert_eq!(window.mean, 104.0);
        assert_eq!(window.range, 22.0);
        assert!(!window.steady && window.excursion <= window.excursion_allowed);
    }

    #[test]
    fn too_few_rounds_have_no_window() {
        assert_eq!(Rule::default().window(&[1.0; 4]), None);
        assert!(Rule::default().window(&[1.0; 5]).expect("five").steady);
        assert!(Rule::default().window(&[0.0; 5]).expect("five").steady);
    }

    #[test]
    fn a_course_is_judged_by_its_last_fifth() {
        let mut intervals = vec![(2.0, 2_000.0); 80];
        intervals.extend([(2.0, 200.0), (2.0, 208.0)].repeat(10));
        let window = Rule::default().course(&intervals).expect("enough intervals");
        let near = |value: &f64| (value - 102.0).abs() < 1e-9;
        assert!(window.values.iter().all(near), "{:?}", window.values);
        assert!(window.steady);
        assert_eq!(Rule::default().course(&intervals[..20]), None);
        assert_eq!(Rule::default().course(&[]), None);
    }

    /// The last interval ends with the step: a thousandth of a second in which a hundred times as much was served weighs a thousandth of a
    /// second. Counted as one figure like the others it would double the last slice.
    #[test]
    fn a_stump_at_the_end_weighs_what_it_lasted() {
        let mut intervals = vec![(1.0, 100.0); 100];
        intervals.push((0.001, 10.0));
        let window = Rule::default().course(&intervals).expect("enough intervals");
        assert!(window.steady, "{window:?}");
        assert!((window.values[4] - 100.0).abs() < 3.0, "{window:?}");
    }
}
