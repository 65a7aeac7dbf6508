//! Drills of a card: heat, the end of its life, and capacitors.

use std::path::PathBuf;
use std::time::Instant;

use device::{
    AttachOptions, Capacity, CarriedDrills, Device, Drill, EmulateOptions, Emulation, FormatOptions, Io, IoError,
    Unsynced, create_emulated, mark_for_drills,
};
use media::ring::Ring;
use tempfile::TempDir;

use super::common::*;

fn made() -> (TempDir, PathBuf) {
    made_of("iodrive-320-mlc")
}

fn made_of(profile: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("fct0.vsl");
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "t".into() };
    let emulation = Emulation { scale: 64, seed: 3 };
    create_emulated(&path, &EmulateOptions { profile: profile.into(), emulation, format }).expect("created");
    mark_for_drills(std::slice::from_ref(&path), true).expect("marked");
    (dir, path)
}

fn attach(path: &PathBuf) -> Device {
    attach_with(path, CarriedDrills::default())
}

fn attach_with(path: &PathBuf, drills: CarriedDrills) -> Device {
    let ring = Ring::new(64).expect("io_uring");
    let options = AttachOptions { drills, ..AttachOptions::default() };
    Device::attach(std::slice::from_ref(path), &options, &ring).expect("attached")
}

/// Writes for a tenth of a second, which is as often as the card looks at its heat. Gives bytes a second.
fn work(device: &mut Device) -> f64 {
    let (begin, data, mut bytes) = (Instant::now(), vec![7; 64 << 10], 0);
    while begin.elapsed().as_millis() < 100 {
        let lba = bytes as u64 / SECTOR as u64 % 10_000;
        call(device, Io::Write { lba, data: &data, fua: false }).expect("written");
        bytes += data.len();
    }
    bytes as f64 / begin.elapsed().as_secs_f64()
}

/// Nanoseconds by which each written byte is held back.
fn held(device: &Device) -> f64 {
    device.status().hold_ns_per_byte.expect("a card")
}

/// Works until so much is held back.
fn work_until(device: &mut Device, enough: impl Fn(f64) -> bool) {
    let mut rounds = 0..200;
    while !enough(held(device)) {
        assert!(rounds.next().is_some(), "still {} ns a byte", held(device));
        work(device);
    }
}

#[test]
fn what_was_answered_survives_behind_capacitors() {
    let (_dir, path) = made();
    for (round, unsynced) in Unsynced::ALL.into_iter().enumerate() {
        let mut device = attach(&path);
        (0..700).for_each(|lba| write(&mut device, lba, (lba as usize + round) as u8).expect("written"));
        device.drill(Drill::PowerCut { at_write: None, at_program: None, unsynced, seed: None }).expect("cut");
        assert!(ask(&mut device, Io::Read { lba: 0, buf: vec![0; SECTOR] }).is_none_or(|result| result.is_err()));
        drop(device);
        let mut device = attach(&path);
        for lba in 0..700 {
            assert_eq!(read(&mut device, lba), Ok((lba as usize + round) as u8), "sector {lba} after cut {round}");
        }
        // Also when the flash is in the middle of it.
        let at_program = Some(3 + round as u64);
        device.drill(Drill::PowerCut { at_write: None, at_program, unsynced, seed: None }).expect("armed");
        let answered = (0..5000).take_while(|lba| {
            let data = [(lba + 9) as u8; SECTOR];
            ask(&mut device, Io::Write { lba: 1000 + lba, data: &data, fua: false }).is_some_and(|done| done.is_ok())
        });
        let answered = answered.count() as u64;
        assert!((1..5000).contains(&answered), "{answered} writes before the power went");
        drop(device);
        let mut device = attach(&path);
        for lba in 0..answered {
            assert_eq!(read(&mut device, 1000 + lba), Ok((lba + 9) as u8), "sector {lba} of {answered}, cut {round}");
        }
        device.detach().expect("detached");
    }
}

