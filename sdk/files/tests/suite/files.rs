//! Files against a model, and under power cuts.

use std::collections::BTreeMap;

use openvsl::{Device, Drill, Error, Unsynced};
use openvsl_files::{Files, FilesError, Make, ROOT};
use random::SplitMix64 as Rng;

use crate::common::{MIB, drill_device};

#[test]
fn names_are_made_renamed_and_removed() {
    let device = Device::memory(64 * MIB, 4096).expect("a device");
    let files = Files::create(device.clone(), 100).expect("made");
    let file = Make::file(0o600);
    let d = files.make(ROOT, b"d", &Make::directory(0o755)).expect("made");
    let a = files.make(d, b"a", &file).expect("made");
    assert_eq!(files.make(d, b"a", &file), Err(FilesError::Exists));
    assert_eq!(files.make(a, b"b", &file), Err(FilesError::NotADirectory));
    assert_eq!(files.make(d, b"a/b", &file), Err(FilesError::Name { len: 3 }));
    assert_eq!(files.remove(ROOT, b"d", true), Err(FilesError::DirectoryNotEmpty));
    assert_eq!(files.remove(ROOT, b"d", false), Err(FilesError::IsADirectory));
    assert_eq!(files.rename(ROOT, b"d", d, b"e", true), Err(FilesError::Loop));
    files.write(a, 5, b"old").expect("written");
    let b = files.make(ROOT, b"b", &file).expect("made");
    files.write(b, 0, &[7; 10_000]).expect("written");
    files.hold(a).expect("held");
    assert_eq!(files.rename(ROOT, b"b", d, b"a", false), Err(FilesError::Exists));
    files.rename(ROOT, b"b", d, b"a", true).expect("renamed over");
    assert_eq!(files.lookup(d, b"a"), Ok(b));
    assert_eq!(files.read(a, 0, 100), Ok(b"\0\0\0\0\0old".to_vec()), "who has it open keeps it");
    files.release(a).expect("released");
    assert_eq!(files.read(a, 0, 1), Err(FilesError::NotFound));
    let gone = files.make(ROOT, b"gone", &Make::directory(0o755)).expect("made");
    files.hold(gone).expect("held");
    files.remove(ROOT, b"gone", true).expect("removed");
    assert!(!files.attributes(gone).expect("who has it open sees it").named);
    assert_eq!(files.make(gone, b"a", &file), Err(FilesError::NotFound), "nothing is made in it");
    files.release(gone).expect("released");
    let link = files.make(ROOT, b"link", &Make::link(b"d/a")).expect("made");
    assert_eq!(files.target(link), Ok(b"d/a".to_vec()));
    let other = files.make(ROOT, &[b'n'; 255], &file).expect("made");
    assert_eq!(other, 5, "numbers are used again: {other}");
    drop(files);

    let files = Files::open(device.clone()).expect("opened again");
    assert_eq!(files.list(d), Ok(vec![(b"a".to_vec(), b)]));
    assert_eq!(files.read(b, 9_998, 10), Ok(vec![7, 7]));
    files.remove(d, b"a", false).expect("removed");
    assert_eq!(files.read(b, 0, 1), Err(FilesError::NotFound));
    let data: Vec<_> = device.ranges(16384 / 101..).collect::<Result<_, _>>().expect("ranges");
    assert!(data.is_empty(), "nothing of removed files stays: {data:?}");
    assert_eq!(Files::create(device, 100).err(), Some(FilesError::NotEmpty));
    let empty = Device::memory(64 * MIB, 4096).expect("a device");
    assert!(matches!(Files::open(empty), Err(FilesError::NoFiles { .. })));
}

#[test]
fn what_a_size_cuts_off_does_not_come_back() {
    let files = Files::create(Device::memory(64 * MIB, 4096).expect("a device"), 100).expect("made");
    let number = files.make(ROOT, b"a", &Make::file(0o600)).expect("made");
    // The file grows, and less far than what is written.
    files.change(number, &[(0, &[1; 100])], Some(50)).expect("changed");
    files.truncate(number, 100).expect("made longer");
    assert_eq!(files.read(number, 0, 100), Ok([[1; 50], [0; 50]].concat()));
}

