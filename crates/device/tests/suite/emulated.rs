//! Emulated devices: what they keep, what they survive, and that they take the card's time.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use card::{Module, ModuleConfig, Op, Request, Surroundings, VirtualDevice};
use device::{
    AttachOptions, Capacity, Completion, Device, EmulateOptions, Emulation, EraseLevel, FormatError, FormatOptions, Io,
    Submitted, create_emulated, format, inspect, sure_erase,
};
use media::Memory;
use media::nand::Rate;
use media::ring::Ring;
use random::SplitMix64;
use tempfile::TempDir;

use crate::common::call;

const SECTOR: usize = 4096;
const EMULATION: Emulation = Emulation { scale: 64, seed: 3 };

fn options(profile: &str, emulation: Emulation) -> EmulateOptions {
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "test".into() };
    EmulateOptions { profile: profile.into(), emulation, format }
}

fn made() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("fct0.vsl");
    create_emulated(&path, &options("iodrive-320-mlc", EMULATION)).expect("created");
    (dir, path)
}

fn attach(path: &Path, read_only: bool) -> Device {
    let ring = Ring::new(64).expect("io_uring");
    Device::attach(&[path], &AttachOptions { read_only, ..AttachOptions::default() }, &ring).expect("attached")
}

fn next(device: &mut Device) -> Completion {
    loop {
        if let Some(completion) = device.poll() {
            return completion;
        }
        device.wait();
    }
}

fn write(device: &mut Device, lba: u64, with: u8, sectors: usize) {
    let data = vec![with; sectors * SECTOR];
    call(device, Io::Write { lba, data: &data, fua: false }).expect("written");
}

fn expect(device: &mut Device, lba: u64, with: u8) {
    let read = call(device, Io::Read { lba, buf: vec![0xee; SECTOR] }).expect("read").expect("bytes");
    assert!(read.iter().all(|byte| *byte == with), "sector {lba}: {} instead of {with}", read[0]);
}

#[test]
fn what_was_written_is_there_after_a_detach() {
    let (_dir, path) = made();
    let mut device = attach(&path, false);
    for lba in 0..200 {
        write(&mut device, lba * 7, lba as u8, 3);
    }
    call(&mut device, Io::Trim { lba: 70, count: 7, fua: false }).expect("trimmed");
    device.verify().expect("the books agree");
    device.detach().expect("detached");
    let info = inspect(&path).expect("a device");
    assert!(info.clean);
    assert_eq!((info.emulation, info.format_version), (Some(EMULATION), 2));
    for read_only in [true, false] {
        let mut device = attach(&path, read_only);
        for lba in 0..200 {
            expect(&mut device, lba * 7 + 2, if lba == 10 { 0 } else { lba as u8 });
            expect(&mut device, lba * 7 + 3, 0);
        }
        device.detach().expect("detached");
    }
}

/// The process ends without a detach: what was flushed is there, and every sector holds what was once written to it.
#[test]
fn what_was_flushed_survives_the_end_of_the_process() {
    let (_dir, path) = made();
    let mut random = SplitMix64::new(11);
    // What each sector must hold, and what was written to it since the last flush.
    let mut flushed = vec![0u8; 500];
    for round in 1..6u8 {
        let mut device = attach(&path, false);
        device.verify().expect("the books agree");
        let mut maybe: Vec<Vec<u8>> = flushed.iter().map(|value| vec![*value]).collect();
        for step in 0..60 {
            let (lba, value) = (random.below(500), round.wrapping_mul(41).wrapping_add(step));
            match random.below(10) {
                0 => {
                    call(&mut device, Io::Trim { lba, count: 1, fua: false }).expect("trimmed");
                    maybe[lba as usize].push(0);
                }
                1 | 2 => {
                    call(&mut device, Io::Flush).expect("flushed");
                    maybe.iter_mut().for_each(|values| drop(values.drain(..values.len() - 1)));
                }
                3 => {
                    let data = vec![value; SECTOR];
                    call(&mut device, Io::Write { lba, data: &data, fua: true }).expect("written");
                    maybe[lba as usize] = vec![value];
                }
                _ => {
                    write(&mut device, lba, value, 1);
                    maybe[lba as usize].push(value);
                }
            }
        }
        drop(device);
        assert!(!inspect(&path).expect("a device").clean);
        let mut device = attach(&path, false);
        for (lba, values) in (0..).zip(&maybe) {
            let read = call(&mut device, Io::Read { lba, buf: vec![0; SECTOR] }).expect("read").expect("bytes");
            assert!(read.iter().all(|byte| *byte == read[0]), "sector {lba} is torn");
            assert!(values.contains(&read[0]), "round {round}: sector {lba} holds {}, may hold {values:?}", read[0]);
            flushed[lba as usize] = read[0];
        }
        device.detach().expect("detached");
    }
}