#[test]
fn heat_holds_writes_back_until_it_ends() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    let status = device.status();
    assert!(status.celsius.is_some_and(|celsius| (20.0..70.0).contains(&celsius)), "{:?}", status.celsius);
    assert_eq!(held(&device), 0.0);
    let said = device.drill(Drill::Overheat { celsius: None }).expect("hot");
    assert_eq!(said, "79 degrees Celsius inside: writes are held back");
    work_until(&mut device, |hold| hold > 50.0);
    // It only gets more, and one write may be under way already.
    let most = 1e9 / held(&device);
    let rates: Vec<f64> = (0..3).map(|_| work(&mut device)).collect();
    assert!(rates.iter().all(|rate| *rate < most * 1.5), "{rates:?} bytes a second, at most {most}");
    let status = device.status();
    assert_eq!(
        (status.celsius, status.drills.clone()),
        (Some(79.0), Some(vec!["overheat to 79 degrees Celsius".into()]))
    );
    device.undo_drill("overheat").expect("undone");
    work_until(&mut device, |hold| hold == 0.0);

    let said = device.drill(Drill::Overheat { celsius: Some(120.0) }).expect("hotter");
    assert_eq!(said, "120 degrees Celsius inside: the card has switched itself off");
    assert_eq!(write(&mut device, 0, 1), Err(IoError::Media));
    assert_eq!(device.status().health, "too hot: it has switched itself off");
    device.undo_drill("all").expect("undone");
    write(&mut device, 0, 1).expect("on again");
    let error = device.drill(Drill::Overheat { celsius: Some(f64::NAN) }).expect_err("no temperature").to_string();
    assert_eq!(error, "celsius: NaN: expected -55 to 200");
    device.detach().expect("detached");
}

#[test]
fn the_end_of_its_life_comes_and_goes() {
    let (_dir, path) = made();
    let mut device = attach(&path);
    assert_eq!(held(&device), 0.0);
    device.drill(Drill::FillReserve { read_only: false }).expect("used up");
    let (most, rate) = (1e9 / held(&device), work(&mut device));
    assert!(rate < most * 1.5, "{rate} bytes a second, at most {most}");
    assert_eq!(device.status().health, "its reserve is used up: writes are held back");
    device.undo_drill("fill-reserve").expect("undone");
    assert_eq!((held(&device), device.status().health.as_str()), (0.0, "healthy"));
    write(&mut device, 0, 9).expect("written");
    device.drill(Drill::FillReserve { read_only: true }).expect("worn out");
    assert_eq!(write(&mut device, 0, 1), Err(IoError::ReadOnly));
    assert_eq!((read(&mut device, 0), device.status().health.as_str()), (Ok(9), "worn out: it takes no more writes"));
    device.undo_drill("fill-reserve").expect("undone");
    write(&mut device, 0, 1).expect("written");
    device.detach().expect("detached");
}

/// How many of the sectors read right; the others must be errors.
fn readable(device: &mut Device, sectors: u64) -> u64 {
    let right = |lba: u64, result| match result {
        Ok(value) => {
            assert_eq!(value, lba as u8, "sector {lba}");
            true
        }
        Err(error) => {
            assert_eq!(error, IoError::Media, "sector {lba}");
            false
        }
    };
    (0..sectors).map(|lba| u64::from(right(lba, read(device, lba)))).sum()
}