/// What fsx does, with a model: data written anywhere, cut off, punched, changed in parts, read back; now and then opened again.
#[test]
fn a_file_holds_what_a_model_holds() {
    let device = Device::memory(128 * MIB, 4096).expect("a device");
    let mut files = Files::create(device.clone(), 10).expect("made");
    let number = files.make(ROOT, b"f", &Make::file(0o600)).expect("made");
    let (mut rng, mut model) = (Rng::new(11), Vec::<u8>::new());
    let end = 3_000_000;
    for step in 0..4_000u32 {
        let at = rng.below(if step % 3 == 0 { end } else { 40_000 });
        let length = match rng.below(4) {
            0 => 1 + rng.below(100),
            1 => 4096 * (1 + rng.below(8)),
            2 => 1 + rng.below(20_000),
            _ => {
                if step % 50 == 0 {
                    1_500_000
                } else {
                    4096
                }
            }
        };
        let at = if rng.below(2) == 0 { at / 4096 * 4096 } else { at };
        let data: Vec<u8> = (0..length).map(|n| (n as u32 ^ step) as u8 | 1).collect();
        let put = |model: &mut Vec<u8>, at: u64, data: &[u8]| {
            model.resize(model.len().max(at as usize + data.len()), 0);
            model[at as usize..at as usize + data.len()].copy_from_slice(data);
        };
        match rng.below(8) {
            0..=2 => {
                files.write(number, at, &data).expect("written");
                put(&mut model, at, &data);
            }
            3 => {
                files.truncate(number, at).expect("cut off");
                model.resize(at as usize, 0);
            }
            4 => {
                files.punch(number, at..at + length).expect("punched");
                let (start, end) = (model.len().min(at as usize), model.len().min((at + length) as usize));
                model[start..end].fill(0);
            }
            5 if length < 100_000 => {
                let other = rng.below(end);
                let size = (rng.below(2) == 0).then(|| rng.below(end));
                files.change(number, &[(at, &data), (other, &data)], size).expect("changed");
                put(&mut model, at, &data);
                put(&mut model, other, &data);
                model.resize(size.map_or(model.len(), |size| size as usize), 0);
            }
            6 if step % 20 == 0 => {
                files.sync(number).expect("synced");
                drop(files);
                files = Files::open(device.clone()).expect("opened again");
            }
            _ => {
                let found = files.read(number, at, length as usize).expect("read");
                let (start, end) = (model.len().min(at as usize), model.len().min((at + length) as usize));
                assert!(found == model[start..end], "step {step}: {at} {length}");
            }
        }
        assert_eq!(files.attributes(number).expect("there").size, model.len() as u64, "step {step}");
    }
    assert!(files.read(number, 0, end as usize * 2).expect("read") == model);
}

#[test]
fn what_cannot_be_changes_nothing() {
    let files = Files::create(Device::memory(64 * MIB, 4096).expect("a device"), 10).expect("made");
    let number = files.make(ROOT, b"f", &Make::file(0o600)).expect("made");
    let (_, max) = files.limits();
    files.write(number, 0, b"here").expect("written");
    assert_eq!(files.write(number, max, b"x"), Err(FilesError::TooLong { end: max + 1, max }));
    assert_eq!(files.truncate(number, max + 1), Err(FilesError::TooLong { end: max + 1, max }));
    let much = vec![1; MIB as usize];
    assert!(matches!(files.change(number, &[(0, &much)], None), Err(FilesError::NotAtomic { .. })));
    assert_eq!(files.change(number, &[], None), Ok(()), "nothing to do");
    assert_eq!(files.read(number, 0, 100), Ok(b"here".to_vec()));
    for n in 0..8 {
        files.make(ROOT, &[b'g' + n], &Make::file(0o600)).expect("made");
    }
    assert_eq!(files.make(ROOT, b"more", &Make::file(0o600)), Err(FilesError::TooMany { max: 10 }));
}

