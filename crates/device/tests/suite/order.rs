//! Clients that read in order what was written at random: what is read ahead of them, and what brings a device back into order.

use device::{Background, Device, Io, MediaFormat, Submitted, max_sectors};
use ftl::{Geometry, Policy};
use media::sim::{Knobs, SimMedia, SimStore};
use random::SplitMix64;
use uuid::Uuid;

use crate::common::call;

const SECTOR: usize = 4096;

fn geometry() -> Geometry {
    Geometry {
        dies: 1,
        parity: 0,
        blocks: 64,
        pages_per_block: 4,
        slots_per_page: 16,
        sector_bytes: SECTOR as u32,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4096,
    }
}

fn attach(store: &SimStore) -> Device {
    let media = SimMedia::new(store, 1, Knobs { must_erase: false, ..Knobs::default() });
    Device::on_media(Box::new(media), false).expect("attached")
}

/// An empty device, and how many sectors it has.
fn formatted() -> (SimStore, Device, u64) {
    let geometry = geometry();
    let store = SimStore::new(geometry);
    let sectors = max_sectors(&geometry) / 2;
    let format = MediaFormat {
        sectors,
        max_request_bytes: 8 * SECTOR as u32,
        checkpoint_interval: 2000,
        policy: Policy::Lifetime,
        uuid: Uuid::from_u128(7),
        key: None,
    };
    Device::format_media(&mut SimMedia::new(&store, 1, Knobs::default()), &format).expect("formatted");
    let device = attach(&store);
    (store, device, sectors)
}

