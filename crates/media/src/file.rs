//! A medium on files or block devices, one a die, through the ring.
//!
//! A backing file begins with [`LABEL_AREA_BYTES`] for the labels; block 0, block 1, … follow,
//! page `p` of a block at `p * page_bytes`. Page buffers and program units are aligned, so direct
//! I/O takes them as they are; reads begin anywhere and are widened to its alignment.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use rustix::fd::{AsFd, AsRawFd, RawFd};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use slab::Slab;

use crate::arena::Arena;
use crate::backing::{Backing, OpenError, label_offset};
use crate::growing::Growing;
use crate::page::ALIGN;
use crate::ring::{Entry, Owner, SharedRing};
use crate::transfer::{Next, Purpose, Transfer, kernel_result};
use crate::{
    Command, Done, Geometry, LABEL_AREA_BYTES, LABEL_BYTES, Media, MediaError, Page, PageAddr, PageBuf, Slice,
};

/// How much an erase gives back in one piece. A file system keeps reads and writes of the file waiting
/// meanwhile, for 150 us a MiB where this was measured; smaller pieces cost more in all.
const PUNCH_BYTES: u64 = 4 << 20;

/// How much a fill writes in one piece: what a sync may have to wait for.
const FILL_BYTES: u64 = 256 << 10;

const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// How a [`FileMedia`] uses its backing files.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOptions {
    /// Open for reading only; everything that changes the medium then fails with `EROFS`.
    pub read_only: bool,
    /// Go through the page cache also where direct I/O works.
    pub page_cache: bool,
}

/// A medium on files or block devices.
pub struct FileMedia {
    geometry: Geometry,
    /// `None` for a die that is missing.
    dies: Vec<Option<Die>>,
    options: FileOptions,
    read_only: bool,
    ring: SharedRing,
    owner: Owner,
    pages: Arena,
    /// Buffers for reads of one slot, by far the most frequent ones.
    slots: Arena,
    slot_buffer_bytes: u32,
    under_way: Slab<Operation>,
    groups: Slab<Group>,
    /// Syncs under way.
    syncs: u32,
    /// Fills that wait until a sync is done.
    resting: Vec<Fill>,
    done: VecDeque<Done>,
}

struct Die {
    backing: Backing,
    /// Nothing is asked of it any more; what was under way goes on.
    left_out: bool,
    /// What direct I/O asks of offsets and lengths, bytes; 1 through the page cache.
    alignment: u32,
    /// Erase gives space back. Off once the target said that it cannot.
    punches: bool,
    /// Fill writes what was not written before: past the page cache, on a file system that writes in place and notes what was written.
    fills: bool,
}

/// What the kernel works at, by token.
enum Operation {
    Transfer(Transfer),
    /// A part without a buffer of a command on every die.
    Part {
        group: usize,
        die: u32,
    },
    Fill(Fill),
    /// One die's part of an erase: the bytes of the backing file that are still to be punched.
    Punch {
        group: usize,
        die: u32,
        left: Range<u64>,
    },
}

/// One die's part of a fill: the bytes of the backing file that are still to be written, and what with. The first piece is their
/// allocation.
struct Fill {
    group: usize,
    die: u32,
    left: Range<u64>,
    zeros: Option<Page>,
}

/// A command that runs on every die.
struct Group {
    id: u64,
    /// It is a sync.
    sync: bool,
    left: u32,
    result: Result<(), MediaError>,
    /// Dies that it failed on.
    failed: Vec<u32>,
}

