//! `vsl lab show`, `vsl lab report` and `vsl lab compare`.

use std::path::Path;

use daemon::Failure;
use lab::run::{Run, ready};
use serde_json::json;

use super::{asked, page};
use crate::args::lab::{Compare, Report, Show};
use crate::output::{Output, raw};

pub fn show(args: &Show, output: Output) -> Result<(), Failure> {
    let (protocol, text) = asked::protocol(&args.choice.protocol)?;
    if args.text {
        return raw(text.as_bytes());
    }
    let options = asked::options(&args.choice, &protocol)?;
    let (plan, _) =
        ready(&protocol, &options, Path::new(""), 1).map_err(|error| Failure::invalid(error.to_string()))?;
    output.result(&json!({ "plan": plan.line() }), || lab::run::plan_text(&protocol, &plan, &options))
}

pub fn report(args: &Report, output: Output) -> Result<(), Failure> {
    let run = Run::open(&args.run).map_err(|error| Failure::invalid(error.to_string()))?;
    let written = page::write(&run, args)?;
    let json = if args.charts { page::json(&run)? } else { run.json() };
    let paths: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    output.result(&json, || format!("{}\nwritten: {}\n", lab::run::report_text(&run), paths.join(", ")))
}

pub fn compare(args: &Compare, output: Output) -> Result<(), Failure> {
    let open = |path| Run::open(path).map_err(|error| Failure::invalid(error.to_string()));
    let runs = args.runs.iter().map(|path| open(path)).collect::<Result<Vec<Run>, Failure>>()?;
    let names: Vec<String> = args.runs.iter().map(|path| path.display().to_string()).collect();
    let first = &runs[0].header.protocol;
    if let Some(other) = runs.iter().map(|run| &run.header.protocol).find(|name| *name != first) {
        return Err(Failure::invalid(format!("these are runs of different protocols: {first} and {other}"))
            .help("only figures of the same protocol can be compared"));
    }
    let rows = lab::run::compare(&runs);
    if let Some(path) = &args.out {
        page::save(path, report::compare_page(&names, &runs).html().as_bytes())?;
        output.note(&format!("written: {}", path.display()));
    }
    output.result(&json!({ "runs": names, "rows": rows }), || lab::run::compare_text(&names, &rows, args.all))
}
