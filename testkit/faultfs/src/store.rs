//! The directory behind the mount: files as they would be found after a power cut, under their names.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where files stand by number, whether they have a durable name or not, and caches until they lose theirs.
const HIDDEN: &str = ".faultfs";

/// The directory.
pub struct Store {
    path: PathBuf,
    hidden: PathBuf,
}

impl Store {
    /// Opens a directory, made where there is none. Only one file system may use it at a time.
    pub fn open(path: &Path) -> io::Result<Store> {
        let hidden = path.join(HIDDEN);
        fs::create_dir_all(path)?;
        match fs::remove_dir_all(&hidden) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir(&hidden)?,
        }
        Ok(Store { path: path.into(), hidden })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Files that are there from the start.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(&self.path)?.collect::<io::Result<Vec<_>>>()?;
        Ok(entries.into_iter().filter(|entry| entry.path().is_file()).map(|entry| entry.file_name()).collect())
    }

    /// Takes in a file that is there from the start; gives its cache and itself.
    pub fn adopt(&self, number: u64, name: &OsStr) -> io::Result<(File, File)> {
        let durable = self.hidden.join(number.to_string());
        fs::hard_link(self.path.join(name), &durable)?;
        Ok((self.cache()?, OpenOptions::new().read(true).write(true).open(durable)?))
    }

    /// A new file without a durable name; gives its cache and itself.
    pub fn create(&self, number: u64) -> io::Result<(File, File)> {
        let durable = self.hidden.join(number.to_string());
        Ok((self.cache()?, OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(durable)?))
    }

    /// Gives a file a name durably, instead of the file that has it.
    pub fn link(&self, number: u64, name: &OsStr) -> io::Result<()> {
        let new = self.hidden.join("link");
        fs::hard_link(self.hidden.join(number.to_string()), &new)?;
        fs::rename(new, self.path.join(name))
    }

    /// Takes a name away durably.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Forgets a file that has no name any more.
    pub fn forget(&self, number: u64) -> io::Result<()> {
        fs::remove_file(self.hidden.join(number.to_string()))
    }

    /// A file without a name, which goes with the process.
    fn cache(&self) -> io::Result<File> {
        let path = self.hidden.join("cache");
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        fs::remove_file(path)?;
        Ok(file)
    }
}
