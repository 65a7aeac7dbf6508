//! Rotten and unreadable sectors.

use device::{Device, Drill, IoError};

use super::common::*;

const SECTORS: u64 = 600;

fn filled(files: &Files) -> Device {
    let mut device = files.attach();
    (0..SECTORS).for_each(|lba| write(&mut device, lba, lba as u8).expect("written"));
    flush(&mut device).expect("flushed");
    device
}

fn wrong(device: &mut Device) -> Vec<u64> {
    (0..SECTORS).filter(|lba| read(device, *lba) != Ok(*lba as u8)).collect()
}

fn rot(lba: u64, count: u64) -> Drill {
    Drill::Rot { lba, count }
}

fn fail(lba: u64, count: u64) -> Drill {
    Drill::FailReads { lba, count }
}

#[test]
fn rot_is_never_silent_and_can_be_undone() {
    let files = Files::new(1, 0);
    let mut device = filled(&files);
    let said = device.drill(rot(100, 10)).expect("rotten");
    assert_eq!(said, "a bit flipped in 10 of 10 sectors");
    assert_eq!(wrong(&mut device), (100..110).collect::<Vec<_>>());
    assert_eq!(read(&mut device, 103), Err(IoError::Media));
    assert_eq!(device.status().unreadable, (100..110).collect::<Vec<_>>());

    // It lies on the medium, not in memory.
    write(&mut device, 104, 104).expect("written");
    flush(&mut device).expect("flushed");
    device.drill(rot(300, 2)).expect("more of it");
    device.undo_drill("rot").expect("undone");
    assert_eq!(device.status().unreadable, [100, 101, 102, 103, 105, 106, 107, 108, 109], "all but what was written");
    assert_eq!(wrong(&mut device), Vec::<u64>::new(), "also what was written anew is as it was written");
    assert_eq!(device.status().health, "healthy", "what was read is not unreadable any more");
    device.drill(rot(200, 1)).expect("rotten");
    device.detach().expect("detached");
    let mut device = files.attach();
    assert!(device.drills().is_empty(), "a detach ends drills");
    assert_eq!(wrong(&mut device), [200], "but what is rotten stays so");
}

#[test]
fn rot_heals_with_parity() {
    let files = Files::new(4, 1);
    let mut device = filled(&files);
    device.drill(rot(50, 5)).expect("rotten");
    assert_eq!(wrong(&mut device), Vec::<u64>::new());
    assert_eq!((device.status().healed_sectors, device.status().health.as_str()), (5, "healthy"));
    device.undo_drill("rot").expect("undone");
    assert_eq!(wrong(&mut device), Vec::<u64>::new());
    device.detach().expect("detached");
}

#[test]
fn a_rotten_sector_is_healed_once_however_often_it_is_read() {
    let files = Files::new(4, 1);
    let mut device = filled(&files);
    device.drill(rot(50, 50)).expect("rotten");
    for _ in 0..3 {
        assert_eq!(wrong(&mut device), Vec::<u64>::new());
    }
    // Once what follows is durable, they are written elsewhere: for that they are read once more.
    (0..20).for_each(|_| {
        (SECTORS..3 * SECTORS).for_each(|lba| write(&mut device, lba, lba as u8).expect("written"));
        flush(&mut device).expect("flushed");
    });
    device.undo_drill("all").expect("undone");
    assert_eq!(wrong(&mut device), Vec::<u64>::new());
    assert_eq!(device.status().healed_sectors, 50);
    device.detach().expect("detached");
}

/// Scrubs once more, to the end.
fn scrub(device: &mut Device) {
    let before = device.status().scrubs;
    device.scrub(true).expect("attached for writing");
    while device.status().scrubs == before {
        device.background();
        device.poll();
        device.wait();
    }
}

/// A page is read as a whole, and the medium fails all of it for one bad sector.
#[test]
fn a_scrub_names_the_sectors_that_cannot_be_read_and_no_others() {
    let files = Files::new(1, 0);
    let mut device = filled(&files);
    device.drill(fail(10, 4)).expect("on");
    scrub(&mut device);
    assert_eq!(device.status().unreadable, [10, 11, 12, 13]);
    assert_eq!((device.status().scrub_errors, device.status().scrubbed_sectors), (4, SECTORS));
    scrub(&mut device);
    assert_eq!(device.status().unreadable, [10, 11, 12, 13]);
    device.undo_drill("all").expect("undone");
    assert_eq!(wrong(&mut device), Vec::<u64>::new());
    device.detach().expect("detached");
}

#[test]
fn a_scrub_forgets_what_it_can_read_again() {
    let files = Files::new(1, 0);
    let mut device = filled(&files);
    device.drill(fail(10, 4)).expect("on");
    assert_eq!(wrong(&mut device), [10, 11, 12, 13]);
    device.undo_drill("all").expect("undone");
    assert_eq!(device.status().unreadable, [10, 11, 12, 13]);
    scrub(&mut device);
    assert_eq!((device.status().unreadable, device.status().health.as_str()), (Vec::<u64>::new(), "healthy"));
    device.detach().expect("detached");
}

#[test]
fn reads_fail_until_the_sector_is_written_or_the_drill_ends() {
    let files = Files::new(1, 0);
    let mut device = filled(&files);
    assert_eq!(device.drill(fail(10, 4)).expect("on"), "the medium fails reads of 4 of 4 sectors");
    assert_eq!(wrong(&mut device), [10, 11, 12, 13]);
    write(&mut device, 12, 12).expect("written");
    assert_eq!(wrong(&mut device), [10, 11, 13], "it lies elsewhere now");
    assert!(device.drill(fail(13, 1)).is_err(), "on already");
    device.drill(fail(14, 1)).expect("beside it");
    device.undo_drill("fail-reads").expect("undone");
    assert_eq!(wrong(&mut device), Vec::<u64>::new());
    device.detach().expect("detached");
}

#[test]
fn failed_reads_are_made_up_for_with_parity() {
    let files = Files::new(4, 1);
    let mut device = filled(&files);
    device.drill(fail(0, 30)).expect("on");
    assert_eq!(wrong(&mut device), Vec::<u64>::new());
    assert!(device.status().healed_sectors > 0);
    device.detach().expect("detached");
}
