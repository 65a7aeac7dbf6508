//! The names of files: as everybody sees them, and as they would be found after a power cut.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;

use crate::store::Store;

type Map = BTreeMap<OsString, u64>;

/// A change of the directory.
enum Change {
    Set(OsString, u64),
    Remove(OsString),
    Rename(OsString, OsString),
}

impl Change {
    fn apply(&self, map: &mut Map) {
        match self {
            Change::Set(name, number) => {
                map.insert(name.clone(), *number);
            }
            Change::Remove(name) => {
                map.remove(name);
            }
            Change::Rename(from, to) => {
                if let Some(number) = map.remove(from) {
                    map.insert(to.clone(), number);
                }
            }
        }
    }
}

/// The directory.
#[derive(Default)]
pub struct Names {
    seen: Map,
    durable: Map,
    pending: Vec<Change>,
}

impl Names {
    /// Names that are there from the start.
    pub fn new(durable: Map) -> Names {
        Names { seen: durable.clone(), durable, pending: Vec::new() }
    }

    /// The file of that name.
    pub fn get(&self, name: &OsStr) -> Option<u64> {
        self.seen.get(name).copied()
    }

    /// All names, in order.
    pub fn all(&self) -> impl Iterator<Item = (&OsString, u64)> {
        self.seen.iter().map(|(name, number)| (name, *number))
    }

    /// A name of that file, for rules.
    pub fn name_of(&self, number: u64) -> Option<&OsStr> {
        self.seen.iter().find(|(_, own)| **own == number).map(|(name, _)| name.as_os_str())
    }

    /// Whether the file has a name, or would have one after a power cut.
    pub fn knows(&self, number: u64) -> bool {
        self.seen.values().chain(self.durable.values()).any(|own| *own == number)
            || self.pending.iter().any(|change| matches!(change, Change::Set(_, own) if *own == number))
    }

    /// Names a file.
    pub fn set(&mut self, name: &OsStr, number: u64) {
        self.change(Change::Set(name.into(), number));
    }

    /// Takes a name away.
    pub fn remove(&mut self, name: &OsStr) {
        self.change(Change::Remove(name.into()));
    }

    /// Gives a file another name, also one that is taken.
    pub fn rename(&mut self, from: &OsStr, to: &OsStr) {
        self.change(Change::Rename(from.into(), to.into()));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    /// How many changes no sync of the directory has covered yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Makes the first `count` changes that are pending durable, and gives up the others: all of them are a sync of the
    /// directory, fewer are a power cut. A journal keeps their order.
    pub fn settle(&mut self, count: usize, store: &Store) -> io::Result<()> {
        let mut durable = self.durable.clone();
        for change in self.pending.drain(..).take(count) {
            change.apply(&mut durable);
        }
        for (name, number) in &durable {
            if self.durable.get(name) != Some(number) {
                store.link(*number, name)?;
            }
        }
        for name in self.durable.keys().filter(|name| !durable.contains_key(*name)) {
            store.unlink(name)?;
        }
        self.seen.clone_from(&durable);
        self.durable = durable;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_durable_once_the_directory_was_synced() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let mut names = Names::default();
        for number in [2, 3] {
            store.create(number).unwrap();
        }
        names.set("a".as_ref(), 2);
        names.settle(names.pending(), &store).unwrap();
        names.set("b".as_ref(), 3);
        names.rename("a".as_ref(), "c".as_ref());
        names.rename("b".as_ref(), "c".as_ref());
        assert_eq!(names.get("c".as_ref()), Some(3));
        assert!(names.knows(2) && names.knows(3));
        // Only the first two of the three reach the journal.
        names.settle(2, &store).unwrap();
        let all: Vec<_> = names.all().map(|(name, number)| (name.to_str().unwrap().to_owned(), number)).collect();
        assert_eq!(all, [("b".to_owned(), 3), ("c".to_owned(), 2)]);
        let mut found = store.names().unwrap();
        found.sort();
        assert_eq!(found, ["b", "c"]);
        names.remove("b".as_ref());
        names.settle(0, &store).unwrap();
        assert_eq!(names.get("b".as_ref()), Some(3));
    }
}
