//! What is particular to files: locks, sizes, space, and what cannot hold a device.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};

use media::file::{backing_bytes, block_position};
use media::{Backing, Command, FileMedia, FileOptions, Geometry, Media, MediaError, OpenError};
use rustix::io::Errno;

use crate::common::*;

/// A medium of that shape, and its files.
fn medium_of(dir: &tempfile::TempDir, geometry: Geometry) -> (Vec<PathBuf>, FileMedia) {
    let paths = create(dir, &geometry);
    let ring = media::ring::Ring::new(8).expect("io_uring");
    let media = FileMedia::open(&paths, geometry, ring, FileOptions::default()).expect("open");
    (paths, media)
}

#[test]
fn a_new_backing_file_is_sparse_private_and_never_overwrites() {
    let dir = disk();
    let path = dir.path().join("new");
    let backing = Backing::create(&path, 1 << 40).expect("create");
    assert_eq!(backing.bytes().expect("length"), 1 << 40);
    let meta = path.metadata().expect("metadata");
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    assert!(meta.blocks() * 512 < 1 << 20, "sparse");
    drop(backing);
    match Backing::create(&path, 4096) {
        Err(OpenError::Io { error, .. }) => assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists),
        other => panic!("{other:?}"),
    }
    assert_eq!(path.metadata().expect("metadata").len(), 1 << 40);
}

#[test]
fn a_second_attach_is_refused_by_name() {
    let dir = disk();
    let paths = create(&dir, &geometry());
    let first = open(&paths, false);
    let ring = media::ring::Ring::new(8).expect("io_uring");
    let second = FileMedia::open(&paths, geometry(), ring, FileOptions::default()).err().expect("refused");
    let text = second.to_string();
    assert!(matches!(second, OpenError::Locked { .. }), "{text}");
    assert!(text.contains(paths[0].to_str().expect("text")), "{text}");
    assert!(text.contains(&format!("this process ({})", std::process::id())), "{text}");
    let reader = Backing::open(&paths[1], true).expect_err("readers are refused too");
    assert!(matches!(reader, OpenError::Locked { .. }));
    assert!(Backing::peek(&paths[0]).expect("peek needs no lock").read_label(0).is_ok());
    drop(first);
    drop(open(&paths, false));
}

