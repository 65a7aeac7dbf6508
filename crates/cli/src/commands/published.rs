//! `vsl published`.

use std::ops::ControlFlow;
use std::process::ExitCode;

use daemon::Failure;
use lab::published::{Row, Settings, measure, rows, rows_from, sources, summary::summaries, summary_text, table};
use serde_json::json;

use crate::args::published::Published;
use crate::output::Output;
use crate::progress::{INTERRUPTED, Interrupt, bar};

pub fn published(args: &Published, output: Output) -> Result<ExitCode, Failure> {
    let rows = chosen(args)?;
    let sources = sources().map_err(|error| Failure::failed(format!("sources.toml: {error}")))?;
    let settings = Settings { scale: args.scale, seed: args.seed, at_once: args.jobs as usize };
    let interrupt = Interrupt::listen()?;
    let bar = bar(output, "{pos}/{len} [{wide_bar}] {elapsed}, {eta} to go")?;
    let watch = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        if interrupt.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let profile_of = |name: &str| profile::find(name).map_err(|error| error.to_string());
    let measured = measure(&rows, &sources, &settings, &profile_of, &watch);
    bar.finish_and_clear();
    let summaries = summaries(&measured);
    let used: Vec<_> = sources.iter().filter(|source| rows.iter().any(|row| row.source == source.name)).collect();
    output.result(
        &json!({ "rows": measured, "summaries": summaries, "sources": used, "scale": args.scale, "seed": args.seed }),
        || format!("{}\n{}", table(&measured), summary_text(&summaries, &sources)),
    )?;
    Ok(if interrupt.came() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The rows that were asked for.
fn chosen(args: &Published) -> Result<Vec<Row>, Failure> {
    let all = match &args.rows {
        None => rows().map_err(|error| Failure::failed(format!("published.csv: {error}")))?,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::invalid(format!("{}: {error}", path.display())))?;
            rows_from(&text).map_err(|error| Failure::invalid(format!("{}: {error}", path.display())))?
        }
    };
    let device = match &args.device {
        None => None,
        Some(name) => Some(profile::find(name).map_err(|error| Failure::invalid(error.to_string()))?),
    };
    let rows: Vec<Row> = all
        .into_iter()
        .filter(|row| args.source.as_ref().is_none_or(|source| row.source.starts_with(source.as_str())))
        .filter(|row| device.as_ref().is_none_or(|device| device.is_called(&row.device)))
        .filter(|row| args.row.iter().all(|text| row.line().contains(text.as_str())))
        .collect();
    if rows.is_empty() {
        return Err(
            Failure::invalid("no row is like that").help("`vsl published --json` without options lists all of them")
        );
    }
    Ok(rows)
}
