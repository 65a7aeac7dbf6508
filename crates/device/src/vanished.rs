//! Files of an attached device that somebody deleted, moved or replaced: they serve as long as the device is attached, and their
//! content is gone with the detach.

use std::path::{Path, PathBuf};

use crate::members::{Identity, identity};

/// Where the files of a device lay when it was attached.
#[derive(Debug, Default)]
pub(crate) struct Places(Vec<(PathBuf, Identity)>);

impl Places {
    /// The files that are in use, each where it is now.
    pub fn of<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Places {
        Places(paths.filter_map(|path| place(path)).collect())
    }

    /// Another file is used in the place of one.
    pub fn replace(&mut self, before: &Path, now: &Path) {
        self.0.retain(|(path, _)| path != before);
        self.0.extend(place(now));
    }

    /// Those that are there no more.
    pub fn vanished(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter(|(path, was)| identity(path) != Some(*was)).map(|(path, _)| path)
    }
}

fn place(path: &Path) -> Option<(PathBuf, Identity)> {
    Some((path.into(), identity(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_deleted_moved_or_replaced_is_missed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let paths = ["a", "b", "c", "never"].map(|name| dir.path().join(name));
        for path in &paths[..3] {
            std::fs::write(path, "x").expect("written");
        }
        let mut places = Places::of(paths.iter());
        assert!(places.vanished().next().is_none());
        std::fs::write(&paths[0], "more").expect("written");
        assert!(places.vanished().next().is_none(), "it is the same file");
        std::fs::remove_file(&paths[0]).expect("deleted");
        std::fs::rename(&paths[1], dir.path().join("elsewhere")).expect("moved");
        std::fs::write(dir.path().join("new"), "x").expect("written");
        std::fs::rename(dir.path().join("new"), &paths[2]).expect("replaced");
        assert_eq!(places.vanished().cloned().collect::<Vec<_>>(), paths[..3]);
        // What takes the place of one says nothing of the others.
        places.replace(&paths[1], &dir.path().join("elsewhere"));
        assert_eq!(places.vanished().collect::<Vec<_>>(), [&paths[0], &paths[2]]);
    }
}
