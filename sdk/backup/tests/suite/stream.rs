//! Streams there and back, interrupted, damaged and refused.

use std::fs::File;
use std::io::Write;

use device::Secret;
use openvsl::Device;
use openvsl_backup::{
    BackupError, Header, Moment, Progress, Reader, Source, StreamError, Writer, backup, check_chain, extend_file,
    restore, resume,
};
use random::SplitMix64;

const BYTES: u64 = 16 << 20;

fn device(sector_bytes: u32) -> Device {
    Device::memory(BYTES, sector_bytes).expect("good sizes")
}

/// Writes and trims at random; gives what the device then holds.
fn fill(device: &Device, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let sector = u64::from(device.capabilities().sector_bytes);
    let sectors = device.capabilities().sectors;
    for _ in 0..200 {
        let count = 1 + random.below(40);
        let lba = random.below(sectors - count);
        if random.one_in(4) {
            device.trim(lba, count).expect("trimmed");
            continue;
        }
        let byte = random.bits() as u8;
        // Some of it does not compress.
        let data = (0..count * sector).map(|_| if byte < 100 { random.bits() as u8 } else { byte });
        device.write(lba, &data.collect::<Vec<_>>()).expect("written");
    }
    content(device)
}

fn content(device: &Device) -> Vec<u8> {
    let (sectors, sector) = (device.capabilities().sectors, device.capabilities().sector_bytes);
    let most = device.capabilities().max_write_bytes / sector;
    let mut content = Vec::new();
    let mut lba = 0;
    while lba < sectors {
        let count = u64::from(most).min(sectors - lba);
        content.extend(device.read(lba, count as u32).expect("read"));
        lba += count;
    }
    content
}

fn go_on(_: Progress) -> bool {
    true
}

fn stream(device: &Device, source: &Source) -> Vec<u8> {
    backup(device, source, Vec::new(), go_on).expect("backed up")
}

#[test]
fn what_is_restored_is_what_was_there_whatever_the_sectors() {
    for (from, to) in [(4096, 4096), (512, 4096), (4096, 512)] {
        let source = device(from);
        let held = fill(&source, u64::from(from));
        let target = device(to);
        fill(&target, 9);
        restore(&mut Reader::open(&stream(&source, &Source::default())[..], None).expect("a stream"), &target, go_on)
            .expect("restored");
        assert!(content(&target)[..held.len()] == held, "{from} to {to}");
    }
}

#[test]
fn what_was_forgotten_takes_no_space_after_a_restore() {
    let source = device(4096);
    source.write(5, &[7; 8192]).expect("written");
    let target = device(4096);
    fill(&target, 3);
    let stream = stream(&source, &Source::default());
    restore(&mut Reader::open(&stream[..], None).expect("a stream"), &target, go_on).expect("restored");
    let held: Vec<_> = target.ranges(..).collect::<Result<_, _>>().expect("ranges");
    assert!(held.len() == 1 && held[0] == (5..7), "{held:?}");
}

#[test]
fn only_its_secret_opens_an_encrypted_backup() {
    let source = device(4096);
    source.write(0, &[0x42; 4096]).expect("written");
    let secret = Secret::key(&[1; 32]);
    let stream = stream(&source, &Source { secret: Some(secret.clone()), ..Source::default() });
    assert!(!stream.windows(16).any(|window| window == [0x42; 16]));
    let open = |secret: Option<&Secret>| Reader::open(&stream[..], secret).err();
    assert!(matches!(open(None), Some(StreamError::NeedsSecret)));
    assert!(matches!(open(Some(&Secret::key(&[2; 32]))), Some(StreamError::WrongSecret)));
    let target = device(4096);
    restore(&mut Reader::open(&stream[..], Some(&secret)).expect("opened"), &target, go_on).expect("restored");
    assert_eq!(target.read(0, 1).expect("read"), [0x42; 4096]);
}

/// Every byte that is changed, and every place where a stream is cut off, is noticed before anything wrong is taken.
#[test]
fn nothing_damaged_and_no_part_is_taken_for_the_whole() {
    let source = device(512);
    for lba in 0..20 {
        source.write(lba * 3, &[lba as u8; 512]).expect("written");
    }
    for secret in [None, Some(Secret::key(&[1; 32]))] {
        let sound = stream(&source, &Source { secret: secret.clone(), ..Source::default() });
        let read = |bytes: &[u8]| {
            let mut reader = Reader::open(bytes, secret.as_ref())?;
            while reader.next_frame()?.is_some() {}
            Ok::<(), StreamError>(())
        };
        read(&sound).expect("it is sound");
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x10;
            assert!(read(&damaged).is_err(), "byte {at} changed");
            match read(&sound[..at]).expect_err("cut off") {
                StreamError::Empty | StreamError::Interrupted { .. } => {}
                other => panic!("cut off at {at}: {other}"),
            }
        }
        let longer = [&sound[..], &[0]].concat();
        assert!(matches!(read(&longer), Err(StreamError::Trailing)));
    }
}

