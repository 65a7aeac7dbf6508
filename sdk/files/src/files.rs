//! The files of a device: what is known of them in memory, and how that is found again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

use openvsl::{Batch, Device};

use crate::FilesError;
use crate::layout::{DIRECTORY, Layout, Record, TYPE};

/// The number of the directory that is always there.
pub const ROOT: u64 = 1;

/// Files on a device. A handle that may be shared between threads; see [the crate's page](crate).
#[derive(Debug)]
pub struct Files {
    pub(crate) device: Device,
    pub(crate) layout: Layout,
    tree: RwLock<Tree>,
}

/// Every file and every name: a record is a sector, so a million of them are a gigabyte on the device and some hundred megabytes here.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub nodes: BTreeMap<u64, Arc<Node>>,
    pub names: BTreeMap<(u64, Vec<u8>), u64>,
    /// Numbers above the highest are free as well.
    pub free: BTreeSet<u64>,
    pub next: u64,
    /// Counts changes of records.
    pub change: u64,
}

/// A file.
#[derive(Debug)]
pub(crate) struct Node {
    pub number: u64,
    record: RwLock<Record>,
    /// What is in the record must be written before the file's data are durable.
    pub dirty: AtomicBool,
    /// How often it is open: as long as it is, its data stay although its name is gone.
    pub open: AtomicU64,
    /// When it was last written, where that is later than what the record says.
    touched: Mutex<Option<SystemTime>>,
}

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// The file's number.
    pub number: u64,
    /// It has a name. Without one it is there for those who have it open.
    pub named: bool,
    /// Bytes.
    pub size: u64,
    /// Type and permissions, as `stat` has them.
    pub mode: u32,
    /// Whose it is.
    pub uid: u32,
    /// Which group's.
    pub gid: u32,
    /// When its data changed.
    pub modified: SystemTime,
    /// When anything else of it changed.
    pub changed: SystemTime,
}

impl Node {
    pub(crate) fn new(number: u64, record: Record) -> Node {
        Node {
            number,
            record: RwLock::new(record),
            dirty: AtomicBool::new(false),
            open: AtomicU64::new(0),
            touched: Mutex::new(None),
        }
    }

    // A panic leaves no record half-way: records are changed once what was to be done is done.
    pub(crate) fn reading(&self) -> RwLockReadGuard<'_, Record> {
        self.record.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writing(&self) -> RwLockWriteGuard<'_, Record> {
        self.record.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn touched(&self) -> MutexGuard<'_, Option<SystemTime>> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    pub(crate) fn is_directory(&self) -> bool {
        self.mode & TYPE == DIRECTORY
    }
}

impl Files {
    /// Makes an empty directory on a device that holds nothing, for so many files. Each may be as long as the device's address space
    /// divided by their number.
    ///
    /// # Errors
    /// The device is not empty, or too small for so many files.
    pub fn create(device: Device, files: u64) -> Result<Files, FilesError> {
        let layout = Layout::new(device.capabilities().sector_bytes, device.capabilities().sectors, files)?;
        if device.ranges(..).next().transpose()?.is_some() {
            return Err(FilesError::NotEmpty);
        }
        let now = SystemTime::now();
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let root = Record {
            change: 0,
            parent: ROOT,
            name: Vec::new(),
            mode: DIRECTORY | 0o755,
            uid,
            gid,
            size: 0,
            modified: now,
            changed: now,
            target: Vec::new(),
        };
        let batch = Batch::new().write(0, &layout.encode()).write(ROOT, &root.encode(layout.sector_bytes));
        device.batch(batch.durable())?;
        Files::open(device)
    }

    /// Opens the files of a device. What a power cut left of files that were never synced is removed.
    ///
    /// # Errors
    /// The device holds none, or fails.
    pub fn open(device: Device) -> Result<Files, FilesError> {
        let layout = Layout::decode(&device.read(0, 1)?, device.capabilities().sectors)?;
        let files = Files { device, layout, tree: RwLock::default() };
        let mut tree = Tree { next: ROOT, ..Tree::default() };
        let mut records = files.records()?;
        let gone = outdated(&mut records);
        for (number, record) in records {
            if number != ROOT {
                tree.names.insert((record.parent, record.name.clone()), number);
            }
            tree.change = tree.change.max(record.change);
            tree.free.extend(tree.next..number);
            tree.next = number + 1;
            tree.nodes.insert(number, Arc::new(Node::new(number, record)));
        }
        if !files.device.capabilities().read_only {
            for number in gone {
                files.device.batch(Batch::new().trim(number, 1))?;
            }
            files.tidy(&tree)?;
        }
        *files.tree.write().unwrap_or_else(PoisonError::into_inner) = tree;
        Ok(files)
    }

    /// All records, by their files' numbers.
    fn records(&self) -> Result<BTreeMap<u64, Record>, FilesError> {
        let mut records = BTreeMap::new();
        let at_once = u64::from(self.device.capabilities().max_write_bytes / self.layout.sector_bytes);
        for range in self.device.ranges(ROOT..=self.layout.files) {
            let mut range = range?;
            while !range.is_empty() {
                let count = at_once.min(range.end - range.start);
                let sectors = self.device.read(range.start, count as u32)?;
                for (number, sector) in (range.start..).zip(sectors.chunks(self.layout.sector_bytes as usize)) {
                    let why = || format!("record {number} cannot be read");
                    records.insert(number, Record::decode(sector).ok_or_else(|| FilesError::NoFiles { why: why() })?);
                }
                range.start += count;
            }
        }
        match records.get(&ROOT) {
            Some(root) if root.is_directory() => Ok(records),
            _ => Err(FilesError::NoFiles { why: "it has no first directory".into() }),
        }
    }

