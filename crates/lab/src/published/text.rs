//! Rows and summaries as people read them.

use std::fmt::Write;

use super::measure::Measured;
use super::source::Source;
use super::summary::Summary;

/// A line for each row: what it is, published, measured, error.
pub fn table(rows: &[Measured]) -> String {
    let label = |measured: &Measured| {
        let row = &measured.row;
        let format = if row.format.is_empty() { String::new() } else { format!(" {}", row.format) };
        let block =
            if row.block_kib.parse::<f64>().is_ok() { format!("{}K", row.block_kib) } else { row.block_kib.clone() };
        format!(
            "{} {}{format}  {} {block} {}% read x {}  {}",
            row.device, row.array, row.workload, row.read_pct, row.outstanding, row.metric
        )
    };
    let labels: Vec<String> = rows.iter().map(label).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut text = format!("{:width$}  {:>10}  {:>10}        {:>7}\n", "", "published", "measured", "error");
    let mut source = "";
    for (measured, label) in rows.iter().zip(&labels) {
        if measured.row.source != source {
            source = &measured.row.source;
            text.push_str(source);
            text.push('\n');
        }
        let published = figure(measured.row.value);
        let unit = &measured.row.unit;
        // Writing to a string cannot fail.
        let _ = match (measured.value, measured.error_percent, &measured.problem) {
            (Some(value), Some(error), _) => {
                let amplification = measured.write_amplification.map(|it| format!("   WA {it:.2}")).unwrap_or_default();
                writeln!(
                    text,
                    "{label:width$}  {published:>10}  {:>10} {unit:<5}  {error:>+6.1} %{amplification}",
                    figure(value)
                )
            }
            (_, _, problem) => {
                writeln!(
                    text,
                    "{label:width$}  {published:>10}  {:>10} {unit:<5}  {}",
                    "-",
                    problem.as_deref().unwrap_or("not run")
                )
            }
        };
    }
    text
}

/// Three digits or more.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 1000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// A line for each summary, and what is assumed of each source.
pub fn summary_text(summaries: &[Summary], sources: &[Source]) -> String {
    let width = summaries.iter().map(|summary| summary.name.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}  {:>5}  {:>8}  {:>8}\n", "absolute error", "rows", "median", "90th %");
    for summary in summaries {
        let Summary { name, rows, not_run, median_percent, p90_percent } = summary;
        let missing = if *not_run > 0 { format!("  ({not_run} not run)") } else { String::new() };
        let _ = writeln!(text, "{name:width$}  {rows:>5}  {median_percent:>6.1} %  {p90_percent:>6.1} %{missing}");
    }
    for summary in summaries {
        if let Some(source) = sources.iter().find(|source| source.name == summary.name) {
            let _ = writeln!(text, "\n{}\n  {}", source.name, source.assumption);
        }
    }
    text
}
