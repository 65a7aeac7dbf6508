//! What a trace amounts to, as a table for people.

use std::fmt::Write as _;

use super::{Count, Info, Share, Size, Spread};

/// Sizes that are listed: the most frequent.
const SIZES: usize = 8;
/// Volumes that are listed.
const VOLUMES: usize = 10;

/// The table.
pub fn table(info: &Info) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = (head(info, &mut text), requests(info, &mut text), space(info, &mut text), order(info, &mut text));
    text
}

fn head(info: &Info, text: &mut String) -> std::fmt::Result {
    let source = &info.source;
    let compressed = source.compression.map(|name| format!(", {name}")).unwrap_or_default();
    writeln!(text, "{} ({}{compressed})", source.path, source.format)?;
    writeln!(text, "{} requests in {}", info.records, time(info.duration_seconds))?;
    for (count, what) in [
        (source.other_commands, "commands that move no data left out"),
        (source.empty, "requests of nothing left out"),
        (source.other_volumes, "requests of other volumes left out"),
        (source.unanswered, "requests without a completion"),
        (info.out_of_order, "requests that stand behind a later one"),
    ] {
        if count > 0 {
            writeln!(text, "{count} {what}")?;
        }
    }
    if source.last_line_unended {
        writeln!(text, "the last line has no end: its last number may be cut off")?;
    }
    Ok(())
}

fn requests(info: &Info, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "\n{:<7} {:>12} {:>7} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}",
        "", "requests", "%", "bytes", "mean size", "per s", "MB/s", "resp. p50", "p99"
    )?;
    let ops = &info.requests;
    for (name, count) in [("read", &ops.read), ("write", &ops.write), ("trim", &ops.trim), ("flush", &ops.flush)] {
        if count.requests > 0 {
            request_row(name, count, text)?;
        }
    }
    if info.volumes.len() > 1 {
        let mut volumes: Vec<_> = info.volumes.values().collect();
        volumes.sort_by_key(|volume| std::cmp::Reverse(volume.requests));
        writeln!(text, "\n{:<24} {:>12} {:>10} {:>10} {:>10}", "volume", "requests", "read", "written", "span")?;
        for volume in volumes.iter().take(VOLUMES) {
            writeln!(
                text,
                "{:<24} {:>12} {:>10} {:>10} {:>10}",
                volume.name,
                volume.requests,
                bytes(volume.read_bytes as f64),
                bytes(volume.written_bytes as f64),
                bytes(volume.span_bytes as f64)
            )?;
        }
        if volumes.len() > VOLUMES {
            writeln!(text, "and {} more", volumes.len() - VOLUMES)?;
        }
    }
    let total: u64 = info.sizes.iter().map(sum).sum::<u64>() + info.requests_of_other_sizes;
    if total > 0 {
        let mut sizes: Vec<&Size> = info.sizes.iter().collect();
        sizes.sort_by_key(|size| std::cmp::Reverse(sum(size)));
        let percent = |size: &Size| 100.0 * sum(size) as f64 / total as f64;
        let listed: Vec<String> = sizes
            .iter()
            .take(SIZES)
            .map(|size| format!("{} {:.1} %", bytes(size.bytes as f64), percent(size)))
            .collect();
        let rest: f64 = 100.0 - sizes.iter().take(SIZES).map(|size| percent(size)).sum::<f64>();
        let others =
            if sizes.len() > SIZES { format!(", {} others {rest:.1} %", sizes.len() - SIZES) } else { String::new() };
        writeln!(text, "\nsizes          {}{others}", listed.join(", "))?;
        let aligned: Vec<String> = info
            .alignment
            .iter()
            .map(|aligned| format!("{} {:.1} %", bytes(aligned.bytes as f64), aligned.percent))
            .collect();
        writeln!(text, "aligned to     {}", aligned.join(", "))?;
    }
    Ok(())
}

fn sum(size: &Size) -> u64 {
    size.reads + size.writes + size.trims
}

fn request_row(name: &str, count: &Count, text: &mut String) -> std::fmt::Result {
    let percentile = |percent| {
        let spread = count.response_seconds.as_ref();
        spread.and_then(|spread| spread.percentile(percent)).map_or_else(|| "-".into(), time)
    };
    writeln!(
        text,
        "{name:<7} {:>12} {:>7.2} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}",
        count.requests,
        count.percent,
        bytes(count.bytes as f64),
        bytes(count.mean_bytes),
        count.per_second.map_or_else(|| "-".into(), |rate| format!("{rate:.1}")),
        count.bytes_per_second.map_or_else(|| "-".into(), |rate| format!("{:.3}", rate / 1e6)),
        percentile(50.0),
        percentile(99.0)
    )
}

