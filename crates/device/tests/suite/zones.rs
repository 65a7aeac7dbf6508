//! Devices of zones: what they take, what stands after a cut, and that a reset leaves the groomer nothing to do.

use device::{
    AttachOptions, Capacity, CreateError, CreateOptions, Device, EmulateOptions, Emulation, FormatOptions, Io, IoError,
    Setting, SnapshotChange, SnapshotError, Submitted, ZoneAction, ZoneError, ZoneState, create, create_emulated,
    inspect,
};
use media::ring::Ring;
use random::SplitMix64;

use crate::common::call;
use crate::made::{Made, SECTOR};

const MIB: u64 = 1 << 20;
/// Erase blocks of 2 MiB: a zone is two of them.
const ZONE: u64 = 4 * MIB;

fn options(advertised_bytes: u64) -> CreateOptions {
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Zones(ZONE), label: "t".into() };
    CreateOptions { advertised_bytes, raw_bytes: advertised_bytes + 160 * MIB, profile: None, parity: 0, format }
}

fn zone(device: &mut Device, zone: u32, action: ZoneAction) -> Result<(), IoError> {
    for _ in 0..1_000_000 {
        match device.submit_zone(1, zone, action) {
            Submitted::Done(result) => return result.map(|_| ()),
            Submitted::Busy(_) => drop(device.poll()),
            Submitted::Pending => loop {
                if let Some(done) = device.poll() {
                    return done.result.map(|_| ());
                }
                device.wait();
            },
        }
        device.wait();
    }
    panic!("never taken");
}

fn write(device: &mut Device, lba: u64, with: u8, sectors: usize) -> Result<(), IoError> {
    call(device, Io::Write { lba, data: &vec![with; sectors * SECTOR], fua: false }).map(|_| ())
}

fn byte(device: &mut Device, lba: u64) -> u8 {
    call(device, Io::Read { lba, buf: vec![0xee; SECTOR] }).expect("read").expect("bytes")[0]
}

fn state(device: &Device, zone: u32) -> (ZoneState, u64) {
    let zones = device.zones().expect("it has zones");
    let view = zones.view(zone);
    (view.state, view.pointer - view.start)
}

#[test]
fn its_shape_follows_from_the_size_and_stands_in_the_format() {
    let made = Made::new(&options(64 * MIB));
    let device = made.attach();
    let zones = device.info().zones.expect("it has zones");
    assert_eq!((zones.count, zones.size_bytes, zones.most_active), (16, ZONE, 14));
    // Two erase blocks of 512 slots, each with a header.
    assert_eq!(zones.capacity_bytes, 2 * 511 * SECTOR as u64);
    assert_eq!((device.info().format_version, device.info().bytes()), (11, 16 * ZONE));
    let dir = tempfile::tempdir().expect("a directory");
    for size in [MIB, 3 * MIB, 16 << 30, 64 * MIB] {
        let mut options = options(64 * MIB);
        options.format.capacity = Capacity::Zones(size);
        let refused = create(&[dir.path().join("no.vsl")], &options).expect_err("refused").to_string();
        assert!(refused.contains("size of zones"), "{refused}");
    }
}

#[test]
fn zones_are_written_in_order_and_forgotten_as_a_whole() {
    let made = Made::new(&options(64 * MIB));
    let mut device = made.attach();
    let size = ZONE / SECTOR as u64;
    assert_eq!(write(&mut device, 1, 1, 1), Err(IoError::Zone(ZoneError::NotAtPointer)));
    write(&mut device, 0, 1, 100).expect("written");
    write(&mut device, size, 2, 1).expect("written");
    assert_eq!(write(&mut device, 0, 1, 1), Err(IoError::Zone(ZoneError::NotAtPointer)));
    for io in [
        Io::Trim { lba: 0, count: 1, fua: false },
        Io::WriteZeroes { lba: 100, count: 1, fua: false, allocate: false },
        Io::Batch { ops: &[device::BatchOp::Trim { lba: 0, count: 1 }], data: &[], fua: false },
    ] {
        assert!(matches!(call(&mut device, io), Err(IoError::Zone(ZoneError::Piecemeal))));
    }
    call(&mut device, Io::WriteZeroes { lba: 100, count: 5, fua: false, allocate: true }).expect("zeros in order");
    assert_eq!(state(&device, 0), (ZoneState::ImplicitlyOpen, 105));
    zone(&mut device, 0, ZoneAction::Finish).expect("finished");
    assert_eq!(write(&mut device, 105, 1, 1), Err(IoError::Zone(ZoneError::Full)));
    assert_eq!((byte(&mut device, 99), byte(&mut device, 105), byte(&mut device, size - 1)), (1, 0, 0));
    zone(&mut device, 0, ZoneAction::Reset).expect("reset");
    assert_eq!((byte(&mut device, 0), state(&device, 0)), (0, (ZoneState::Empty, 0)));
    assert_eq!(zone(&mut device, 0, ZoneAction::Close), Err(IoError::Zone(ZoneError::Transition)));
    assert_eq!(zone(&mut device, 16, ZoneAction::Reset), Err(IoError::Zone(ZoneError::Boundary)));
    let change = SnapshotChange::Create { name: "no".into(), created: 1 };
    assert!(matches!(device.change_snapshots(&change), Err(SnapshotError::Unsupported(_))));
    assert!(device.set(&[Setting::Groomer("lifetime".into())]).is_err());
    assert!(device.set(&[Setting::Groomer("zones".into())]).is_ok());
    device.verify().expect("sound books");
}

