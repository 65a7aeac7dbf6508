//! Neighbouring intervals put together.

use super::record::{Activity, Interval};
use crate::stats::{Damaged, Kind, Pool};

/// Puts neighbours together until there are at most `most`, or all are alike in length at twice what they were.
///
/// # Errors
/// A histogram is damaged.
pub fn coarsen(mut series: Vec<Interval>, most: usize) -> Result<Vec<Interval>, Damaged> {
    if series.len() <= most.max(1) {
        return Ok(series);
    }
    let together = series.len().div_ceil(most.max(1));
    let mut coarse = Vec::with_capacity(most);
    while !series.is_empty() {
        let rest = series.split_off(together.min(series.len()));
        coarse.push(joined(&series)?);
        series = rest;
    }
    Ok(coarse)
}

/// Some intervals, one behind the other, as one.
fn joined(group: &[Interval]) -> Result<Interval, Damaged> {
    let mut classes: Vec<(Kind, u64)> =
        group.iter().flat_map(|one| &one.cells).map(|cell| (cell.op, cell.size)).collect();
    classes.sort_unstable();
    classes.dedup();
    let mut cells = Vec::with_capacity(classes.len());
    for (op, size) in classes {
        let of = group.iter().flat_map(|one| &one.cells).filter(|cell| (cell.op, cell.size) == (op, size));
        cells.extend(Pool::of(of)?.cell(op, size));
    }
    let activities: Vec<&Activity> = group.iter().filter_map(|one| one.device.as_ref()).collect();
    let device = activities.last().map(|last| Activity {
        host_written_bytes: activities.iter().map(|one| one.host_written_bytes).sum(),
        media_written_bytes: activities.iter().map(|one| one.media_written_bytes).sum(),
        joules: activities.iter().map(|one| one.joules).sum(),
        celsius: last.celsius,
    });
    Ok(Interval {
        end_seconds: group.last().map_or(0.0, |one| one.end_seconds),
        seconds: group.iter().map(|one| one.seconds).sum(),
        cells,
        device,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Cell, Samples};

    fn interval(at: u64) -> Interval {
        let mut samples = Samples::new();
        (0..100).for_each(|more| samples.record(at * 1000 + more, 512));
        let cells = Cell::new(Kind::Write, 512, &samples).into_iter().collect();
        let device =
            Some(Activity { host_written_bytes: at, joules: 1.0, celsius: Some(at as f64), ..Activity::default() });
        Interval { end_seconds: (at + 1) as f64, seconds: 1.0, cells, device }
    }

    #[test]
    fn nothing_is_lost_when_neighbours_are_put_together() {
        let fine: Vec<Interval> = (0..10).map(interval).collect();
        let all = Pool::of(fine.iter().flat_map(|one| &one.cells)).expect("sound");
        let coarse = coarsen(fine.clone(), 4).expect("sound");
        assert_eq!(coarse.iter().map(|one| one.seconds).collect::<Vec<_>>(), [3.0, 3.0, 3.0, 1.0]);
        assert_eq!(coarse.iter().map(|one| one.end_seconds).collect::<Vec<_>>(), [3.0, 6.0, 9.0, 10.0]);
        let merged = Pool::of(coarse.iter().flat_map(|one| &one.cells)).expect("sound");
        assert_eq!((merged.bins(), merged.requests()), (all.bins(), 1000));
        let first = coarse[0].device.expect("a device");
        assert_eq!((first.host_written_bytes, first.joules, first.celsius), (3, 3.0, Some(2.0)));
        assert_eq!(coarsen(fine.clone(), 10).expect("sound"), fine);
    }
}
