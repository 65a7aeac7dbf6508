//! Running fio, and saying in its own words what went wrong.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::super::{Problem, Watch};

/// How often somebody is told, and fio is looked after.
const TICK: Duration = Duration::from_millis(50);
/// How long fio may take beyond what it was asked for, and after it was told to end.
const PATIENCE: Duration = Duration::from_secs(600);
/// The most of fio's words that are repeated.
const WORDS: usize = 600;

/// A program that is ended when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It is over already, or it is to end now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs fio with a job file in a directory, and gives its report. `expected` is how long it takes, where that is known.
///
/// # Errors
/// fio is missing, fails, or was interrupted.
pub fn run(
    program: &str,
    directory: &Path,
    job: &str,
    expected: Option<Duration>,
    watch: Watch<'_>,
) -> Result<String, Problem> {
    let fail = |what: &str, error: std::io::Error| Problem::Failed(format!("{what}: {error}"));
    let path = |name: &str| directory.join(name);
    std::fs::write(path("job.fio"), job).map_err(|error| fail("the job file", error))?;
    let file = |name: &str| std::fs::File::create(path(name)).map_err(|error| fail(name, error));
    let (out, err) = (file("out")?, file("err")?);
    let child = Command::new(program)
        .args(["--output-format=json+", "--output=report", "job.fio"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Problem::Failed(format!("{program} is not there: install the package fio (`apt install fio`)"))
            }
            _ => fail(program, error),
        })?;
    let mut child = Running(child);
    let began = Instant::now();
    let status = loop {
        match child.0.try_wait().map_err(|error| fail(program, error))? {
            Some(status) => break status,
            None => std::thread::sleep(TICK),
        }
        let share = expected.map_or(0.0, |expected| began.elapsed().as_secs_f64() / expected.as_secs_f64().max(0.001));
        if watch(share.min(1.0)) == ControlFlow::Break(()) {
            return Err(Problem::Interrupted);
        }
        if expected.is_some_and(|expected| began.elapsed() > expected + PATIENCE) {
            return Err(Problem::Failed(format!(
                "{program} does not end: it was given {PATIENCE:?} more than it was asked for"
            )));
        }
    };
    let read = |name: &str| {
        std::fs::read(path(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    let report = read("report");
    if !status.success() {
        let said = [read("err"), read("out"), before_json(&report)].join("\n");
        let said = tail(said.trim());
        let said = if said.is_empty() { "it said nothing" } else { said };
        return Err(Problem::Failed(format!("{program} failed ({status}): {said}")));
    }
    Ok(report)
}

/// What fio says before its report.
fn before_json(report: &str) -> String {
    report.split('{').next().unwrap_or_default().trim().to_string()
}

/// The end of a text, no longer than is worth repeating.
fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(WORDS);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}
