//! A trace that a stage plays in place of a load.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use trace::generate::MailServer;
use trace::playback::{Map, Pace};
use trace::{Format, OutputFormat, TraceError, Writer};

use crate::workload::{Bytes, Trace};

/// Where within a run's directory traces lie that were made for it.
const DIRECTORY: &str = "traces";

/// A trace that a stage plays: a recorded one, or one that is made for the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Played {
    /// A recorded trace: its file, from where the program runs.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Its format, where it is not recognised.
    #[serde(default)]
    pub format: Option<Format>,
    /// Only this volume of it.
    #[serde(default)]
    pub volume: Option<String>,
    /// Made by this recipe, into the run's directory.
    #[serde(default)]
    pub made: Option<Recipe>,
    /// Requests of a made one.
    #[serde(default = "million")]
    pub requests: u64,
    /// The volume that a made one is of. On virtual devices that are built smaller it is as much smaller.
    #[serde(default = "volume")]
    pub size: Bytes,
    /// How its addresses become those of the device.
    #[serde(default)]
    pub map: Map,
    /// When its requests are made.
    #[serde(default)]
    pub pace: Pace,
}

/// How a trace is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// A mail server's traffic: `docs/traces.md` says what is published of it and what is assumed.
    MailServer,
}

fn million() -> u64 {
    1_000_000
}

fn volume() -> Bytes {
    Bytes(MailServer::default().bytes)
}

/// Most requests of a made trace: more is rather a mistake.
const MOST: u64 = 10_000_000_000;

impl Played {
    /// Whether it says what is played, and once.
    ///
    /// # Errors
    /// What is missing or said twice.
    pub fn check(&self) -> Result<(), String> {
        match (&self.file, self.made) {
            (None, None) => return Err("trace: expected file, or made = \"mail-server\"".into()),
            (Some(_), Some(_)) => return Err("trace: file and made are both given; expected one of them".into()),
            _ => {}
        }
        if !(1..=MOST).contains(&self.requests) {
            return Err(format!("trace: requests = {}; expected 1 to {MOST}", self.requests));
        }
        if self.made.is_some() {
            self.server(self.size.0, 1).requests().map_err(|problem| format!("trace: {problem}"))?;
        }
        self.trace(self.file.clone().unwrap_or_default()).wanted().map(drop)
    }

    /// The same as a load plays it, from this file.
    pub fn trace(&self, file: PathBuf) -> Trace {
        Trace { file, format: self.format, volume: self.volume.clone(), map: self.map, pace: self.pace }
    }

    fn server(&self, bytes: u64, seed: u64) -> MailServer {
        MailServer { bytes, seed, ..MailServer::default() }
    }
}

/// A trace that is made before a run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Where it will lie.
    pub path: PathBuf,
    server: MailServer,
    requests: u64,
}

/// The smallest volume that a recipe takes, bytes.
const LEAST_BYTES: u64 = 64 << 20;

impl Made {
    /// Of a stage, for a run in this directory; its volume is so many times smaller, and at most as large as `most`.
    pub fn new(played: &Played, directory: &Path, scale: u32, most: Option<u64>, seed: u64) -> Made {
        let bytes = (played.size.0 / u64::from(scale.max(1))).min(most.unwrap_or(u64::MAX)).max(LEAST_BYTES);
        let name = format!("mail-server-{}-of-{}-seed-{seed}.vscsi.zst", played.requests, size::exact(bytes));
        Made {
            path: directory.join(DIRECTORY).join(name),
            server: played.server(bytes, seed),
            requests: played.requests,
        }
    }

    /// What it is, in words.
    pub fn text(&self) -> String {
        format!("made-up mail server, {} requests over {}", self.requests, size::show(self.server.bytes))
    }

    /// Makes it, unless it is there already.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn make(&self) -> Result<(), TraceError> {
        if self.path.exists() {
            return Ok(());
        }
        let fail = |error| TraceError::File { path: self.path.clone(), error };
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(fail)?;
        }
        // What has the name is whole: a run that was killed while it was made makes it again.
        let part = self.path.with_file_name("unfinished.vscsi.zst");
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        let requests =
            self.server.requests().map_err(|problem| TraceError::Unusable { path: self.path.clone(), problem })?;
        let mut writer = Writer::create(&part, OutputFormat::Vscsi2, |_| String::new())?.from_epoch(0);
        for record in requests.take(usize::try_from(self.requests).unwrap_or(usize::MAX)) {
            writer.write(&record)?;
        }
        writer.finish()?;
        put_in_place(&part, &self.path).map_err(fail)
    }
}

/// Gives a file that is whole its name, so that a power cut leaves all of it or nothing under that name.
fn put_in_place(part: &Path, path: &Path) -> std::io::Result<()> {
    File::open(part)?.sync_all()?;
    std::fs::rename(part, path)?;
    // The name is in the directory, which has to be written down as well.
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{Reader, Wanted};

    fn played(text: &str) -> Played {
        toml::from_str(text).expect("fields")
    }

    #[test]
    fn one_of_file_and_recipe_is_said() {
        for (text, expected) in [
            ("", "expected file, or made"),
            ("file = \"a\"\nmade = \"mail-server\"", "both given"),
            ("made = \"mail-server\"\nrequests = 0", "requests = 0"),
            ("made = \"mail-server\"\nsize = \"1MiB\"", "expected 64 MiB"),
            ("file = \"a\"\nvolume = \"x\"", "'x' is no volume"),
        ] {
            let message = played(text).check().expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert_eq!(played("made = \"mail-server\"\npace = \"depth\"").check(), Ok(()));
    }

    #[test]
    fn a_made_trace_is_whole_and_made_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let asked = played("made = \"mail-server\"\nrequests = 5000\nsize = \"64GiB\"");
        let made = Made::new(&asked, directory.path(), 64, None, 7);
        assert!(made.text().contains("5000 requests over 1.07 GB"), "{}", made.text());
        // What a killed run left behind is no trace, and in nobody's way.
        std::fs::create_dir_all(made.path.parent().expect("a directory")).expect("made");
        std::fs::write(made.path.with_file_name("unfinished.vscsi.zst"), "half").expect("written");
        made.make().expect("made");
        let bytes = std::fs::read(&made.path).expect("read");
        made.make().expect("there already");
        assert_eq!(std::fs::read(&made.path).expect("read"), bytes);
        let records: Vec<_> =
            Reader::open(&made.path, &Wanted::default()).expect("a trace").collect::<Result<_, _>>().expect("whole");
        assert_eq!(records.len(), 5000);
        assert!(records.iter().all(|record| record.end() <= 1 << 30));
        let small = Made::new(&asked, directory.path(), 1, Some(128 << 20), 7);
        assert!(small.path.to_string_lossy().contains("-of-128MiB-"), "{}", small.path.display());
    }
}
