//! Power cuts: what was flushed is there, what was not is old, new or nothing in between, and every write is whole.

use std::collections::BTreeMap;

use device::{Device, Drill, Io, IoError, Unsynced};
use random::SplitMix64;

use super::common::*;

fn cut(at_write: Option<u64>, at_program: Option<u64>, unsynced: Unsynced, seed: u64) -> Drill {
    Drill::PowerCut { at_write, at_program, unsynced, seed: Some(seed) }
}

/// Versions that a sector may show: the last durable one first.
#[derive(Default)]
struct Model(BTreeMap<u64, Vec<u8>>);

impl Model {
    fn written(&mut self, lba: u64, byte: u8) {
        self.0.entry(lba).or_insert_with(|| vec![0]).push(byte);
    }

    /// All of it is durable.
    fn flushed(&mut self) {
        for versions in self.0.values_mut() {
            *versions = versions.last().copied().into_iter().collect();
        }
    }

    /// What the device shows is what it may show; from now on it is what it is.
    fn check(&mut self, device: &mut Device) {
        for (lba, versions) in &mut self.0 {
            let found = read(device, *lba).expect("read");
            assert!(versions.contains(&found), "sector {lba}: {found}, may be one of {versions:?}");
            *versions = vec![found];
        }
    }
}

/// Writes and flushes until the power goes.
fn work(device: &mut Device, model: &mut Model, random: &mut SplitMix64) {
    for step in 0..20_000 {
        if random.one_in(12) {
            match ask(device, Io::Flush) {
                Some(result) => result.expect("flushed"),
                None => return,
            };
            model.flushed();
            continue;
        }
        let (lba, byte) = (random.below(3000), 1 + random.below(255) as u8);
        let count = 1 + random.below(8) as usize;
        (0..count as u64).for_each(|n| model.written(lba + n, byte));
        let data = vec![byte; count * SECTOR];
        let fua = random.one_in(20);
        match ask(device, Io::Write { lba, data: &data, fua }) {
            Some(result) => result.unwrap_or_else(|error| panic!("step {step}: {error}")),
            None => return,
        };
        if fua {
            (0..count as u64).for_each(|n| drop(model.0.insert(lba + n, vec![byte])));
        }
    }
    panic!("the power never went");
}

fn rounds(files: &Files, rounds: u64) {
    let mut model = Model::default();
    let mut torn = 0;
    for round in 0..rounds {
        let mut random = SplitMix64::new(round);
        let mut device = files.attach();
        model.check(&mut device);
        let at = 1 + random.below(400);
        let (at_write, at_program) = if random.one_in(3) { (Some(at * 4), None) } else { (None, Some(at)) };
        let unsynced = Unsynced::ALL[random.below(4) as usize];
        device.drill(cut(at_write, at_program, unsynced, round)).expect("armed");
        work(&mut device, &mut model, &mut random);
        let power = device.power_cut().expect("the power is cut").clone();
        torn += power.report.torn;
        assert_eq!((power.report.unsynced, power.report.seed), (unsynced, round));
        assert_eq!(ask(&mut device, Io::Flush).expect("answered"), Err(IoError::Media), "nothing works without power");
        let again = device.drill(Drill::IgnoreFlushes).expect_err("no power").to_string();
        assert!(again.contains("`vsl drill DEVICE power-on` switches it on"), "{again}");
    }
    assert!(torn > 0, "no program was ever torn");
    model.check(&mut files.attach());
}

#[test]
fn nothing_flushed_is_lost_in_any_cut() {
    rounds(&Files::new(1, 0), 40);
}

#[test]
fn nothing_flushed_is_lost_in_any_cut_with_parity() {
    rounds(&Files::new(4, 1), 24);
}

#[test]
fn what_was_not_flushed_is_lost_when_it_is_dropped() {
    let files = Files::new(1, 0);
    let mut device = files.attach();
    (0..500).for_each(|lba| write(&mut device, lba, 1).expect("written"));
    flush(&mut device).expect("flushed");
    (0..500).for_each(|lba| write(&mut device, lba, 2).expect("written"));
    assert_eq!(read(&mut device, 7), Ok(2), "what is cached is read");
    let said = device.drill(cut(None, None, Unsynced::Drop, 7)).expect("cut");
    assert!(
        said.starts_with("not synced: ") && said.ends_with(" programs lost, 0 kept, 0 torn (drop, seed 7)"),
        "{said}"
    );
    drop(device);
    let mut device = files.attach();
    assert!((0..500).all(|lba| read(&mut device, lba) == Ok(1)));

    // A cache that lies loses what it said was durable.
    device.drill(Drill::IgnoreFlushes).expect("on");
    write(&mut device, 3, 3).expect("written");
    flush(&mut device).expect("so it says");
    call(&mut device, Io::Write { lba: 4, data: &[4; SECTOR], fua: true }).expect("so it says");
    device.drill(cut(None, None, Unsynced::Drop, 7)).expect("cut");
    let carried = device.power_cut().expect("cut").drills.clone();
    assert_eq!(carried.active(), [Drill::IgnoreFlushes]);
    drop(device);
    let mut device = files.attach_with(carried);
    assert_eq!((read(&mut device, 3), read(&mut device, 4)), (Ok(1), Ok(1)));
    assert_eq!(device.drills(), [Drill::IgnoreFlushes], "it goes on");
    device.undo_drill("ignore-flushes").expect("undone");
    write(&mut device, 3, 5).expect("written");
    flush(&mut device).expect("flushed");
    device.drill(cut(None, None, Unsynced::Drop, 7)).expect("cut");
    drop(device);
    assert_eq!(read(&mut files.attach(), 3), Ok(5));
}

#[test]
fn the_power_goes_with_the_write_that_was_named_and_not_before() {
    let files = Files::new(1, 0);
    let mut device = files.attach();
    let said =
        device.drill(Drill::PowerCut { at_write: Some(3), at_program: None, unsynced: Unsynced::Keep, seed: None });
    assert!(said.expect("armed").starts_with("the power goes with write 3 from now; seed "));
    write(&mut device, 0, 1).expect("the first");
    flush(&mut device).expect("flushes do not count");
    write(&mut device, 0, 2).expect("the second");
    assert!(ask(&mut device, Io::Write { lba: 0, data: &[3; SECTOR], fua: false }).is_none(), "never answered");
    drop(device);

    let mut device = files.attach();
    device.drill(cut(Some(2), None, Unsynced::Keep, 1)).expect("armed");
    device.undo_drill("power-cut").expect("called off");
    device.drill(cut(None, Some(1), Unsynced::Keep, 1)).expect("armed");
    device.undo_drill("power-cut").expect("called off");
    (0..10).for_each(|lba| write(&mut device, lba, 1).expect("written"));
    flush(&mut device).expect("flushed");
    device.detach().expect("detached");
}

/// The power goes again while the device is being attached, or detached.
#[test]
fn the_power_may_go_while_a_device_is_detached() {
    let files = Files::new(1, 0);
    let mut model = Model::default();
    for at in 1..30 {
        let mut device = files.attach();
        model.check(&mut device);
        for lba in 0..100 {
            model.written(lba, at as u8);
            write(&mut device, lba, at as u8).expect("written");
        }
        flush(&mut device).expect("flushed");
        model.flushed();
        device.drill(cut(None, Some(at), Unsynced::Random, at)).expect("armed");
        if device.detach().is_ok() {
            assert!(at > 3, "a detach writes more than {at} times");
            return;
        }
    }
    panic!("a detach never ends");
}