    /// Trims what belongs to no file, and zeroes what lies behind a file's end in its last sector: a power cut may have kept data of
    /// a write whose size or name it took.
    fn tidy(&self, tree: &Tree) -> Result<(), FilesError> {
        let mut after = self.layout.data(ROOT);
        for node in tree.nodes.values() {
            let record = node.reading();
            let start = self.layout.data(node.number);
            self.trim_mapped(after, start)?;
            after = start + self.layout.sectors(record.size);
            let within = record.size % u64::from(self.layout.sector_bytes);
            if within > 0 && self.device.exists(after - 1)? {
                let mut last = self.device.read(after - 1, 1)?;
                if last[within as usize..].iter().any(|&byte| byte != 0) {
                    last[within as usize..].fill(0);
                    self.device.write(after - 1, &last)?;
                }
            }
        }
        self.trim_mapped(after, (self.layout.files + 1) * self.layout.stride)
    }

    fn trim_mapped(&self, start: u64, end: u64) -> Result<(), FilesError> {
        for range in self.device.ranges(start..end) {
            let range = range?;
            // In a batch: a trim of its own is no promise.
            self.device.batch(Batch::new().trim(range.start, range.end - range.start))?;
        }
        Ok(())
    }

    /// What the files lie on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many files there can be, and how long each of them.
    pub fn limits(&self) -> (u64, u64) {
        (self.layout.files, self.layout.max_bytes())
    }

    /// How many files there are.
    pub fn count(&self) -> u64 {
        self.tree().nodes.len() as u64
    }

    // A panic leaves no name half-way: the tree is changed once the device has answered.
    pub(crate) fn tree(&self) -> RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tree_mut(&self) -> RwLockWriteGuard<'_, Tree> {
        self.tree.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn node(&self, number: u64) -> Result<Arc<Node>, FilesError> {
        self.tree().nodes.get(&number).cloned().ok_or(FilesError::NotFound)
    }

    /// What is known of a file.
    ///
    /// # Errors
    /// It is not there.
    pub fn attributes(&self, number: u64) -> Result<Attributes, FilesError> {
        let node = self.node(number)?;
        let record = node.reading();
        let Record { parent, size, mode, uid, gid, modified, changed, .. } = *record;
        let modified = node.touched().unwrap_or(modified);
        Ok(Attributes { number, named: parent != 0, size, mode, uid, gid, modified, changed: changed.max(modified) })
    }

    /// Makes everything durable, with the times of all files.
    ///
    /// # Errors
    /// The device fails.
    pub fn sync_all(&self) -> Result<(), FilesError> {
        self.write_records(true)?;
        Ok(self.device.flush()?)
    }

    /// Writes the records of all files whose size has changed, or whose time has.
    pub(crate) fn write_records(&self, times: bool) -> Result<(), FilesError> {
        let nodes: Vec<_> = self.tree().nodes.values().cloned().collect();
        for node in nodes {
            if times && node.touched().is_some() {
                node.dirty.store(true, Ordering::Release);
            }
            self.write_dirty(&node)?;
        }
        Ok(())
    }

    /// Writes the record of a file whose size or time has changed.
    pub(crate) fn write_dirty(&self, node: &Node) -> Result<(), FilesError> {
        if !node.dirty.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut record = node.writing();
        record.modified = node.touched().take().unwrap_or(record.modified);
        self.write_record(node, &record)
    }

    /// Writes the record of a file that still has one.
    pub(crate) fn write_record(&self, node: &Node, record: &Record) -> Result<(), FilesError> {
        node.dirty.store(false, Ordering::Release);
        if record.parent == 0 {
            return Ok(());
        }
        let written = self.device.write(node.number, &record.encode(self.layout.sector_bytes));
        Ok(written.inspect_err(|_| node.dirty.store(true, Ordering::Release))?)
    }
}

/// Takes out what a power cut left of names that were never synced: of two records of a name the older one, and what is in a directory
/// that is not there.
fn outdated(records: &mut BTreeMap<u64, Record>) -> Vec<u64> {
    let mut newest: BTreeMap<(u64, Vec<u8>), (u64, u64)> = BTreeMap::new();
    let mut gone = Vec::new();
    for (&number, record) in records.iter().filter(|(number, _)| **number != ROOT) {
        let this = (record.change, number);
        match newest.entry((record.parent, record.name.clone())) {
            std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(this)),
            std::collections::btree_map::Entry::Occupied(mut other) => {
                gone.push(this.min(*other.get()).1);
                let newer = this.max(*other.get());
                other.insert(newer);
            }
        }
    }
    records.retain(|number, _| !gone.contains(number));
    // Whatever hangs on the root stays; two directories in each other hang on nothing.
    let mut hanging = BTreeSet::from([ROOT]);
    loop {
        let more: Vec<u64> = records
            .iter()
            .filter(|(number, record)| !hanging.contains(number) && hanging.contains(&record.parent))
            .map(|(&number, _)| number)
            .collect();
        if more.is_empty() {
            break;
        }
        hanging.extend(more);
    }
    records.retain(|number, _| {
        let stays = hanging.contains(number);
        if !stays {
            gone.push(*number);
        }
        stays
    });
    gone
}
