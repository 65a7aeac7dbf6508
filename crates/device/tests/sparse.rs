//! Address spaces above the raw capacity: what they cost, what stands where, and what happens when the raw space is full.
//! A program of its own, because it measures the memory of the whole process.

#[path = "suite/common.rs"]
mod common;
#[path = "suite/made.rs"]
mod made;

use device::{
    BatchOp, Capacity, CreateOptions, Device, EmulateOptions, Emulation, Extent, FormatError, FormatOptions, Io,
    IoError, Setting, create, create_emulated, inspect,
};

use common::call;
use made::{Made, SECTOR, read, write};

/// Sectors of a PiB.
const SECTORS: u64 = 1 << 38;

fn options(bytes: u64) -> FormatOptions {
    FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::AddressSpace(bytes), label: "t".into() }
}

/// A device with 128 MiB of raw capacity under a PiB of addresses.
fn made() -> Made {
    Made::new(&CreateOptions {
        advertised_bytes: 64 << 20,
        raw_bytes: 128 << 20,
        profile: None,
        parity: 0,
        format: options(1 << 50),
    })
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

#[test]
fn a_pebibyte_of_which_hardly_anything_is_written() {
    let made = made();
    let before = resident();
    let mut device = made.attach();
    let taken = resident().saturating_sub(before);
    // Other tests of this process take some too.
    assert!(taken < 64 << 20, "{taken} bytes for what was never written");
    assert_eq!((device.info().sectors, device.info().format_version), (SECTORS, 6));
    let places = [0, 77, 1 << 20, (1 << 37) + 5, SECTORS - 1];
    for (byte, lba) in (1..).zip(places) {
        write(&mut device, lba, byte).expect("written");
    }
    // Where data stand: whether here, and what comes next.
    assert_eq!(device.extent(77, 9), Extent { count: 1, mapped: true });
    assert_eq!(device.extent(78, SECTORS - 78), Extent { count: (1 << 20) - 78, mapped: false });
    assert_eq!(device.extent((1 << 37) + 6, (1 << 37) - 6), Extent { count: (1 << 37) - 7, mapped: false });
    call(&mut device, Io::Trim { lba: 1, count: SECTORS - 2, fua: true }).expect("trimmed");
    drop(device);
    let mut device = made.attach();
    assert_eq!(places.map(|lba| read(&mut device, lba)), [1, 0, 0, 0, 5], "the trim stays");
    device.verify().expect("sound books");
    device.detach().expect("detached");
    let mut device = made.attach();
    assert_eq!(places.map(|lba| read(&mut device, lba)), [1, 0, 0, 0, 5]);
    assert!(device.status().map_memory_bytes < 32 << 20, "{}", device.status().map_memory_bytes);
}

#[test]
fn a_full_raw_space_refuses_what_would_need_more_before_it_is_taken() {
    let made = made();
    let mut device = made.attach();
    let room = device.status().room_sectors.expect("a sparse device has one");
    assert!(room * SECTOR as u64 > 64 << 20, "{room}");
    // Scattered, so that the checkpoint is as large as it can be.
    let place = |number: u64| number * 1000;
    for number in 0..room {
        write(&mut device, place(number), 1).expect("there is room");
    }
    assert_eq!(write(&mut device, 5, 9), Err(IoError::Full));
    let ops = [BatchOp::Write { lba: 0, count: 1 }, BatchOp::Write { lba: 5, count: 1 }];
    let data = [9; 2 * SECTOR];
    let batch =
        |ops: &[BatchOp], data: &[u8], device: &mut Device| call(device, Io::Batch { ops, data, fua: false }).map(drop);
    assert_eq!(batch(&ops, &data, &mut device), Err(IoError::Full));
    assert_eq!((read(&mut device, 0), read(&mut device, 5)), (1, 0), "nothing was changed");
    let health = device.status().health;
    assert!(health.starts_with("100 % of the raw space"), "{health}");
    assert_eq!(device.status().mapped_sectors, room);
    // What takes no more room goes on.
    write(&mut device, place(3), 2).expect("written anew");
    let ops = [BatchOp::Trim { lba: place(7), count: 1 }, BatchOp::Write { lba: 5, count: 1 }];
    batch(&ops, &data[..SECTOR], &mut device).expect("one goes, one comes");
    call(&mut device, Io::Trim { lba: place(8), count: 2000, fua: false }).expect("trimmed");
    write(&mut device, 6, 9).expect("there is room again");
    assert_eq!((read(&mut device, 5), read(&mut device, 6), read(&mut device, place(7))), (9, 9, 0));
    // It can be groomed and detached however full it is.
    for round in 0..2 {
        for number in (20..room).step_by(3) {
            write(&mut device, place(number), round).expect("written anew");
        }
    }
    device.detach().expect("detached");
    let mut device = made.attach();
    assert_eq!((read(&mut device, 5), read(&mut device, place(23)), read(&mut device, place(24))), (9, 1, 1));
    device.verify().expect("sound books");
}

#[test]
fn what_a_sparse_format_cannot_have_is_refused() {
    let made = made();
    let said = |error: FormatError| error.to_string();
    let create_with = |bytes| {
        let options = CreateOptions {
            advertised_bytes: 64 << 20,
            raw_bytes: 128 << 20,
            profile: None,
            parity: 0,
            format: options(bytes),
        };
        create(&[made.path().with_file_name("other")], &options).expect_err("refused").to_string()
    };
    for bytes in [64 << 20, 1 << 51, 0] {
        assert!(create_with(bytes).starts_with("address space: "), "{}", create_with(bytes));
    }
    let emulation = Emulation { scale: 64, seed: 1 };
    let emulated = EmulateOptions { profile: "iodrive-320-mlc".into(), emulation, format: options(1 << 50) };
    assert!(create_emulated(&made.path().with_file_name("card"), &emulated).is_err(), "a card has no such format");
    let mut device = made.attach();
    let page_file = device.set(&[Setting::PageFile(true)]).expect_err("refused");
    assert!(said(page_file).starts_with("page-file: on: expected a device whose address space"));
    let policy = device.set(&[Setting::Groomer("sepbit".into())]).expect_err("refused");
    assert!(said(policy).starts_with("groomer: sepbit: expected a policy that keeps nothing"));
    device.detach().expect("detached");
    assert_eq!(inspect(&made.path()).expect("inspected").bytes(), 1 << 50);
}
