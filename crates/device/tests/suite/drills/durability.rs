//! Durability modes: what each promises of a power cut, at every moment.

use device::{Drill, Durability, Io, Setting, Submitted, Unsynced};
use random::SplitMix64;

use super::common::*;

fn cut_at(program: u64, unsynced: Unsynced, seed: u64) -> Drill {
    Drill::PowerCut { at_write: None, at_program: Some(program), unsynced, seed: Some(seed) }
}

fn set(files: &Files, mode: Durability) {
    let mut device = files.attach();
    device.set(&[Setting::Durability(mode)]).expect("set");
    device.detach().expect("detached");
}

/// Writes, trims and zeroings without a flush or FUA anywhere, until the power goes: all that was answered is there, and what was not is old or new.
fn nothing_answered_is_lost(files: &Files, rounds: u64) {
    set(files, Durability::WriteThrough);
    let mut held = vec![0u8; 200];
    for round in 0..rounds {
        let mut random = SplitMix64::new(round);
        let mut device = files.attach();
        assert_eq!(device.status().durability, Some(device::Durability::WriteThrough));
        for (lba, byte) in (0..).zip(&held) {
            assert_eq!(read(&mut device, lba), Ok(*byte), "round {round}, sector {lba}");
        }
        let unsynced = Unsynced::ALL[random.below(4) as usize];
        device.drill(cut_at(1 + random.below(120), unsynced, round)).expect("armed");
        loop {
            let (lba, byte) = (random.below(200), 1 + random.below(255) as u8);
            let data = vec![byte; SECTOR];
            let (io, byte) = match random.below(4) {
                0 => (Io::Trim { lba, count: 1, fua: false }, 0),
                1 => (Io::WriteZeroes { lba, count: 1, fua: false, allocate: random.one_in(2) }, 0),
                _ => (Io::Write { lba, data: &data, fua: false }, byte),
            };
            match ask(&mut device, io) {
                Some(result) => drop(result.expect("answered well")),
                None => {
                    drop(device);
                    let mut device = files.attach();
                    let found = read(&mut device, lba).expect("read");
                    assert!([held[lba as usize], byte].contains(&found), "the one that was not answered: {found}");
                    held[lba as usize] = found;
                    break;
                }
            }
            held[lba as usize] = byte;
        }
    }
}

#[test]
fn written_through_nothing_answered_is_lost_in_any_cut() {
    nothing_answered_is_lost(&Files::new(1, 0), 24);
}

#[test]
fn written_through_nothing_answered_is_lost_in_any_cut_with_parity() {
    nothing_answered_is_lost(&Files::new(4, 1), 8);
}

#[test]
fn written_through_from_now_on_covers_what_was_answered_before() {
    let files = Files::new(1, 0);
    let mut device = files.attach();
    (0..300).for_each(|lba| write(&mut device, lba, 1).expect("written"));
    device.set(&[Setting::Durability(Durability::WriteThrough)]).expect("set");
    write(&mut device, 300, 1).expect("written");
    while !device.is_saved().expect("saved") {
        device.poll();
        device.wait();
    }
    device
        .drill(Drill::PowerCut { at_write: None, at_program: None, unsynced: Unsynced::Drop, seed: Some(1) })
        .expect("cut");
    drop(device);
    let mut device = files.attach();
    assert!((0..301).all(|lba| read(&mut device, lba) == Ok(1)));
    assert_eq!(device.settings().durability, Some(Durability::WriteThrough), "the setting is on the medium");
}

/// Nothing waits in `unsafe`: a flush is answered on the spot. A power cut may take what is newer than the layer's own last sync, never half of a
/// write; a clean detach keeps everything.
#[test]
fn unsafe_loses_what_is_newest_and_tears_nothing() {
    let files = Files::new(1, 0);
    set(&files, Durability::Unsafe);
    let mut lost = 0;
    for (round, unsynced) in (0u64..).zip(Unsynced::ALL.into_iter().cycle().take(12)) {
        let mut device = files.attach();
        device.drill(cut_at(30 + round, unsynced, round)).expect("armed");
        let mut random = SplitMix64::new(round);
        // Every eight sectors are written together.
        let mut versions: Vec<Vec<u8>> = (0..40).map(|run| vec![read(&mut device, run * 8).expect("read")]).collect();
        loop {
            let (run, byte) = (random.below(40), 1 + random.below(255) as u8);
            versions[run as usize].push(byte);
            let data = vec![byte; 8 * SECTOR];
            let Some(result) = ask(&mut device, Io::Write { lba: run * 8, data: &data, fua: true }) else { break };
            result.expect("written");
            match device.submit(9, Io::Flush) {
                Submitted::Done(result) => drop(result.expect("answered")),
                _ => panic!("a flush waits"),
            }
        }
        drop(device);
        let mut device = files.attach();
        for (run, versions) in (0..).zip(&versions) {
            let found: Vec<u8> = (0..8).map(|lba| read(&mut device, run * 8 + lba).expect("read")).collect();
            assert!(found.iter().all(|byte| *byte == found[0]), "torn: {found:?}");
            assert!(versions.contains(&found[0]), "{} was never there: {versions:?}", found[0]);
            lost += u32::from(versions.last() != Some(&found[0]));
        }
        (0..320).for_each(|lba| write(&mut device, lba, round as u8).expect("written"));
        device.detach().expect("detached");
        let mut device = files.attach();
        assert!((0..320).all(|lba| read(&mut device, lba) == Ok(round as u8)), "a clean detach keeps all");
        device.detach().expect("detached");
    }
    assert!(lost > 0, "nothing was ever lost: flushes are carried out all the same");
}
