//! Page-file support: memory for the worst case is there, and does not grow. A program of its own, because it locks the memory of
//! the whole process.

#[path = "suite/common.rs"]
mod common;

use device::{AttachOptions, Capacity, CreateOptions, Device, FormatOptions, Io, Setting, create};
use media::ring::Ring;
use random::SplitMix64;

use common::call;

const SECTOR: usize = 4096;

/// Kilobytes that the process may not have paged out.
fn locked_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("VmLck");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn memory_is_taken_beforehand_and_given_back() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("swap.vsl");
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "swap".into() };
    let options = CreateOptions { advertised_bytes: 1 << 30, raw_bytes: 3 << 29, profile: None, parity: 0, format };
    create(&[&path], &options).expect("created");
    let attach =
        || Device::attach(&[&path], &AttachOptions::default(), &Ring::new(64).expect("io_uring")).expect("attached");
    let mut device = attach();
    let sectors = device.info().sectors;
    let small = device.status().map_memory_bytes;
    assert!(!device.status().page_file && small < sectors, "{small}");
    let before = locked_kib();
    if let Err(error) = device.set(&[Setting::PageFile(true)]) {
        // Whoever may not lock memory is told so, and nothing has changed.
        let words = error.to_string();
        assert!(words.contains("page file") && words.contains("LimitMEMLOCK"), "{words}");
        assert!(!device.status().page_file && !device.settings().page_file);
        assert_eq!(device.status().map_memory_bytes, small);
        return;
    }
    assert!(device.status().page_file && locked_kib() > before);
    device.detach().expect("detached");
    assert_eq!(locked_kib(), before, "memory stays locked without a device that needs it");

    // It holds with every attach, and nothing that is written makes the layer larger.
    let mut device = attach();
    let (taken, map) = (device.status().memory_bytes, device.status().map_memory_bytes);
    assert!(device.status().page_file && map >= 4 * sectors, "{map} bytes for {sectors} sectors");
    let mut random = SplitMix64::new(1);
    for step in 0..20_000u64 {
        let lba = random.below(sectors);
        call(&mut device, Io::Write { lba, data: &[7; SECTOR], fua: step % 1000 == 999 }).expect("written");
        if step % 7 == 0 {
            call(
                &mut device,
                Io::Trim { lba: random.below(sectors - 4000), count: 1 + random.below(4000), fua: false },
            )
            .expect("trimmed");
        }
    }
    assert_eq!(device.status().map_memory_bytes, map);
    let grown = device.status().memory_bytes.saturating_sub(taken);
    assert!(grown < 16 << 20, "{grown} bytes more, beyond page buffers and books of requests");
    device.verify().expect("the books agree");
    device.set(&[Setting::PageFile(false)]).expect("off");
    assert!(!device.status().page_file && device.status().map_memory_bytes < map);
    assert_eq!(locked_kib(), before);
    device.verify().expect("the books agree");
}
