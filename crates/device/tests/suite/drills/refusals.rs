//! What is refused, and with which words.

use device::{Device, Drill, Setting, Unsynced};

use super::common::*;

fn power_cut() -> Drill {
    Drill::PowerCut { at_write: None, at_program: None, unsynced: Unsynced::Random, seed: None }
}

fn every() -> Vec<Drill> {
    vec![
        power_cut(),
        Drill::KillDie { die: 0 },
        Drill::KillChip { chip: 0 },
        Drill::StallDie { die: 0, ms: 5 },
        Drill::Rot { lba: 0, count: 1 },
        Drill::FailReads { lba: 0, count: 1 },
        Drill::IgnoreFlushes,
        Drill::FillReserve { read_only: false },
        Drill::Overheat { celsius: None },
        Drill::Age { days: 90 },
    ]
}

fn refused(device: &mut Device, drill: Drill, words: &str) {
    let error = device.drill(drill.clone()).expect_err("refused").to_string();
    assert!(error.contains(words), "{drill}: {error}");
}

#[test]
fn unmarked_devices_take_none() {
    let files = Files::unmarked(1, 0);
    let mut device = files.attach();
    assert_eq!(every().iter().map(Drill::name).collect::<Vec<_>>(), Drill::NAMES, "every drill there is");
    for drill in every() {
        refused(&mut device, drill, "is not marked for drills; mark it with `vsl config DEVICE drills on`");
    }
    assert!(device.undo_drill("all").is_err());
    assert_eq!(device.status().drills, None);
    device.set(&[Setting::Drills(true)]).expect("set");
    refused(&mut device, power_cut(), "detach it and attach it again");
    device.detach().expect("detached");
    let mut device = files.attach();
    assert!(device.settings().drills && device.info().drill_device);
    assert_eq!(device.status().drills, Some(Vec::new()));
    device.drill(Drill::IgnoreFlushes).expect("taken now");
    assert_eq!(device.status().drills, Some(vec!["ignore-flushes".to_string()]));
    let error = device.set(&[Setting::Drills(false)]).expect_err("one is on").to_string();
    assert!(error.contains("ignore-flushes is"), "{error}");
    device.undo_drill("all").expect("undone");
    device.set(&[Setting::Drills(false)]).expect("set");
    refused(&mut device, power_cut(), "is not marked");
    device.detach().expect("detached");
    assert!(files.attach().drills().is_empty());
}

#[test]
fn what_makes_no_sense_is_told() {
    let files = Files::new(2, 0);
    let mut device = files.attach();
    let cut = |at_write, at_program| Drill::PowerCut { at_write, at_program, unsynced: Unsynced::Drop, seed: None };
    let sectors = device.info().sectors;
    for (drill, words) in [
        (Drill::KillDie { die: 2 }, "die: 2: expected 0 to 1"),
        (Drill::KillChip { chip: 0 }, "kill-chip: files and disks have no chips"),
        (Drill::StallDie { die: 9, ms: 1 }, "die: 9: expected 0 to 1"),
        (Drill::StallDie { die: 1, ms: 0 }, "ms: 0: expected 1 to 60000"),
        (Drill::StallDie { die: 1, ms: 60_001 }, "ms: 60001"),
        (Drill::Rot { lba: sectors, count: 1 }, "expected sectors below 65536"),
        (Drill::Rot { lba: sectors - 1, count: 2 }, "lba: 65535+2"),
        (Drill::Rot { lba: u64::MAX, count: 2 }, "expected sectors below"),
        (Drill::FailReads { lba: 0, count: 0 }, "count: 0: expected 1 to 4096"),
        (Drill::FailReads { lba: 0, count: 4097 }, "count: 4097"),
        (Drill::Rot { lba: 5, count: 3 }, "none of the sectors 5 to 7 lies on the medium; write them"),
        (cut(Some(0), None), "at_write: 0: expected 1"),
        (cut(None, Some(0)), "at_program: 0: expected 1"),
        (cut(Some(1), Some(1)), "no at_program beside it"),
        (Drill::FillReserve { read_only: true }, "fill-reserve: there is no reserve of spare blocks on files"),
        (Drill::Overheat { celsius: Some(90.0) }, "overheat: it has no temperature"),
        (Drill::Age { days: 90 }, "age: reads take as long whatever the age of data"),
        (Drill::Age { days: 0 }, "days: 0: expected 1 to 3650"),
    ] {
        refused(&mut device, drill, words);
    }
    assert!(device.drills().is_empty() && device.power_cut().is_none());
    let undo = |device: &mut Device, name: &str| device.undo_drill(name).map_err(|error| error.to_string());
    assert_eq!(undo(&mut device, "all"), Ok(Vec::new()));
    assert!(
        undo(&mut device, "fire").expect_err("unknown").starts_with("no drill is called 'fire'; there are: power-cut,")
    );
    assert!(undo(&mut device, "rot").expect_err("not on").starts_with("rot is not on; "));
    device.drill(cut(Some(1000), None)).expect("armed");
    refused(
        &mut device,
        cut(None, Some(1)),
        "power-cut at write 1000 is on already; `vsl drill DEVICE undo power-cut`",
    );
    device.drill(Drill::StallDie { die: 0, ms: 1 }).expect("on");
    device.drill(Drill::StallDie { die: 1, ms: 1 }).expect("another die");
    refused(&mut device, Drill::StallDie { die: 1, ms: 2 }, "stall-die 1 by 1 ms is on already");
    assert_eq!(undo(&mut device, "all").expect("undone").len(), 3);
    device.detach().expect("detached");
}