#[test]
fn a_format_and_an_erase_leave_it_emulated() {
    let (_dir, path) = made();
    let before = inspect(&path).expect("a device");
    let mut device = attach(&path, false);
    write(&mut device, 5, 9, 1);
    device.detach().expect("detached");
    let options = FormatOptions { sector_bytes: 512, capacity: Capacity::ImprovedWrite, label: "smaller".into() };
    let info = format(&[&path], &options, None).expect("formatted");
    assert_eq!((info.emulation, info.sector_bytes), (Some(EMULATION), 512));
    assert!((0.69..0.71).contains(&(info.bytes() as f64 / before.bytes() as f64)));
    let erased = sure_erase(std::slice::from_ref(&path), EraseLevel::Clear, None, &mut |_| true).expect("erased").0;
    assert_eq!((erased.emulation, erased.sectors, erased.raw_bytes), (Some(EMULATION), info.sectors, info.raw_bytes));
    let mut device = attach(&path, false);
    let read = call(&mut device, Io::Read { lba: 40, buf: vec![1; 512] }).expect("read").expect("bytes");
    assert!(read.iter().all(|byte| *byte == 0));
    device.detach().expect("detached");
}

#[test]
fn bad_options_are_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("x.vsl");
    let message = |options: &EmulateOptions| match create_emulated(&path, options) {
        Err(device::CreateError::Format(error @ FormatError::Invalid { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(
        message(&options("wd-re3", EMULATION)).contains("wd-re3 is a spinning disk: what can be emulated is flash")
    );
    assert!(message(&options("nothing", EMULATION)).contains("there are: iodrive-320-mlc"));
    let mut huge = options("iodrive-320-mlc", EMULATION);
    huge.format.capacity = Capacity::Bytes(400_000_000_000);
    assert!(message(&huge).contains("a capacity of 400000000000 bytes: this device has room for"));
    assert!(!path.exists());
}

/// A card in virtual time and an emulated one, of one sheet, which are asked the same.
struct Twins {
    module: Module,
    now: u64,
    device: Device,
    clock: Rc<Cell<u64>>,
    link_bytes_per_s: u64,
}

impl Twins {
    fn new() -> Twins {
        let profile = profile::find("iodrive-320-mlc").expect("a profile");
        let flash = profile.flash().expect("a flash card");
        let module = Module::new(&ModuleConfig {
            module: &flash.module,
            card: flash.card.as_ref().map(|card| (card, flash.modules)),
            capacity_bytes: flash.module.advertised_bytes,
            sector_bytes: SECTOR as u32,
            scale: EMULATION.scale,
            surroundings: Surroundings::default(),
            policy: None,
            pacing: None,
            grooms_ahead: true,
            seed: EMULATION.seed,
        })
        .expect("a module");
        let inner =
            Device::format_emulated(&options("iodrive-320-mlc", EMULATION), |geometry| Box::new(Memory::new(geometry)));
        let clock = Rc::new(Cell::new(0));
        let device = Device::emulated(inner.expect("formatted"), Box::new(Rc::clone(&clock))).expect("attached");
        Twins { module, now: 0, device, clock, link_bytes_per_s: flash.module.controller.link_bytes_per_s }
    }

    /// How long a request takes by itself, in virtual time and emulated, ns.
    fn take(&mut self, op: Op, lba: u64, sectors: usize) -> (u64, u64) {
        let bytes = sectors * SECTOR;
        let (begin, emulated_begin) = (self.now, self.clock.get());
        self.module.submit(begin, 0, Request::new(op, lba * SECTOR as u64, bytes as u32));
        while self.module.answer().is_none() {
            self.now = self.module.next_event().expect("a request is under way");
            self.module.advance(self.now);
        }
        let data = vec![1; bytes];
        let io = match op {
            Op::Write => Io::Write { lba, data: &data, fua: false },
            _ => Io::Read { lba, buf: vec![0; bytes] },
        };
        call(&mut self.device, io).expect("done");
        (self.now - begin, self.clock.get() - emulated_begin)
    }

    /// Nobody asks anything for so long, ns.
    fn rest(&mut self, time: u64) {
        self.now += time;
        self.module.advance(self.now);
        self.clock.set(self.clock.get() + time);
    }
}

/// One request at a time, the same ones: the emulated card takes as long as the one in virtual time. Writes take the
/// same to a thousandth; how long reads, programs and erases take is drawn at random by each.
#[test]
fn it_takes_the_time_that_the_card_in_virtual_time_takes() {
    let mut twins = Twins::new();
    let mut random = SplitMix64::new(5);
    let (mut same, mut writes) = (0, 0);
    let mut sums = [[0u64; 2]; 2];
    for _ in 0..3000 {
        let (lba, write) = (random.below(2000), random.below(3) > 0);
        let (virtual_time, emulated_time) = twins.take(if write { Op::Write } else { Op::Read }, lba, 1);
        sums[usize::from(write)][0] += virtual_time;
        sums[usize::from(write)][1] += emulated_time;
        writes += u32::from(write);
        same += u32::from(write && virtual_time.abs_diff(emulated_time) * 1000 <= virtual_time);
    }
    assert!(same * 100 > writes * 99, "{same} of {writes} writes took the same time");
    for (what, [virtual_time, emulated_time]) in ["reads", "writes"].into_iter().zip(sums) {
        let ratio = emulated_time as f64 / virtual_time as f64;
        assert!((0.98..1.02).contains(&ratio), "{what}: {ratio}");
    }
    let pacing = twins.device.status().pacing.expect("it is emulated");
    assert_eq!((pacing.max_us, pacing.keeping), (0.0, device::Keeping::Up));
}

/// Of data and of what was never written, alone after a rest. Times of flash are drawn by each; the link is never faster than it is.
#[test]
fn larger_reads_take_what_they_take_in_virtual_time() {
    let mut twins = Twins::new();
    for (lba, sectors) in [0, 10_000].into_iter().flat_map(|lba| [1, 16, 64, 256].map(|sectors| (lba, sectors))) {
        if lba == 0 {
            twins.take(Op::Write, lba, sectors);
        }
        twins.rest(1_000_000_000);
        let (virtual_time, emulated_time) = twins.take(Op::Read, lba, sectors);
        let link = Rate::bytes_per_s(twins.link_bytes_per_s).of((sectors * SECTOR) as u32);
        assert!(emulated_time >= link, "{sectors} sectors from {lba}: {emulated_time} ns, {link} for the link alone");
        let ratio = emulated_time as f64 / virtual_time as f64;
        assert!((0.95..1.05).contains(&ratio), "{sectors} sectors from {lba}: {ratio} of virtual time");
    }
}

/// Many at a time, and more than the buffer takes: every request is answered once.
#[test]
fn every_request_is_answered() {
    let emulation = Emulation { scale: 64, seed: 1 };
    let inner =
        Device::format_emulated(&options("iodrive-320-mlc", emulation), |geometry| Box::new(Memory::new(geometry)));
    let clock = Box::new(Cell::new(0));
    let mut device = Device::emulated(inner.expect("formatted"), clock).expect("attached");
    let mut random = SplitMix64::new(9);
    let data = vec![3; 256 * SECTOR];
    let (mut under_way, mut answered) = (std::collections::HashSet::new(), 0);
    for tag in 0..4000 {
        let lba = random.below(20_000);
        let io = match random.below(8) {
            0 => Io::Flush,
            1 => Io::Trim { lba, count: 100, fua: random.below(2) == 0 },
            2 | 3 => Io::Read { lba, buf: vec![0; SECTOR * 4] },
            4 => Io::WriteZeroes { lba, count: 8, fua: false, allocate: random.below(2) == 0 },
            _ => Io::Write { lba, data: &data[..SECTOR * (1 + random.below(256) as usize)], fua: random.below(5) == 0 },
        };
        match device.submit(tag, io) {
            Submitted::Done(result) => drop(result.expect("done")),
            Submitted::Pending => assert!(under_way.insert(tag)),
            Submitted::Busy(_) => panic!("fewer than the limit are under way"),
        }
        while under_way.len() > 200 {
            let completion = next(&mut device);
            completion.result.expect("done");
            assert!(under_way.remove(&completion.tag));
            answered += 1;
        }
    }
    while !under_way.is_empty() {
        let completion = next(&mut device);
        completion.result.expect("done");
        assert!(under_way.remove(&completion.tag));
        answered += 1;
    }
    assert!(device.poll().is_none() && answered > 3000);
    device.verify().expect("the books agree");
    device.detach().expect("detached");
}
