//! A medium whose every byte a fuzzer may have written: it takes its shape from the superblock, as a device file does.

use std::cell::RefCell;
use std::rc::Rc;

use device::{Completion, Device, Io, MediaFormat, Submitted};
use media::{Command, Done, Geometry, LABEL_BYTES, Media, MediaError, Page, PageAddr, PageBuf, Slice};

/// What stands in a label copy that matters here, bytes.
pub const LABEL: usize = 1024;
/// Where the geometry stands in a superblock, bytes.
pub const GEOMETRY: std::ops::Range<usize> = 44..72;

/// The medium's bytes; clones of the handle share them.
#[derive(Clone)]
pub struct Flat(pub Rc<RefCell<Bytes>>);

/// The bytes themselves.
#[derive(Clone)]
pub struct Bytes {
    pub labels: [Vec<u8>; 2],
    pub blocks: Vec<u8>,
}

/// A [`Media`] on them.
pub struct FlatMedia {
    geometry: Geometry,
    flat: Flat,
    /// Commands that it still carries out. Then it fails, as any medium does one day: where hostile numbers left the groomer
    /// no room to gain, it would go on for ever.
    left: u32,
}

/// Commands in the life of a medium: several times what an attach and a few requests need.
const LIFE: u32 = 20_000;

/// The geometry that a superblock names. Only a device may judge whether it makes sense.
fn geometry(label: &[u8]) -> Geometry {
    let field = |n: usize| {
        let at = GEOMETRY.start + 4 * n;
        u32::from_le_bytes(label[at..at + 4].try_into().expect("four bytes"))
    };
    Geometry {
        dies: field(0),
        parity: field(1),
        blocks: field(2),
        pages_per_block: field(3),
        slots_per_page: field(4),
        sector_bytes: field(5),
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: field(6),
    }
}

impl Flat {
    /// The medium, in the shape that its superblock names now.
    pub fn media(&self) -> FlatMedia {
        FlatMedia { geometry: geometry(&self.0.borrow().labels[0]), flat: self.clone(), left: LIFE }
    }

    /// An empty medium with a format.
    pub fn formatted(geometry: Geometry, format: &MediaFormat) -> Flat {
        let bytes = geometry.block_bytes() * u64::from(geometry.blocks) * u64::from(geometry.dies);
        let labels = [vec![0; LABEL], vec![0; LABEL]];
        let flat = Flat(Rc::new(RefCell::new(Bytes { labels, blocks: vec![0; bytes as usize] })));
        let mut media = FlatMedia { geometry, flat: flat.clone(), left: LIFE };
        Device::format_media(&mut media, format).expect("sizes that fit together");
        // Both copies, as a format leaves them.
        let mut bytes = flat.0.borrow_mut();
        let label = bytes.labels[1].clone();
        bytes.labels[0] = label;
        drop(bytes);
        flat
    }
}

impl FlatMedia {
    /// Where a part of a page lies, if the store is that long.
    fn range(&self, at: PageAddr, bytes: &std::ops::Range<u32>) -> Result<std::ops::Range<usize>, MediaError> {
        let g = &self.geometry;
        assert!(bytes.start <= bytes.end && bytes.end <= g.page_bytes(), "{bytes:?} of a page of {}", g.page_bytes());
        assert!(at.die < g.dies && at.block < g.blocks && at.page < g.pages_per_block, "{at:?}: outside of {g:?}");
        let page = (u64::from(at.block) * u64::from(g.dies) + u64::from(at.die)) * u64::from(g.pages_per_block);
        let start = (page + u64::from(at.page)) * u64::from(g.page_bytes()) + u64::from(bytes.start);
        let end = start + u64::from(bytes.end - bytes.start);
        let length = self.flat.0.borrow().blocks.len() as u64;
        if end <= length { Ok(start as usize..end as usize) } else { Err(MediaError::Truncated) }
    }

    fn carry_out(&mut self, command: Command) -> Result<Option<Slice>, MediaError> {
        match command {
            Command::Read { at, bytes } => {
                let range = self.range(at, &bytes)?;
                let page = PageBuf::new(range.len().max(1));
                // SAFETY: the buffer was just made, nobody else knows it.
                unsafe { page.bytes_mut(0..range.len()) }.copy_from_slice(&self.flat.0.borrow().blocks[range.clone()]);
                return Ok(Some(Slice { page, offset: 0, len: range.len() }));
            }
            Command::Program { at, bytes, page } => {
                let range = self.range(at, &bytes)?;
                let from = page.bytes(bytes.start as usize..bytes.end as usize);
                self.flat.0.borrow_mut().blocks[range].copy_from_slice(from);
            }
            Command::Rebuild { .. } => return Err(MediaError::Lost),
            Command::Allocate { .. } | Command::Fill { .. } | Command::Erase { .. } | Command::Sync => {}
            Command::WriteLabel { copy, bytes } => {
                let label = &mut self.flat.0.borrow_mut().labels[usize::from(copy)];
                let bytes = &bytes[0];
                if bytes.len() > label.len() {
                    label.resize(bytes.len(), 0);
                }
                label[..bytes.len()].copy_from_slice(bytes);
            }
        }
        Ok(None)
    }
}

impl Media for FlatMedia {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        PageBuf::new(self.geometry.page_bytes() as usize)
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        self.left = self.left.saturating_sub(1);
        let result = if self.left > 0 { self.carry_out(command) } else { Err(MediaError::Os(rustix::io::Errno::IO)) };
        Some(Done { id, result })
    }

    fn poll(&mut self) -> Option<Done> {
        None
    }

    fn wait(&mut self) {}

    fn read_label(&mut self, _: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        let mut label = self.flat.0.borrow().labels[usize::from(copy)].clone();
        label.resize(LABEL_BYTES as usize, 0);
        Ok(label)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        None
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        None
    }
}

/// Makes the checksum of a superblock right again, as far as its length makes sense.
pub fn seal_label(label: &mut [u8]) {
    let len = u32::from_le_bytes(label[12..16].try_into().expect("four bytes")) as usize;
    if let Some(end) = len.checked_sub(4)
        && len <= label.len()
    {
        let sum = crc_fast::crc32_iscsi(&label[..end]);
        label[end..len].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Carries a request out. What it says does not matter, only that it is answered.
pub fn ask(device: &mut Device, io: Io) -> Option<Completion> {
    let mut io = Some(io);
    for _ in 0..100_000 {
        if let Some(request) = io.take() {
            match device.submit(1, request) {
                Submitted::Done(result) => return Some(Completion { tag: 1, result }),
                Submitted::Pending => {}
                Submitted::Busy(request) => io = Some(request),
            }
        }
        if let Some(completion) = device.poll() {
            return Some(completion);
        }
    }
    panic!("a request is never answered");
}

/// Uses a device as far as it can be used, and lets go of it.
pub fn use_up(mut device: Device) {
    let (sectors, sector) = (device.info().sectors, device.info().sector_bytes as usize);
    let last = sectors - 1;
    for lba in [0, 1, sectors / 3, sectors / 2, last] {
        let lba = lba.min(last);
        ask(&mut device, Io::Read { lba, buf: vec![0; sector] });
        ask(&mut device, Io::Write { lba, data: &vec![7; sector], fua: lba % 2 == 0 });
    }
    ask(&mut device, Io::Trim { lba: 0, count: sectors, fua: true });
    ask(&mut device, Io::Flush);
    for _ in 0..4 {
        device.idle();
        device.poll();
    }
    device.status();
    // A medium that was written by nobody well-meaning may well have no room for a checkpoint.
    let _ = device.detach();
}
