//! `vsl lab run` and `vsl lab resume`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use daemon::Failure;
use lab::run::{Directory, Ended, Options, RunError, Session};
use serde_json::json;

use super::watch::Board;
use super::{asked, overwrite, page};
use crate::args::lab::{Resume, Run, Work};
use crate::output::Output;
use crate::progress::INTERRUPTED;

pub fn run(args: &Run, output: Output) -> Result<ExitCode, Failure> {
    let (protocol, text) = asked::protocol(&args.choice.protocol)?;
    let options = Options {
        size: args.size,
        engine: args.engine.clone(),
        buffered: args.buffered,
        ..asked::options(&args.choice, &protocol)?
    };
    overwrite::confirm(&options, args.work.yes)?;
    let path = args.out.clone().unwrap_or_else(|| default_directory(protocol.name(), &options));
    let command = std::env::args().collect();
    let session = Session::begin(&path, protocol, &text, options, command, at_once(&args.work))
        .map_err(|error| failure(&error))?;
    go_on(session, output)
}

pub fn resume(args: &Resume, output: Output) -> Result<ExitCode, Failure> {
    let header = Directory::open(&args.run).and_then(|directory| directory.header());
    let header = header.map_err(|error| failure(&error.into()))?;
    overwrite::confirm(&header.options, args.work.yes)?;
    let session = Session::resume(&args.run, at_once(&args.work)).map_err(|error| failure(&error))?;
    go_on(session, output)
}

fn go_on(session: Session, output: Output) -> Result<ExitCode, Failure> {
    for left_out in &session.plan().left_out {
        output.note(&format!("left out: {left_out}"));
    }
    let path = session.path().to_path_buf();
    let board = Board::new(output)?;
    let ended = session.conduct(&board);
    board.finish();
    let shown = path.display().to_string();
    match ended.map_err(|error| failure(&error))? {
        Ended::Complete => {
            let page = page::write_beside(&path)?.display().to_string();
            output.result(&json!({ "run": shown, "ended": "complete", "report": page }), || {
                format!("done: {shown}\nreport: {page}\n`vsl lab report {shown}` prints what came of it\n")
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Ended::Interrupted => {
            output.result(&json!({ "run": shown, "ended": "interrupted" }), || {
                format!("interrupted: {shown}\n`vsl lab resume {shown}` goes on\n")
            })?;
            Ok(ExitCode::from(INTERRUPTED))
        }
        Ended::Broke(parts) => Err(Failure::failed(parts.join("\n"))
            .help(format!("what was measured is in {shown}; `vsl lab resume {shown}` tries the rest again"))),
    }
}

fn failure(error: &RunError) -> Failure {
    match error {
        RunError::NoPlan(_) | RunError::Trace(_) => Failure::invalid(error.to_string()),
        RunError::Directory(_) | RunError::Target(_) => Failure::failed(error.to_string()),
    }
}

fn at_once(work: &Work) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    work.jobs.map_or(processors, |jobs| jobs as usize)
}

/// A directory that is not there yet, named after what is run.
fn default_directory(protocol: &str, options: &Options) -> PathBuf {
    let device = match &options.devices[..] {
        [one] => overwrite::short_name(one).replace(':', "-"),
        [] => String::new(),
        several => format!("{}-devices", several.len()),
    };
    let form = if options.quick { "quick" } else { "full" };
    let name = format!("{protocol}-{device}-{form}");
    let free = (2..10_000).map(|number| PathBuf::from(format!("{name}-{number}")));
    std::iter::once(PathBuf::from(&name))
        .chain(free)
        .find(|path| !Path::new(path).exists())
        .unwrap_or_else(|| name.into())
}
