//! Page buffers that outlive the process: what was answered and not programmed yet is still there when the process is killed.
//!
//! A [`Stage`] is a file on a file system in memory, mapped and shared with the kernel. It holds page buffers, a table that says for
//! which page of which LEB each is, and the trim records that no page holds yet. An entry of the table stands from when its
//! page is begun until the last user of the buffer lets go of it, which is behind the last program of the page. What a
//! killed process left there is read as a [`Left`] by the next attach. The layout is part of the format (`docs/format.md`).
//!
//! Nothing here is trusted: every slot proves itself by its trailer, and the table only says where to look.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ftl::{Header, Kind, TrimRecord};
use rustix::fs::{FallocateFlags, FileType, OFlags, fallocate, fstat, fstatfs};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::geteuid;
use words::Words;

use crate::lock::{self, FileId, Share};
use crate::page::{ALIGN, Page, PageBuf};
use crate::{Geometry, PageAddr};

const MAGIC: [u8; 8] = *b"VSLSTAGE";
const VERSION: u32 = 1;

/// Bytes of the head: the label, and the generation behind it.
const HEAD_BYTES: usize = 4096;
/// Bytes of the label that its checksum covers.
const LABEL_BYTES: usize = 44;
/// Where the generation stands in the head.
const GENERATION_AT: usize = 64;
/// Where the trim records that no page holds yet stand: a head of 24 bytes and as many as a slot takes.
const TRIMS_AT: usize = HEAD_BYTES;
const TRIMS_BYTES: usize = 8192;
/// Records that fit there.
const RECORDS: usize = (TRIMS_BYTES - RECORDS_AT) / RECORD_BYTES;
const RECORDS_AT: usize = 24;
/// Sequence number, first sector, count, and a CRC-32C of the slot's header and these.
const RECORD_BYTES: usize = 32;
/// Where the table stands.
const TABLE_AT: usize = TRIMS_AT + TRIMS_BYTES;
const ENTRY_BYTES: usize = 32;
/// Entries of a table at most: more make no sense.
const ENTRIES_MAX: u32 = 1 << 16;
/// Buffers that are taken from the file system at a time.
const GROWTH: u32 = 16;

/// Whose pages a stage holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageLabel {
    /// Identity of the device.
    pub device: [u8; 16],
    /// The attach under way.
    pub epoch: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Entries of the table: no more pages are held at a time.
    pub entries: u32,
}

/// Why what a file holds cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The operating system refused it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It was never begun.
    #[error("it is empty")]
    Empty,
    /// It is none, or damaged.
    #[error("it makes no sense: {0}")]
    Nonsense(&'static str),
}

/// What a killed process left.
#[derive(Clone, Debug)]
pub struct Left {
    /// Whose it was.
    pub label: StageLabel,
    /// The last generation of the superblock that was on media in all copies.
    pub generation: u64,
    /// Pages that may not be on media.
    pub pages: Vec<LeftPage>,
    /// The slot of trim records that no page holds: its header, and the records.
    pub trims: Option<(Header, Vec<TrimRecord>)>,
}

/// One page of them.
#[derive(Clone, Debug)]
pub struct LeftPage {
    /// Where it belongs.
    pub at: PageAddr,
    /// When the page's LEB was opened: older slots are what the buffer held before.
    pub opened: u64,
    /// Its bytes.
    pub page: Page,
}

/// Opens the file of a device's stage, for this process alone; makes an empty one where there is none.
///
/// # Errors
/// The operating system refused it, it is not ours alone, it does not lie in memory, or somebody else uses it.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(path)?;
    let stat = fstat(&file)?;
    let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_uid == geteuid().as_raw();
    if !is_ours || stat.st_mode & 0o077 != 0 {
        return Err(io::Error::other("it is not a file that belongs to this user, and that nobody else may open"));
    }
    if !is_in_memory(&file)? {
        return Err(io::Error::other("it does not lie on a file system in memory"));
    }
    lock::take_from_the_dead(&file, FileId::of(&stat), Share::Alone)?;
    Ok(file)
}

