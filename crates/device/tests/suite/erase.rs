//! Sure-erase, cut wherever it may be cut: afterwards nothing of what was written is left, and nothing was attached in between.
//!
//! `OPENVSL_ERASES` says how many erases are cut midway: 50 when nothing is said, 10,000 in the soak. `OPENVSL_SEED` says where.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use device::{
    AttachError, AttachOptions, Capacity, Certificate, CreateOptions, Device, EraseLevel, FormatError, FormatOptions,
    Info, Io, Secret, Setting, create, create_encrypted, format, inspect, sure_erase,
};
use media::ring::Ring;
use random::SplitMix64;

use crate::common::call;

const SECTOR: usize = 4096;
/// What is looked for afterwards.
const MARKER: [u8; 32] = *b"a trace of what was written here";

fn secret() -> Secret {
    Secret::key(&[1; 32])
}

fn options() -> CreateOptions {
    let format = FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "kept".into() };
    CreateOptions { advertised_bytes: 4 << 20, raw_bytes: 48 << 20, profile: None, parity: 0, format }
}

fn attach(path: &Path, secret: Option<Secret>) -> Result<Device, AttachError> {
    let ring = Ring::new(64).expect("io_uring");
    Device::attach(&[path], &AttachOptions { secret, ..AttachOptions::default() }, &ring)
}

/// A device with markers in it, as an image to start from.
fn image(dir: &Path, encrypted: bool) -> PathBuf {
    let path = dir.join(if encrypted { "encrypted.vsl" } else { "plain.vsl" });
    let key = encrypted.then(secret);
    match &key {
        Some(key) => create_encrypted(&[&path], &options(), key),
        None => create(&[&path], &options()),
    }
    .expect("created");
    let mut device = attach(&path, key).expect("attached");
    device.set(&[Setting::Trim(false)]).expect("set");
    device.set(&[Setting::Beacon(true)]).expect("set");
    device.set(&[Setting::Groomer("fifo".into())]).expect("set");
    device.set(&[Setting::CheckpointInterval(64 << 20)]).expect("set");
    let data: Vec<u8> = MARKER.iter().copied().cycle().take(SECTOR * 16).collect();
    let mut random = SplitMix64::new(5);
    for _ in 0..80 {
        call(&mut device, Io::Write { lba: random.below(1000), data: &data, fua: false }).expect("written");
    }
    device.detach().expect("detached");
    path
}

/// Copies what the image holds, sparse as it is.
fn copy(image: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("--sparse=always").args([image, to]).status().expect("cp runs");
    assert!(status.success());
}

/// Reads the whole file: whether anything but zeros stands behind its labels, and whether one of these stands anywhere.
fn raw_scan(path: &Path, traces: &[&[u8]]) -> (bool, bool) {
    const UNIT: usize = 4096;
    let bytes = std::fs::read(path).expect("read");
    let (mut something, mut trace) = (false, false);
    for (at, _) in bytes.chunks(UNIT).enumerate().filter(|(_, unit)| **unit != [0; UNIT][..unit.len()]) {
        something |= at * UNIT >= 128 << 10;
        // A little of the next unit too, for what lies across.
        let here = &bytes[at * UNIT..bytes.len().min((at + 1) * UNIT + 64)];
        trace |= traces.iter().any(|trace| here.windows(trace.len()).any(|window| window == *trace));
    }
    (something, trace)
}

/// Erases until it is done, cut at these numbers of steps. No certificate where the last cut came after the end.
fn erase_cut(path: &PathBuf, level: EraseLevel, cuts: &[u64]) -> (Info, Option<Certificate>) {
    let old = inspect(path).expect("a device").uuid;
    for steps in cuts {
        let mut left = *steps;
        let watch = &mut |_| {
            left = left.saturating_sub(1);
            left > 0
        };
        match sure_erase(std::slice::from_ref(path), level, None, watch) {
            Ok((info, certificate)) => return (info, Some(certificate)),
            Err(FormatError::Attach(AttachError::BeingErased { .. })) => {}
            Err(error) => panic!("{error}"),
        }
        // Cut before its marker stood anywhere it has not begun; from then on nobody may use the device.
        let info = inspect(path).expect("a device");
        if info.erasing.is_none() && info.uuid != old {
            // Between the two copies of the last label.
            return (info, None);
        }
        if info.erasing.is_some() {
            for key in [None, Some(secret())] {
                assert!(matches!(attach(path, key), Err(AttachError::BeingErased { .. })));
            }
            let error = format(&[path], &options().format, None).expect_err("it is being erased");
            assert!(error.to_string().contains(&format!("vsl sure-erase --{}", level.name())), "{error}");
        }
    }
    let (info, certificate) = sure_erase(std::slice::from_ref(path), level, None, &mut |_| true).expect("erased");
    (info, Some(certificate))
}

