//! Files that the service keeps: read whole, replaced whole, for their owner only.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

/// Something that is kept in a JSON file.
pub struct Kept<T> {
    path: PathBuf,
    value: T,
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Serialize + DeserializeOwned + Default + Clone> Kept<T> {
    /// What the file says; the default where there is none.
    ///
    /// # Errors
    /// It cannot be read, or somebody edited it into something else.
    pub fn open(path: PathBuf) -> Result<Kept<T>, Failure> {
        let value = read(&path)?;
        Ok(Kept { path, value })
    }

    /// Changes it, here and in the file or in neither.
    ///
    /// # Errors
    /// What `change` says; or the file cannot be written.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        let mut value = self.value.clone();
        let result = change(&mut value)?;
        write(&self.path, &value)?;
        self.value = value;
        Ok(result)
    }

    /// Notes what happened whether or not it can be kept; where it cannot, the service's log says so.
    pub fn note<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.value);
        if let Err(failure) = write(&self.path, &self.value) {
            tracing::error!("{failure}");
        }
        result
    }
}

/// What a JSON file says; the default where there is none.
///
/// # Errors
/// It cannot be read, or somebody edited it into something else.
pub fn read<T: DeserializeOwned + Default>(path: &Path) -> Result<T, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => return Err(Failure::io(path, &error)),
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::failed(format!("{}: {error}", path.display())).help("correct the file, or remove it to begin anew")
    })
}

/// Puts a JSON file in place of the old one at once, so that a crash leaves one or the other.
///
/// # Errors
/// It cannot be written.
pub fn write<T: Serialize>(path: &Path, contents: &T) -> Result<(), Failure> {
    let fail = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("{}: cannot be written: {error}", path.display())).help("make its directory writable")
    };
    let text = serde_json::to_vec_pretty(contents).map_err(|error| fail(&error))?;
    replace(path, &text).map_err(|error| fail(&error))
}

/// Puts a file in place of the old one, durably.
///
/// # Errors
/// What the operating system says.
pub fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(new, path)?;
    // Until its directory is durable, a power cut may bring the old one back: an account that was removed, for one.
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => File::open(directory)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f.json");
        assert_eq!(read::<Vec<u32>>(&path), Ok(vec![]));
        write(&path, &vec![1, 2]).expect("written");
        write(&path, &vec![3]).expect("written again");
        assert_eq!(read::<Vec<u32>>(&path), Ok(vec![3]));
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "[1,").expect("written");
        let failure = read::<Vec<u32>>(&path).expect_err("damaged");
        assert!(failure.error.contains("f.json: ") && failure.help.contains("remove it"), "{failure}");
    }

    #[test]
    fn a_change_that_cannot_be_kept_is_none_and_a_note_is_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("gone/f.json");
        let mut kept = Kept::<Vec<u32>>::open(path.clone()).expect("none yet");
        let add = |number: u32| {
            move |numbers: &mut Vec<u32>| {
                numbers.push(number);
                Ok(())
            }
        };
        assert!(kept.change(add(1)).expect_err("no such directory").error.contains("cannot be written"));
        assert!(kept.is_empty());
        kept.note(|numbers| numbers.push(2));
        assert_eq!(*kept, [2]);
        std::fs::create_dir(path.parent().expect("a directory")).expect("made");
        kept.change(add(3)).expect("written");
        assert_eq!(*Kept::<Vec<u32>>::open(path).expect("read"), [2, 3]);
    }
}
