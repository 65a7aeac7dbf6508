//! The journal: one line of JSON for everything that is finished.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::record::Line;

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Somebody else writes to it.
    #[error("{}: another process is running or resuming this run", path.display())]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// A line is damaged.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: usize,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
}

/// A journal that is written to. Nobody else can have it open for writing.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// A new one.
    ///
    /// # Errors
    /// There is one already, or it cannot be made.
    pub fn create(path: &Path) -> Result<Journal, JournalError> {
        let fail = |error| JournalError::File { path: path.into(), error };
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(fail)?;
        let journal = Journal { file, path: path.into() };
        journal.lock()?;
        Ok(journal)
    }

    /// One that is to be continued, and its lines. A last line that was cut off is taken away.
    ///
    /// # Errors
    /// It cannot be read, or a line other than the last is damaged.
    pub fn resume(path: &Path) -> Result<(Journal, Vec<Line>), JournalError> {
        let fail = |error| JournalError::File { path: path.into(), error };
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(fail)?;
        let mut journal = Journal { file, path: path.into() };
        journal.lock()?;
        let mut bytes = Vec::new();
        journal.file.seek(SeekFrom::Start(0)).and_then(|_| journal.file.read_to_end(&mut bytes)).map_err(fail)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            journal.file.set_len(whole as u64).map_err(fail)?;
        }
        Ok((journal, lines(path, &bytes[..whole])?))
    }

    /// One that nobody writes to, and nobody can begin to as long as this is held.
    ///
    /// # Errors
    /// It cannot be opened, or is being written.
    pub fn hold(path: &Path) -> Result<Journal, JournalError> {
        let file = File::open(path).map_err(|error| JournalError::File { path: path.into(), error })?;
        let journal = Journal { file, path: path.into() };
        journal.lock()?;
        Ok(journal)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> Result<(), JournalError> {
        self.file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => JournalError::InUse { path: self.path.clone() },
            std::fs::TryLockError::Error(error) => JournalError::File { path: self.path.clone(), error },
        })
    }

    /// Adds a line; when this returns, it is on disk.
    ///
    /// # Errors
    /// The disk takes no more.
    pub fn add(&mut self, line: &Line) -> Result<(), JournalError> {
        let fail = |error| JournalError::File { path: self.path.clone(), error };
        let mut text = serde_json::to_vec(line).map_err(|error| fail(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(fail)
    }
}

/// The lines of a journal, for reading. A last line that was cut off, or is being written just now, is passed over.
///
/// # Errors
/// It cannot be read, or another line is damaged.
pub fn read(path: &Path) -> Result<Vec<Line>, JournalError> {
    let bytes = std::fs::read(path).map_err(|error| JournalError::File { path: path.into(), error })?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    lines(path, &bytes[..whole])
}

fn lines(path: &Path, bytes: &[u8]) -> Result<Vec<Line>, JournalError> {
    let mut lines = Vec::new();
    for (at, text) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, text)| !text.is_empty()) {
        let line = serde_json::from_slice(text).map_err(|error| JournalError::Line {
            path: path.into(),
            line: at + 1,
            problem: format!("expected a line of a journal: {error}"),
        })?;
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(at: &str) -> Line {
        Line::Finished { at: at.into() }
    }

    #[test]
    fn a_line_that_was_cut_off_is_taken_away_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).expect("new");
        journal.add(&finished("one")).expect("written");
        assert!(matches!(Journal::resume(&path), Err(JournalError::InUse { .. })));
        drop(journal);
        let mut text = std::fs::read(&path).expect("read");
        text.extend(b"{\"kind\":\"finis");
        std::fs::write(&path, &text).expect("written");
        assert_eq!(read(&path).expect("lines"), [finished("one")]);
        let (mut journal, lines) = Journal::resume(&path).expect("resumed");
        assert_eq!(lines, [finished("one")]);
        journal.add(&finished("two")).expect("written");
        assert_eq!(read(&path).expect("lines"), [finished("one"), finished("two")]);
        assert!(matches!(Journal::create(&path), Err(JournalError::File { .. })));
    }

    #[test]
    fn a_damaged_line_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal.jsonl");
        std::fs::write(&path, "{\"kind\":\"finished\",\"at\":\"now\"}\n{\"kind\":\"dance\"}\n").expect("written");
        let message = read(&path).expect_err("damaged").to_string();
        assert!(
            message.contains("journal.jsonl:2: expected a line of a journal: unknown variant `dance`"),
            "{message}"
        );
    }
}