/// Every level, with cuts at random steps: in the end no trace, no key, an empty device that is set as it was.
#[test]
fn an_erase_that_is_cut_leaves_no_trace() {
    let number_in = |variable| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    let erases = number_in("OPENVSL_ERASES").unwrap_or(50);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let images = [image(dir.path(), false), image(dir.path(), true)];
    let plain = std::fs::read(&images[0]).expect("read");
    assert!(plain.windows(32).any(|window| window == MARKER), "there is something to find");
    let sealed = std::fs::read(&images[1]).expect("read");
    // The first key slot's salt: what stands for its wrapped key.
    let at = sealed.windows(8).position(|window| window == [1, 0, 0, 0, 4, 0, 0, 0]).expect("the section of its keys");
    let salt = sealed[at + 24..at + 56].to_vec();
    let path = dir.path().join("device.vsl");
    let (mut cut, mut resumed) = (0, 0);
    let mut random = SplitMix64::new(number_in("OPENVSL_SEED").unwrap_or(11));
    let mut number = 0;
    while cut < erases {
        number += 1;
        let encrypted = random.one_in(2);
        let level = match (encrypted, random.below(3)) {
            (true, 0) => EraseLevel::Crypto,
            (_, 1) => EraseLevel::Clear,
            _ => EraseLevel::Purge,
        };
        copy(&images[usize::from(encrypted)], &path);
        let old = inspect(&path).expect("a device");
        let cuts: Vec<u64> = (0..1 + random.below(4)).map(|_| 1 + random.below(12)).collect();
        let (info, certificate) = erase_cut(&path, level, &cuts);
        let runs = certificate.as_ref().map_or(2, |certificate| certificate.runs);
        cut += u64::from(runs > 1);
        resumed += u64::from(runs - 1);
        let (something, trace) = raw_scan(&path, &[&MARKER, &salt]);
        assert!(!trace, "erase {number} ({level:?}, cut at {cuts:?}) left a trace");
        assert_eq!(something, level == EraseLevel::Crypto, "erase {number}: what stands behind the labels");
        assert_ne!(info.uuid, old.uuid);
        if let Some(certificate) = certificate {
            assert_eq!((certificate.erased_uuid, certificate.uuid), (old.uuid, info.uuid));
            assert_eq!((certificate.keys_destroyed, certificate.level), (u32::from(encrypted), level));
        }
        let same = |info: &Info| (info.label.clone(), info.sectors, info.raw_bytes, info.advertised_bytes);
        assert_eq!(same(&info), same(&old));
        let device = attach(&path, None).expect("attached");
        let settings = device.settings();
        assert!(!settings.trim && settings.beacon && settings.groomer == "fifo", "{settings:?}");
        assert_eq!((settings.label.as_str(), settings.checkpoint_interval_bytes), ("kept", 64 << 20));
        assert_eq!(device.status().mapped_sectors, 0);
    }
    println!("{cut} erases cut midway, {resumed} times in all, then 0 traces");
}

/// Where an erase goes on: what it put on record is not overwritten again.
#[test]
fn an_erase_goes_on_where_it_was() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = image(dir.path(), false);
    // One long stretch that takes space, so that there is something to go on with.
    let file = std::fs::File::options().write(true).open(&path).expect("opened");
    let length = 80 << 20;
    file.set_len(length).expect("grown");
    let block = vec![0xa5; 1 << 20];
    for at in (1..length >> 20).map(|mib| mib << 20) {
        file.write_all_at(&block[..block.len().min((length - at) as usize)], at).expect("written");
    }
    let mut overwritten = 0;
    let stopped = sure_erase(std::slice::from_ref(&path), EraseLevel::Clear, None, &mut |erased| {
        overwritten += u64::from(erased.step == "overwrite");
        // Behind the first mark, which comes after 64 MiB.
        overwritten < 18
    });
    assert!(stopped.is_err());
    let mut first = None;
    let (_, certificate) = sure_erase(std::slice::from_ref(&path), EraseLevel::Clear, None, &mut |erased| {
        if erased.step == "overwrite" {
            first.get_or_insert(erased.done);
        }
        true
    })
    .expect("erased");
    // The file's first data begin at 1 MiB, its first byte that is overwritten is at 128 KiB.
    assert_eq!(first, Some((65 << 20) - (128 << 10)), "it begins where the marker says");
    assert_eq!(certificate.runs, 2);
    assert!(!raw_scan(&path, &[&MARKER]).0);
}