/// Whether a file or directory lies in memory: a store elsewhere would write pages out that are as good as gone, and keep them over a reboot.
///
/// # Errors
/// It cannot be asked.
pub fn is_in_memory(file: impl AsFd) -> io::Result<bool> {
    // Of tmpfs and ramfs, from the kernel's magic.h.
    Ok([0x0102_1994, 0x8584_58f6].contains(&(fstatfs(file)?.f_type as u64)))
}

impl Left {
    /// Reads what a file holds, of a device whose pages are so long.
    ///
    /// # Errors
    /// It is no stage, or cannot be read.
    pub fn read(file: &File, page_bytes: u32) -> Result<Left, StageError> {
        let stat = fstat(file).map_err(io::Error::from)?;
        if stat.st_size == 0 {
            return Err(StageError::Empty);
        }
        // What the file takes of memory is all that is taken for it once more.
        let most = stat.st_blocks as u64 * 512;
        Left::parse(page_bytes, most, &|at, bytes| file.read_exact_at(bytes, at as u64))
    }

    fn parse(
        page_bytes: u32,
        most: u64,
        read: &dyn Fn(usize, &mut [u8]) -> io::Result<()>,
    ) -> Result<Left, StageError> {
        let mut head = [0; TABLE_AT];
        read(0, &mut head)?;
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if head[..8] != MAGIC || word(&head, 8) != VERSION {
            return Err(StageError::Nonsense("it does not begin like a stage"));
        }
        if word(&head, LABEL_BYTES) != crc_fast::crc32_iscsi(&head[..LABEL_BYTES]) {
            return Err(StageError::Nonsense("the label's checksum is wrong"));
        }
        let label = StageLabel {
            page_bytes: word(&head, 12),
            device: head[16..32].try_into().expect("sixteen bytes"),
            epoch: word(&head, 32),
            entries: word(&head, 36),
        };
        if label.entries > ENTRIES_MAX || label.page_bytes != page_bytes {
            return Err(StageError::Nonsense("its pages are not those of the device"));
        }
        let mut table = vec![0; label.entries as usize * ENTRY_BYTES];
        read(TABLE_AT, &mut table)?;
        let used = table.chunks_exact(ENTRY_BYTES).filter(|entry| word(entry, 0) != 0).count() as u64;
        if used * u64::from(page_bytes) > most {
            return Err(StageError::Nonsense("more pages than it has memory"));
        }
        let mut pages = Vec::new();
        for (number, entry) in table.chunks_exact(ENTRY_BYTES).enumerate() {
            if word(entry, 0) == 0 {
                continue;
            }
            let at = PageAddr { block: word(entry, 4), page: word(entry, 8), die: word(entry, 12) };
            let page = PageBuf::new(label.page_bytes as usize);
            // SAFETY: the buffer was just made, nobody else knows it.
            read(label.page_at(number), unsafe { page.bytes_mut(0..page.len()) })?;
            pages.push(LeftPage { at, opened: long(entry, 16), page });
        }
        let trims = &head[TRIMS_AT..];
        let count = word(trims, 0) as usize;
        if count > RECORDS {
            return Err(StageError::Nonsense("more trim records than fit"));
        }
        let (slot, seq, lag) = (word(trims, 4), long(trims, 8), word(trims, 16));
        let header = Header { slot, seq, kind: Kind::Trims, lba: 0, index: 0, remaining: 0, lag };
        let records: Vec<TrimRecord> = trims[RECORDS_AT..]
            .chunks_exact(RECORD_BYTES)
            .take(count)
            .map(|bytes| {
                (TrimRecord { seq: long(bytes, 0), lba: long(bytes, 8), count: long(bytes, 16) }, word(bytes, 24))
            })
            .take_while(|(record, sum)| record_sum(&header, record) == *sum)
            .map(|(record, _)| record)
            .collect();
        let trims = (!records.is_empty()).then_some((header, records));
        Ok(Left { label, generation: long(&head, GENERATION_AT), pages, trims })
    }
}

