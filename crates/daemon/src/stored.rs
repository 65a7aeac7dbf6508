//! Files that the service keeps: read whole, replaced whole, for their owner only.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

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

/// Puts a file in place of the old one.
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
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(new, path)
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
}