/// After every cut a file that was synced has its name and at least what was synced; a change of parts is whole; a rename gave one of
/// two; what lies behind the end of a file reads as zeros when it becomes longer.
#[test]
fn nothing_that_was_synced_is_lost_in_a_power_cut() {
    let (_directory, device) = drill_device();
    let mut files = Files::create(device.clone(), 1000).expect("made");
    let mut rng = Rng::new(5);
    let pair = files.make(ROOT, b"pair", &Make::file(0o600)).expect("made");
    files.change(pair, &[], Some(100 * 4096)).expect("made longer");
    let (mut durable, mut next) = (BTreeMap::<Vec<u8>, u64>::new(), 0u8);
    for cut in 0..60u32 {
        for _ in 0..rng.below(12) {
            next = next.wrapping_add(1).max(1);
            let both = [next; 5000];
            let name = format!("log{}", rng.below(4)).into_bytes();
            match rng.below(4) {
                0 => files.change(pair, &[(100, &both), (300_000, &both)], None).expect("changed"),
                1 => {
                    // As programs replace a file.
                    let temporary = files.make(ROOT, b"new", &Make::file(0o600));
                    let number = temporary.or_else(|_| files.lookup(ROOT, b"new")).expect("made");
                    files.write(number, 0, &both).expect("written");
                    files.sync(number).expect("synced");
                    files.rename(ROOT, b"new", ROOT, &name, true).expect("renamed");
                    files.sync(ROOT).expect("synced");
                    durable.insert(name, 5000);
                }
                2 => {
                    if let Ok(number) = files.lookup(ROOT, &name) {
                        let end = files.attributes(number).expect("there").size;
                        files.write(number, end, &[9; 777]).expect("written");
                        // A sync of a directory covers all files.
                        match rng.below(3) {
                            0 => continue,
                            1 => files.sync(number).expect("synced"),
                            _ => files.sync(ROOT).expect("synced"),
                        }
                        durable.insert(name, end + 777);
                    }
                }
                _ => {
                    // Never synced: it is there or not.
                    let _ = files.make(ROOT, format!("loose{next}").as_bytes(), &Make::file(0o600));
                }
            }
        }
        device.cut_power().expect("cut");
        assert_eq!(files.sync(pair), Err(FilesError::Device(Error::PowerOff)));
        device.power_on().expect("on");
        files = Files::open(device.clone()).expect("opened after the cut");
        let (one, two) = (files.read(pair, 100, 5000), files.read(pair, 300_000, 5000));
        assert!(one == two && one.is_ok_and(|data| data.len() == 5000), "cut {cut}: a change in part");
        for (name, size) in &durable {
            let number = files.lookup(ROOT, name).unwrap_or_else(|error| panic!("cut {cut}: {name:?}: {error}"));
            let found = files.attributes(number).expect("there").size;
            assert!(found >= *size, "cut {cut}: {name:?} has {found} of {size} bytes");
            let data = files.read(number, 0, *size as usize).expect("read");
            assert!(data.iter().all(|&byte| byte != 0), "cut {cut}: {name:?} has holes");
            files.truncate(number, found + 10_000).expect("made longer");
            let behind = files.read(number, found, 10_000).expect("read");
            assert!(behind.iter().all(|&byte| byte == 0), "cut {cut}: {name:?} has data behind its end");
            files.truncate(number, *size).expect("cut off");
        }
        files.sync_all().expect("synced");
    }
}

/// The power goes in the middle of replacing a file: its name is there, with one of two contents, and nothing else.
#[test]
fn a_rename_gives_one_of_two_wherever_the_power_goes() {
    let (_directory, device) = drill_device();
    let mut files = Files::create(device.clone(), 100).expect("made");
    let (mut rng, mut before) = (Rng::new(9), 1u8);
    let first = files.make(ROOT, b"name", &Make::file(0o600)).expect("made");
    files.write(first, 0, &[before; 5000]).expect("written");
    files.sync(first).expect("synced");
    let mut seen = [0; 2];
    for cut in 0..60 {
        let after = before.wrapping_add(1).max(1);
        let number = files.make(ROOT, b"new", &Make::file(0o600)).expect("made");
        files.write(number, 0, &[after; 5000]).expect("written");
        files.sync(number).expect("synced");
        let drill = Drill::PowerCut {
            at_write: None,
            at_program: Some(1 + rng.below(3)),
            unsynced: Unsynced::ALL[rng.below(4) as usize],
            seed: Some(cut),
        };
        device.drill(drill).expect("armed");
        let renamed = files.rename(ROOT, b"new", ROOT, b"name", true).and_then(|()| files.sync(ROOT));
        let _ = device.undo_drill("power-cut");
        if renamed.is_ok() {
            device.cut_power().expect("cut");
        }
        device.power_on().expect("on");
        files = Files::open(device.clone()).expect("opened after the cut");
        let number = files.lookup(ROOT, b"name").unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        let found = files.read(number, 0, 6000).expect("read");
        let is_new = found == [after; 5000];
        assert!(is_new || found == [before; 5000] && renamed.is_err(), "cut {cut}: {renamed:?}, {} bytes", found.len());
        seen[usize::from(is_new)] += 1;
        if is_new {
            assert_eq!(files.lookup(ROOT, b"new"), Err(FilesError::NotFound), "cut {cut}: two names");
            before = after;
        } else {
            files.remove(ROOT, b"new", false).expect("it has its old name");
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}: the cuts are all on one side");
}
