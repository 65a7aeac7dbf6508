//! Every page of a small image, damaged in every way: with parity all of it heals, without all of it is told, and nothing is silent.

use device::{Background, Device, Io, MediaFormat, max_sectors};
use ftl::{Geometry, Policy};
use media::PageAddr;
use media::flashback::media_geometry;
use media::sim::{Cut, Knobs, SimMedia, SimStore};
use random::SplitMix64;
use uuid::Uuid;

use crate::common::call;
use crate::rebuild;

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

/// Lets everything come to its end that goes on by itself.
fn settle(device: &mut Device) {
    let mut quiet = 0;
    for _ in 0..1_000_000 {
        let goes_on = (device.background() != Background::Nothing) | device.poll().is_some() | !device.is_idle();
        quiet = if goes_on || device.idle() { 0 } else { quiet + 1 };
        if quiet > 20 {
            return;
        }
        device.wait();
    }
    panic!("it never comes to its end");
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
                if let Fault::Flip = fault {
                    settle(&mut device);
                    let before = device.status().healed_sectors;
                    assert_eq!(read_all(&mut device, sectors, &what), 0);
                    assert_eq!(device.status().healed_sectors, before, "{what}: what was healed is wrong again");
                }
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

/// Whatever a page of a stripe holds, once a scrub went over it another die may fail.
#[test]
fn a_scrub_makes_room_for_the_next_fault() {
    let (store, half, sectors) = written(geometry(3, 1), true);
    for at in pages(geometry(3, 1)).step_by(7) {
        let store = damaged(&store, &half, at, Fault::Flip);
        let what = format!("a flip in {at:?}, then die {} lost", (at.die + 1) % 3);
        let mut device = attach(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
        device.scrub(true).expect("attached for writing");
        settle(&mut device);
        assert_eq!(device.status().scrubs, 1, "{what}");
        store.fail_die((at.die + 1) % 3);
        assert_eq!(read_all(&mut device, sectors, &what), 0, "{what}: sectors cannot be read");
    }
}

/// A die that was rebuilt holds everything: another one may fail.
#[test]
fn a_rebuilt_die_serves() {
    let (store, _, sectors) = written(geometry(3, 1), true);
    for die in 0..3 {
        let store = store.fork();
        let what = format!("die {die} replaced, then die {} lost", (die + 1) % 3);
        let mut device = attach(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
        store.fail_die(die);
        assert_eq!(read_all(&mut device, sectors, &what), 0);
        call(&mut device, Io::Write { lba: 0, data: &content(0, 2), fua: true }).expect("written");
        store.replace_die(die);
        device.die_replaced(die).expect("it is lost");
        settle(&mut device);
        let status = device.status();
        assert!(status.lost_dies.is_empty() && status.rebuilding.is_none(), "{what}: {:?}", status.lost_dies);
        store.fail_die((die + 1) % 3);
        assert_eq!(read_all(&mut device, sectors, &what), 0, "{what}: sectors cannot be read");
    }
}

/// With two parities, a page of the third die is damaged, then the first die is replaced and the second lost: that costs nothing.
#[track_caller]
fn damaged_rebuilt_and_lost(dies: u32, fault: Fault, step: usize) {
    let (store, half, sectors) = written(geometry(dies, 2), true);
    for at in pages(geometry(dies, 2)).filter(|at| at.die == 2).step_by(step) {
        let store = damaged(&store, &half, at, fault);
        let what = format!("{fault:?} at {at:?}, die 0 replaced, then die 1 lost");
        let mut device = attach(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
        store.fail_die(0);
        call(&mut device, Io::Write { lba: 0, data: &content(0, 2), fua: true }).expect("written");
        call(&mut device, Io::Flush).expect("flushed");
        store.replace_die(0);
        device.die_replaced(0).expect("it is lost");
        settle(&mut device);
        store.fail_die(1);
        assert_eq!(read_all(&mut device, sectors, &what), 0, "{what}: sectors cannot be read");
    }
}

/// A die is rebuilt from what is right: a sector that is rotten meanwhile costs the redundancy of no other fault.
#[test]
fn a_die_is_rebuilt_from_what_is_right() {
    damaged_rebuilt_and_lost(4, Fault::Flip, 5);
}

/// Parity is made of sectors that nobody reads any more, too: a page that was lost while a die was rebuilt, and then another die, cost nothing.
#[test]
fn a_die_is_rebuilt_with_what_nobody_reads_any_more() {
    damaged_rebuilt_and_lost(5, Fault::Zero, 3);
}

/// A recovery needs the whole log: also sectors that were overwritten since, and what the layer wrote for itself. A die that was rebuilt
/// while a page of another was blank makes up for all of it.
#[test]
fn a_die_is_rebuilt_with_the_log() {
    let (store, _, sectors) = written(geometry(5, 2), true);
    for [damaged_die, rebuilt, lost] in [[0, 3, 1], [2, 0, 1], [1, 4, 0]] {
        for at in pages(geometry(5, 2)).filter(|at| at.die == damaged_die).step_by(3) {
            let store = store.fork();
            let what = format!("{at:?} blank, die {rebuilt} replaced, then die {lost} and the power lost");
            let mut device = attach(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
            store.fail_die(rebuilt);
            for lba in (0..16).cycle().take(60) {
                let data = content(lba, if lba % 3 == 0 { 2 } else { 1 });
                call(&mut device, Io::Write { lba, data: &data, fua: lba % 4 == 0 }).expect("written");
            }
            call(&mut device, Io::Flush).expect("flushed");
            store.put_page(at, &vec![0; geometry(5, 2).page_bytes() as usize]);
            store.replace_die(rebuilt);
            device.die_replaced(rebuilt).expect("it is lost");
            rebuild::finish(&mut device);
            rebuild::lose_die_and_power(device, &store, lost);
            let mut device = attach(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(read_all(&mut device, sectors, &what), 0, "{what}: sectors cannot be read");
        }
    }
}

/// Without parity a scrub finds what cannot be read, and nothing else.
#[test]
fn a_scrub_tells_without_parity() {
    let (store, half, sectors) = written(geometry(1, 0), true);
    let mut found = 0;
    for at in pages(store.geometry()).step_by(5) {
        let Ok(mut device) = attach(&damaged(&store, &half, at, Fault::Flip)) else { continue };
        device.scrub(true).expect("attached for writing");
        settle(&mut device);
        let (wrong, failed) = (device.status().scrub_errors, read_all(&mut device, sectors, "a flip"));
        assert_eq!(wrong, failed as u64, "{at:?}");
        found += failed;
    }
    assert!(found > 20, "only {found} sectors were live");
}

/// A log that lost something flushed is refused where anything newer is left to prove it: old data never comes up in its place.
#[test]
fn a_log_with_a_hole_is_refused() {
    const NEW: u64 = 40;
    let (store, half, sectors) = written(geometry(1, 0), true);
    let mut device = attach(&store).expect("attached");
    for lba in 0..NEW {
        call(&mut device, Io::Write { lba, data: &content(lba, 3), fua: true }).expect("written");
    }
    drop(device);
    store.switch_off();
    store.power_cut_as(&mut SplitMix64::new(3), &Cut::LOSE_ALL);
    let version = |lba| if lba < NEW { 3 } else { 1 + u64::from(lba % 3 == 0) };
    let (mut refused, mut older) = (0, 0);
    for at in pages(store.geometry()) {
        let Ok(mut device) = attach(&damaged(&store, &half, at, Fault::Zero)) else {
            refused += 1;
            continue;
        };
        let wrong = (0..sectors).any(|lba| match call(&mut device, Io::Read { lba, buf: vec![0; SECTOR] }) {
            Ok(buf) => buf.expect("a buffer") != content(lba, version(lba)),
            Err(_) => false,
        });
        older += u32::from(wrong);
    }
    // Nothing is newer than the page of the last write; and without the header of the newest LEB nothing says that it is one.
    assert!(refused >= 15 && older <= 2, "{refused} refused, {older} came up with older data");
}
