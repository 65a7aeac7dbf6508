//! Batches: several writes and trims that are carried out together or not at all.

use device::{BatchError, BatchOp, Device, Io, IoError, MediaFormat, max_sectors};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::Media;
use media::sim::{Cut, Knobs, SimMedia, SimStore};
use random::SplitMix64;
use uuid::Uuid;

use crate::card::emulated_in_memory;
use crate::common::call;

const SECTOR: usize = 4096;
/// The largest request, sectors.
const MOST: u64 = 6;

fn store() -> (SimStore, u64) {
    let geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: 60,
        pages_per_block: 4,
        slots_per_page: 4,
        sector_bytes: SECTOR as u32,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: 4096,
    };
    let store = SimStore::new(geometry);
    let format = MediaFormat {
        sectors: max_sectors(&geometry),
        max_request_bytes: (MOST * SECTOR as u64) as u32,
        checkpoint_interval: 1 << 20,
        policy: Policy::Greedy,
        uuid: Uuid::from_u128(7),
        key: None,
    };
    Device::format_media(&mut medium(&store, 0), &format).expect("formatted");
    (store, format.sectors)
}

fn medium(store: &SimStore, no_space: u32) -> SimMedia {
    SimMedia::new(store, 1, Knobs { no_space, must_erase: false, ..Knobs::default() })
}

fn attach(store: &SimStore) -> Device {
    Device::on_media(Box::new(medium(store, 0)), false).expect("attached")
}

fn write(lba: u64, count: u32) -> BatchOp {
    BatchOp::Write { lba, count }
}

fn trim(lba: u64, count: u64) -> BatchOp {
    BatchOp::Trim { lba, count }
}

fn batch(device: &mut Device, ops: &[BatchOp], data: &[u8]) -> Result<(), IoError> {
    call(device, Io::Batch { ops, data, fua: false }).map(drop)
}

/// The first byte of each of these sectors.
fn seen(device: &mut Device, lbas: std::ops::Range<u64>) -> Vec<u8> {
    let buf = vec![0xee; (lbas.end - lbas.start) as usize * SECTOR];
    let buf = call(device, Io::Read { lba: lbas.start, buf }).expect("read").expect("a read gives its buffer");
    assert!(buf.chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    buf.chunks(SECTOR).map(|sector| sector[0]).collect()
}

fn fill(device: &mut Device, lbas: std::ops::Range<u64>, byte: u8) {
    for lba in lbas {
        call(device, Io::Write { lba, data: &[byte; SECTOR], fua: false }).expect("written");
    }
}

fn sectors(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [*byte; SECTOR]).collect()
}

#[test]
fn each_operation_finds_its_data() {
    let (store, _) = store();
    let mut device = attach(&store);
    fill(&mut device, 0..12, 9);
    let ops = [write(7, 2), trim(0, 3), write(4, 1), trim(10, 1), write(3, 1)];
    batch(&mut device, &ops, &sectors(&[1, 2, 3, 4])).expect("carried out");
    let expected = [0, 0, 0, 4, 3, 9, 9, 1, 2, 9, 0, 9];
    assert_eq!(seen(&mut device, 0..12), expected);
    let status = device.status();
    assert_eq!((status.requests.batches, status.requests.writes), (1, 12));
    assert_eq!((status.layer.host_written_sectors, status.layer.host_trimmed_sectors), (16, 4));
    device.verify().expect("sound books");
    device.detach().expect("detached");
    assert_eq!(seen(&mut attach(&store), 0..12), expected);
}

#[test]
fn what_a_batch_trims_is_trimmed_whatever_is_configured() {
    let (store, _) = store();
    let mut device = attach(&store);
    fill(&mut device, 0..2, 9);
    device.set(&[device::Setting::Trim(false)]).expect("set");
    batch(&mut device, &[trim(0, 1)], &[]).expect("carried out");
    assert_eq!(seen(&mut device, 0..2), [0, 9]);
}

#[test]
fn more_trims_than_a_slot_has_room_for() {
    let (store, end) = store();
    let mut device = attach(&store);
    fill(&mut device, 0..end, 9);
    let ops: Vec<BatchOp> = (0..end / 2).map(|at| trim(2 * at, 1)).collect();
    assert!(device::batch_slots(&ops, SECTOR as u32) > 1, "of several slots");
    batch(&mut device, &ops, &[]).expect("carried out");
    call(&mut device, Io::Flush).expect("flushed");
    store.power_cut_as(&mut SplitMix64::new(1), &Cut::LOSE_ALL);
    drop(device);
    let mut device = attach(&store);
    for lba in 0..end / 2 {
        assert_eq!(seen(&mut device, 2 * lba..2 * lba + 2), [0, 9]);
    }
}