impl FileMedia {
    /// Opens and locks the backing files, one a die.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        paths: &[PathBuf],
        geometry: Geometry,
        ring: SharedRing,
        options: FileOptions,
    ) -> Result<FileMedia, OpenError> {
        let backings = paths.iter().map(|path| Backing::open(path, options.read_only).map(Some));
        let backings = backings.collect::<Result<_, _>>()?;
        FileMedia::new(backings, geometry, ring, options)
    }

    /// A medium on backing files that are open already, one a die; `None` for one that is missing.
    ///
    /// # Errors
    /// A file is shorter than the geometry needs, or the operating system failed.
    ///
    /// # Panics
    /// When there is not one entry for each die.
    pub fn new(
        backings: Vec<Option<Backing>>,
        geometry: Geometry,
        ring: SharedRing,
        options: FileOptions,
    ) -> Result<FileMedia, OpenError> {
        assert_eq!(backings.len(), geometry.dies as usize, "one backing file a die");
        let dies = backings.into_iter().map(|backing| backing.map(|backing| Die::new(backing, &geometry, options)));
        let dies = dies.map(Option::transpose).collect::<Result<Vec<_>, _>>()?;
        let owner = ring.borrow_mut().register();
        // Wide enough for any die that may come later.
        let slot_buffer_bytes = (geometry.slot_bytes() + 2 * ALIGN as u32).next_multiple_of(ALIGN as u32);
        Ok(FileMedia {
            geometry,
            read_only: options.read_only || dies.iter().flatten().any(|die| die.backing.is_read_only()),
            dies,
            options,
            ring,
            owner,
            pages: Arena::passing(geometry.page_bytes() as usize),
            slots: Arena::passing(slot_buffer_bytes as usize),
            slot_buffer_bytes,
            under_way: Slab::new(),
            groups: Slab::new(),
            syncs: 0,
            resting: Vec::new(),
            done: VecDeque::new(),
        })
    }

    /// The backing files that there are, in the order of the dies.
    pub fn backings(&self) -> impl Iterator<Item = &Backing> {
        self.dies.iter().flatten().map(|die| &die.backing)
    }

    /// A die that commands for all of them go to.
    fn live(&self, die: u32) -> Option<&Die> {
        self.dies.get(die as usize)?.as_ref().filter(|die| !die.left_out)
    }

    fn position(&self, at: PageAddr, byte: u32) -> u64 {
        debug_assert!(at.die < self.geometry.dies && at.block < self.geometry.blocks);
        debug_assert!(at.page < self.geometry.pages_per_block);
        block_position(&self.geometry, at.block)
            + u64::from(at.page) * u64::from(self.geometry.page_bytes())
            + u64::from(byte)
    }

    fn read(&mut self, id: u64, at: PageAddr, bytes: Range<u32>) -> Result<(), MediaError> {
        assert!(bytes.start <= bytes.end && bytes.end <= self.geometry.page_bytes(), "read outside the page");
        let alignment = self.live(at.die).ok_or(MediaError::Lost)?.alignment;
        // Pages begin and end aligned, so the widened range stays inside the page.
        let start = bytes.start - bytes.start % alignment;
        let len = bytes.end.next_multiple_of(alignment) - start;
        let page = if len <= self.slot_buffer_bytes { self.slots.page() } else { self.pages.page() };
        let purpose = Purpose::Read { id, offset: bytes.start - start, len: bytes.end - bytes.start };
        let position = self.position(at, start);
        self.start(Transfer { die: at.die, purpose, page, start: 0, len, position, progress: 0 })
    }

    fn program(&mut self, id: u64, at: PageAddr, bytes: Range<u32>, page: Page) -> Result<(), MediaError> {
        let unit = self.geometry.unit_bytes;
        debug_assert!(bytes.start.is_multiple_of(unit) && bytes.end.is_multiple_of(unit), "programs are whole units");
        assert!(bytes.start < bytes.end && bytes.end as usize <= page.len(), "program outside the page");
        let position = self.position(at, bytes.start);
        let (start, len) = (bytes.start, bytes.end - bytes.start);
        self.start(Transfer { die: at.die, purpose: Purpose::Program { id }, page, start, len, position, progress: 0 })
    }

    fn start(&mut self, transfer: Transfer) -> Result<(), MediaError> {
        let entry = transfer.entry(self.live(transfer.die).ok_or(MediaError::Lost)?.fd());
        self.push(Operation::Transfer(transfer), entry)
    }

    fn push(&mut self, operation: Operation, entry: Entry) -> Result<(), MediaError> {
        let token = self.under_way.insert(operation);
        // SAFETY: what the entry points to is held by the operation until its completion came, also
        // when the medium is dropped; the entry names a file that the medium holds as long.
        let pushed = unsafe { self.ring.borrow_mut().push(self.owner, token as u64, entry) };
        pushed.map_err(|error| {
            self.under_way.remove(token);
            MediaError::from(errno(&error))
        })
    }

    /// Runs `entry` on every die, with one answer when all are done.
    fn on_every_die(&mut self, id: u64, entry: impl Fn(&Die) -> Option<Entry>) -> Option<Done> {
        let group = self.begin_group(id);
        self.on_every_die_of(group, entry)
    }

    fn on_every_die_of(&mut self, group: usize, entry: impl Fn(&Die) -> Option<Entry>) -> Option<Done> {
        for die in 0..self.geometry.dies {
            let Some(entry) = self.live(die).and_then(&entry) else { continue };
            let pushed = self.push(Operation::Part { group, die }, entry);
            self.count_part(group, die, pushed);
        }
        self.end_part(group, 0, Ok(()))
    }

    fn erase(&mut self, id: u64, block: u32) -> Option<Done> {
        let group = self.begin_group(id);
        let position = block_position(&self.geometry, block);
        for die in 0..self.geometry.dies {
            if self.live(die).is_some_and(|die| die.punches) {
                let pushed = self.punch(group, die, position..position + self.geometry.block_bytes());
                self.count_part(group, die, pushed);
            }
        }
        self.end_part(group, 0, Ok(()))
    }

    /// Punches the first piece of a range.
    fn punch(&mut self, group: usize, die: u32, range: Range<u64>) -> Result<(), MediaError> {
        let end = range.end.min(range.start + PUNCH_BYTES);
        let entry = self.live(die).ok_or(MediaError::Lost)?.allocate(range.start, end - range.start, PUNCH);
        self.push(Operation::Punch { group, die, left: end..range.end }, entry)
    }

    fn fill(&mut self, id: u64, block: u32) -> Option<Done> {
        let group = self.begin_group(id);
        let position = block_position(&self.geometry, block);
        let bytes = self.geometry.block_bytes();
        for die in 0..self.geometry.dies {
            let Some(live) = self.live(die).filter(|die| !die.backing.is_block_device()) else { continue };
            let entry = live.allocate(position, bytes, FallocateFlags::KEEP_SIZE);
            let left = position..position + bytes;
            let pushed = self.push(Operation::Fill(Fill { group, die, left, zeros: None }), entry);
            self.count_part(group, die, pushed);
        }
        self.end_part(group, 0, Ok(()))
    }

    /// A piece of a fill is done: writes the next one, or says that there is none. While a sync is under way the fill waits for its end:
    /// clients wait for syncs, and between two of them there is a moment in which nobody waits for the medium.
    fn fill_on(&mut self, mut fill: Fill) -> Result<bool, MediaError> {
        let live = self.live(fill.die).ok_or(MediaError::Lost)?;
        if fill.left.is_empty() || (fill.zeros.is_none() && !live.is_to_be_filled(&fill.left)) {
            return Ok(false);
        }
        fill.zeros.get_or_insert_with(|| PageBuf::new(FILL_BYTES as usize));
        match self.syncs {
            0 => self.fill_piece(fill)?,
            _ => self.resting.push(fill),
        }
        Ok(true)
    }

    /// Writes the next piece of a fill.
    fn fill_piece(&mut self, fill: Fill) -> Result<(), MediaError> {
        let live = self.live(fill.die).ok_or(MediaError::Lost)?;
        let Some(zeros) = &fill.zeros else { return Err(MediaError::Os(Errno::INVAL)) };
        let bytes = FILL_BYTES.min(fill.left.end - fill.left.start) as u32;
        let entry = Entry::Write { fd: live.fd(), address: zeros.as_ptr(), bytes, position: fill.left.start };
        self.push(Operation::Fill(fill), entry)
    }

    fn sync(&mut self, id: u64) -> Option<Done> {
        let group = self.begin_group(id);
        self.groups[group].sync = true;
        self.syncs += 1;
        self.on_every_die_of(group, |die| Some(die.sync()))
    }

    /// A sync is done: each fill that waited writes one piece, also where the next sync is under way, so that it comes to its end.
    fn sync_ends(&mut self) {
        self.syncs -= 1;
        for fill in std::mem::take(&mut self.resting) {
            let (group, die) = (fill.group, fill.die);
            if let Err(error) = self.fill_piece(fill)
                && let Some(done) = self.end_part(group, die, Err(error))
            {
                self.done.push_back(done);
            }
        }
    }

    fn write_label(&mut self, id: u64, copy: u8, bytes: &[Vec<u8>]) -> Option<Done> {
        let fits = |bytes: &Vec<u8>| bytes.len() <= LABEL_BYTES as usize;
        if copy > 1 || bytes.len() > self.dies.len() || !bytes.iter().all(fits) {
            return Some(Done { id, result: Err(MediaError::Os(Errno::INVAL)) });
        }
        let group = self.begin_group(id);
        for (die, bytes) in (0..).zip(bytes).filter(|(_, bytes)| !bytes.is_empty()) {
            let Some(live) = self.live(die) else { continue };
            let len = bytes.len().next_multiple_of(live.alignment as usize);
            let page = PageBuf::new(len);
            // SAFETY: the buffer was just made, nobody else knows it.
            unsafe { page.bytes_mut(0..bytes.len()) }.copy_from_slice(bytes);
            let (len, position) = (len as u32, label_offset(copy));
            let purpose = Purpose::Label { group };
            let started = self.start(Transfer { die, purpose, page, start: 0, len, position, progress: 0 });
            self.count_part(group, die, started);
        }
        self.end_part(group, 0, Ok(()))
    }

    /// A command for all dies; it is held open while its parts are being started.
    fn begin_group(&mut self, id: u64) -> usize {
        self.groups.insert(Group { id, sync: false, left: 1, result: Ok(()), failed: Vec::new() })
    }

    /// Counts a part of a group that was started, or notes why it could not be.
    fn count_part(&mut self, group: usize, die: u32, started: Result<(), MediaError>) {
        let Some(group) = self.groups.get_mut(group) else { return };
        match started {
            Ok(()) => group.left += 1,
            Err(error) => group.fail(die, error),
        }
    }

    /// Ends one part of a group; gives the answer when it was the last.
    fn end_part(&mut self, number: usize, die: u32, result: Result<(), MediaError>) -> Option<Done> {
        let group = self.groups.get_mut(number)?;
        group.left -= 1;
        if let Err(error) = result {
            group.fail(die, error);
        }
        if group.left > 0 {
            return None;
        }
        let group = self.groups.try_remove(number)?;
        if group.sync {
            self.sync_ends();
        }
        let result = match group.result {
            Ok(()) => Ok(None),
            Err(MediaError::Os(error)) => Err(MediaError::Dies { dies: group.failed, error }),
            Err(error) => Err(error),
        };
        Some(Done { id: group.id, result })
    }

    /// Waits until nothing is under way, as far as the ring can wait.
    fn quiesce(&mut self) {
        while !self.under_way.is_empty() && self.ring.borrow_mut().wait_for(self.owner).is_ok() {
            self.collect();
        }
    }

    /// Takes every completion that the ring holds for this medium.
    fn collect(&mut self) {
        loop {
            let completion = self.ring.borrow_mut().next(self.owner);
            let Some(completion) = completion else { return };
            if let Some(done) = self.complete(completion.token as usize, completion.result) {
                self.done.push_back(done);
            }
        }
    }

    fn complete(&mut self, token: usize, result: i32) -> Option<Done> {
        match self.under_way.get_mut(token)? {
            Operation::Transfer(transfer) => {
                let die = self.dies[transfer.die as usize].as_ref()?;
                let next = transfer.complete(result, die.alignment);
                let outcome = match next {
                    Next::Done(outcome) => outcome,
                    Next::Again => {
                        let entry = transfer.entry(die.fd());
                        // SAFETY: as in `push`: the operation stays where it is and holds the buffer.
                        let pushed = unsafe { self.ring.borrow_mut().push(self.owner, token as u64, entry) };
                        match pushed {
                            Ok(()) => return None,
                            Err(error) => Err(MediaError::from(errno(&error))),
                        }
                    }
                };
                let Some(Operation::Transfer(transfer)) = self.under_way.try_remove(token) else { return None };
                self.finish(transfer, outcome)
            }
            Operation::Part { group, die } => {
                let (group, die) = (*group, *die);
                self.under_way.remove(token);
                let result = match kernel_result(result) {
                    // Space cannot be reserved there: the medium works without.
                    Ok(_) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
                    Err(error) => Err(MediaError::from(error)),
                };
                self.end_part(group, die, result)
            }
            Operation::Fill(_) => {
                let Some(Operation::Fill(mut fill)) = self.under_way.try_remove(token) else { return None };
                let (group, die) = (fill.group, fill.die);
                let next = match (kernel_result(result), fill.zeros.is_none()) {
                    // Space cannot be reserved there: the medium works without.
                    (Ok(_) | Err(Errno::OPNOTSUPP | Errno::NOSYS), true) => self.fill_on(fill),
                    (Ok(moved), false) => match u64::from(moved) / ALIGN as u64 * ALIGN as u64 {
                        0 => Err(MediaError::Os(Errno::IO)),
                        whole => {
                            fill.left.start += whole;
                            self.fill_on(fill)
                        }
                    },
                    (Err(error), _) => Err(MediaError::from(error)),
                };
                match next {
                    Ok(true) => None,
                    next => self.end_part(group, die, next.map(drop)),
                }
            }
            Operation::Punch { .. } => {
                let Some(Operation::Punch { group, die, left }) = self.under_way.try_remove(token) else { return None };
                let result = match kernel_result(result) {
                    Ok(_) if left.is_empty() => Ok(()),
                    Ok(_) => match self.punch(group, die, left) {
                        Ok(()) => return None,
                        failed => failed,
                    },
                    // Space cannot be given back there: the medium works without.
                    Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                        if let Some(die) = &mut self.dies[die as usize] {
                            die.punches = false;
                        }
                        Ok(())
                    }
                    Err(error) => Err(MediaError::from(error)),
                };
                self.end_part(group, die, result)
            }
        }
    }

    fn finish(&mut self, transfer: Transfer, outcome: Result<(), MediaError>) -> Option<Done> {
        match transfer.purpose {
            Purpose::Read { id, offset, len } => {
                let slice = |()| Some(Slice { page: transfer.page, offset: offset as usize, len: len as usize });
                Some(Done { id, result: outcome.map(slice) })
            }
            Purpose::Program { id } => Some(Done { id, result: outcome.map(|()| None) }),
            Purpose::Label { group } => {
                let die = transfer.die;
                let next = outcome.and_then(|()| {
                    let entry = self.live(die).ok_or(MediaError::Lost)?.sync();
                    self.push(Operation::Part { group, die }, entry)
                });
                // The sync goes on in the place of the write.
                if next.is_ok() { None } else { self.end_part(group, die, next) }
            }
        }
    }
}