/// What is left of an erase block tells who writes to it.
#[test]
fn each_active_zone_writes_to_erase_blocks_of_its_own() {
    let made = Made::new(&options(64 * MIB));
    let mut device = made.attach();
    let (size, sector) = (ZONE / SECTOR as u64, SECTOR as u64);
    let left = |device: &Device| [1, 2, 3].map(|stream| device.left_in_placement(stream) / sector);
    let whole = left(&device)[0];
    for round in 0..5 {
        write(&mut device, size + 7 * round, 1, 7).expect("written");
        write(&mut device, 4 * size + 3 * round, 2, 3).expect("written");
    }
    assert_eq!(left(&device), [whole - 35, whole - 15, whole]);
    // Whoever has the stream next begins another erase block.
    zone(&mut device, 1, ZoneAction::Reset).expect("reset");
    assert_eq!(left(&device)[0], whole);
    write(&mut device, 9 * size, 3, 1).expect("written");
    assert_eq!(left(&device)[0], whole - 1);
}

#[test]
fn how_zones_stand_is_known_after_a_detach_and_after_a_cut() {
    let made = Made::new(&options(64 * MIB));
    let size = ZONE / SECTOR as u64;
    let capacity = 2 * 511;
    let mut device = made.attach();
    write(&mut device, 0, 1, 7).expect("written");
    write(&mut device, size, 2, 3).expect("written");
    zone(&mut device, 1, ZoneAction::Finish).expect("finished");
    (0..capacity).step_by(146).for_each(|at| write(&mut device, 2 * size + at, 3, 146).expect("written"));
    zone(&mut device, 3, ZoneAction::Open).expect("opened");
    zone(&mut device, 4, ZoneAction::Finish).expect("an empty zone may be finished");
    let expected = |device: &mut Device| {
        assert_eq!(state(device, 0), (ZoneState::Closed, 7));
        assert_eq!(state(device, 1), (ZoneState::Full, capacity));
        assert_eq!(state(device, 2), (ZoneState::Full, capacity));
        assert_eq!(state(device, 3), (ZoneState::Empty, 0));
        assert_eq!(state(device, 4), (ZoneState::Full, capacity));
        assert_eq!([0, size + 2, 3 * size - 2, 4 * size].map(|lba| byte(device, lba)), [1, 2, 0, 0]);
        assert_eq!(byte(device, 2 * size + capacity - 1), 3);
    };
    device.detach().expect("detached");
    let mut device = made.attach();
    expected(&mut device);
    write(&mut device, 7, 1, 1).expect("it goes on where it stopped");
    zone(&mut device, 0, ZoneAction::Reset).expect("reset");
    write(&mut device, 0, 1, 7).expect("written");
    call(&mut device, Io::Flush).expect("flushed");
    // As a process that dies: nothing is written any more.
    drop(device);
    let mut device = made.attach();
    expected(&mut device);
}

