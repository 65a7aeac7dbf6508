//! The figures of a second cost no memory: a device's thread takes them between requests. A program of its own, because its allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::PathBuf;

use device::{
    AttachOptions, Capacity, CreateOptions, Device, EmulateOptions, Emulation, FormatOptions, Trouble, WallClock,
    create,
};
use media::Memory;
use media::ring::Ring;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps what `alloc` asks of it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `alloc` above with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(mut call: impl FnMut()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    call();
    ALLOCATIONS.with(Cell::get) - before
}

fn nothing_is_allocated(device: &Device, trouble: Option<Trouble>, what: &str) {
    let mut figures = device.figures();
    assert_eq!(allocations(|| figures = device.figures()), 0, "{what}");
    assert_eq!(figures.trouble, trouble, "{what}");
    let mut status = None;
    assert!(allocations(|| status = Some(device.status())) > 0, "{what}: the allocator counts");
    let status = status.expect("taken");
    assert_eq!(
        (status.health == "healthy", status.lost_dies.len()),
        (trouble.is_none(), figures.lost as usize),
        "{what}"
    );
}

fn files(count: usize) -> (tempfile::TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let paths: Vec<PathBuf> = (0..count).map(|number| directory.path().join(format!("d{number}.vsl"))).collect();
    let options = CreateOptions {
        advertised_bytes: 128 << 20,
        raw_bytes: 256 << 20,
        profile: None,
        parity: u32::from(count > 1),
        format: FormatOptions { sector_bytes: 4096, capacity: Capacity::Advertised, label: "test".into() },
    };
    create(&paths, &options).expect("created");
    (directory, paths)
}

#[test]
fn a_native_device_and_one_with_parity() {
    let ring = Ring::new(64).expect("io_uring");
    let attach = |paths: &[PathBuf]| Device::attach(paths, &AttachOptions::default(), &ring).expect("attached");
    let (_one, paths) = files(1);
    nothing_is_allocated(&attach(&paths), None, "one file");
    let (_three, paths) = files(3);
    let device = attach(&paths);
    nothing_is_allocated(&device, None, "three files");
    std::fs::remove_file(&paths[1]).expect("removed");
    nothing_is_allocated(&device, Some(Trouble::Vanished), "a file is gone");
    drop(device);
    let degraded = AttachOptions { degraded: true, ..AttachOptions::default() };
    let device = Device::attach(&[&paths[0], &paths[2]], &degraded, &ring).expect("attached");
    nothing_is_allocated(&device, Some(Trouble::Degraded), "a file is lost");
}

#[test]
fn an_emulated_card() {
    let format = FormatOptions { sector_bytes: 4096, capacity: Capacity::Advertised, label: "test".into() };
    let emulation = Emulation { scale: 64, seed: 1 };
    let options = EmulateOptions { profile: "iodrive-320-mlc".into(), emulation, format };
    let medium = Device::format_emulated(&options, |geometry| Box::new(Memory::new(geometry))).expect("formatted");
    let device = Device::emulated(medium, Box::new(WallClock::default())).expect("attached");
    nothing_is_allocated(&device, None, "a card");
    assert!(device.figures().celsius.is_some() && device.figures().pacing.is_some());
}
