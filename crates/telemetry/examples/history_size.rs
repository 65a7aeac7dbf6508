//! How large the history becomes: files are filled as the service would in two years, and rows and bytes are printed.
//!
//! `cargo run --release -p openvsl-telemetry --example history_size`. Single seconds are written only where they are kept in the end, one in each
//! minute before that and one in each hour before those.

use std::path::Path;

use telemetry::table::{self, Row};
use telemetry::{History, KEEP, Of, Second, SeriesKey, Unit, Values};

/// Where the two years end, seconds since 1970.
const END: u64 = 1_800_000_000;

/// A device's second: everything that is told of an emulated card under load, with hardly two values alike; or what is told of a plain device that
/// nobody uses.
fn second(busy: bool, at: u64) -> Values {
    let known = |name: &str| busy || !(name.ends_with("_us") || name == "write_amplification");
    let modelled = |metric: &Row| metric.source == telemetry::Source::Modelled || metric.name.starts_with("pacing");
    let value = |metric: &Row| match metric.unit {
        Unit::Flag => 0.0,
        Unit::Bytes | Unit::Count => (at % 1000) as f64 * 4096.0,
        _ if busy => (at % 9973) as f64 * 1.000_1 + 0.1,
        Unit::Percent => 99.7,
        _ => 0.0,
    };
    let metrics = table::of(Of::Device);
    let told = metrics.filter(|metric| known(metric.name) && (busy || !modelled(metric)));
    told.map(|metric| (metric.name, value(metric))).collect()
}

fn fill(path: &Path, busy: bool) -> Result<(), telemetry::Error> {
    let mut history = History::open(path)?;
    let [seconds, minutes, hours] = KEEP;
    let each_hour = (END - hours..END - minutes).step_by(3600);
    let each_minute = (END - minutes..END - seconds).step_by(60);
    for at in each_hour.chain(each_minute).chain(END - seconds..END) {
        let second = Second { values: second(busy, at), ..Second::default() };
        history.add(at, &[(SeriesKey::device("device"), "device".into(), second)])?;
    }
    let rows: u64 = history.series()?.iter().map(|series| series.rows).sum();
    history.close()?;
    let bytes = std::fs::metadata(path).map_or(0, |data| data.len());
    let kind = if busy { "an emulated card under load" } else { "a plain device at rest" };
    println!("{kind}: {rows} rows, {bytes} bytes, {} a row", bytes / rows.max(1));
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    for busy in [true, false] {
        fill(&directory.path().join(format!("{busy}.db")), busy)?;
    }
    Ok(())
}