#[test]
fn a_backup_that_was_interrupted_goes_on_where_it_stopped() {
    let source = device(4096);
    let held = fill(&source, 5);
    for (secret, cut) in [(None, 0), (None, 5000), (Some(Secret::key(&[1; 32])), 777)] {
        let what = Source { secret: secret.clone(), ..Source::default() };
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("part");
        let mut steps = 0;
        let stopped = backup(&source, &what, File::create(&path).expect("made"), |_| {
            steps += 1;
            steps < 60
        });
        assert!(matches!(stopped, Err(BackupError::Stopped)));
        let open = || File::options().read(true).write(true).open(&path).expect("there");
        let length = open().metadata().expect("a file").len();
        open().set_len(length - cut).expect("cut off");
        // What a power cut leaves behind that.
        File::options().append(true).open(&path).expect("there").write_all(&[0; 100]).expect("written");
        let other = device(4096);
        assert!(matches!(resume(&other, &what, open(), extend_file, go_on), Err(BackupError::OtherSource { .. })));
        resume(&source, &what, open(), extend_file, go_on).expect("resumed");
        assert!(matches!(resume(&source, &what, open(), extend_file, go_on), Err(BackupError::Complete)));
        let target = device(4096);
        restore(&mut Reader::open(open(), secret.as_ref()).expect("a stream"), &target, go_on).expect("restored");
        assert!(content(&target) == held);
    }
}

fn moment(number: u64) -> Option<Moment> {
    Some(Moment { number, name: format!("s{number}") })
}

#[test]
fn an_increment_changes_what_is_in_it_and_nothing_else() {
    let target = device(4096);
    target.write(0, &[1; 4096 * 4]).expect("written");
    let base = Reader::open(&stream(&target, &Source::default())[..], None).expect("a stream").header().clone();
    let header = Header { id: uuid::Uuid::from_u128(7), since: moment(1), snapshot: moment(2), ..base };
    let mut writer = Writer::create(Vec::new(), header, None).expect("begun");
    writer.held(1, &[2; 4096]).expect("taken");
    writer.trimmed(2, 1).expect("taken");
    let stream = writer.finish().expect("whole");
    restore(&mut Reader::open(&stream[..], None).expect("a stream"), &target, go_on).expect("restored");
    let first = |lba| target.read(lba, 1).expect("read")[0];
    assert_eq!([first(0), first(1), first(2), first(3)], [1, 2, 0, 1]);
    assert!(!target.exists(2).expect("asked"));
}

#[test]
fn a_chain_begins_with_a_whole_backup_and_has_no_gap() {
    let target = device(4096);
    let live = Reader::open(&stream(&target, &Source::default())[..], None).expect("a stream").header().clone();
    let of = |since: Option<u64>, shown: u64| Header {
        since: since.and_then(moment),
        snapshot: moment(shown),
        ..live.clone()
    };
    let (full, first, second) = (of(None, 1), of(Some(1), 2), of(Some(2), 5));
    let renamed = Header { snapshot: Some(Moment { number: 1, name: "other".into() }), ..full.clone() };
    // Backed up by whoever attached it with larger blocks.
    let wider = Header { sector_bytes: 4096, sectors: BYTES / 4096, ..first.clone() };
    for good in [&[&full][..], &[&live], &[&full, &first, &second], &[&renamed, &wider, &second]] {
        check_chain(good, &target).expect("a chain");
    }
    let another = Header { device: "another".into(), ..full.clone() };
    let larger = Header { sectors: full.sectors / 2, ..full.clone() };
    for (chain, at, found) in [
        (&[&first][..], 0, "must stand before it"),
        (&[&full, &second], 1, "shows snapshot s1 (number 1)"),
        (&[&full, &first, &first], 2, "shows snapshot s2 (number 2)"),
        (&[&live, &first], 1, "shows no snapshot"),
        (&[&another, &first], 1, "of device another"),
        (&[&larger, &first], 1, "shows snapshot s1"),
    ] {
        match check_chain(chain, &target) {
            Err(error @ BackupError::Base { index, .. }) if index == at => {
                assert!(error.to_string().contains(found), "{error}");
            }
            other => panic!("{other:?}, expected a gap before {at}"),
        }
    }
    assert!(matches!(check_chain(&[&full, &full], &target), Err(BackupError::Whole { index: 1 })));
    let small = Device::memory(BYTES / 2, 4096).expect("good sizes");
    assert!(matches!(check_chain(&[&full, &first], &small), Err(BackupError::TooSmall { .. })));
}

#[test]
fn only_snapshots_are_compared() {
    let since = Source { since: moment(7), ..Source::default() };
    let refused = backup(&device(4096), &since, Vec::new(), go_on);
    assert!(matches!(refused, Err(BackupError::NotOlder { .. })), "{refused:?}");
}

#[test]
fn a_device_that_does_not_fit_is_left_alone() {
    let source = device(4096);
    source.write(1, &[1; 4096]).expect("written");
    let stream = stream(&source, &Source::default());
    let small = Device::memory(BYTES / 2, 4096).expect("good sizes");
    small.write(0, &[9; 4096]).expect("written");
    let refused = restore(&mut Reader::open(&stream[..], None).expect("a stream"), &small, go_on);
    assert!(matches!(refused, Err(BackupError::TooSmall { .. })));
    assert_eq!(small.read(0, 1).expect("read"), [9; 4096]);
}

#[test]
fn what_is_no_backup_is_told_from_one_that_is_newer() {
    for text in ["#!/bin/sh\necho hello\n", "hello", "OVSL"] {
        let error = Reader::open(text.as_bytes(), None).err();
        match text {
            "OVSL" => assert!(matches!(error, Some(StreamError::Empty)), "it may have been one: {error:?}"),
            _ => assert!(matches!(error, Some(StreamError::Foreign)), "{error:?}"),
        }
    }
    let mut newer = stream(&device(4096), &Source::default());
    newer[8] = 9;
    assert!(matches!(Reader::open(&newer[..], None).err(), Some(StreamError::Version { found: 9, known: 1 })));
}
