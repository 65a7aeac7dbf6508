//! What the media tests share: a small geometry, and commands run to their end.

use std::ops::Range;
use std::path::PathBuf;

use media::{Command, Done, FileMedia, FileOptions, Geometry, Media, MediaError, Page, PageAddr, Slice, backing, file};
use tempfile::TempDir;

/// Two dies, four blocks of four pages, pages of 16 slots (4 KiB sectors) in 17 units.
pub fn geometry() -> Geometry {
    Geometry {
        dies: 2,
        parity: 0,
        blocks: 4,
        pages_per_block: 4,
        slots_per_page: 16,
        sector_bytes: 4096,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4096,
    }
}

/// A directory on the disk that the build goes to.
pub fn disk() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory")
}

/// A directory in memory.
pub fn shm() -> TempDir {
    TempDir::new_in("/dev/shm").expect("a temporary directory")
}

/// Makes a backing file for each die.
pub fn create(dir: &TempDir, geometry: &Geometry) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = (0..geometry.dies).map(|die| dir.path().join(format!("die{die}"))).collect();
    for path in &paths {
        backing::Backing::create(path, file::backing_bytes(geometry)).expect("a new backing file");
    }
    paths
}

/// Opens a file medium on a ring of its own.
pub fn open(paths: &[PathBuf], page_cache: bool) -> FileMedia {
    let ring = media::ring::Ring::new(64).expect("io_uring");
    let options = FileOptions { page_cache, ..FileOptions::default() };
    FileMedia::open(paths, geometry(), ring, options).expect("backing files open")
}

/// Runs one command to its end.
pub fn run(media: &mut dyn Media, command: Command) -> Result<Option<Slice>, MediaError> {
    let done = media.submit(7, command).unwrap_or_else(|| next(media));
    assert_eq!(done.id, 7);
    done.result
}

/// Waits for the next command to be done.
pub fn next(media: &mut dyn Media) -> Done {
    for _ in 0..100_000 {
        if let Some(done) = media.poll() {
            return done;
        }
        media.wait();
    }
    panic!("a command under way is never done");
}

pub fn at(die: u32, block: u32, page: u32) -> PageAddr {
    PageAddr { die, block, page }
}

/// What byte `index` of a page programmed with `seed` is.
pub fn byte(seed: u32, index: u32) -> u8 {
    (index.wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503)) >> 11) as u8
}

/// Fills a range of a buffer that nobody else uses yet.
pub fn fill(page: &Page, bytes: Range<u32>, seed: u32) {
    // SAFETY: the tests fill ranges that no command under way covers, and keep no slices of them.
    let target = unsafe { page.bytes_mut(bytes.start as usize..bytes.end as usize) };
    for (index, target) in bytes.zip(target) {
        *target = byte(seed, index);
    }
}

/// Programs a range of a page with the bytes of `seed` and waits.
pub fn program(media: &mut dyn Media, at: PageAddr, bytes: Range<u32>, seed: u32) {
    let page = media.page();
    fill(&page, bytes.clone(), seed);
    run(media, Command::Program { at, bytes, page }).expect("program");
}

/// Programs a whole page.
pub fn program_page(media: &mut dyn Media, at: PageAddr, seed: u32) {
    let bytes = media.geometry().page_bytes();
    program(media, at, 0..bytes, seed);
}

/// Reads and waits.
pub fn read(media: &mut dyn Media, at: PageAddr, bytes: Range<u32>) -> Vec<u8> {
    let slice = run(media, Command::Read { at, bytes: bytes.clone() }).expect("read").expect("a read gives bytes");
    assert_eq!(slice.bytes().len(), bytes.len());
    slice.bytes().to_vec()
}

/// Checks that a range holds what was programmed with `seed`.
pub fn expect(media: &mut dyn Media, at: PageAddr, bytes: Range<u32>, seed: u32) {
    let found = read(media, at, bytes.clone());
    for (index, found) in bytes.zip(found) {
        assert_eq!(found, byte(seed, index), "byte {index} of {at:?}");
    }
}

/// Checks that a range reads as zeros.
pub fn expect_zeros(media: &mut dyn Media, at: PageAddr, bytes: Range<u32>) {
    assert!(read(media, at, bytes).iter().all(|byte| *byte == 0), "{at:?} reads as zeros");
}
