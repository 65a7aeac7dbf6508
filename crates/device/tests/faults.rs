//! Every page of a small image, damaged in every way: with parity all of it heals, without all of it is told, and nothing is silent.

mod common;

use device::{Device, Io, MediaFormat, max_sectors};
use ftl::{Geometry, Policy, SplitMix64};
use media::PageAddr;
use media::flashback::media_geometry;
use media::sim::{Cut, Knobs, SimMedia, SimStore};
use uuid::Uuid;

use common::call;

const SECTOR: usize = 4096;

/// About 4 MiB of pages.
fn geometry(dies: u32, parity: u32) -> Geometry {
    Geometry {
        dies,
        parity,
        blocks: 120 / (dies - parity),
        pages_per_block: 2,
        slots_per_page: 4,
        sector_bytes: SECTOR as u32,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4096,
    }
}

fn knobs() -> Knobs {
    Knobs { spread_polls: 0, must_erase: false, ..Knobs::default() }
}

fn attach(store: &SimStore) -> Result<Device, device::AttachError> {
    Device::on_media(Box::new(SimMedia::new(store, 1, knobs())), false)
}

fn content(lba: u64, version: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(lba << 8 | version);
    (0..SECTOR / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// A device that was written twice over, a third of it anew; what stood there half-way; and how many sectors it has.
fn written(geometry: Geometry, clean: bool) -> (SimStore, SimStore, u64) {
    let shape = if geometry.parity > 0 { media_geometry(&geometry) } else { geometry };
    let store = SimStore::new(shape);
    let sectors = max_sectors(&geometry) / 2;
    let format = MediaFormat {
        sectors,
        max_request_bytes: 4 * SECTOR as u32,
        checkpoint_interval: 200,
        policy: Policy::Greedy,
        uuid: Uuid::from_u128(7),
        key: None,
    };
    Device::format_media(&mut SimMedia::new(&store, 1, knobs()), &format).expect("formatted");
    let mut device = attach(&store).expect("attached");
    let mut half = None;
    for version in 0..3 {
        for lba in (0..sectors).filter(|lba| version < 2 || lba % 3 == 0) {
            let data = content(lba, version);
            call(&mut device, Io::Write { lba, data: &data, fua: lba % 16 == 0 }).expect("written");
        }
        call(&mut device, Io::Flush).expect("flushed");
        if version == 0 {
            half = Some(store.fork());
        }
    }
    match clean {
        true => device.detach().expect("detached"),
        false => {
            drop(device);
            store.switch_off();
            store.power_cut_as(&mut SplitMix64::new(3), &Cut::LOSE_ALL);
        }
    }
    (store, half.expect("there was a first version"), sectors)
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Flip,
    Zero,
    Stale,
    Misdirected,
    Unreadable,
}

const FAULTS: [Fault; 5] = [Fault::Flip, Fault::Zero, Fault::Stale, Fault::Misdirected, Fault::Unreadable];

/// Damages a page of a copy of the store.
fn damaged(store: &SimStore, half: &SimStore, at: PageAddr, fault: Fault) -> SimStore {
    let store = store.fork();
    let geometry = store.geometry();
    match fault {
        Fault::Flip => {
            (0..geometry.slots_per_page).for_each(|slot| store.rot(at, slot * geometry.slot_bytes() + 77, 4))
        }
        Fault::Zero => store.put_page(at, &vec![0; geometry.page_bytes() as usize]),
        Fault::Stale => store.put_page(at, &half.page(at)),
        // Another page of the same die: a device that puts things in the wrong place does so within itself.
        Fault::Misdirected => {
            let other = PageAddr { block: (at.block + 1) % geometry.blocks, ..at };
            store.put_page(at, &store.page(other));
        }
        Fault::Unreadable => store.fail_page(at),
    }
    store
}

/// Reads everything: how many sectors cannot be read. Panics on a sector that is wrong.
fn read_all(device: &mut Device, sectors: u64, what: &str) -> usize {
    let mut failed = 0;
    for lba in 0..sectors {
        match call(device, Io::Read { lba, buf: vec![0; SECTOR] }) {
            Ok(buf) => {
                let version = if lba % 3 == 0 { 2 } else { 1 };
                assert!(buf.expect("a buffer") == content(lba, version), "{what}: sector {lba} is silently wrong");
            }
            Err(_) => failed += 1,
        }
    }
    failed
}

fn pages(geometry: Geometry) -> impl Iterator<Item = PageAddr> {
    let all = move |die| (0..geometry.blocks).map(move |block| (die, block));
    let blocks = (0..geometry.dies).flat_map(all);
    blocks.flat_map(move |(die, block)| (0..geometry.pages_per_block).map(move |page| PageAddr { die, block, page }))
}

/// With parity, after a clean detach and after a crash.
#[test]
fn every_fault_heals_with_parity() {
    for clean in [true, false] {
        let (store, half, sectors) = written(geometry(3, 1), clean);
        let mut healed = 0;
        for at in pages(store.geometry()) {
            for fault in FAULTS {
                let what = format!("{fault:?} of {at:?}, clean {clean}");
                let store = damaged(&store, &half, at, fault);
                let mut device = attach(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(read_all(&mut device, sectors, &what), 0, "{what}: sectors cannot be read");
                healed += device.status().healed_sectors;
            }
        }
        assert!(healed > 500, "only {healed} sectors had to be healed");
    }
}

/// Without parity whatever is damaged cannot be read, or the device is not attached; nothing is wrong.
#[test]
fn every_fault_is_told_without_parity() {
    let (store, half, sectors) = written(geometry(1, 0), true);
    let (mut refused, mut failed) = (0, 0);
    for at in pages(store.geometry()) {
        for fault in FAULTS {
            let store = damaged(&store, &half, at, fault);
            match attach(&store) {
                Ok(mut device) => failed += read_all(&mut device, sectors, &format!("{fault:?} of {at:?}")),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(failed > 500 && refused > 0, "{failed} sectors, {refused} attaches refused");
}