#[test]
fn the_holder_of_the_lock_is_named() {
    let dir = disk();
    let paths = create(&dir, &geometry());
    let mut holder = Process::new("flock")
        .args([paths[0].as_os_str(), "sh".as_ref(), "-c".as_ref(), "echo held; read wait".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flock of util-linux");
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
    let refused = Backing::open(&paths[0], false).expect_err("locked elsewhere");
    let pid = holder.id();
    drop(holder.stdin.take());
    holder.wait().expect("the holder ends");
    let OpenError::Locked { holder, .. } = refused else { panic!("{refused}") };
    assert_eq!(holder, format!("process {pid} (flock)"));
}

#[test]
fn what_cannot_hold_a_device_is_named() {
    let dir = disk();
    for (path, kind) in [(dir.path(), "directory"), ("/dev/null".as_ref(), "character device")] {
        let error = Backing::open(path, false).expect_err("refused");
        assert!(matches!(error, OpenError::Kind { kind: found, .. } if found == kind), "{error}");
    }
    let error = Backing::open(&dir.path().join("absent"), false).expect_err("refused");
    assert!(matches!(&error, OpenError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound), "{error}");
}

#[test]
fn a_truncated_file_is_refused_and_noticed() {
    let dir = disk();
    let paths = create(&dir, &geometry());
    let whole = backing_bytes(&geometry());
    for page_cache in [false, true] {
        let mut media = open(&paths, page_cache);
        let page = geometry().page_bytes();
        // The file loses all but 5000 bytes of block 2 while attached.
        let file = std::fs::File::options().write(true).open(&paths[1]).expect("open");
        file.set_len(block_position(&geometry(), 2) + 5000).expect("truncate");
        for bytes in [4000..5001, 5000..5001, 0..page] {
            let result = run(&mut media, Command::Read { at: at(1, 2, 0), bytes });
            assert_eq!(result.map(|_| ()), Err(MediaError::Truncated));
        }
        assert_eq!(run(&mut media, Command::Read { at: at(1, 3, 3), bytes: 0..1 }).err(), Some(MediaError::Truncated));
        expect_zeros(&mut media, at(1, 2, 0), 3000..5000);
        drop(media);
        let ring = media::ring::Ring::new(8).expect("io_uring");
        let error = FileMedia::open(&paths, geometry(), ring, FileOptions::default()).err().expect("refused");
        assert!(
            matches!(&error, OpenError::Truncated { path, found, expected }
                if *path == paths[1] && *found < whole && *expected == whole),
            "{error}"
        );
        file.set_len(whole).expect("grow");
    }
}

#[test]
fn a_short_foreign_file_has_a_label_of_its_bytes_and_zeros() {
    let dir = disk();
    let path = dir.path().join("foreign");
    std::fs::write(&path, b"hello").expect("write");
    let backing = Backing::open(&path, false).expect("open");
    let label = backing.read_label(0).expect("label");
    assert_eq!(label.len(), media::LABEL_BYTES as usize);
    assert_eq!(&label[..5], b"hello");
    assert!(label[5..].iter().all(|byte| *byte == 0));
    assert!(backing.read_label(1).expect("label").iter().all(|byte| *byte == 0));
}

#[test]
fn allocate_takes_space_and_erase_gives_it_back() {
    let dir = disk();
    // Blocks of 11 MiB, which are given back in several pieces.
    let geometry = Geometry { pages_per_block: 160, ..geometry() };
    let (paths, mut media) = medium_of(&dir, geometry);
    let block = geometry.block_bytes() * u64::from(geometry.dies);
    let before = media.allocated_bytes().expect("a regular file");
    run(&mut media, Command::Allocate { block: 1 }).expect("allocate");
    let reserved = media.allocated_bytes().expect("a regular file");
    assert!(reserved >= before + block, "{before} {reserved}");
    expect_zeros(&mut media, at(0, 1, 0), 0..4096);
    for page in [0, 80, 159] {
        program_page(&mut media, at(0, 1, page), page);
        program_page(&mut media, at(1, 1, page), page);
    }
    run(&mut media, Command::Sync).expect("sync");
    assert!(media.allocated_bytes().expect("a regular file") >= before + block);
    run(&mut media, Command::Erase { block: 1 }).expect("erase");
    assert!(media.allocated_bytes().expect("a regular file") <= reserved - block, "space goes back");
    for page in [0, 80, 159] {
        expect_zeros(&mut media, at(1, 1, page), 0..geometry.page_bytes());
    }
    assert_eq!(paths[0].metadata().expect("metadata").len(), backing_bytes(&geometry));
}

#[test]
fn fill_takes_space_and_touches_no_other_block() {
    let dir = disk();
    // Blocks that are filled in several pieces.
    let geometry = Geometry { pages_per_block: 160, ..geometry() };
    let (paths, mut media) = medium_of(&dir, geometry);
    let block = geometry.block_bytes() * u64::from(geometry.dies);
    for die in 0..geometry.dies {
        program_page(&mut media, at(die, 0, 159), 1);
        program_page(&mut media, at(die, 2, 0), 2);
    }
    let before = media.allocated_bytes().expect("a regular file");
    run(&mut media, Command::Fill { block: 1 }).expect("fill");
    assert!(media.allocated_bytes().expect("a regular file") >= before + block);
    for die in 0..geometry.dies {
        expect_zeros(&mut media, at(die, 1, 0), 0..geometry.page_bytes());
        expect_zeros(&mut media, at(die, 1, 159), 0..geometry.page_bytes());
        program_page(&mut media, at(die, 1, 80), 3);
        expect(&mut media, at(die, 1, 80), 0..geometry.page_bytes(), 3);
        expect(&mut media, at(die, 0, 159), 0..geometry.page_bytes(), 1);
        expect(&mut media, at(die, 2, 0), 0..geometry.page_bytes(), 2);
    }
    assert_eq!(paths[0].metadata().expect("metadata").len(), backing_bytes(&geometry));
}

/// A fill makes way for syncs, and comes to its end however many of them follow each other.
#[test]
fn a_fill_goes_on_between_syncs() {
    const FILL: u64 = u64::MAX;
    let dir = disk();
    let geometry = Geometry { pages_per_block: 640, ..geometry() };
    let (_, mut media) = medium_of(&dir, geometry);
    program_page(&mut media, at(0, 0, 0), 1);
    let before = media.allocated_bytes().expect("a regular file");
    let mut done: Vec<media::Done> = media.submit(FILL, Command::Fill { block: 1 }).into_iter().collect();
    for id in 0..4 {
        done.extend(media.submit(id, Command::Sync));
    }
    // At any moment a sync is under way.
    let mut syncs = 4;
    while !done.iter().any(|done| done.id == FILL) {
        media.wait();
        while let Some(one) = media.poll() {
            if one.id != FILL {
                done.extend(media.submit(syncs, Command::Sync));
                syncs += 1;
            }
            done.push(one);
        }
    }
    while done.len() as u64 <= syncs {
        media.wait();
        done.extend(std::iter::from_fn(|| media.poll()));
    }
    assert!(done.iter().all(|done| done.result.is_ok()));
    let filled = geometry.block_bytes() * u64::from(geometry.dies);
    assert!(media.allocated_bytes().expect("a regular file") >= before + filled);
    expect_zeros(&mut media, at(1, 1, 639), 0..geometry.page_bytes());
}

/// A block larger than the whole tmpfs, which refuses it before it takes any of it.
#[test]
fn a_full_disk_shows_in_allocate() {
    let dir = shm();
    let geometry = Geometry { dies: 1, blocks: 1, pages_per_block: u32::MAX, ..geometry() };
    let (_, mut media) = medium_of(&dir, geometry);
    for command in [Command::Allocate { block: 0 }, Command::Fill { block: 0 }] {
        assert_eq!(run(&mut media, command).err(), Some(MediaError::NoSpace));
    }
    program_page(&mut media, at(0, 0, 9), 1);
    expect(&mut media, at(0, 0, 9), 0..4096, 1);
}

#[test]
fn a_read_only_medium_changes_nothing() {
    let dir = disk();
    let paths = create(&dir, &geometry());
    let mut media = open(&paths, false);
    program_page(&mut media, at(0, 0, 0), 1);
    drop(media);
    let ring = media::ring::Ring::new(8).expect("io_uring");
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    let mut media = FileMedia::open(&paths, geometry(), ring, options).expect("open");
    let page = media.page();
    for command in [
        Command::Program { at: at(0, 0, 1), bytes: 0..4096, page },
        Command::Erase { block: 0 },
        Command::Allocate { block: 1 },
        Command::Fill { block: 1 },
        Command::WriteLabel { copy: 0, bytes: vec![vec![1]] },
    ] {
        assert_eq!(run(&mut media, command).err(), Some(MediaError::Os(Errno::ROFS)));
    }
    run(&mut media, Command::Sync).expect("nothing to do");
    expect(&mut media, at(0, 0, 0), 0..4096, 1);
}

#[test]
fn dropping_the_medium_waits_for_the_kernel() {
    let dir = disk();
    let paths = create(&dir, &geometry());
    let ring = media::ring::Ring::new(8).expect("io_uring");
    for round in 0..20 {
        let options = FileOptions::default();
        let mut media = FileMedia::open(&paths, geometry(), ring.clone(), options).expect("open");
        for id in 0..16 {
            let page = media.page();
            fill(&page, 0..geometry().page_bytes(), round);
            let bytes = 0..geometry().page_bytes();
            let done = media.submit(id, Command::Program { at: at(1, id as u32 / 4, id as u32 % 4), bytes, page });
            assert!(done.is_none());
        }
        drop(media);
    }
    let mut media = FileMedia::open(&paths, geometry(), ring, FileOptions::default()).expect("open");
    for id in 0..16 {
        expect(&mut media, at(1, id / 4, id % 4), 0..geometry().page_bytes(), 19);
    }
}

#[test]
fn overwriting_and_discarding_leave_the_labels_and_zeros() {
    for discard in [false, true] {
        let dir = disk();
        let paths = create(&dir, &geometry());
        let mut media = open(&paths, false);
        program_page(&mut media, at(0, 0, 0), 1);
        program_page(&mut media, at(0, 3, 3), 2);
        drop(media);
        let backing = Backing::open(&paths[0], false).expect("open");
        backing.write_label(1, &[7; 700]).expect("label");
        if discard {
            backing.discard_blocks().expect("discard");
            assert!(backing.allocated_bytes().expect("a regular file") <= u64::from(2 * media::LABEL_BYTES));
        } else {
            let (end, mut at) = (backing.bytes().expect("a length"), media::LABEL_AREA_BYTES);
            assert!(backing.first_nonzero(at, end - at).expect("read").is_some());
            while let Some(data) = backing.next_data(at, end).expect("looked") {
                backing.write_zeros(data.start, data.end - data.start).expect("overwritten");
                at = data.end;
            }
            let left = backing.first_nonzero(media::LABEL_AREA_BYTES, end - media::LABEL_AREA_BYTES);
            assert_eq!(left.expect("read"), None);
        }
        assert_eq!(backing.read_label(1).expect("label")[..701], [&[7; 700][..], &[0]].concat());
        drop(backing);
        let mut media = open(&paths, false);
        expect_zeros(&mut media, at(0, 0, 0), 0..geometry().page_bytes());
        expect_zeros(&mut media, at(0, 3, 3), 0..geometry().page_bytes());
    }
}