fn content(lba: u64, version: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(lba << 32 | version);
    (0..SECTOR / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// Writes every sector once, in no order.
fn scatter(device: &mut Device, sectors: u64) {
    let mut order: Vec<u64> = (0..sectors).collect();
    let mut random = SplitMix64::new(5);
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    for lba in order {
        call(device, Io::Write { lba, data: &content(lba, 0), fua: false }).expect("written");
    }
    call(device, Io::Flush).expect("flushed");
}

fn read(device: &mut Device, lba: u64, count: usize) -> Vec<u8> {
    call(device, Io::Read { lba, buf: vec![0xee; count * SECTOR] }).expect("read").expect("a buffer")
}

fn optimised(device: &mut Device) {
    device.optimise(Some(1 << 30)).expect("attached for writing");
    while device.background() != Background::Nothing {
        device.poll();
        device.idle();
    }
}

#[test]
fn a_reader_in_order_gets_what_was_written_last() {
    let (_, mut device, sectors) = formatted();
    scatter(&mut device, sectors);
    let mut random = SplitMix64::new(9);
    let mut versions = vec![0; sectors as usize];
    for version in 1..6 {
        for lba in (0..sectors / 4 * 4).step_by(4) {
            let bytes = read(&mut device, lba, 4);
            for (lba, bytes) in (lba..).zip(bytes.chunks_exact(SECTOR)) {
                assert!(bytes == content(lba, versions[lba as usize]), "sector {lba} is not what was written last");
            }
            // A little ahead of the reader, where it may have been read already.
            let ahead = lba + 4 + random.below(80);
            if ahead < sectors && random.one_in(8) {
                versions[ahead as usize] = version;
                call(&mut device, Io::Write { lba: ahead, data: &content(ahead, version), fua: false })
                    .expect("written");
            }
        }
    }
    let figures = device.figures();
    assert!(figures.read_ahead_used_sectors > sectors / 2, "of {} sectors", figures.read_ahead_used_sectors);
    assert_eq!(figures.layer.host_read_sectors, 5 * (sectors / 4 * 4), "what nobody asked for is not the host's");
    assert_eq!(figures.requests.reads, 5 * (sectors / 4));
    device.verify().expect("the books agree");
}

#[test]
fn what_is_read_ahead_is_bounded_and_goes_in_quiet_times() {
    let (_, mut device, sectors) = formatted();
    scatter(&mut device, sectors);
    let before = device.figures().memory_bytes;
    for lba in 0..sectors / 2 {
        read(&mut device, lba, 1);
        assert!(device.figures().memory_bytes <= before + (16 << 20));
    }
    while !device.is_idle() {
        device.wait();
        device.poll();
    }
    device.idle();
    assert!(device.figures().memory_bytes <= before + (1 << 20), "it is kept while nobody reads");
}

#[test]
fn reads_of_neighbours_go_to_the_medium_as_one() {
    let (store, mut device, _) = formatted();
    // Two writers in turn: the sectors of each lie one slot apart.
    for at in 0..64 {
        for lba in [at, 256 + at] {
            call(&mut device, Io::Write { lba, data: &content(lba, 0), fua: false }).expect("written");
        }
    }
    call(&mut device, Io::Flush).expect("flushed");
    device.detach().expect("detached");
    let mut device = attach(&store);
    let before = store.commands();
    let bytes = read(&mut device, 0, 64);
    for (lba, bytes) in bytes.chunks_exact(SECTOR).enumerate() {
        assert!(bytes == content(lba as u64, 0), "sector {lba}");
    }
    let commands = store.commands() - before;
    assert!(commands <= 12, "{commands} commands for eight pages");
}

#[test]
fn an_optimised_device_lies_in_order_and_holds_what_it_held() {
    let (store, mut device, sectors) = formatted();
    scatter(&mut device, sectors);
    let before = device.figures().pieces_per_mib.expect("it holds data");
    assert!(before > 200.0, "{before} pieces a MiB");
    optimised(&mut device);
    let (after, figures) = (device.figures().pieces_per_mib.expect("it holds data"), device.figures());
    assert!(after < 40.0, "{after} pieces a MiB");
    assert_eq!((figures.optimises, figures.optimise_percent), (1, None));
    assert!(figures.optimised_sectors <= sectors + sectors / 10, "{} of {sectors} moved", figures.optimised_sectors);
    optimised(&mut device);
    assert_eq!(device.figures().optimised_sectors, figures.optimised_sectors, "what is in order is left alone");
    device.verify().expect("the books agree");
    for attached in 0..2 {
        for lba in 0..sectors {
            assert!(read(&mut device, lba, 1) == content(lba, 0), "sector {lba}, attach {attached}");
        }
        device.detach().expect("detached");
        device = attach(&store);
    }
}

#[test]
fn optimising_may_be_stopped_at_any_moment_and_begun_again() {
    let (store, mut device, sectors) = formatted();
    scatter(&mut device, sectors);
    device.detach().expect("detached");
    for polls in 0..40 {
        let mut device = attach(&store.fork());
        device.optimise(Some(1 << 30)).expect("attached for writing");
        for step in 0..polls {
            device.background();
            device.poll();
            let lba = step * 31 % sectors;
            call(&mut device, Io::Write { lba, data: &content(lba, 0), fua: false }).expect("written");
        }
        device.optimise(None).expect("attached for writing");
        assert_eq!(device.figures().optimise_percent, None);
        // A LEB that it left pinned could never be used again.
        for lba in (0..sectors).chain(0..sectors) {
            call(&mut device, Io::Write { lba, data: &content(lba, 1), fua: false }).expect("written");
        }
        optimised(&mut device);
        device.verify().expect("the books agree");
        for lba in 0..sectors {
            assert!(read(&mut device, lba, 1) == content(lba, 1), "sector {lba} after {polls} polls");
        }
        device.detach().expect("detached");
    }
}

#[test]
fn a_read_that_waits_is_answered_though_it_is_changed_meanwhile() {
    let (_, mut device, sectors) = formatted();
    scatter(&mut device, sectors);
    for lba in 0..8 {
        read(&mut device, lba, 1);
    }
    // It waits for what is on its way, and the write comes before the answer.
    let lba = 8;
    let submitted = device.submit(1, Io::Read { lba, buf: vec![0; SECTOR] });
    let mut got = if let Submitted::Done(result) = submitted { Some(result) } else { None };
    call_beside(&mut device, lba, &mut got);
    while got.is_none() {
        got = device.poll().map(|completion| completion.result);
    }
    let bytes = got.expect("answered").expect("read").expect("a buffer");
    assert!(bytes == content(lba, 0), "the version of when it was asked for");
    assert!(read(&mut device, lba, 1) == content(lba, 1));
}

/// Writes a sector while another request is under way, whose answer may come before.
fn call_beside(device: &mut Device, lba: u64, got: &mut Option<Result<Option<Vec<u8>>, device::IoError>>) {
    let data = content(lba, 1);
    let mut io = Some(Io::Write { lba, data: &data, fua: false });
    while let Some(asked) = io.take() {
        if let Submitted::Busy(back) = device.submit(2, asked) {
            io = Some(back);
        }
        if let Some(completion) = device.poll()
            && completion.tag == 1
        {
            *got = Some(completion.result);
        }
    }
}