#[test]
fn a_card_does_without_a_die_and_not_without_more_than_its_parity() {
    const SECTORS: u64 = 3000;
    let (_dir, path) = made();
    let mut device = attach(&path);
    (0..SECTORS).for_each(|lba| write(&mut device, lba, lba as u8).expect("written"));
    call(&mut device, Io::Flush).expect("flushed");
    let said = device.drill(Drill::KillDie { die: 5 }).expect("killed");
    assert_eq!(said, "die 5 answers nothing any more");
    let status = device.status();
    assert_eq!((status.lost_dies.clone(), status.degraded_reads), (vec![5], 0));
    assert!(status.health.starts_with("degraded: 1 of "), "{}", status.health);
    assert_eq!(readable(&mut device, SECTORS), SECTORS);
    let made_up = device.status().degraded_reads;
    assert!((1..SECTORS).contains(&made_up), "{made_up} sectors stood on the die");
    // What is written now is there, too, and a power cut changes nothing.
    (0..SECTORS / 2).for_each(|lba| write(&mut device, lba, lba as u8).expect("written"));
    device
        .drill(Drill::PowerCut { at_write: None, at_program: None, unsynced: Unsynced::Drop, seed: None })
        .expect("cut");
    let drills = device.power_cut().expect("the power is cut").drills.clone();
    drop(device);
    let mut device = attach_with(&path, drills);
    assert_eq!(device.status().lost_dies, [5]);
    assert_eq!(readable(&mut device, SECTORS), SECTORS);

    // 24 + 1 chips of four dies: the rest of die 5's chip may go as well, and a die of another chip that is in none of their groups cannot
    // be had.
    let said = device.drill(Drill::KillChip { chip: 5 }).expect("killed");
    assert_eq!(
        said,
        "chip 5 answers nothing any more, nor do its 4 dies; the layout of this card does not shrink, so it stays degraded"
    );
    assert_eq!(device.status().lost_dies, [5, 30, 55, 80]);
    assert_eq!(device.status().health, "degraded: chip 5 of 25 out of service");
    assert_eq!(readable(&mut device, SECTORS), SECTORS);
    device.drill(Drill::KillDie { die: 6 }).expect("killed");
    let left = readable(&mut device, SECTORS);
    assert!((SECTORS / 2..SECTORS).contains(&left), "{left} of {SECTORS} sectors can be read");
    assert_eq!(device.status().health, "failed: 5 of 100 dies out of service, more than its parity makes up for");
    // What two drills keep dead stays so until both are over.
    device.undo_drill("kill-chip").expect("undone");
    assert_eq!(device.status().lost_dies, [5, 6]);
    assert_eq!(readable(&mut device, SECTORS), SECTORS, "dies 5 and 6 are in two groups");
    let error = device.drill(Drill::KillChip { chip: 25 }).expect_err("there are 25").to_string();
    assert_eq!(error, "chip: 25: expected 0 to 24");
    device.undo_drill("all").expect("undone");
    assert_eq!(readable(&mut device, SECTORS), SECTORS);
    assert_eq!((device.status().lost_dies, device.status().health.as_str()), (vec![], "healthy"));
    device.detach().expect("detached");
}

#[test]
fn old_data_are_read_again_until_they_are_written_anew() {
    let (_dir, path) = made_of("samsung-pm9a3-960");
    let mut device = attach(&path);
    // More than lies in its buffers, so that reads go to cells.
    for at in 0..256 {
        call(&mut device, Io::Write { lba: at * 64, data: &vec![5; 64 * SECTOR], fua: false }).expect("written");
    }
    let retries = |device: &mut Device, lba: u64| {
        let before = device.figures().read_retries.expect("an emulated card");
        let buf = vec![0; 64 * SECTOR];
        let read = call(device, Io::Read { lba, buf }).expect("read").expect("data");
        assert!(read.iter().all(|byte| *byte == 5));
        device.figures().read_retries.expect("an emulated card") - before
    };
    assert_eq!(retries(&mut device, 0), 0);
    let said = device.drill(Drill::Age { days: 3650 }).expect("old");
    assert_eq!(said, "what stands on it is 3650 days older; what is written from now on is new");
    assert!(retries(&mut device, 0) > 0);
    assert_eq!(device.status().drills, Some(vec!["age by 3650 days".to_string()]));
    device.undo_drill("age").expect("undone");
    assert_eq!(retries(&mut device, 64), 0);
    device.detach().expect("detached");
}
