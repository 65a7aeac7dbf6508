//! Tables of a trace, and the charts that belong to them: what is asked, and in which order.

use chart::{Axis, BarSeries, Block, Cell, Chart, Column, Plot, Table, Unit};
use trace::info::{Info, Size, Spread};

use super::{drawn, kinds};

/// Sizes that a chart shows: the most frequent. What is left is one more bar.
const SIZES: usize = 15;
/// Volumes that are listed.
const VOLUMES: usize = 25;
/// Percentiles that are listed.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

fn dash(value: Option<String>) -> Cell {
    Cell::new(value.unwrap_or_else(|| "–".into()))
}

fn whole(number: u64) -> String {
    chart::digits(number as f64, 15)
}

fn percent(value: f64) -> String {
    Unit::Percent.one((value * 100.0).round() / 100.0)
}

/// Requests by what they do.
pub(super) fn requests(info: &Info) -> Table {
    let answered = kinds(info).iter().any(|(_, count)| count.response_seconds.is_some());
    let mut columns = vec![Column::text("Requests")];
    columns.extend(["number", "share", "bytes", "mean size", "a second", "throughput"].into_iter().map(Column::number));
    if answered {
        columns.extend(["median", "p99", "maximum"].into_iter().map(|name| Column::number(name).under("response")));
    }
    let rows = kinds(info).into_iter().map(|(name, count)| {
        let mut row = vec![
            Cell::head(name),
            Cell::new(whole(count.requests)),
            Cell::new(percent(count.percent)),
            Cell::new(Unit::Bytes.one(count.bytes as f64)),
            Cell::new(Unit::Bytes.one(count.mean_bytes)),
            dash(count.per_second.map(|rate| Unit::count("").one(rate))),
            dash(count.bytes_per_second.map(|rate| Unit::BytesPerSecond.one(rate))),
        ];
        if answered {
            let response = count.response_seconds.as_ref();
            let of = |percent| response.and_then(|spread| spread.percentile(percent));
            row.extend([of(50.0), of(99.0), response.map(|spread| spread.max)].map(|seconds| dash(seconds.map(time))));
        }
        row
    });
    Table { caption: "Requests by what they do".into(), rows: rows.collect(), columns, ..Table::default() }
}

fn time(seconds: f64) -> String {
    Unit::Seconds.one(seconds)
}

/// Volumes with the most requests.
pub(super) fn volumes(info: &Info) -> Table {
    let mut volumes: Vec<_> = info.volumes.values().collect();
    volumes.sort_by_key(|volume| std::cmp::Reverse(volume.requests));
    let left = volumes.len().saturating_sub(VOLUMES);
    let row = |volume: &&trace::info::Volume| {
        let bytes = [volume.read_bytes, volume.written_bytes, volume.span_bytes];
        let mut row = vec![Cell::head(&volume.name), Cell::new(whole(volume.requests))];
        row.extend(bytes.map(|bytes| Cell::new(Unit::Bytes.one(bytes as f64))));
        row
    };
    let mut columns = vec![Column::text("Volume")];
    columns.extend(["requests", "read", "written", "reaches to"].into_iter().map(Column::number));
    let more = if left > 0 { format!(", {left} more are in the JSON of --json") } else { String::new() };
    let caption = format!("Volumes, those with the most requests first{more}");
    Table { caption, columns, rows: volumes.iter().take(VOLUMES).map(row).collect(), ..Table::default() }
}

