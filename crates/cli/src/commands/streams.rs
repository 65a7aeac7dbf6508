//! Where the stream of a backup lies: standard input or output, a file, or an object store.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, stdin, stdout};
use std::path::Path;

use bucket::{Address, Archive};
use daemon::Failure;
use device::Secret;
use openvsl::Device;
use openvsl_backup::{BackupError, Progress, Reader, Source, StreamError, backup, extend_file, resume as go_on};

use super::opener;
use crate::args::Opener;

/// Bytes that are read from a file at a time.
const READ: usize = 1 << 20;

/// Where a stream is to be written or read.
pub enum Place<'a> {
    Standard,
    File(&'a Path),
    Store(Archive, &'a str),
}

/// A stream that was not written.
pub enum Unwritten {
    /// Its place refused it.
    Place(Failure),
    /// It could not be made.
    Backup(BackupError),
}

impl From<BackupError> for Unwritten {
    fn from(error: BackupError) -> Unwritten {
        Unwritten::Backup(error)
    }
}

impl<'a> Place<'a> {
    /// Reads what the user wrote.
    pub fn parse(text: &'a str, endpoint: Option<&str>) -> Result<Place<'a>, Failure> {
        if text == "-" {
            return Ok(Place::Standard);
        }
        if !Address::is_meant(text) {
            return Ok(Place::File(Path::new(text)));
        }
        let archive = Address::parse(text).and_then(|address| Archive::at(&address, endpoint));
        Ok(Place::Store(archive.map_err(|error| Failure::invalid(error.to_string()))?, text))
    }

    /// Writes a backup there, a new one or the rest of one that was interrupted. Gives the bytes of all of it, where that is known.
    pub fn write(
        self,
        device: &Device,
        source: &Source,
        resume: bool,
        progress: impl FnMut(Progress) -> bool,
    ) -> Result<Option<u64>, Unwritten> {
        source.check(device)?;
        match self {
            Place::Standard if resume => {
                let why = "--resume needs a file or an object store: standard output cannot be read back";
                Err(Unwritten::Place(Failure::invalid(why)))
            }
            Place::Standard => Ok(backup(device, source, stdout().lock(), progress).map(|_| None)?),
            Place::File(path) => {
                let refused = |error: io::Error| Unwritten::Place(Failure::io(path, &error));
                let written = match resume {
                    true => {
                        let begun = OpenOptions::new().read(true).write(true).open(path).map_err(refused)?;
                        go_on(device, source, begun, extend_file, progress)?
                    }
                    false => backup(device, source, new_file(path).map_err(Unwritten::Place)?, progress)?,
                };
                written.sync_all().map_err(BackupError::Write)?;
                Ok(Some(written.metadata().map_err(refused)?.len()))
            }
            Place::Store(archive, shown) => {
                let refused = |error: io::Error| Unwritten::Place(refused(shown, &error));
                let written = match resume {
                    true => {
                        let begun = archive.open().map_err(refused)?;
                        go_on(device, source, begun, |begun, bytes| begun.archive().extend(bytes), progress)?
                    }
                    false => backup(device, source, archive.create().map_err(refused)?, progress)?,
                };
                Ok(Some(written.finish().map_err(BackupError::Write)?))
            }
        }
    }

    fn open(&self) -> Result<Box<dyn Read>, Failure> {
        match self {
            Place::Standard => Ok(Box::new(stdin().lock())),
            Place::File(path) => {
                let input = File::open(path).map_err(|error| Failure::io(path, &error))?;
                Ok(Box::new(BufReader::with_capacity(READ, input)))
            }
            Place::Store(archive, shown) => {
                Ok(Box::new(archive.clone().open().map_err(|error| refused(shown, &error))?))
            }
        }
    }

    /// Begins to read a backup. What opens a device, `secret`, may open its backup, too; `text` is what the user calls the backup.
    pub fn read(
        &self,
        text: &str,
        secret: Option<&Secret>,
        own: &Opener,
    ) -> Result<Result<Reader<Box<dyn Read>>, StreamError>, Failure> {
        let named = opener::for_device(text, false, own)?;
        Ok(match Reader::open(self.open()?, named.as_ref().or(secret)) {
            // Standard input cannot be begun again.
            Err(StreamError::NeedsSecret) if !matches!(self, Place::Standard) => {
                let asked = opener::for_device(text, true, own)?;
                Reader::open(self.open()?, asked.as_ref())
            }
            result => result,
        })
    }
}

fn new_file(path: &Path) -> Result<File, Failure> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::conflict(format!("{}: there is a file already", path.display()))
            .help("add --resume to go on with a backup that was interrupted, or name another file"),
        _ => Failure::io(path, &error),
    })
}

/// What an object store answered.
fn refused(address: &str, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => Failure::conflict(format!("{address}: there is a backup or a device already"))
            .help("add --resume to go on with a backup that was interrupted, or name another address"),
        ErrorKind::NotFound => Failure::not_found(format!("{address}: there is no backup"))
            .help("check the address; to begin one, leave --resume out"),
        _ => Failure::failed(format!("{address}: {error}")),
    }
}
