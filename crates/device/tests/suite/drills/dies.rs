//! Dies that answer nothing, or late.

use std::time::{Duration, Instant};

use device::{Device, Drill, IoError, Unsynced};

use super::common::*;

const SECTORS: u64 = 2000;

fn filled(files: &Files) -> Device {
    let mut device = files.attach();
    (0..SECTORS).for_each(|lba| write(&mut device, lba, lba as u8).expect("written"));
    flush(&mut device).expect("flushed");
    device
}

fn all_there(device: &mut Device) {
    for lba in 0..SECTORS {
        assert_eq!(read(device, lba), Ok(lba as u8), "sector {lba}");
    }
}

/// Goes on with what is done beside requests until all dies serve, which is on record by then.
fn rebuilt(device: &mut Device) {
    for _ in 0..1_000_000 {
        if device.status().health == "healthy" {
            return;
        }
        device.background();
        device.wait();
        assert!(device.poll().is_none());
    }
    panic!("a rebuild never ends");
}

#[test]
fn a_dead_die_degrades_a_device_with_parity_until_it_is_rebuilt() {
    let files = Files::new(4, 1);
    let mut device = filled(&files);
    device.drill(Drill::KillDie { die: 2 }).expect("killed");
    all_there(&mut device);
    write(&mut device, 0, 0).expect("written");
    flush(&mut device).expect("flushed without it");
    assert_eq!(device.status().health, "degraded: 1 of 4 dies out of service");
    assert!(device.status().degraded_reads + device.status().healed_sectors > 0);

    // It stays dead over a power cut, and cannot be rebuilt onto itself.
    device
        .drill(Drill::PowerCut { at_write: None, at_program: None, unsynced: Unsynced::Random, seed: Some(1) })
        .expect("cut");
    let carried = device.power_cut().expect("cut").drills.clone();
    drop(device);
    let mut device = files.attach_with(carried);
    assert_eq!(device.drills(), [Drill::KillDie { die: 2 }]);
    all_there(&mut device);
    let error = device.rebuild(2, None).expect_err("it is dead").to_string();
    assert!(error.contains("`vsl drill DEVICE undo kill-die`"), "{error}");

    // Alive again it is rebuilt on its own file.
    device.undo_drill("kill-die").expect("undone");
    assert_eq!(device.status().health, "degraded: 1 of 4 dies out of service", "nobody believes what it holds");
    device.rebuild(2, None).expect("it begins");
    rebuilt(&mut device);
    device.detach().expect("detached");
    all_there(&mut files.attach());
}

#[test]
fn another_file_in_its_place_ends_the_drill() {
    let mut files = Files::new(3, 1);
    let mut device = filled(&files);
    device.drill(Drill::KillDie { die: 0 }).expect("killed");
    all_there(&mut device);
    flush(&mut device).expect("flushed");
    let spare = files.paths[0].with_extension("spare");
    device.rebuild(0, Some(&spare)).expect("it begins");
    assert!(device.drills().is_empty());
    rebuilt(&mut device);
    device.detach().expect("detached");
    files.paths[0] = spare;
    all_there(&mut files.attach());
}

#[test]
fn without_parity_reads_of_a_dead_die_fail_until_it_lives() {
    let files = Files::new(2, 0);
    let mut device = filled(&files);
    device.drill(Drill::KillDie { die: 1 }).expect("killed");
    let failed = (0..SECTORS).filter(|lba| read(&mut device, *lba) == Err(IoError::Media)).count();
    assert!((600..1400).contains(&failed), "{failed} of {SECTORS} on one of two dies");
    device.undo_drill("kill-die").expect("undone");
    all_there(&mut device);
    device.detach().expect("detached: nothing was asked of it that it did not do");

    let mut device = files.attach();
    device.drill(Drill::KillDie { die: 1 }).expect("killed");
    write(&mut device, 0, 0).expect("into memory");
    assert_eq!(flush(&mut device), Err(IoError::Media));
    assert!(device.status().health.starts_with("writes fail"), "{}", device.status().health);
    drop(device);
    all_there(&mut files.attach());
}

#[test]
fn a_slow_die_answers_late() {
    let files = Files::new(1, 0);
    filled(&files).detach().expect("detached");
    let mut device = files.attach();
    let took = |device: &mut Device| {
        let begin = Instant::now();
        assert_eq!(read(device, 5), Ok(5));
        begin.elapsed()
    };
    device.drill(Drill::StallDie { die: 0, ms: 300 }).expect("slow");
    assert!(took(&mut device) >= Duration::from_millis(300));
    write(&mut device, 0, 0).expect("written");
    let begin = Instant::now();
    flush(&mut device).expect("flushed");
    assert!(begin.elapsed() >= Duration::from_millis(300), "a flush waits for the die too");
    device.undo_drill("stall-die").expect("undone");
    let begin = Instant::now();
    (0..100).for_each(|_| assert!(took(&mut device) > Duration::ZERO));
    assert!(begin.elapsed() < Duration::from_secs(30), "a hundred reads, each of which took 300 ms before");
    device.detach().expect("detached");
}