/// Fourteen zones at a time are written in turn and reset, over and over.
#[test]
fn what_is_reset_leaves_hardly_anything_to_be_moved() {
    let made = Made::new(&options(256 * MIB));
    let mut device = made.attach();
    let size = ZONE / SECTOR as u64;
    let mut random = SplitMix64::new(7);
    let mut open: Vec<u32> = Vec::new();
    let mut left: Vec<u32> = Vec::new();
    let most = device.info().zones.expect("zones").most_active as usize;
    for _ in 0..60_000 {
        if open.len() < most {
            if left.is_empty() {
                left = (0..64).filter(|zone| !open.contains(zone)).collect();
            }
            let zone_number = left.swap_remove(random.below(left.len() as u64) as usize);
            zone(&mut device, zone_number, ZoneAction::Reset).expect("reset");
            open.push(zone_number);
        }
        let at = random.below(open.len() as u64) as usize;
        let (_, pointer) = state(&device, open[at]);
        let count = (1 + random.below(15)).min(2 * 511 - pointer);
        write(&mut device, u64::from(open[at]) * size + pointer, open[at] as u8, count as usize).expect("written");
        if state(&device, open[at]).0 == ZoneState::Full {
            open.swap_remove(at);
        }
    }
    let status = device.status();
    let (written, groomed) = (status.layer.host_written_sectors, status.layer.groomed_sectors);
    assert!(written > 6 * 64 * 2 * 511, "{written}");
    // Each reset is durable, and the sync cuts a page of every open zone short: the last sectors of a zone go to one erase block more, which the
    // groomer puts together.
    assert!(groomed * 30 < written, "{groomed} of {written} written");
    for zone in (0..64).filter(|zone| !open.contains(zone)) {
        assert_eq!(byte(&mut device, u64::from(zone) * size + 2 * 511 - 1), zone as u8);
    }
    device.verify().expect("sound books");
}

#[test]
fn an_emulated_drive_of_zones_has_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("zns.vsl");
    let format = |capacity| FormatOptions { sector_bytes: 4096, capacity, label: "t".into() };
    let emulation = Emulation { scale: 1, seed: 1 };
    let drive = |profile: &str, scale, capacity| EmulateOptions {
        profile: profile.into(),
        emulation: Emulation { scale, ..emulation },
        format: format(capacity),
    };
    let whole = create_emulated(&path, &drive("wd-zn540-1tb", 1, Capacity::Advertised)).expect("created");
    let zones = whole.zones.expect("it has zones");
    // Published: 904 zones of 2 GiB, of which 1,077 MiB can be written; here each begins with the layer's own header.
    assert_eq!((zones.count, zones.size_bytes, zones.most_active), (904, 2 << 30, 14));
    assert_eq!(zones.capacity_bytes, (1077 << 20) - 4096);
    assert_eq!(inspect(&path).expect("a device").zones, Some(zones));
    std::fs::remove_file(&path).expect("removed");
    let refused = create_emulated(&path, &drive("samsung-980-1tb", 1, Capacity::Zones(ZONE)));
    assert!(matches!(refused, Err(CreateError::Format(_))));

    let small = create_emulated(&path, &drive("wd-zn540-1tb", 64, Capacity::Advertised)).expect("created");
    let zones = small.zones.expect("it has zones");
    assert_eq!((zones.count, zones.most_active), (904, 14));
    let ring = Ring::new(64).expect("io_uring");
    let mut device = Device::attach(&[&path], &AttachOptions::default(), &ring).expect("attached");
    assert_eq!(device.zones().expect("zones").shape().active, 14);
    let size = zones.size_bytes / 4096;
    let capacity = zones.capacity_bytes / 4096;
    let mut at = 0;
    while at < capacity {
        let count = 64.min(capacity - at);
        write(&mut device, at, 9, count as usize).expect("written");
        at += count;
    }
    assert_eq!(state(&device, 0), (ZoneState::Full, capacity));
    write(&mut device, size, 8, 1).expect("written");
    zone(&mut device, 0, ZoneAction::Reset).expect("reset");
    assert_eq!((byte(&mut device, 0), byte(&mut device, size)), (0, 8));
    // The rest of a zone is programmed when it is finished: 15 of the 1,077 pages that the drive's blocks have, in 843 ms.
    let began = std::time::Instant::now();
    zone(&mut device, 1, ZoneAction::Finish).expect("finished");
    assert!(began.elapsed().as_micros() > 11_000, "{:?}", began.elapsed());
    assert_eq!(write(&mut device, 1, 9, 1), Err(IoError::Zone(ZoneError::NotAtPointer)));
    device.detach().expect("detached");
    let device = Device::attach(&[&path], &AttachOptions::default(), &ring).expect("attached");
    assert_eq!((state(&device, 0), state(&device, 1)), ((ZoneState::Empty, 0), (ZoneState::Full, capacity)));
}