impl Group {
    /// A full store is told before a failed die: a die is not given up for want of space.
    fn fail(&mut self, die: u32, error: MediaError) {
        if error == MediaError::Lost {
            // It was left out meanwhile.
            return;
        }
        self.failed.push(die);
        match (&self.result, &error) {
            (Err(MediaError::NoSpace), _) => {}
            (Ok(()), _) | (_, MediaError::NoSpace) => self.result = Err(error),
            _ => {}
        }
    }
}

/// Whether a backing file is as long as its format says.
///
/// # Errors
/// It was cut, or cannot be looked at.
pub fn check_length(backing: &Backing, geometry: &Geometry) -> Result<(), OpenError> {
    let (found, expected) = (backing.bytes()?, backing_bytes(geometry));
    match found < expected {
        true => Err(OpenError::Truncated { path: backing.path().into(), found, expected }),
        false => Ok(()),
    }
}

/// Whether it is a file of ext4 or XFS: there blocks stay where they are, and count as unwritten until they are written once.
fn writes_in_place(backing: &Backing) -> bool {
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    let kind = rustix::fs::fstatfs(backing).map(|stat| stat.f_type as u64);
    !backing.is_block_device() && matches!(kind, Ok(EXT4 | XFS))
}

impl Die {
    fn new(mut backing: Backing, geometry: &Geometry, options: FileOptions) -> Result<Die, OpenError> {
        check_length(&backing, geometry)?;
        // Programs are whole units, so direct I/O needs units that are at least as aligned.
        let fits = backing.direct_alignment().is_none_or(|alignment| geometry.unit_bytes.is_multiple_of(alignment));
        if options.page_cache || !fits {
            backing.use_page_cache()?;
        }
        let alignment = backing.direct_alignment().unwrap_or(1);
        tracing::debug!(path = %backing.path().display(), alignment, "backing file open");
        let fills = alignment > 1 && writes_in_place(&backing);
        Ok(Die { backing, left_out: false, alignment, punches: true, fills })
    }