/// What a trim's record proves itself with.
fn record_sum(header: &Header, record: &TrimRecord) -> u32 {
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&header.slot.to_le_bytes());
    bytes[4..8].copy_from_slice(&header.lag.to_le_bytes());
    for (place, word) in bytes[8..].chunks_exact_mut(8).zip([header.seq, record.seq, record.lba, record.count]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    crc_fast::crc32_iscsi(&bytes)
}

impl StageLabel {
    /// For pages of a medium of this shape.
    pub fn new(device: [u8; 16], epoch: u32, geometry: &Geometry, entries: u32) -> StageLabel {
        StageLabel {
            device,
            epoch,
            page_bytes: geometry.page_bytes(),
            entries: entries.next_multiple_of(GROWTH).min(ENTRIES_MAX),
        }
    }

    fn stride(&self) -> usize {
        (self.page_bytes as usize).next_multiple_of(ALIGN)
    }

    fn head_bytes(&self) -> usize {
        (TABLE_AT + self.entries as usize * ENTRY_BYTES).next_multiple_of(ALIGN)
    }

    /// Where buffer `number` begins.
    fn page_at(&self, number: usize) -> usize {
        self.head_bytes() + number * self.stride()
    }

    fn encode(&self) -> [u8; LABEL_BYTES + 4] {
        let mut bytes = [0; LABEL_BYTES + 4];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.page_bytes.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.device);
        bytes[32..36].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.entries.to_le_bytes());
        let sum = crc_fast::crc32_iscsi(&bytes[..LABEL_BYTES]);
        bytes[LABEL_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// A stage in use. Clones are the same one.
#[derive(Clone)]
pub struct Stage(Rc<Shared>);

/// What the stage and its pages hold together.
pub(crate) struct Shared {
    label: StageLabel,
    /// `None` for memory of this process, which the simulator's "process" is not all of.
    file: Option<File>,
    head: Map,
    /// [`GROWTH`] buffers each.
    chunks: RefCell<Vec<Map>>,
    free: RefCell<Vec<u32>>,
    /// The process is as good as dead: what the table says stays.
    frozen: Cell<bool>,
    /// No buffer was to be had: said once.
    short: Cell<bool>,
}

impl Stage {
    /// Begins a stage in a file, whatever it held, or in memory.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn begin(file: Option<File>, label: StageLabel, generation: u64) -> io::Result<Stage> {
        if let Some(file) = &file {
            // A process that dies in between leaves an empty file.
            file.set_len(0)?;
            fallocate(file, FallocateFlags::empty(), 0, label.head_bytes() as u64)?;
        }
        let head = Map::new(file.as_ref(), 0, label.head_bytes())?;
        let shared = Shared {
            label,
            file,
            head,
            chunks: RefCell::default(),
            free: RefCell::default(),
            frozen: Cell::new(false),
            short: Cell::new(false),
        };
        shared.set_generation(generation);
        let bytes = label.encode();
        // SAFETY: inside the head, and nobody holds a reference into it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), shared.head.start.as_ptr(), bytes.len()) };
        Ok(Stage(Rc::new(shared)))
    }

    /// A buffer for a page. `None` where there is no room for one: then it is one that does not outlive the process.
    pub fn page(&self, at: PageAddr, opened: u64) -> Option<Page> {
        let shared = &self.0;
        let next = shared.free.borrow_mut().pop();
        let Some(number) = next.or_else(|| shared.grow()) else {
            if !shared.short.replace(true) {
                tracing::warn!(
                    "no memory for a page that outlives this process: a kill may now cost what was answered"
                );
            }
            return None;
        };
        shared.enter(number, at, opened);
        let start = shared.page_at(number);
        Some(PageBuf::from_stage(start, shared.label.page_bytes as usize, Rc::clone(shared)))
    }

    /// A trim's record that its slot does not hold yet. The slot's first begins it anew.
    pub fn note_trim(&self, header: &Header, record: &TrimRecord) {
        let head = &self.0.head;
        let count = match head.long(TRIMS_AT + 8).load(Ordering::Relaxed) == header.seq.to_le() {
            true => u32::from_le(head.word(TRIMS_AT).load(Ordering::Relaxed)),
            false => {
                head.word(TRIMS_AT).store(0, Ordering::Release);
                head.word(TRIMS_AT + 4).store(header.slot.to_le(), Ordering::Release);
                head.long(TRIMS_AT + 8).store(header.seq.to_le(), Ordering::Release);
                head.word(TRIMS_AT + 16).store(header.lag.to_le(), Ordering::Release);
                0
            }
        };
        if count as usize >= RECORDS {
            return;
        }
        let at = TRIMS_AT + RECORDS_AT + count as usize * RECORD_BYTES;
        for (at, word) in (at..).step_by(8).zip([record.seq, record.lba, record.count]) {
            head.long(at).store(word.to_le(), Ordering::Release);
        }
        head.word(at + 24).store(record_sum(header, record).to_le(), Ordering::Release);
        head.word(TRIMS_AT).store((count + 1).to_le(), Ordering::Release);
    }

    /// The slot of trim records with this sequence number stands in its page.
    pub fn trims_staged(&self, seq: u64) {
        if self.0.head.long(TRIMS_AT + 8).load(Ordering::Relaxed) == seq.to_le() {
            self.0.head.word(TRIMS_AT).store(0, Ordering::Release);
        }
    }

    /// A superblock of this generation is on media, in all copies.
    pub fn set_generation(&self, generation: u64) {
        self.0.set_generation(generation);
    }

    /// From now on the table stays as it is, as if the process had been killed.
    pub fn freeze(&self) {
        self.0.frozen.set(true);
    }

    /// A page is on media as far as it goes, although somebody still holds its buffer.
    pub fn forget(&self, page: &PageBuf) {
        self.0.number_of(page.as_ptr()).into_iter().for_each(|number| self.0.leave(number));
    }

    /// What a process that is killed now leaves.
    ///
    /// # Errors
    /// There is no memory for it, which the file system took.
    pub fn left(&self) -> Result<Left, StageError> {
        let shared = &self.0;
        let (head, stride) = (shared.label.head_bytes(), shared.label.stride());
        Left::parse(shared.label.page_bytes, u64::MAX, &|at, bytes| {
            if at < head {
                // SAFETY: the head is mapped, and no reference into it is held; the bytes end inside it.
                unsafe {
                    std::ptr::copy_nonoverlapping(shared.head.start.as_ptr().add(at), bytes.as_mut_ptr(), bytes.len())
                };
                return Ok(());
            }
            let start = shared.page_at(((at - head) / stride) as u32);
            // SAFETY: a buffer that the table names is mapped, and as long as a page.
            unsafe { std::ptr::copy_nonoverlapping(start.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
            Ok(())
        })
    }

    /// Takes the memory of so many buffers beforehand.
    ///
    /// # Errors
    /// There is not so much.
    pub fn take_memory(&self, buffers: u32) -> io::Result<()> {
        let shared = &self.0;
        let has = || shared.chunks.borrow().len() as u32 * GROWTH;
        while has() < buffers.min(shared.label.entries)
            && let Some(number) = shared.grow()
        {
            shared.free.borrow_mut().insert(0, number);
            let chunks = shared.chunks.borrow();
            let Some(chunk) = chunks.last() else { break };
            // SAFETY: a chunk that was mapped just now, of which no buffer was given out.
            unsafe { std::ptr::write_bytes(chunk.start.as_ptr(), 0, chunk.bytes) };
        }
        if has() >= buffers.min(shared.label.entries) { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
    }

    /// Memory that it takes, bytes; and of that what lies in pages that are in use.
    pub fn memory(&self) -> (u64, u64) {
        let (shared, page) = (&self.0, u64::from(self.0.label.page_bytes));
        let buffers = shared.chunks.borrow().len() as u64 * u64::from(GROWTH);
        let used = buffers - shared.free.borrow().len() as u64;
        (shared.label.head_bytes() as u64 + buffers * shared.label.stride() as u64, used * page)
    }
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({:?})", self.0.label)
    }
}

impl Shared {
    fn set_generation(&self, generation: u64) {
        self.head.long(GENERATION_AT).store(generation.to_le(), Ordering::Release);
    }

    fn entry_at(number: u32) -> usize {
        TABLE_AT + number as usize * ENTRY_BYTES
    }

    /// The table names a page. Each word is stored behind the one before, so a kill in between leaves no entry.
    fn enter(&self, number: u32, at: PageAddr, opened: u64) {
        let entry = Shared::entry_at(number);
        for (place, word) in (entry + 4..).step_by(4).zip([at.block, at.page, at.die]) {
            self.head.word(place).store(word.to_le(), Ordering::Release);
        }
        self.head.long(entry + 16).store(opened.to_le(), Ordering::Release);
        self.head.word(entry).store(1u32.to_le(), Ordering::Release);
    }

    fn leave(&self, number: u32) {
        if !self.frozen.get() {
            self.head.word(Shared::entry_at(number)).store(0, Ordering::Release);
        }
    }

    /// Takes back a buffer whose last handle is gone.
    pub(crate) fn give_back(&self, start: NonNull<u8>) {
        if let Some(number) = self.number_of(start.as_ptr()) {
            self.leave(number);
            self.free.borrow_mut().push(number);
        }
    }

    fn page_at(&self, number: u32) -> NonNull<u8> {
        let chunks = self.chunks.borrow();
        let chunk = &chunks[(number / GROWTH) as usize];
        // SAFETY: a chunk has room for `GROWTH` buffers.
        unsafe { chunk.start.add((number % GROWTH) as usize * self.label.stride()) }
    }

    /// Which buffer lies there.
    fn number_of(&self, start: *const u8) -> Option<u32> {
        let chunks = self.chunks.borrow();
        let inside =
            |chunk: &Map| (start as usize).checked_sub(chunk.start.as_ptr() as usize).filter(|at| *at < chunk.bytes);
        let (chunk, at) = (0..).zip(chunks.iter()).find_map(|(number, chunk)| Some((number, inside(chunk)?)))?;
        Some(chunk * GROWTH + (at / self.label.stride()) as u32)
    }

    /// Makes room for more buffers, and gives one of them.
    fn grow(&self) -> Option<u32> {
        let mut chunks = self.chunks.borrow_mut();
        let first = chunks.len() as u32 * GROWTH;
        if first + GROWTH > self.label.entries {
            return None;
        }
        let (at, bytes) = (self.label.page_at(first as usize), GROWTH as usize * self.label.stride());
        if let Some(file) = &self.file {
            // Memory that is promised now cannot be missing when it is written: that would end the process.
            fallocate(file, FallocateFlags::empty(), at as u64, bytes as u64).ok()?;
        }
        chunks.push(Map::new(self.file.as_ref(), at, bytes).ok()?);
        self.free.borrow_mut().extend((first + 1..first + GROWTH).rev());
        Some(first)
    }
}

/// Memory that a file holds, or this process alone.
struct Map {
    start: NonNull<u8>,
    bytes: usize,
    /// What is no mapping of a file.
    own: Option<Words>,
}

impl Map {
    fn new(file: Option<&File>, at: usize, bytes: usize) -> io::Result<Map> {
        let Some(file) = file else {
            let mut own = Words::new(bytes.div_ceil(size_of::<u32>()));
            return Ok(Map { start: NonNull::from(own.bytes_mut()).cast(), bytes, own: Some(own) });
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nobody. Who may shorten the file may end this process anyway.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, at as u64) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Map { start, bytes, own: None })
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes);
        // SAFETY: inside the memory and aligned; words are only ever used as atomics while the mapping is shared.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes);
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.own.is_none() {
            // SAFETY: this very range was mapped in `new`; every page in it holds `Shared`, which holds the mapping.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}
