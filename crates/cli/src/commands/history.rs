//! `vsl history`.

use daemon::Failure;
use daemon::api::Histories;
use daemon::fields::{self, Unit};
use serde_json::json;

use super::access::plain;
use crate::args::manage::{History, HistoryExport, ResolutionName};
use crate::output::{Output, raw};

/// Points that may come of a whole history.
const POINTS: u64 = 20_000;

pub fn history(what: &History, output: Output) -> Result<(), Failure> {
    match what {
        History::List => list(output),
        History::Export(args) => export(args, output),
    }
}

fn list(output: Output) -> Result<(), Failure> {
    let histories: Histories = super::client()?.get("/history")?;
    output.result(&histories, || {
        let time = |seconds: u64| fields::show(Unit::Time, &json!(seconds));
        let lines = histories.series.iter().map(|series| {
            format!(
                "{:<16}  {:<36}  {}  {}  {} rows\n",
                series.name,
                series.uuid,
                time(series.first),
                time(series.last),
                series.rows
            )
        });
        let size = format!("in a file of {}\n", size::show(histories.file_bytes));
        lines.chain([size]).collect()
    })
}

fn export(args: &HistoryExport, output: Output) -> Result<(), Failure> {
    let mut path = match args.device.as_str() {
        "service" => "/service/history".to_string(),
        device => format!("/devices/{}/history", plain(device)?),
    };
    path.push_str(&format!("?from=-{}&points={POINTS}&format={}", args.last, if output.json { "json" } else { "csv" }));
    if let Some(resolution) = args.resolution {
        let name = match resolution {
            ResolutionName::Second => "1s",
            ResolutionName::Minute => "1m",
            ResolutionName::Hour => "1h",
        };
        path.push_str(&format!("&resolution={name}"));
    }
    if let Some(metrics) = &args.metrics {
        let names: Result<Vec<&str>, Failure> = metrics.split(',').map(plain).collect();
        path.push_str(&format!("&metrics={}", names?.join(",")));
    }
    let answer = super::client()?.fetch(&path)?;
    match &args.output {
        None => raw(&answer),
        Some(file) => std::fs::write(file, &answer).map_err(|error| Failure::io(file, &error)),
    }
}
