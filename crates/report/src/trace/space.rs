//! Where a trace goes: places, footprint, hot spots.

use chart::{Axis, Block, Chart, Plot, Series, Unit};
use trace::info::{Info, Part, Row, Share};

use super::drawn;

/// Charts over addresses.
pub(super) fn blocks(info: &Info) -> Vec<Block> {
    let charts = [places(info), footprint(info), hot_spots(info)];
    charts.into_iter().filter_map(|chart| drawn(info, chart)).collect()
}

/// Requests by the place where they begin.
fn places(info: &Info) -> Chart {
    let addresses = &info.addresses;
    let line = |name: &str, of: fn(&Part) -> u64| {
        // Parts without requests are not listed, and yet are there.
        let last = addresses.parts.last().map_or(0, |part| part.offset / addresses.part_bytes + 1);
        let mut points: Vec<(f64, f64)> = (0..last)
            .map(|at| (at as f64 * addresses.part_bytes as f64 + addresses.part_bytes as f64 / 2.0, 0.0))
            .collect();
        for part in &addresses.parts {
            if let Some(point) = points.get_mut((part.offset / addresses.part_bytes) as usize) {
                point.1 = of(part) as f64;
            }
        }
        Series::line(name, points)
    };
    let all = [("reads", (|part| part.reads) as fn(&Part) -> u64), ("writes", |part| part.writes)];
    let there = all.into_iter().filter(|(_, of)| addresses.parts.iter().any(|part| of(part) > 0));
    let volumes = if info.volumes.len() > 1 { " Several volumes lie on top of each other." } else { "" };
    Chart {
        title: "Requests over the address space".into(),
        sees: format!(
            "How many requests begin in each part of {}.{volumes}",
            super::spoken(&Unit::Bytes, addresses.part_bytes as f64)
        ),
        x: Axis::new("Address", Unit::Bytes),
        y: Axis::new("Requests in the part", Unit::count("")),
        plot: Plot::Lines(there.map(|(name, of)| line(name, of)).collect()),
        wide: true,
        ..Chart::default()
    }
}

/// What was touched up to each time, and what in each interval.
fn footprint(info: &Info) -> Chart {
    let (width, block) = (info.timeline.interval_seconds, info.footprint.block_bytes as f64);
    let line = |name: String, at: f64, of: fn(&Row) -> u64| {
        let points = info.timeline.rows.iter().map(|row| (row.start_seconds + at, of(row) as f64 * block));
        Series::line(name, points.collect())
    };
    let interval = super::spoken(&Unit::Seconds, width);
    Chart {
        title: "Footprint and working set".into(),
        sees: format!(
            "How much different space was read or written up to each time, and how much of it within each {interval}."
        ),
        x: Axis::new("Time", Unit::Elapsed),
        y: Axis::new("Different blocks", Unit::Bytes),
        plot: Plot::Lines(vec![
            line("up to here".into(), width, |row| row.footprint_blocks),
            line(format!("within {interval}"), width / 2.0, |row| row.working_set_blocks),
        ]),
        ..Chart::default()
    }
}

/// Which share of accesses goes to which share of blocks.
fn hot_spots(info: &Info) -> Chart {
    let spots = &info.hot_spots;
    let line = |(name, shares): (&str, &Vec<Share>)| {
        let points = shares.iter().map(|share| (share.blocks_percent, share.accesses_percent));
        Series::line(name, points.collect())
    };
    let all = [("all", &spots.accesses), ("reads", &spots.reads), ("writes", &spots.writes)];
    let there = all.into_iter().filter(|(_, shares)| !shares.is_empty());
    Chart {
        title: "Hot spots".into(),
        sees: format!(
            "Which share of accesses goes to the most accessed blocks, of all that were touched ({}). The higher on the left, the more a small cache holds.",
            super::counted(info)
        ),
        x: Axis::new("Most accessed blocks", Unit::Percent).log(),
        y: Axis::new("Share of accesses", Unit::Percent).between(0.0, 100.0),
        plot: Plot::Lines(there.map(line).collect()),
        ..Chart::default()
    }
}
