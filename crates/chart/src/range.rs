//! From the data to the ends of an axis.

use crate::axis::{Axis, Scale};

/// Beyond this nothing is drawn: differences of such numbers are no numbers any more.
const HUGE: f64 = 1e300;

/// Whether a value has a place on an axis.
pub(crate) fn usable(value: f64, axis: &Axis) -> bool {
    value.is_finite() && value.abs() < HUGE && (axis.scale == Scale::Linear || value > 1.0 / HUGE)
}

/// Lowest and highest of the values that have a place on an axis.
pub(crate) fn extent(values: impl IntoIterator<Item = f64>, axis: &Axis) -> Option<(f64, f64)> {
    values.into_iter().filter(|value| usable(*value, axis)).fold(None, |found, value| match found {
        None => Some((value, value)),
        Some((low, high)) => Some((f64::min(low, value), f64::max(high, value))),
    })
}

/// The ends of an axis: as asked for, or around the data. `zero` says whether a linear axis includes zero.
pub(crate) fn ends(extent: Option<(f64, f64)>, axis: &Axis, zero: bool) -> (f64, f64) {
    if let Some((low, high)) = axis.bounds
        && usable(low, axis)
        && usable(high, axis)
        && low < high
    {
        return (low, high);
    }
    let (mut low, mut high) = extent.unwrap_or((0.0, 1.0));
    if axis.scale == Scale::Linear {
        if zero && !axis.from_data {
            low = low.min(0.0);
            high = high.max(0.0);
        }
        if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (low - if zero && low == 0.0 { 0.0 } else { room }, high + room);
        }
        return (low, high);
    }
    if extent.is_none() {
        (low, high) = (1.0, 10.0);
    }
    if high / low < 2.0 {
        let middle = (low * high).sqrt();
        (low, high) = (low.min(middle / 1.5), high.max(middle * 1.5));
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Unit;

    #[test]
    fn ends_surround_the_data_and_are_never_equal() {
        let axis = Axis::new("", Unit::Plain);
        assert_eq!(ends(extent([3.0, 7.0, f64::NAN], &axis), &axis, true), (0.0, 7.0));
        assert_eq!(ends(extent([0.0], &axis), &axis, true), (0.0, 1.0));
        assert_eq!(ends(extent([f64::MAX], &axis), &axis, true), (0.0, 1.0));
        let data = axis.clone().from_data();
        assert_eq!(ends(extent([5.0, 5.0], &data), &data, true), (4.5, 5.5));
        let log = axis.log();
        let (low, high) = ends(extent([-1.0, 0.0, 5.0], &log), &log, true);
        assert!(low > 0.0 && low < 5.0 && high > 5.0);
    }
}