    fn fd(&self) -> RawFd {
        self.backing.as_fd().as_raw_fd()
    }

    /// Whether some of these bytes were not written yet.
    fn is_to_be_filled(&self, bytes: &Range<u64>) -> bool {
        self.fills && rustix::fs::seek(&self.backing, SeekFrom::Hole(bytes.start)).is_ok_and(|hole| hole < bytes.end)
    }

    fn sync(&self) -> Entry {
        Entry::SyncData { fd: self.fd() }
    }

    fn allocate(&self, position: u64, bytes: u64, mode: FallocateFlags) -> Entry {
        Entry::Allocate { fd: self.fd(), position, bytes, mode }
    }
}

impl Media for FileMedia {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        self.pages.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        if self.read_only && !matches!(command, Command::Read { .. } | Command::Sync) {
            return Some(Done { id, result: Err(MediaError::Os(Errno::ROFS)) });
        }
        let bytes = self.geometry.block_bytes();
        let started = match command {
            Command::Rebuild { .. } => Err(MediaError::Lost),
            Command::Read { at, bytes } => self.read(id, at, bytes),
            Command::Program { at, bytes, page } => self.program(id, at, bytes, page),
            Command::Allocate { block } => {
                let position = block_position(&self.geometry, block);
                return self.on_every_die(id, |die| {
                    (!die.backing.is_block_device()).then(|| die.allocate(position, bytes, FallocateFlags::KEEP_SIZE))
                });
            }
            Command::Fill { block } => return self.fill(id, block),
            Command::Erase { block } => return self.erase(id, block),
            Command::Sync => return self.sync(id),
            Command::WriteLabel { copy, bytes } => return self.write_label(id, copy, &bytes),
        };
        started.err().map(|error| Done { id, result: Err(error) })
    }

    fn poll(&mut self) -> Option<Done> {
        if self.done.is_empty() {
            self.collect();
        }
        self.done.pop_front()
    }

    fn wait(&mut self) {
        self.collect();
        while self.done.is_empty() && !self.under_way.is_empty() {
            if let Err(error) = self.ring.borrow_mut().wait_for(self.owner) {
                tracing::error!(%error, "the ring does not wait");
                return;
            }
            self.collect();
        }
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        if die >= self.geometry.dies || copy > 1 {
            return Err(MediaError::Os(Errno::INVAL));
        }
        let die = self.live(die).ok_or(MediaError::Lost)?;
        die.backing.read_label(copy).map_err(MediaError::from)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.dies.iter().flatten().map(|die| die.backing.allocated_bytes()).sum()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.dies.iter().flatten().filter_map(|die| die.backing.free_bytes()).min()
    }

    fn written_end(&mut self, block: u32) -> u64 {
        let (start, bytes) = (block_position(&self.geometry, block), self.geometry.block_bytes());
        let ends = self.backings().map(|backing| backing.written_end(start..start + bytes) - start);
        ends.max().unwrap_or(bytes)
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        None
    }

    fn tamper(&mut self, at: PageAddr, bytes: Range<u32>, change: &mut dyn FnMut(&mut [u8])) -> Result<(), MediaError> {
        if self.read_only {
            return Err(MediaError::Os(Errno::ROFS));
        }
        let position = self.position(at, bytes.start);
        let die = self.dies.get(at.die as usize).and_then(Option::as_ref).ok_or(MediaError::Lost)?;
        Ok(die.backing.tamper(position, bytes.len(), change)?)
    }

    fn growing(&mut self) -> Result<Vec<Growing>, OpenError> {
        self.backings().map(Growing::of).collect()
    }

    fn grow(&mut self, blocks: u32) -> Result<(), MediaError> {
        let larger = Geometry { blocks, ..self.geometry };
        for backing in self.backings() {
            check_length(backing, &larger).map_err(|error| {
                tracing::error!(%error, "a backing file is too short to grow");
                MediaError::Truncated
            })?;
        }
        self.geometry = larger;
        Ok(())
    }

    fn leave_out(&mut self, die: u32) {
        if let Some(die) = &mut self.dies[die as usize] {
            die.left_out = true;
        }
    }

    fn let_go(&mut self, die: u32) {
        // What is under way there holds on to it.
        self.quiesce();
        if let Some(die) = self.dies.get_mut(die as usize) {
            die.take_if(|die| die.left_out);
        }
    }

    fn replace(&mut self, die: u32, backing: Backing) -> Result<(), MediaError> {
        // What is under way there holds on to the old one.
        self.quiesce();
        let die = self.dies.get_mut(die as usize).ok_or(MediaError::Os(Errno::INVAL))?;
        let new = Die::new(backing, &self.geometry, self.options).map_err(|error| {
            tracing::error!(%error, "a backing file does not fit");
            MediaError::Truncated
        })?;
        *die = Some(new);
        Ok(())
    }
}

impl Drop for FileMedia {
    /// The kernel reads and writes our buffers until it is done with them.
    fn drop(&mut self) {
        self.quiesce();
        if !self.under_way.is_empty() {
            // Nobody can tell when the kernel will be done: never free those buffers.
            std::mem::forget(std::mem::take(&mut self.under_way));
        }
        self.ring.borrow_mut().unregister(self.owner);
    }
}

/// Bytes that a backing file of this geometry has.
pub const fn backing_bytes(geometry: &Geometry) -> u64 {
    block_position(geometry, geometry.blocks)
}

/// Where a block begins, bytes from the start of a backing file.
pub const fn block_position(geometry: &Geometry, block: u32) -> u64 {
    LABEL_AREA_BYTES + block as u64 * geometry.block_bytes()
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