#[test]
fn wrong_use_is_named_and_changes_nothing() {
    let (store, end) = store();
    let mut device = attach(&store);
    fill(&mut device, 0..8, 9);
    let before = device.status();
    let most = MOST as u32;
    let many: Vec<BatchOp> = (0..end.min(170)).map(|lba| trim(lba, 1)).collect();
    let cases: [(&[BatchOp], usize, BatchError); 15] = [
        (&[], 0, BatchError::Empty),
        (&[write(0, 1), write(1, 0)], 1, BatchError::NoSectors(1)),
        (&[trim(3, 0)], 0, BatchError::NoSectors(0)),
        (&[write(0, 1), write(end - 1, 2)], 3, BatchError::OutOfRange(1)),
        (&[trim(end, 1)], 0, BatchError::OutOfRange(0)),
        (&[trim(1, u64::MAX)], 0, BatchError::OutOfRange(0)),
        (&[trim(u64::MAX, 2)], 0, BatchError::OutOfRange(0)),
        (&[write(4, 1), write(0, 1), write(4, 1)], 3, BatchError::Overlap(0, 2)),
        (&[write(0, 2), trim(1, 4)], 2, BatchError::Overlap(0, 1)),
        (&[trim(0, end), write(5, 1)], 1, BatchError::Overlap(0, 1)),
        (&[write(0, most + 1)], 7, BatchError::TooLarge { sectors: most + 1, most }),
        (&[write(0, most), trim(8, 1)], 6, BatchError::TooLarge { sectors: most + 1, most }),
        (&[write(0, u32::MAX), write(0, u32::MAX)], 0, BatchError::TooLarge { sectors: u32::MAX, most }),
        (&[write(0, 2)], 1, BatchError::Data { found: SECTOR as u32, expected: 2 * SECTOR as u32 }),
        (&[trim(0, 1)], 1, BatchError::Data { found: SECTOR as u32, expected: 0 }),
    ];
    for (ops, count, error) in cases {
        assert_eq!(batch(&mut device, ops, &vec![1; count * SECTOR]), Err(IoError::Batch(error)), "{ops:?}");
    }
    let uneven = batch(&mut device, &[write(0, 1)], &[1; SECTOR + 1]);
    assert_eq!(uneven, Err(IoError::Batch(BatchError::Data { found: SECTOR as u32 + 1, expected: SECTOR as u32 })));
    assert_eq!(seen(&mut device, 0..8), [9; 8]);
    let after = device.status();
    assert_eq!((after.requests.batches, after.layer.host_written_sectors), (0, before.layer.host_written_sectors));
    assert_eq!(device.info().format_version, 1, "what refuses all batches stays of its version");
    // As much as a batch takes.
    batch(&mut device, &[write(0, most)], &vec![1; MOST as usize * SECTOR]).expect("carried out");
    batch(&mut device, &many[..many.len().min(169)], &[]).expect("carried out");
}

#[test]
fn a_batch_that_finds_no_space_changes_nothing() {
    let (store, _) = store();
    let mut device = Device::on_media(Box::new(medium(&store, 1_000_000)), false).expect("attached");
    let refused = (0..10_000).find_map(|at| {
        let ops = [write(at % 5, 1), write(10 + at % 5, 1), trim(20, 2)];
        batch(&mut device, &ops, &sectors(&[at as u8; 2])).err().map(|error| (at, error))
    });
    let (at, error) = refused.expect("a store without space takes no more in the end");
    assert_eq!(error, IoError::NoSpace);
    if at > 0 {
        let (first, second) = (at % 5, 10 + at % 5);
        let last = seen(&mut device, first..first + 1);
        assert_eq!(seen(&mut device, second..second + 1), last, "both from the batch before");
        assert_ne!(last, [at as u8]);
    }
}

#[test]
fn a_read_only_device_takes_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("d");
    let options = device::CreateOptions {
        advertised_bytes: 64 << 20,
        raw_bytes: 128 << 20,
        profile: None,
        parity: 0,
        format: device::FormatOptions {
            sector_bytes: 4096,
            capacity: device::Capacity::Advertised,
            label: String::new(),
        },
    };
    device::create(&[&path], &options).expect("created");
    let ring = media::ring::Ring::new(64).expect("io_uring");
    let options = device::AttachOptions { read_only: true, ..Default::default() };
    let mut device = Device::attach(&[&path], &options, &ring).expect("attached");
    assert_eq!(batch(&mut device, &[trim(0, 1)], &[]), Err(IoError::ReadOnly));
    assert_eq!(device.info().format_version, 1);
}

/// An older program must keep off before there is a batch: both copies of the superblock say so when the first is answered.
#[test]
fn the_first_batch_raises_the_version_of_the_format() {
    let (store, _) = store();
    let mut device = attach(&store);
    fill(&mut device, 0..2, 9);
    assert_eq!(device.info().format_version, 1);
    call(&mut device, Io::Batch { ops: &[write(0, 1), write(5, 1)], data: &sectors(&[1, 2]), fua: true })
        .expect("done");
    assert_eq!(device.info().format_version, 6);
    store.power_cut_as(&mut SplitMix64::new(1), &Cut::LOSE_ALL);
    drop(device);
    for copy in 0..2 {
        let label = medium(&store, 0).read_label(0, copy).expect("read");
        assert_eq!(label[8..12], 6u32.to_le_bytes(), "copy {copy}");
    }
    let mut device = attach(&store);
    assert_eq!(seen(&mut device, 0..6), [1, 9, 0, 0, 0, 2]);
    assert_eq!(device.info().format_version, 6);
    device.detach().expect("detached");
}

/// On a card the layer may have no room while the host waits: the batch is kept, and carried out then.
#[test]
fn an_emulated_card_takes_batches() {
    let mut device = emulated_in_memory();
    for round in 1..200u8 {
        let ops = [write(u64::from(round) * 3, 1), write(0, 1), trim(1, 1), write(1000 + u64::from(round), 2)];
        call(&mut device, Io::Batch { ops: &ops, data: &sectors(&[round; 4]), fua: round.is_multiple_of(2) })
            .expect("carried out");
        assert_eq!(seen(&mut device, 0..2), [round, 0]);
    }
    assert_eq!(device.info().format_version, 6);
    device.detach().expect("detached");
}
