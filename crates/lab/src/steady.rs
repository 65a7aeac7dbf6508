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
        let excursion = (slope * (number - 1.0)).abs();
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

    /// What the rule says of a course of figures over time: its last fifth, cut into as many slices as the window has rounds. `None` where
    /// there are too few figures for that.
    pub fn course(&self, figures: &[f64]) -> Option<Window> {
        let slices = self.window.max(2) as usize;
        let last = &figures[figures.len() - figures.len() / 5..];
        if last.len() < slices {
            return None;
        }
        let cut = |at: usize| at * last.len() / slices;
        let means: Vec<f64> = (0..slices)
            .map(|at| &last[cut(at)..cut(at + 1)])
            .map(|slice| slice.iter().sum::<f64>() / slice.len() as f64)
            .collect();
        self.window(&means)
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
        let mut figures = vec![1_000.0; 80];
        figures.extend([100.0, 104.0].repeat(10));
        let window = Rule::default().course(&figures).expect("enough figures");
        assert_eq!(window.values, [102.0; 5]);
        assert!(window.steady);
        assert_eq!(Rule::default().course(&figures[..24]), None);
    }
}
