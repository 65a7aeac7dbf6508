//! Devices made by earlier programs attach: `tests/formats/` holds the superblocks that they wrote, both copies of each file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use device::{AttachOptions, BatchOp, Device, Io, Secret, SnapshotChange, SnapshotError, inspect};
use media::LABEL_BYTES;
use media::ring::Ring;

use crate::common::call;

/// The files of a device that holds nothing yet: its labels, and a hole.
fn device(directory: &Path, files: &[(&str, u64)]) -> Vec<PathBuf> {
    let labels = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let made = files.iter().map(|(name, bytes)| {
        let both = std::fs::read(labels.join(format!("{name}.labels"))).expect("a fixture");
        let path = directory.join(name);
        let file = File::create(&path).expect("made");
        for (copy, label) in both.chunks(both.len() / 2).enumerate() {
            file.write_all_at(label, copy as u64 * u64::from(LABEL_BYTES)).expect("written");
        }
        file.set_len(*bytes).expect("grown");
        path
    });
    made.collect()
}

#[test]
fn devices_of_every_earlier_version_attach_and_stay_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let parity = 111_804_416;
    let made = [
        (1, vec![("v1", 137_363_456)]),
        (2, vec![("v2", 368_669_360_128)]),
        (3, vec![("v3a", parity), ("v3b", parity), ("v3c", parity)]),
        (4, vec![("v4", 137_363_456)]),
        (5, vec![("v5", 137_363_456)]),
        (6, vec![("v6", 137_363_456)]),
        (7, vec![("v7", 137_363_456)]),
        (9, vec![("v9", 137_363_456)]),
    ];
    for (version, files) in made {
        let paths = device(directory.path(), &files);
        let ring = Ring::new(64).expect("io_uring");
        let key = directory.path().join("key");
        std::fs::write(&key, [b'k'; 64]).expect("written");
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours only");
        let secret = (version == 4).then(|| Secret::key_file(&key).expect("a key"));
        let options = AttachOptions { secret, ..AttachOptions::default() };
        let mut attached = Device::attach(&paths, &options, &ring).expect("attached");
        let data = vec![7; attached.info().sector_bytes as usize];
        call(&mut attached, Io::Write { lba: 3, data: &data, fua: true }).expect("written");
        attached.detach().expect("detached");
        let info = inspect(&paths[0]).expect("inspected");
        assert_eq!((info.format_version, info.attaches), (version, 1), "what an older program reads");

        // With an identity of its own it is at least of the version that has them, with a batch of the next, with a snapshot of the one behind, with a clone of
        // the newest.
        let options = AttachOptions { new_identity: true, ..options };
        let mut attached = Device::attach(&paths, &options, &ring).expect("attached");
        assert_eq!(attached.info().format_version, version.max(5));
        let buf = vec![0; data.len()];
        assert_eq!(call(&mut attached, Io::Read { lba: 3, buf }), Ok(Some(data.clone())));
        let ops = [BatchOp::Write { lba: 9, count: 1 }, BatchOp::Trim { lba: 3, count: 1 }];
        call(&mut attached, Io::Batch { ops: &ops, data: &data, fua: true }).expect("carried out");
        drop(attached);
        let options = AttachOptions { new_identity: false, ..options };
        let mut attached = Device::attach(&paths, &options, &ring).expect("attached");
        for (lba, expected) in [(3, vec![0; data.len()]), (9, data.clone())] {
            let buf = vec![0xee; data.len()];
            assert_eq!(call(&mut attached, Io::Read { lba, buf }), Ok(Some(expected)));
        }
        assert_eq!(attached.info().format_version, version.max(6));
        let made = attached.change_snapshots(&SnapshotChange::Create { name: "one".into(), created: 7 });
        if version == 2 {
            assert!(matches!(made, Err(SnapshotError::Unsupported(_))), "an emulated card: {made:?}");
        } else {
            made.expect("made");
            assert_eq!(attached.info().format_version, version.max(7));
            let of = attached.snapshots()[0].id;
            attached.change_snapshots(&SnapshotChange::Clone { of, name: "two".into(), created: 7 }).expect("made");
        }
        attached.detach().expect("detached");
        let renewed = inspect(&paths[0]).expect("inspected");
        assert_eq!(renewed.format_version, if version == 2 { 6 } else { 9 });
        assert_ne!(renewed.uuid, info.uuid);
    }
}
