//! Zones over NVMe: commands by hand, small ones and those whose data come apart, and what is refused.

use std::os::unix::net::UnixStream;

use device::{AttachOptions, Capacity, CreateOptions, Device, FormatOptions, create};
use export::nvme::Options;
use nvme::command::zone;
use nvme::initiator::{Command, Completion, IoQueue};
use nvme::{Sqe, Status};

use super::harness::*;

/// Blocks of a zone, and of its capacity: two erase blocks of 512 slots, each with a header.
const ZONE: u64 = 1024;
const CAPACITY: u64 = 2 * 511;
const BLOCK: usize = 4096;

/// A device of 16 zones of 4 MiB.
fn zoned() -> (tempfile::TempDir, Target) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("z.vsl");
    let options = CreateOptions {
        advertised_bytes: 64 << 20,
        raw_bytes: 224 << 20,
        profile: None,
        parity: 0,
        format: FormatOptions { sector_bytes: 4096, capacity: Capacity::Zones(4 << 20), label: "t".into() },
    };
    create(&[&path], &options).expect("created");
    let target =
        serve(Options::default(), false, move |ring| Device::attach(&[&path], &AttachOptions::default(), ring));
    (directory, target)
}

fn ask(queue: &mut IoQueue<UnixStream>, command: Command) -> Completion {
    queue.link().execute(command).expect("an end")
}

fn append(zone: u64, data: Vec<u8>, fua: bool) -> Command {
    let blocks = (data.len() / BLOCK) as u32;
    let entry = Sqe::new(zone::APPEND, 0, 1).with(10, zone as u32).with(12, (blocks - 1) | (u32::from(fua) << 30));
    Command::sending(entry, data)
}

fn send(zone: u64, action: u32) -> Command {
    Command::bare(Sqe::new(zone::MANAGEMENT_SEND, 0, 1).with(10, zone as u32).with(13, action))
}

/// State and write pointer of each zone.
fn report(queue: &mut IoQueue<UnixStream>) -> Vec<(u8, u64)> {
    let bytes = 64 * 17;
    let entry = Sqe::new(zone::MANAGEMENT_RECEIVE, 0, 1).with(12, bytes / 4 - 1);
    let done = ask(queue, Command::receiving(entry, bytes));
    assert_eq!(done.status, Status::SUCCESS);
    let word = |at: usize| u64::from_le_bytes(done.data[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!(word(0), 16);
    (1..17).map(|zone| (done.data[64 * zone + 1] >> 4, word(64 * zone + 24))).collect()
}

#[test]
fn appends_tell_where_they_went_however_their_data_come() {
    let (_directory, target) = zoned();
    for digests in [NONE, BOTH] {
        let Connected { mut queue, namespace, controller: _admin } = target.connect_with(digests);
        assert_eq!(ask(&mut queue, send(ZONE, 4)).status, Status::SUCCESS);
        let mut at = ZONE;
        // In the capsule, and asked for by the device; durable and not.
        for (blocks, fua) in [(1, false), (3, true), (64, false), (200, true), (1, true)] {
            let done = ask(&mut queue, append(ZONE, vec![blocks as u8; blocks * BLOCK], fua));
            assert_eq!((done.status, done.result), (Status::SUCCESS, at));
            let read = queue.read(&namespace, at, blocks as u32).expect("read");
            assert!(read.iter().all(|byte| *byte == blocks as u8));
            at += blocks as u64;
        }
        assert_eq!(report(&mut queue)[1], (2, at));
        assert_eq!(ask(&mut queue, append(ZONE + 1, vec![1; BLOCK], false)).status, Status::ZONE_BOUNDARY);
        assert_eq!(refused(queue.write(&namespace, at + 1, vec![1; BLOCK])), Status::ZONE_INVALID_WRITE);
        queue.write(&namespace, at, vec![1; BLOCK]).expect("a write at the pointer");
    }
}

#[test]
fn zones_are_managed_one_by_one_and_together() {
    let (_directory, target) = zoned();
    let Connected { mut queue, namespace, controller: _admin } = target.connect();
    let status = |queue: &mut IoQueue<UnixStream>, command| ask(queue, command).status;
    for (action, state) in [(3, 3), (1, 4), (3, 3), (2, 14), (4, 1)] {
        assert_eq!(status(&mut queue, send(2 * ZONE, action)), Status::SUCCESS);
        assert_eq!(report(&mut queue)[2].0, state);
    }
    assert_eq!(status(&mut queue, send(2 * ZONE, 1)), Status::ZONE_TRANSITION);
    assert_eq!(status(&mut queue, send(2 * ZONE + 5, 4)), Status::ZONE_BOUNDARY);
    for zone in 0..14 {
        queue.write(&namespace, zone * ZONE, vec![zone as u8; BLOCK]).expect("written");
    }
    assert_eq!(refused(queue.write(&namespace, 14 * ZONE, vec![1; BLOCK])), Status::TOO_MANY_ACTIVE_ZONES);
    assert_eq!(status(&mut queue, send(14 * ZONE, 3)), Status::TOO_MANY_ACTIVE_ZONES);
    for (action, states) in [(1, [4, 1]), (3, [3, 1]), (2, [14, 1]), (4, [1, 1])] {
        assert_eq!(status(&mut queue, send(0, action | 1 << 8)), Status::SUCCESS);
        let report = report(&mut queue);
        assert_eq!([report[13].0, report[14].0], states, "action {action}");
    }
    // A whole zone, and beyond.
    let mut at = 0;
    while at < CAPACITY {
        let count = (CAPACITY - at).min(256);
        queue.write(&namespace, at, vec![7; count as usize * BLOCK]).expect("written");
        at += count;
    }
    assert_eq!(report(&mut queue)[0], (14, u64::MAX));
    assert_eq!(refused(queue.write(&namespace, at, vec![1; BLOCK])), Status::ZONE_FULL);
    assert_eq!(refused(queue.write(&namespace, ZONE, vec![1; 257 * BLOCK])), Status::INVALID_FIELD);
    // Zeros are written like anything else, and nothing is forgotten but as a whole.
    queue.write_zeroes(&namespace, ZONE, 300, true).expect("zeroed");
    assert_eq!(report(&mut queue)[1], (2, ZONE + 300));
    queue.deallocate(&namespace, &[nvme::initiator::Range { first: 0, blocks: 10 }]).expect("a hint");
    assert_eq!(queue.read(&namespace, 0, 1).expect("read")[0], 7);
}
