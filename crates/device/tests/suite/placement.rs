//! What the host says that belongs together goes to erase blocks of its own, on a file as on an emulated card.

use device::{BatchOp, Device, Io, IoError, MediaFormat, Setting, Submitted};
use ftl::{Geometry, Policy, TRAILER_BYTES};
use media::Memory;
use uuid::Uuid;

use crate::card::emulated_in_memory;
use crate::common::call;

const SECTOR: usize = 4096;

/// A device with room for all placements.
fn native() -> Device {
    let geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: 100,
        pages_per_block: 8,
        slots_per_page: 16,
        sector_bytes: SECTOR as u32,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: 4096,
    };
    let format = MediaFormat {
        sectors: 4000,
        max_request_bytes: 16 * SECTOR as u32,
        checkpoint_interval: 1 << 20,
        policy: Policy::Lifetime,
        uuid: Uuid::from_u128(7),
        key: None,
    };
    let mut medium = Memory::new(geometry);
    Device::format_media(&mut medium, &format).expect("formatted");
    Device::on_media(Box::new(medium), false).expect("attached")
}

/// A request of a placement, waited for.
fn place(device: &mut Device, placement: u8, io: Io<'_>) -> Result<(), IoError> {
    let mut io = Some(io);
    loop {
        if let Some(request) = io.take() {
            match device.submit_placed(None, placement, 1, request) {
                Submitted::Done(result) => return result.map(drop),
                Submitted::Pending => {}
                Submitted::Busy(request) => io = Some(request),
            }
        }
        if let Some(completion) = device.poll() {
            return completion.result.map(drop);
        }
        device.wait();
    }
}

/// Bytes left in the erase blocks of all placements.
fn left(device: &Device) -> Vec<u64> {
    (0..device.placements()).map(|placement| device.left_in_placement(placement)).collect()
}

fn goes_where_it_says(mut device: Device) {
    assert_eq!(device.placements(), 1);
    device.set(&[Setting::Groomer("placement".into())]).expect("there is one of that name");
    let count = device.placements();
    assert!(count > 1, "{count}");
    let unit = device.reclaim_unit_bytes();
    let mut expected = vec![unit; count.into()];
    assert_eq!(left(&device), expected);
    for placement in 0..count {
        let data = [placement; SECTOR];
        place(&mut device, placement, Io::Write { lba: placement.into(), data: &data, fua: false }).expect("written");
        expected[usize::from(placement)] -= SECTOR as u64;
        assert_eq!(left(&device), expected, "a write");
    }
    let ops = [BatchOp::Write { lba: 20, count: 2 }, BatchOp::Write { lba: 30, count: 1 }];
    place(&mut device, 1, Io::Batch { ops: &ops, data: &[9; 3 * SECTOR], fua: false }).expect("written");
    expected[1] -= 3 * SECTOR as u64;
    assert_eq!(left(&device), expected, "a batch");
    // One that is not there is the last of those that are.
    place(&mut device, u8::MAX, Io::Write { lba: 40, data: &[9; SECTOR], fua: false }).expect("written");
    expected[usize::from(count) - 1] -= SECTOR as u64;
    assert_eq!(left(&device), expected);
    device.renew_placement(1);
    expected[1] = unit;
    assert_eq!(left(&device), expected);
    for placement in 0..count {
        let buf = vec![0xee; SECTOR];
        let read = call(&mut device, Io::Read { lba: placement.into(), buf }).expect("read");
        assert_eq!(read.expect("a read gives its buffer"), [placement; SECTOR]);
    }
    device.detach().expect("detached");
}

#[test]
fn a_write_goes_to_the_erase_block_of_its_placement() {
    goes_where_it_says(native());
}

#[test]
fn on_a_card_it_does_so_too() {
    goes_where_it_says(emulated_in_memory());
}
