//! Lab runs: `vsl lab run` as a process of its own, in a directory below the service's state, so that a run at full size takes
//! nothing of the service, and outlives a mistake. What has been run is a directory each.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use super::Task;
use super::process::{self, Ended, refusal, vsl};
use super::progress::Progress;
use crate::api::{JobResult, LabRun};
use crate::{Failure, names};

/// The file of a run that says how far it is. Whoever writes it holds its lock.
const JOURNAL: &str = "journal.jsonl";
/// What a run is called where its name is refused.
pub const RUN: &str = "run";
/// The page of a run.
const REPORT: &str = "report.html";

/// A run that is asked for.
pub struct Asked {
    /// A protocol that comes with the program.
    pub protocol: String,
    /// A data sheet, or an attached device.
    pub device: String,
    /// Its name, and its directory's.
    pub name: String,
    /// The whole protocol instead of the quick form.
    pub full: bool,
    /// About how many times smaller virtual devices are built.
    pub scale: Option<u32>,
    /// How many times everything is done.
    pub repeat: u32,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Runs it to its end and writes its report.
///
/// # Errors
/// It fails, and what it said.
pub fn run(asked: &Asked, directory: &Path, task: &Task) -> Result<Option<JobResult>, Failure> {
    let mut command = vsl()?;
    command.args(["lab", "run", &asked.protocol, "--yes", "--device", &asked.device]).arg("--out").arg(directory);
    command.args(["--repeat", &asked.repeat.to_string(), "--seed", &asked.seed.to_string()]);
    if asked.full {
        command.arg("--full");
    }
    if let Some(scale) = asked.scale {
        command.args(["--scale", &scale.to_string()]);
    }
    if !finish(command, directory, task)? {
        return Ok(None);
    }
    task.at(0.99, "writing the report");
    let mut command = vsl()?;
    command.args(["lab", "report"]).arg(directory);
    Ok(finish(command, directory, task)?.then(|| JobResult::Run(asked.name.clone())))
}

/// Waits for a process, and tells how far the run's journal is; false where somebody cancelled it.
fn finish(command: Command, directory: &Path, task: &Task) -> Result<bool, Failure> {
    let mut progress = Progress::of(directory.join(JOURNAL));
    let ended = process::finish(command, &[], task, |_| {
        progress.look();
        task.at(progress.share() * 0.98, &progress.in_words());
    })?;
    let Some(Err(Ended { status, said })) = ended else { return Ok(ended.is_some()) };
    let last: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = last.len().saturating_sub(3);
    Err(Failure::failed(format!("vsl lab ended with {status}: {}", last[from..].join("; "))))
}

/// Every run below a directory, the newest first.
pub fn runs(directory: &Path) -> Vec<LabRun> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let run = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let name = entry.file_name().into_string().ok()?;
        let text = std::fs::read_to_string(path.join("run.toml")).ok()?;
        let made = entry.metadata().and_then(|data| data.modified()).ok()?;
        let about: toml::Table = text.parse().ok()?;
        let word = |key: &str| about.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_string();
        Some(LabRun {
            name,
            protocol: word("protocol"),
            made_ms: made.duration_since(UNIX_EPOCH).map_or(0, |past| past.as_millis() as u64),
            report: path.join(REPORT).exists(),
        })
    };
    let mut runs: Vec<LabRun> = entries.filter_map(Result::ok).filter_map(run).collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.made_ms));
    runs
}

/// A run's page.
///
/// # Errors
/// There is no such run, or it has none yet.
pub fn report(directory: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    names::check(RUN, name)?;
    std::fs::read(directory.join(name).join(REPORT)).map_err(|_| {
        Failure::not_found(format!("there is no report of a run '{name}'"))
            .help("`GET /api/v1/lab/runs` lists the runs")
    })
}

/// Runs side by side, as a page.
///
/// # Errors
/// There are no such runs, or they cannot be compared.
pub fn compare(directory: &Path, names: &[String]) -> Result<Vec<u8>, Failure> {
    if names.len() < 2 {
        return Err(Failure::invalid("runs: fewer than two").help("say runs=a,b"));
    }
    for name in names {
        find(directory, name)?;
    }
    let mut command = vsl()?;
    // The page calls the runs by their names alone.
    command.current_dir(directory).args(["lab", "compare"]).args(names);
    let page = format!(".compare-{}.html", crate::access::secret::random(8));
    let output = command.arg("--out").arg(&page).output();
    let output = output.map_err(|error| Failure::failed(format!("the comparison cannot be started: {error}")))?;
    let page = directory.join(page);
    let read = std::fs::read(&page);
    // It may not have been written.
    let _ = std::fs::remove_file(&page);
    read.map_err(|_| refusal(&String::from_utf8_lossy(&output.stderr)))
}

/// The directory of a run.
fn find(directory: &Path, name: &str) -> Result<PathBuf, Failure> {
    names::check(RUN, name)?;
    let path = directory.join(name);
    if path.join("run.toml").exists() {
        return Ok(path);
    }
    Err(Failure::not_found(format!("there is no run '{name}'")).help("`GET /api/v1/lab/runs` lists the runs"))
}

/// A run goes, with everything in it.
///
/// # Errors
/// There is none, or it cannot be removed.
pub fn remove(directory: &Path, name: &str) -> Result<(), Failure> {
    let path = find(directory, name)?;
    // A directory without a journal, or with one that cannot be read, can go too.
    let journal = File::open(path.join(JOURNAL)).ok();
    if let Some(Err(TryLockError::WouldBlock)) = journal.as_ref().map(File::try_lock) {
        return Err(Failure::conflict(format!("the run '{name}' is under way")).help("stop its job first"));
    }
    std::fs::remove_dir_all(&path).map_err(|error| Failure::io(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_directory() {
        for name in ["", "..", ".a", "-a", "a/b", "a\0", "a b"] {
            assert!(report(Path::new("/"), name).is_err() && remove(Path::new("/"), name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_run_that_is_under_way_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let run = directory.path().join("first");
        std::fs::create_dir(&run).and_then(|()| std::fs::write(run.join("run.toml"), "")).expect("a run");
        let journal = File::create(run.join(JOURNAL)).expect("a journal");
        journal.lock().expect("locked");
        let refused = remove(directory.path(), "first").expect_err("somebody writes to it");
        assert!(refused.to_string().contains("under way") && run.exists(), "{refused}");
        drop(journal);
        remove(directory.path(), "first").expect("nobody does any more");
        assert!(!run.exists());
    }
}