#[test]
fn levels_are_kept_to() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let plain = image(dir.path(), false);
    let erase = |path: &PathBuf, level, watch: &mut dyn FnMut(device::Erased) -> bool| {
        sure_erase(std::slice::from_ref(path), level, None, watch)
    };
    let refused = erase(&plain, EraseLevel::Crypto, &mut |_| true).expect_err("there is no key");
    assert!(refused.to_string().contains("not encrypted"), "{refused}");
    let mut steps = 0;
    let half = &mut |_| {
        steps += 1;
        steps < 8
    };
    erase(&plain, EraseLevel::Purge, half).expect_err("cut");
    let lower = erase(&plain, EraseLevel::Clear, &mut |_| true).expect_err("less than what was begun");
    assert!(lower.to_string().contains("--purge"), "{lower}");
    erase(&plain, EraseLevel::Purge, &mut |_| true).expect("erased");

    // Sealed slots of 512 bytes take more room than plain ones.
    let small = dir.path().join("small.vsl");
    let format = FormatOptions { sector_bytes: 512, ..options().format };
    create(&[&small], &CreateOptions { format, ..options() }).expect("created");
    let key = Secret::key(&[9; 32]);
    sure_erase(std::slice::from_ref(&small), EraseLevel::Clear, Some(&key), &mut |_| true).expect("erased");
    attach(&small, Some(key)).expect("attached").detach().expect("detached");

    let sealed = image(dir.path(), true);
    let (info, _) =
        sure_erase(std::slice::from_ref(&sealed), EraseLevel::Crypto, Some(&Secret::key(&[9; 32])), &mut |_| true)
            .expect("erased");
    assert!(info.encryption.is_some());
    attach(&sealed, Some(secret())).err().expect("the old key opens nothing");
    attach(&sealed, Some(Secret::key(&[9; 32]))).expect("attached").detach().expect("detached");
}

/// A device on several files: whichever of them a cut falls between, nobody can attach it until the erase is finished on all.
#[test]
fn an_erase_covers_every_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for cut in 1..12 {
        let paths: Vec<PathBuf> = (0..3).map(|die| dir.path().join(format!("{cut}-{die}.vsl"))).collect();
        let options = CreateOptions { raw_bytes: 96 << 20, parity: 1, ..options() };
        create_encrypted(&paths, &options, &secret()).expect("created");
        let ring = Ring::new(64).expect("io_uring");
        let open = |secret| Device::attach(&paths, &AttachOptions { secret, ..AttachOptions::default() }, &ring);
        let mut device = open(Some(secret())).expect("attached");
        call(&mut device, Io::Write { lba: 3, data: &[7; SECTOR * 8], fua: true }).expect("written");
        device.detach().expect("detached");
        let salts: Vec<Vec<u8>> = paths
            .iter()
            .map(|path| {
                let bytes = std::fs::read(path).expect("read");
                let at = bytes.windows(8).position(|window| window == [1, 0, 0, 0, 4, 0, 0, 0]).expect("its keys");
                bytes[at + 24..at + 56].to_vec()
            })
            .collect();
        let mut steps = 0;
        let stopped = sure_erase(&paths, EraseLevel::Crypto, None, &mut |_| {
            steps += 1;
            steps <= cut
        });
        if stopped.is_err() {
            // Six labels are written with the marker; from then on everything is erased, and the device may be used.
            assert!(cut > 6 || open(None).is_err() && open(Some(secret())).is_err(), "cut before label {}", cut + 1);
            // After three more every file has a label without the marker: there is nothing left to finish.
            if cut < 9 {
                sure_erase(&paths, EraseLevel::Crypto, None, &mut |_| true).expect("erased");
            }
        }
        let traces: Vec<&[u8]> = salts.iter().map(Vec::as_slice).collect();
        assert!(paths.iter().all(|path| !raw_scan(path, &traces).1), "a key slot is left");
        open(None).expect("attached").detach().expect("detached");
        paths.iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
    }
    let lonely = image(dir.path(), false);
    let missing = [lonely.clone(), lonely];
    assert!(sure_erase(&missing, EraseLevel::Clear, None, &mut |_| true).is_err(), "one file named twice");
}
