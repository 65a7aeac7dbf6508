//! From points to outlines: gaps, thinning, markers.

use std::collections::HashSet;
use std::fmt::Write;

use super::canvas::px;
use super::ruler::Ruler;
use crate::axis::Axis;
use crate::range::usable;
use crate::theme::HUES;

/// Points with a place on both axes, in pixels; a gap wherever one has none.
pub(super) fn placed(points: &[(f64, f64)], axes: (&Axis, &Axis), rulers: (&Ruler, &Ruler)) -> Vec<Vec<(f64, f64)>> {
    points
        .split(|(x, y)| !usable(*x, axes.0) || !usable(*y, axes.1))
        .filter(|run| !run.is_empty())
        .map(|run| run.iter().map(|(x, y)| (rulers.0.at(*x), rulers.1.at(*y))).collect())
        .collect()
}

/// Fewer points that draw the same: of each pixel column the first, the lowest, the highest and the last.
pub(super) fn thinned(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let span = run.last().map_or(0.0, |last| last.0) - run.first().map_or(0.0, |first| first.0);
    let ordered = run.windows(2).all(|pair| pair[0].0 <= pair[1].0);
    if !ordered || run.len() < 64 || (run.len() as f64) < span * 2.0 {
        return run.to_vec();
    }
    let mut kept = Vec::new();
    for column in run.chunk_by(|one, other| one.0.floor() == other.0.floor()) {
        let place = |better: fn(f64, f64) -> bool| {
            (1..column.len()).fold(0, |best, at| if better(column[at].1, column[best].1) { at } else { best })
        };
        let mut places = [0, place(|new, old| new < old), place(|new, old| new > old), column.len() - 1];
        places.sort_unstable();
        for (at, place) in places.iter().enumerate() {
            if at == 0 || places[at - 1] != *place {
                kept.push(column[*place]);
            }
        }
    }
    kept
}

/// An open line through points.
pub(super) fn line(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(out, "{}{} {}", if at == 0 { 'M' } else { 'L' }, px(*x), px(*y));
    }
    // A line of one point would not show.
    if points.len() == 1 {
        out.push_str("h0.1");
    }
    out
}

/// The area between a lower and an upper line.
pub(super) fn area(low: &[(f64, f64)], high: &[(f64, f64)]) -> String {
    if low.is_empty() || high.is_empty() {
        return String::new();
    }
    let mut out = line(high);
    for (x, y) in low.iter().rev() {
        let _ = write!(out, "L{} {}", px(*x), px(*y));
    }
    out.push('Z');
    out
}

/// Many dots, those that would cover each other only once.
pub(super) fn dots(points: &[(f64, f64)]) -> String {
    let mut seen = HashSet::new();
    let mut out = String::new();
    for (x, y) in points {
        if seen.insert(((x * 1.5).round() as i64, (y * 1.5).round() as i64)) {
            let _ = write!(out, "M{} {}h0", px(*x), px(*y));
        }
    }
    out
}

/// A marker's outline around a point; each hue has its own.
pub(super) fn marker(hue: usize, (x, y): (f64, f64), size: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let mut out = line(&corners.iter().map(|(dx, dy)| (x + dx * size, y + dy * size)).collect::<Vec<_>>());
        out.push('Z');
        out
    };
    match hue % HUES {
        1 => polygon(&[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)]),
        2 => polygon(&[(0.0, -1.15), (1.05, 0.8), (-1.05, 0.8)]),
        3 => diamond((x, y), size),
        4 => polygon(&[(0.0, 1.15), (1.05, -0.8), (-1.05, -0.8)]),
        5 => polygon(&[
            (-0.4, -1.1),
            (0.4, -1.1),
            (0.4, -0.4),
            (1.1, -0.4),
            (1.1, 0.4),
            (0.4, 0.4),
            (0.4, 1.1),
            (-0.4, 1.1),
            (-0.4, 0.4),
            (-1.1, 0.4),
            (-1.1, -0.4),
            (-0.4, -0.4),
        ]),
        6 => polygon(&[(-1.15, 0.0), (0.8, -1.05), (0.8, 1.05)]),
        7 => polygon(&[(1.15, 0.0), (-0.8, -1.05), (-0.8, 1.05)]),
        8 => polygon(&[(-1.05, -1.0), (1.05, -1.0), (-1.05, 1.0), (1.05, 1.0)]),
        _ => {
            let (left, radius, diameter) = (px(x - size), px(size), px(2.0 * size));
            format!("M{left} {}a{radius} {radius} 0 1 1 {diameter} 0a{radius} {radius} 0 1 1 -{diameter} 0Z", px(y))
        }
    }
}

/// The marker of published figures.
pub(super) fn diamond((x, y): (f64, f64), size: f64) -> String {
    let reach = size * 1.25;
    let mut out = line(&[(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]);
    out.push('Z');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes_of_each_column() {
        let run: Vec<(f64, f64)> = (0..10_000).map(|at| (f64::from(at) / 100.0, f64::from(at * 7919 % 1000))).collect();
        let thin = thinned(&run);
        assert!(thin.len() <= 404, "{}", thin.len());
        let most = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
        assert_eq!(most(&thin), most(&run));
        assert_eq!((thin.first(), thin.last()), (run.first(), run.last()));
    }

    #[test]
    fn what_has_no_place_is_a_gap() {
        let axis = Axis::new("", crate::number::Unit::Plain);
        let ruler = Ruler::new(&axis, (0.0, 10.0), 5, true).placed(0.0, 100.0);
        let points = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (f64::INFINITY, 1.0), (3.0, 1e305)];
        assert_eq!(placed(&points, (&axis, &axis), (&ruler, &ruler)), [vec![(0.0, 10.0)], vec![(20.0, 30.0)]]);
    }
}