fn space(info: &Info, text: &mut String) -> std::fmt::Result {
    let footprint = &info.footprint;
    if footprint.accesses == 0 {
        return Ok(());
    }
    let how = match footprint.sampled_one_in {
        1 => "counted exactly".into(),
        times => format!("from one in {times} blocks"),
    };
    writeln!(
        text,
        "\nfootprint      {} of {} blocks ({how}): {} read, {} written, {} both; the last request ends at {}",
        bytes(footprint.touched.bytes as f64),
        bytes(footprint.block_bytes as f64),
        bytes(footprint.read.bytes as f64),
        bytes(footprint.written.bytes as f64),
        bytes(footprint.read_and_written.bytes as f64),
        bytes(footprint.span_bytes as f64)
    )?;
    let timeline = &info.timeline;
    let sets = || timeline.rows.iter().map(|row| row.working_set_blocks).filter(|blocks| *blocks > 0);
    let count = sets().count().max(1);
    writeln!(
        text,
        "working set    {} in {} on average, {} at most (±{} %, HyperLogLog)",
        bytes(sets().sum::<u64>() as f64 / count as f64 * footprint.block_bytes as f64),
        time(timeline.interval_seconds),
        bytes(sets().max().unwrap_or(0) as f64 * footprint.block_bytes as f64),
        timeline.working_set_error_percent
    )?;
    writeln!(
        text,
        "hot spots      {:>8} {:>8} {:>8} {:>8} {:>8}   of touched blocks get",
        "0.1 %", "1 %", "5 %", "10 %", "20 %"
    )?;
    for (name, shares) in
        [("accesses", &info.hot_spots.accesses), ("reads", &info.hot_spots.reads), ("writes", &info.hot_spots.writes)]
    {
        if shares.is_empty() {
            continue;
        }
        let cell = |percent| Share::of(shares, percent).map_or_else(|| "-".into(), |share| format!("{share:.1} %"));
        writeln!(
            text,
            "  {name:<12} {:>8} {:>8} {:>8} {:>8} {:>8}",
            cell(0.1),
            cell(1.0),
            cell(5.0),
            cell(10.0),
            cell(20.0)
        )?;
    }
    let overwrites = &info.overwrites;
    if let Some(percent) = overwrites.overwritten_percent {
        writeln!(text, "overwrites     {percent:.1} % of what is written was written before")?;
        if let Some(spread) = &overwrites.interval_seconds {
            writeln!(text, "  after        {}", percentiles(spread, time))?;
        }
        if let Some(spread) = &overwrites.interval_written_bytes {
            writeln!(text, "  after        {} written", percentiles(spread, bytes))?;
        }
    }
    Ok(())
}

fn order(info: &Info, text: &mut String) -> std::fmt::Result {
    if info.footprint.accesses > 0 {
        writeln!(text, "\nsequential     {:>8} {:>8} {:>8}", "all", "reads", "writes")?;
        let cell = |percent: Option<f64>| percent.map_or_else(|| "-".into(), |percent| format!("{percent:.1} %"));
        for share in &info.sequential {
            let name = if share.last == 1 { "behind last".into() } else { format!("of last {}", share.last) };
            writeln!(
                text,
                "  {name:<12} {:>8} {:>8} {:>8}",
                cell(Some(share.percent)),
                cell(share.reads_percent),
                cell(share.writes_percent)
            )?;
        }
    }
    if let Some(spread) = &info.interarrival_seconds {
        writeln!(text, "arrivals       {} apart", percentiles(spread, time))?;
    }
    if !info.bursts.is_empty() {
        writeln!(
            text,
            "\n{:<14} {:>10} {:>10} {:>12} {:>12}",
            "requests in", "mean", "peak", "peak/mean", "dispersion"
        )?;
        for window in &info.bursts {
            writeln!(
                text,
                "  {:<12} {:>10.2} {:>10} {:>12.1} {:>12.1}",
                time(window.seconds),
                window.mean,
                window.peak,
                window.peak_to_mean,
                window.dispersion
            )?;
        }
    }
    Ok(())
}

fn percentiles(spread: &Spread, show: fn(f64) -> String) -> String {
    let listed: Vec<String> = [50.0, 90.0, 99.0, 99.9]
        .into_iter()
        .filter_map(|percent| Some(format!("p{percent} {}", show(spread.percentile(percent)?))))
        .collect();
    format!(
        "mean {}, {}{}max {}",
        show(spread.mean),
        listed.join(", "),
        if listed.is_empty() { "" } else { ", " },
        show(spread.max)
    )
}

/// A time with a unit that fits it.
fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s <= 0.0 => return "0 s".into(),
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s if s < 600.0 => (s, "s"),
        s if s < 36_000.0 => (s / 60.0, "min"),
        s if s < 864_000.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "d"),
    };
    format!("{} {unit}", significant(value))
}

/// Bytes with a binary unit that fits them.
fn bytes(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            return format!("{} {unit}", significant(value));
        }
        value /= 1024.0;
    }
    format!("{} EiB", significant(value))
}

/// Three digits or a little more, without zeros that say nothing.
fn significant(value: f64) -> String {
    let text = match value {
        v if v >= 100.0 => return format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (seconds, text) in [(0.0, "0 s"), (2.5e-6, "2.5 µs"), (0.001, "1 ms"), (1.0, "1 s"), (7200.0, "120 min")] {
            assert_eq!(time(seconds), text);
        }
        for (value, text) in [(512.0, "512 B"), (4096.0, "4 KiB"), (1.5 * 1048576.0, "1.5 MiB"), (0.0, "0 B")] {
            assert_eq!(bytes(value), text);
        }
    }
}
