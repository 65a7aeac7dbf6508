//! The file of a journal's notes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Notes;

/// What the file is called: the journal's path with this behind it.
const SUFFIX: &str = ".objects";

/// A journal's notes, open to append to.
#[derive(Debug)]
pub struct NotesFile {
    file: File,
}

impl NotesFile {
    /// Where the notes of a journal lie.
    pub fn path(journal: &Path) -> PathBuf {
        let mut path = journal.as_os_str().to_owned();
        path.push(SUFFIX);
        path.into()
    }

    /// Reads the notes of a journal.
    ///
    /// # Errors
    /// There are none, or they are damaged.
    pub fn read(journal: &Path) -> io::Result<Notes> {
        let bytes = std::fs::read(NotesFile::path(journal))?;
        Notes::decode(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    /// Writes the notes of a journal anew, durably, and opens them to append to.
    ///
    /// # Errors
    /// The operating system refused it; then they are as before.
    pub fn write(journal: &Path, notes: &Notes) -> io::Result<NotesFile> {
        let path = NotesFile::path(journal);
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut file = File::create(&part)?;
        file.write_all(&notes.encode())?;
        file.sync_all()?;
        std::fs::rename(&part, &path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
        Ok(NotesFile { file: OpenOptions::new().append(true).open(&path)? })
    }

    /// Appends records, durably.
    ///
    /// # Errors
    /// The operating system refused it.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }
}
