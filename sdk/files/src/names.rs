//! Names: made, removed and renamed, each by one batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use openvsl::Batch;

use crate::files::{Node, Tree};
use crate::layout::{DIRECTORY, LINK, NAME_MAX, Record, TYPE};
use crate::{Files, FilesError, ROOT};

/// What a new file is like.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Make {
    /// Type and permissions, as `stat` has them. Without a type it is a regular file.
    pub mode: u32,
    /// Whose it is.
    pub uid: u32,
    /// Which group's.
    pub gid: u32,
    /// Where a symbolic link points to.
    pub target: Vec<u8>,
}

impl Make {
    /// A regular file of root's.
    pub fn file(permissions: u32) -> Make {
        Make { mode: 0o100_000 | permissions, ..Make::default() }
    }

    /// A directory of root's.
    pub fn directory(permissions: u32) -> Make {
        Make { mode: DIRECTORY | permissions, ..Make::default() }
    }

    /// A symbolic link.
    pub fn link(target: &[u8]) -> Make {
        Make { mode: LINK | 0o777, target: target.to_vec(), ..Make::default() }
    }

    /// The same for another user.
    #[must_use]
    pub fn owned_by(self, uid: u32, gid: u32) -> Make {
        Make { uid, gid, ..self }
    }
}

impl Files {
    /// The number of the file behind a name.
    ///
    /// # Errors
    /// It is not there.
    pub fn lookup(&self, parent: u64, name: &[u8]) -> Result<u64, FilesError> {
        self.tree().find(parent, name)
    }

    /// The names in a directory, and the numbers of their files.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn list(&self, directory: u64) -> Result<Vec<(Vec<u8>, u64)>, FilesError> {
        let tree = self.tree();
        tree.directory(directory)?;
        Ok(tree.within(directory).map(|((_, name), &number)| (name.clone(), number)).collect())
    }

    /// The directory that a file's name is in.
    ///
    /// # Errors
    /// It is not there.
    pub fn parent(&self, number: u64) -> Result<u64, FilesError> {
        Ok(self.node(number)?.reading().parent)
    }

    /// Where a symbolic link points to.
    ///
    /// # Errors
    /// It is none.
    pub fn target(&self, number: u64) -> Result<Vec<u8>, FilesError> {
        let node = self.node(number)?;
        let record = node.reading();
        if record.mode & TYPE == LINK { Ok(record.target.clone()) } else { Err(FilesError::NotFound) }
    }

    /// Makes a file, and tells its number.
    ///
    /// # Errors
    /// The name is taken or none, the directory is not there, or there are too many files.
    pub fn make(&self, parent: u64, name: &[u8], make: &Make) -> Result<u64, FilesError> {
        check_name(name)?;
        let most = Record::max_target(self.layout.sector_bytes);
        if make.target.len() > most {
            return Err(FilesError::Name { len: make.target.len() });
        }
        let mut tree = self.tree_mut();
        tree.directory(parent)?;
        if tree.names.contains_key(&(parent, name.to_vec())) {
            return Err(FilesError::Exists);
        }
        let number = tree.free.first().copied().unwrap_or(tree.next);
        if number > self.layout.files {
            return Err(FilesError::TooMany { max: self.layout.files });
        }
        let now = SystemTime::now();
        let record = Record {
            change: tree.change + 1,
            parent,
            name: name.to_vec(),
            mode: if make.mode & TYPE == 0 { 0o100_000 | make.mode } else { make.mode },
            uid: make.uid,
            gid: make.gid,
            size: make.target.len() as u64,
            modified: now,
            changed: now,
            target: make.target.clone(),
        };
        self.device.write(number, &record.encode(self.layout.sector_bytes))?;
        tree.change += 1;
        if !tree.free.remove(&number) {
            tree.next = number + 1;
        }
        tree.names.insert((parent, name.to_vec()), number);
        tree.nodes.insert(number, Arc::new(Node::new(number, record)));
        tree.touch(parent, now);
        Ok(number)
    }

    /// Removes a name. The file's data stay until nobody has it open.
    ///
    /// # Errors
    /// It is not there; or `directory` says otherwise than what it is; or the directory is not empty.
    pub fn remove(&self, parent: u64, name: &[u8], directory: bool) -> Result<(), FilesError> {
        let mut tree = self.tree_mut();
        let number = tree.find(parent, name)?;
        self.removable(&tree, number, directory)?;
        self.device.batch(self.without(Batch::new(), &tree, number))?;
        tree.names.remove(&(parent, name.to_vec()));
        tree.forget(number);
        tree.touch(parent, SystemTime::now());
        Ok(())
    }

    fn removable(&self, tree: &Tree, number: u64, directory: bool) -> Result<(), FilesError> {
        match (tree.is_directory(number), directory) {
            (true, false) => Err(FilesError::IsADirectory),
            (false, true) => Err(FilesError::NotADirectory),
            (true, true) if tree.within(number).next().is_some() => Err(FilesError::DirectoryNotEmpty),
            _ => Ok(()),
        }
    }

    /// A batch that takes away a file's record as well, and its data where nobody has it open.
    fn without(&self, batch: Batch, tree: &Tree, number: u64) -> Batch {
        let batch = batch.trim(number, 1);
        let Some(node) = tree.nodes.get(&number) else { return batch };
        let sectors = self.layout.sectors(node.reading().size);
        // What was allocated behind the end goes, too; a symbolic link has no data.
        match node.open.load(Ordering::Acquire) {
            0 if sectors > 0 => batch.trim(self.layout.data(number), sectors),
            _ => batch,
        }
    }

    /// Renames a file; with `replace` in the place of another.
    ///
    /// # Errors
    /// It is not there; the new name is none, or taken by something that cannot be replaced; a directory would be in itself.
    pub fn rename(
        &self,
        parent: u64,
        name: &[u8],
        new_parent: u64,
        new_name: &[u8],
        replace: bool,
    ) -> Result<(), FilesError> {
        check_name(new_name)?;
        let mut tree = self.tree_mut();
        let number = tree.find(parent, name)?;
        tree.directory(new_parent)?;
        let directory = tree.is_directory(number);
        let mut above = new_parent;
        while directory && above != ROOT {
            if above == number {
                return Err(FilesError::Loop);
            }
            above = tree.nodes.get(&above).map_or(ROOT, |node| node.reading().parent);
        }
        let old = tree.find(new_parent, new_name).ok();
        match old {
            Some(old) if old == number => return Ok(()),
            Some(_) if !replace => return Err(FilesError::Exists),
            Some(old) => self.removable(&tree, old, directory)?,
            None => {}
        }
        let node = tree.nodes.get(&number).cloned().ok_or(FilesError::NotFound)?;
        let mut record = node.writing();
        let now = SystemTime::now();
        let (change, name_then) = (tree.change + 1, new_name.to_vec());
        let renamed = Record { change, parent: new_parent, name: name_then, changed: now, ..record.clone() };
        let batch = Batch::new().write(number, &renamed.encode(self.layout.sector_bytes));
        let batch = old.into_iter().fold(batch, |batch, old| self.without(batch, &tree, old));
        self.device.batch(batch)?;
        node.dirty.store(false, Ordering::Release);
        *record = renamed;
        drop(record);
        tree.change = change;
        if let Some(old) = old {
            tree.forget(old);
        }
        tree.names.remove(&(parent, name.to_vec()));
        tree.names.insert((new_parent, new_name.to_vec()), number);
        tree.touch(parent, now);
        tree.touch(new_parent, now);
        Ok(())
    }

    /// Has a file open: its data stay although its name goes.
    ///
    /// # Errors
    /// It is not there.
    pub fn hold(&self, number: u64) -> Result<(), FilesError> {
        self.tree().nodes.get(&number).ok_or(FilesError::NotFound)?.open.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Has a file open no more. With the last one the data go, where the name is gone; otherwise the device is given the file's size,
    /// which is durable with the next sync of anything.
    ///
    /// # Errors
    /// The device fails.
    pub fn release(&self, number: u64) -> Result<(), FilesError> {
        let mut tree = self.tree_mut();
        let Some(node) = tree.nodes.get(&number).cloned() else { return Ok(()) };
        if node.open.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        if node.reading().parent != 0 {
            return self.write_dirty(&node);
        }
        tree.nodes.remove(&number);
        let sectors = self.layout.sectors(node.reading().size);
        if sectors > 0 {
            self.device.batch(Batch::new().trim(self.layout.data(number), sectors))?;
        }
        tree.free.insert(number);
        Ok(())
    }

    /// Changes permissions, owner, or the time of the last change of data.
    ///
    /// # Errors
    /// It is not there, or the device fails.
    pub fn set(
        &self,
        number: u64,
        permissions: Option<u32>,
        (uid, gid): (Option<u32>, Option<u32>),
        modified: Option<SystemTime>,
    ) -> Result<(), FilesError> {
        let node = self.node(number)?;
        let mut record = node.writing();
        record.mode = permissions.map_or(record.mode, |mode| record.mode & TYPE | mode & !TYPE);
        record.uid = uid.unwrap_or(record.uid);
        record.gid = gid.unwrap_or(record.gid);
        if modified.is_some() {
            *node.touched() = modified;
        }
        record.modified = node.touched().take().unwrap_or(record.modified);
        record.changed = SystemTime::now();
        self.write_record(&node, &record)
    }
}

