//! `vsl top`: what devices do, second by second.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use daemon::Failure;
use daemon::api::{DeviceSample, MetricView, Sample};
use telemetry::Unit;
use telemetry::table::{self, Column, Row};

use crate::args::manage::Top;
use crate::output::{Output, raw};

/// How often the service is asked whether there is a new second.
const POLL: Duration = Duration::from_millis(250);

pub fn top(args: &Top, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    if args.metrics {
        let metrics: Vec<MetricView> = client.get("/telemetry/metrics")?;
        return output.result(&metrics, || {
            let line = |metric: &MetricView| {
                format!(
                    "{:<26}  {:<8}  {:<8}  {:<9}  {}\n",
                    metric.name, metric.of, metric.unit, metric.source, metric.meaning
                )
            };
            metrics.iter().map(line).collect()
        });
    }
    let screen = std::io::stdout().is_terminal();
    if args.once || output.json || !screen {
        let mut sample: Sample = client.get("/telemetry")?;
        // Nothing was measured before the service's first second is over.
        while sample.at_ms == 0 {
            std::thread::sleep(POLL);
            sample = client.get("/telemetry")?;
        }
        return output.result(&sample, || text(&sample));
    }
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .map_err(|error| Failure::failed(format!("signals: {error}")))?;
    }
    let mut shown = 0;
    let mut last = String::new();
    while !ended.load(Ordering::Relaxed) {
        match client.get::<Sample>("/telemetry") {
            Ok(sample) if sample.at_ms != shown => {
                shown = sample.at_ms;
                last = text(&sample);
                draw(&last)?;
            }
            Ok(_) => {}
            // The first time there is nothing that could be shown meanwhile.
            Err(failure) if last.is_empty() => return Err(failure),
            // What was known last stays; it is looked for until it is there again.
            Err(failure) => draw(&format!("{failure}\n{last}"))?,
        }
        std::thread::sleep(POLL);
    }
    raw(b"\n")
}

/// Draws it over what was there, as much as fits on the terminal.
fn draw(text: &str) -> Result<(), Failure> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let (columns, rows) = size.map_or((0, 0), |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    // To the upper left; each line clears what is behind it, and the rest is cleared at the end.
    let body = cut(text, columns, rows).replace('\n', "\x1b[K\n");
    raw(format!("\x1b[H{body}\x1b[J").as_bytes())
}

/// What fits: a longer line would go on in the next, and more lines would roll the first away. Of a size that is not known, 0, all.
fn cut(text: &str, columns: usize, rows: usize) -> String {
    let most = |size: usize| if size == 0 { usize::MAX } else { size };
    // The last row stays empty: there the cursor stands.
    let lines = text.lines().take((most(rows) - 1).max(1));
    lines.map(|line| line.chars().take(most(columns)).chain(['\n']).collect::<String>()).collect()
}

/// One second as a table.
fn text(sample: &Sample) -> String {
    let service = |name: &str| sample.service.get(name).copied();
    let mut text = format!(
        "service: {} % of a processor, {}, devices: {}\n\n",
        number(service("cpu_percent"), 1),
        service("memory_bytes").map_or("-".into(), |bytes| size::show(bytes as u64)),
        sample.devices.len()
    );
    let heads = columns().map(|(_, column)| format!(" {:>1$}", column.head, column.width.max(column.head.len())));
    text.push_str(&format!("{:<14}{}  STATE\n", "DEVICE", heads.collect::<String>()));
    for (name, device) in &sample.devices {
        text.push_str(&row(name, device));
    }
    if sample.devices.is_empty() {
        text.push_str("nothing is attached; `vsl attach PATH` attaches a device\n");
    }
    text
}

fn row(name: &str, device: &DeviceSample) -> String {
    let value = |name: &str| device.values.get(name).copied();
    let state = match device.health.as_str() {
        "" | "healthy" => device.state.clone(),
        health => format!("{}: {health}", device.state),
    };
    let heat = value("celsius").map(|celsius| format!("  {celsius:.1} C")).unwrap_or_default();
    let power = value("watts").map(|watts| format!("  {watts:.1} W")).unwrap_or_default();
    let cells = columns().map(|(row, column)| {
        let value = value(row.name);
        let cell = match row.unit {
            Unit::Microseconds => micros(value),
            Unit::BytesPerSecond => number(value.map(|bytes| bytes / 1e6), column.digits),
            _ => number(value, column.digits),
        };
        format!(" {cell:>0$}", column.width)
    });
    format!("{name:<14}{}  {state}{heat}{power}\n", cells.collect::<String>())
}

/// The figures that have a column.
fn columns() -> impl Iterator<Item = (&'static Row, Column)> {
    table::rows().filter_map(|row| Some((row, row.column?)))
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

fn micros(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(us) if us < 1000.0 => format!("{us:.0}us"),
        Some(us) if us < 1e6 => format!("{:.1}ms", us / 1e3),
        Some(us) => format!("{:.1}s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_fits_is_drawn() {
        let text = "first line\nsecond\nthird\n";
        assert_eq!(cut(text, 5, 3), "first\nsecon\n");
        assert_eq!(cut(text, 80, 24), text);
        assert_eq!(cut(text, 0, 0), text);
    }

    #[test]
    fn a_device_is_a_line() {
        let mut sample = Sample::default();
        let values = [("read_iops", 1234.0), ("read_p99_us", 2500.0), ("celsius", 41.25)];
        let values = values.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let device = DeviceSample { state: "attached".into(), health: "healthy".into(), values };
        sample.devices.insert("fct0".into(), device);
        let text = text(&sample);
        let line = text.lines().last().expect("a line");
        assert!(line.starts_with("fct0 ") && line.contains(" 1234 ") && line.contains(" 2.5ms "), "{line}");
        assert!(line.ends_with("attached  41.2 C") || line.ends_with("attached  41.3 C"), "{line}");
    }
}