/// Sizes and alignment.
pub(super) fn sizes(info: &Info) -> Vec<Block> {
    let sum = |size: &Size| size.reads + size.writes + size.trims;
    let total: u64 = info.sizes.iter().map(sum).sum::<u64>() + info.requests_of_other_sizes;
    if total == 0 {
        return Vec::new();
    }
    let mut often: Vec<&Size> = info.sizes.iter().collect();
    often.sort_by_key(|size| std::cmp::Reverse(sum(size)));
    let (shown, rest) = often.split_at(often.len().min(SIZES));
    let mut shown = shown.to_vec();
    shown.sort_by_key(|size| size.bytes);
    let share = |number: u64| 100.0 * number as f64 / total as f64;
    let mut names: Vec<String> = shown.iter().map(|size| Unit::Bytes.one(size.bytes as f64)).collect();
    let others = info.requests_of_other_sizes > 0 || !rest.is_empty();
    names.extend(others.then(|| "others".to_string()));
    let mut series = Vec::new();
    for (name, of) in [
        ("reads", (|size| size.reads) as fn(&Size) -> u64),
        ("writes", |size| size.writes),
        ("trims", |size| size.trims),
    ] {
        if info.sizes.iter().all(|size| of(size) == 0) {
            continue;
        }
        let mut values: Vec<f64> = shown.iter().map(|size| share(of(size))).collect();
        values.extend(others.then(|| share(rest.iter().map(|size| of(size)).sum())));
        series.push(BarSeries::new(name, values));
    }
    let chart = Chart {
        title: "Sizes of requests".into(),
        sees: "Which sizes requests have: each bar is a share of all of them.".into(),
        x: Axis::named("Size", names),
        y: Axis::new("Share of requests", Unit::Percent),
        plot: Plot::Bars(series),
        wide: true,
        ..Chart::default()
    };
    let mut blocks: Vec<Block> = drawn(info, chart).into_iter().collect();
    let rows = info
        .alignment
        .iter()
        .map(|aligned| vec![Cell::head(Unit::Bytes.one(aligned.bytes as f64)), Cell::new(percent(aligned.percent))]);
    blocks.push(Block::Table(Table {
        caption: "Alignment: requests whose first and last byte lie on multiples of so many bytes".into(),
        columns: vec![Column::text("Multiples of"), Column::number("share of requests")],
        rows: rows.collect(),
        ..Table::default()
    }));
    blocks
}

/// What follows on what, and what is written again.
pub(super) fn order(info: &Info) -> Vec<Block> {
    let mut blocks = Vec::new();
    if info.footprint.accesses > 0 {
        let rows = info.sequential.iter().map(|share| {
            let what = match share.last {
                1 => "the last one".to_string(),
                several => format!("one of the last {several}"),
            };
            vec![
                Cell::head(what),
                Cell::new(percent(share.percent)),
                dash(share.reads_percent.map(percent)),
                dash(share.writes_percent.map(percent)),
            ]
        });
        let mut columns = vec![Column::text("Begins where … ended")];
        columns.extend(["all", "reads", "writes"].into_iter().map(Column::number));
        blocks.push(Block::Table(Table {
            caption: "Sequential requests: several streams side by side show in the second line only".into(),
            columns,
            rows: rows.collect(),
            ..Table::default()
        }));
    }
    let mut rows = Vec::new();
    let mut add = |name: &str, spread: &Option<Spread>, unit: Unit| {
        let Some(spread) = spread else { return };
        let mut row = vec![Cell::head(name), Cell::new(whole(spread.samples)), Cell::new(unit.one(spread.mean))];
        row.extend(PERCENTS.map(|percent| dash(spread.percentile(percent).map(|value| unit.one(value)))));
        row.push(Cell::new(unit.one(spread.max)));
        rows.push(row);
    };
    add("time from one request to the next", &info.interarrival_seconds, Unit::Seconds);
    add("time until a block is written again", &info.overwrites.interval_seconds, Unit::Elapsed);
    add("written meanwhile, by the whole trace", &info.overwrites.interval_written_bytes, Unit::Bytes);
    if !rows.is_empty() {
        let mut columns = vec![Column::text("Distance"), Column::number("number"), Column::number("mean")];
        columns.extend(PERCENTS.map(|percent| Column::number(format!("p{percent}"))));
        columns.push(Column::number("maximum"));
        let again = info.overwrites.overwritten_percent.map_or_else(String::new, |share| {
            format!(". {} of what is written had been written before", percent(share).replace('\u{a0}', " "))
        });
        blocks.push(Block::Table(Table { caption: format!("Distances{again}"), columns, rows, ..Table::default() }));
    }
    blocks
}