impl Tree {
    fn find(&self, parent: u64, name: &[u8]) -> Result<u64, FilesError> {
        if name.len() > NAME_MAX {
            return Err(FilesError::Name { len: name.len() });
        }
        self.names.get(&(parent, name.to_vec())).copied().ok_or(FilesError::NotFound)
    }

    fn within(&self, directory: u64) -> impl Iterator<Item = (&(u64, Vec<u8>), &u64)> {
        self.names.range((directory, Vec::new())..(directory + 1, Vec::new()))
    }

    fn is_directory(&self, number: u64) -> bool {
        self.nodes.get(&number).is_some_and(|node| node.reading().is_directory())
    }

    fn directory(&self, number: u64) -> Result<(), FilesError> {
        match self.nodes.get(&number) {
            // One without a name is there for those who have it open, and takes no files.
            None => Err(FilesError::NotFound),
            Some(node) if node.reading().parent == 0 => Err(FilesError::NotFound),
            Some(node) if node.reading().is_directory() => Ok(()),
            Some(_) => Err(FilesError::NotADirectory),
        }
    }

    fn touch(&self, directory: u64, now: SystemTime) {
        if let Some(node) = self.nodes.get(&directory) {
            *node.touched() = Some(now);
        }
    }

    /// Forgets a file whose record is gone; whoever has it open keeps it.
    fn forget(&mut self, number: u64) {
        let Some(node) = self.nodes.get(&number) else { return };
        if node.open.load(Ordering::Acquire) > 0 {
            node.writing().parent = 0;
            return;
        }
        self.nodes.remove(&number);
        self.free.insert(number);
    }
}

fn check_name(name: &[u8]) -> Result<(), FilesError> {
    let possible = (1..=NAME_MAX).contains(&name.len()) && !name.contains(&b'/') && name != b"." && name != b"..";
    if possible { Ok(()) } else { Err(FilesError::Name { len: name.len() }) }
}
