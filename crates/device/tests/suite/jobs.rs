//! Rebuilds and scrubs: stopped at any moment, and with more wrong than can be made good.

use device::{Background, Device, Io, MediaFormat, Submitted, max_sectors};
use ftl::{Geometry, Policy};
use media::PageAddr;
use media::flashback::media_geometry;
use media::sim::{Knobs, SimMedia, SimStore};
use random::SplitMix64;
use uuid::Uuid;

use crate::common::call;
use crate::rebuild;

const SECTOR: usize = 4096;

fn geometry() -> Geometry {
    Geometry {
        dies: 4,
        parity: 1,
        blocks: 40,
        pages_per_block: 2,
        slots_per_page: 4,
        sector_bytes: SECTOR as u32,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4096,
    }
}

fn medium(store: &SimStore) -> SimMedia {
    SimMedia::new(store, 1, Knobs { must_erase: false, ..Knobs::default() })
}

fn attach(store: &SimStore) -> Device {
    Device::on_media(Box::new(medium(store)), false).expect("attached")
}

fn content(lba: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(lba);
    (0..SECTOR / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// A store with a device on it, detached, every sector of which was written; and how many there are.
fn written() -> (SimStore, u64) {
    let geometry = geometry();
    let store = SimStore::new(media_geometry(&geometry));
    let sectors = max_sectors(&geometry) / 2;
    let format = MediaFormat {
        sectors,
        max_request_bytes: SECTOR as u32,
        checkpoint_interval: 200,
        policy: Policy::Greedy,
        uuid: Uuid::from_u128(7),
        key: None,
    };
    Device::format_media(&mut medium(&store), &format).expect("formatted");
    let mut device = attach(&store);
    for lba in 0..sectors {
        call(&mut device, Io::Write { lba, data: &content(lba), fua: false }).expect("written");
    }
    device.detach().expect("detached");
    (store, sectors)
}

/// Sectors that cannot be read. Panics on one that is wrong.
fn unreadable(device: &mut Device, sectors: u64) -> Vec<u64> {
    let wrong = |lba: &u64| match call(device, Io::Read { lba: *lba, buf: vec![0; SECTOR] }) {
        Ok(buf) => {
            assert!(buf.expect("a buffer") == content(*lba), "sector {lba} is silently wrong");
            false
        }
        Err(_) => true,
    };
    (0..sectors).filter(wrong).collect()
}

/// Lets what is under way come to its end.
fn settle(device: &mut Device) {
    while !device.is_idle() {
        device.wait();
        assert!(device.poll().is_none(), "nobody asked anything");
    }
}

#[test]
fn a_scrub_may_be_stopped_at_any_moment_and_begun_again() {
    let (store, sectors) = written();
    for polls in 0..60 {
        let mut device = attach(&store.fork());
        device.scrub(true).expect("attached for writing");
        for _ in 0..polls {
            device.background();
            device.poll();
        }
        device.scrub(false).expect("attached for writing");
        assert_eq!(device.status().scrub_percent, None);
        settle(&mut device);
        assert!(!device.has_background(), "it goes on after {polls} polls");
        // A LEB that it left pinned could never be erased again.
        for lba in (0..sectors).chain(0..sectors) {
            call(&mut device, Io::Write { lba, data: &content(lba), fua: false }).expect("written");
        }
        let before = device.status().scrubbed_sectors;
        device.scrub(true).expect("attached for writing");
        if polls % 2 == 0 {
            // Stopped and begun again in the same moment.
            device.background();
            device.scrub(false).expect("attached for writing");
            device.scrub(true).expect("attached for writing");
        }
        while device.background() != Background::Nothing {
            device.poll();
        }
        assert!(device.status().scrubbed_sectors >= before + sectors, "not everything was read after {polls} polls");
        assert_eq!(device.status().scrub_errors, 0);
        device.verify().expect("the books agree");
        device.detach().expect("detached");
    }
}

/// With one die gone, a sector that is wrong on another takes the sectors beside it in the row with it, and no others of the page.
#[test]
fn a_rebuild_restores_what_can_be_had_of_a_page() {
    let (store, sectors) = written();
    store.fail_die(1);
    let mut device = attach(&store);
    assert_eq!(unreadable(&mut device, sectors), []);
    device.detach().expect("detached");
    for block in 0..geometry().blocks {
        // The first slot of every page of one die that serves.
        for page in 0..geometry().pages_per_block {
            store.rot(PageAddr { die: 2, block, page }, 100, 1);
        }
    }
    let mut device = attach(&store);
    let lost = unreadable(&mut device, sectors).len() as u64;
    assert!(lost > 0 && lost < sectors / 2, "{lost} of {sectors}");
    store.replace_die(1);
    device.die_replaced(1).expect("it was lost");
    while device.background() != Background::Nothing {
        device.poll();
    }
    settle(&mut device);
    assert_eq!(device.status().lost_dies, [] as [u32; 0]);
    assert_eq!(unreadable(&mut device, sectors).len() as u64, lost);
    device.detach().expect("detached");
    // Now any other die may go and takes nothing with it: also what is wrong was restored as parity has it.
    store.fail_die(0);
    assert_eq!(unreadable(&mut attach(&store), sectors).len() as u64, lost);
}

/// A die may be replaced as soon as the device says that it is lost, also while that is still being put on record.
#[test]
fn a_die_is_replaced_while_its_loss_is_being_recorded() {
    let (store, sectors) = written();
    let mut device = attach(&store);
    store.fail_die(1);
    let mut replaced = false;
    for lba in 0..sectors {
        let (data, mut taken, mut answered) = (content(lba), false, false);
        while !answered {
            if !taken {
                let submitted = device.submit(lba, Io::Write { lba, data: &data, fua: false });
                (taken, answered) = (!matches!(submitted, Submitted::Busy(_)), matches!(submitted, Submitted::Done(_)));
            }
            // What was written in spite of the loss is answered once it is on record: before that is the moment.
            if !replaced && device.status().lost_dies == [1] {
                store.replace_die(1);
                device.die_replaced(1).expect("it is lost");
                device.background();
                replaced = true;
            }
            answered |= device.poll().is_some();
        }
    }
    assert!(replaced, "no write met the die that failed");
    while device.background() != Background::Nothing {
        device.poll();
    }
    settle(&mut device);
    assert_eq!(device.status().lost_dies, [] as [u32; 0], "the rebuild was dropped");
    device.detach().expect("detached");
    store.fail_die(0);
    assert_eq!(unreadable(&mut attach(&store), sectors), []);
}

/// Overwritten while a die is rebuilt, and what overwrote it lost with the power: the die holds what stood there before, and makes up for another.
#[test]
fn a_rebuilt_die_holds_what_a_power_cut_brings_back() {
    let (store, sectors) = written();
    let middle = sectors / 2;
    let stripe = u64::from(geometry().data_dies() * geometry().slots_per_page);
    for lost in [0, 2, 3] {
        let store = store.fork();
        store.fail_die(1);
        let mut device = attach(&store);
        assert_eq!(unreadable(&mut device, sectors), []);
        call(&mut device, Io::Write { lba: 0, data: &content(0), fua: true }).expect("written");
        store.replace_die(1);
        device.die_replaced(1).expect("it was lost");
        // Nobody needs the stripe around the middle any more, as soon as this is durable; and of the last sector nothing is on the medium yet.
        let around = (middle - stripe..=middle + stripe).filter(|lba| *lba != middle);
        for lba in around.chain([middle]) {
            call(&mut device, Io::Write { lba, data: &content(lba), fua: false }).expect("written");
        }
        rebuild::finish(&mut device);
        rebuild::lose_die_and_power(device, &store, lost);
        assert_eq!(unreadable(&mut attach(&store), sectors), [], "die 1 was rebuilt, and die {lost} lost");
    }
}
