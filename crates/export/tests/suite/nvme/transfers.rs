//! How data travel: digests, lengths, identifiers, R2T; and what a host must not send.

use nvme::command::nvm;
use nvme::pdu::{Fatal, IN_CAPSULE_BYTES, Kind, Transfer, flag};
use nvme::{Data, Status};

use super::harness::*;

/// Reads blocks over a connection of its own: what a hostile one left.
fn stored(target: &Target, first: u64, count: u32) -> Vec<u8> {
    let mut other = target.connect_as(&host(9), &Default::default());
    other.queue.read(&other.namespace, first, count).expect("a bystander is served")
}

#[test]
fn what_the_capsule_holds_travels_in_it_without_an_r2t() {
    let target = target();
    let mut host = target.connect();
    let most = host.controller.info().in_capsule_bytes;
    assert_eq!(most, 128 << 10);
    let blocks = most / 4096;
    let mut raw = host.raw(NONE);
    raw.command(&on_blocks(nvm::WRITE, 1, 0, blocks, Data::InCapsule(most)), &pattern(1, most as usize));
    assert_eq!(raw.unit().0.kind, Kind::CapsuleResp, "no R2T");
    raw.command(&on_blocks(nvm::WRITE, 2, 32, blocks + 1, Data::Transport(most + 4096)), &[]);
    assert_eq!(raw.ready().len, most + 4096);
    assert_eq!(stored(&target, 0, blocks), pattern(1, most as usize));
}

#[test]
fn comparisons_take_no_memory_that_their_queue_does_not_have() {
    let target = target();
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    // Nobody takes what these read, until sockets and the queue's memory are full of it.
    for cid in 0..64 {
        raw.command(&on_blocks(nvm::READ, cid, 0, 256, Data::Transport(1 << 20)), &[]);
    }
    for (cid, blocks) in [(100, 32), (101, 4)] {
        let len = 4096 * blocks;
        raw.command(&on_blocks(nvm::COMPARE, cid, 0, blocks, Data::InCapsule(len)), &vec![0; len as usize]);
    }
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < 66 {
        let (common, unit) = raw.unit();
        if common.kind == Kind::CapsuleResp {
            let done = nvme::pdu::completion(&unit);
            answers.insert(done.cid, done.status);
        }
    }
    assert_eq!(answers.remove(&100), Some(Status::INTERRUPTED), "to be tried again");
    assert!(answers.values().all(|status| status.is_success()), "{answers:?}");
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let target = target();
    let mut host = target.connect_with(BOTH);
    let mut raw = host.raw(BOTH);
    let mut unit = raw.capsule(&on_blocks(nvm::WRITE, 1, 0, 1, Data::InCapsule(4096)), &[7; 4096]);
    // Another block, by one bit.
    unit[48] ^= 1;
    raw.put(&unit);
    assert_eq!(raw.ended(), Fatal::HeaderDigest as u16);
    assert_eq!(stored(&target, 0, 2), [0; 8192]);
}

#[test]
fn a_wrong_data_digest_fails_its_command_and_writes_nothing() {
    let target = target();
    let mut host = target.connect_with(BOTH);
    let mut raw = host.raw(BOTH);
    let mut unit = raw.capsule(&on_blocks(nvm::WRITE, 1, 0, 1, Data::InCapsule(4096)), &[7; 4096]);
    let at = unit.len() - 100;
    unit[at] ^= 1;
    raw.put(&unit);
    assert_eq!(raw.status(), Status::TRANSPORT_ERROR);
    // The same of data after an R2T: in one piece, and the first of two.
    for (cid, pieces) in [(2, vec![65536]), (3, vec![32768, 32768])] {
        raw.command(&on_blocks(nvm::WRITE, cid, 0, 16, Data::Transport(65536)), &[]);
        let ready = raw.ready();
        let mut offset = 0;
        for len in pieces {
            let part = Transfer { offset, len, ..ready };
            let mut unit = raw.data(part, offset + len == 65536, &vec![7; len as usize]);
            if offset == 0 {
                let at = unit.len() - 100;
                unit[at] ^= 1;
            }
            raw.put(&unit);
            offset += len;
        }
        let done = raw.completion();
        assert_eq!((done.cid, done.status), (cid, Status::TRANSPORT_ERROR));
    }
    // The connection goes on, and so do these identifiers.
    for cid in 1..4 {
        raw.command(&on_blocks(nvm::READ, cid, 0, 16, Data::Transport(65536)), &[]);
        let (common, unit) = raw.unit();
        assert_eq!((common.kind, common.data(&unit)), (Kind::C2HData, &[0; 65536][..]));
        assert!(raw.status().is_success());
    }
}

#[test]
fn lengths_that_lie_end_the_connection() {
    let target = target();
    let entry = on_blocks(nvm::WRITE, 1, 0, 1, Data::InCapsule(4096));
    let flush = nvme::Sqe::new(nvm::FLUSH, 1, 1);
    type Changes = &'static [(usize, u8)];
    let lies: [(&str, Changes, Fatal); 8] = [
        ("a header that is shorter", &[(2, 71)], Fatal::InvalidHeader),
        ("a header that is longer", &[(2, 73)], Fatal::InvalidHeader),
        ("data in the header", &[(3, 64)], Fatal::InvalidHeader),
        ("data at an odd place", &[(3, 73)], Fatal::InvalidHeader),
        ("a unit shorter than its header", &[(4, 40), (5, 0)], Fatal::InvalidHeader),
        ("a unit that ends before its data", &[(3, 100), (4, 80), (5, 0)], Fatal::InvalidHeader),
        ("a unit of 4 GiB", &[(4, 0xfc), (5, 0xff), (6, 0xff), (7, 0xff)], Fatal::DataLimit),
        ("a digest that was not agreed upon", &[(1, flag::HEADER_DIGEST)], Fatal::InvalidHeader),
    ];
    for (what, changes, why) in lies {
        let mut host = target.connect();
        let mut raw = host.raw(NONE);
        let mut unit = raw.capsule(&entry, &[7; 4096]);
        changes.iter().for_each(|(at, byte)| unit[*at] = *byte);
        raw.put(&unit[..72]);
        assert_eq!(raw.ended(), why as u16, "{what}");
    }
    // More in the capsule than it takes.
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    let more = IN_CAPSULE_BYTES + 4096;
    raw.command(&on_blocks(nvm::WRITE, 1, 0, more / 4096, Data::InCapsule(more)), &vec![7; more as usize]);
    assert_eq!(raw.ended(), Fatal::DataLimit as u16);
    // Units that no host sends.
    let bytes: [&[u8]; 4] = [&[1; 8], &[5, 0, 24, 0, 24, 0, 0, 0], &[9, 0, 24, 0, 24, 0, 0, 0], &[0x55; 8]];
    for bytes in bytes {
        let mut host = target.connect();
        let mut raw = host.raw(NONE);
        raw.command(&flush, &[]);
        assert!(raw.status().is_success());
        raw.put(&[bytes, &[0; 16]].concat());
        let why = raw.ended();
        assert!([Fatal::InvalidHeader as u16, Fatal::Sequence as u16].contains(&why), "{bytes:?}: {why}");
    }
    assert_eq!(stored(&target, 0, 8), [0; 32768]);
}

#[test]
fn lengths_that_do_not_fit_fail_their_command() {
    let target = target();
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    let wrong: [(Data, u32, usize, Status); 4] = [
        (Data::InCapsule(4096), 1, 8192, Status::SGL_LENGTH_INVALID),
        (Data::InCapsule(4096), 2, 4096, Status::SGL_LENGTH_INVALID),
        (Data::InCapsule(4096), 1, 0, Status::SGL_LENGTH_INVALID),
        (Data::Transport(4096), 1, 4096, Status::SGL_TYPE_INVALID),
    ];
    for (data, count, sent, status) in wrong {
        raw.command(&on_blocks(nvm::WRITE, 1, 0, count, data), &vec![7; sent]);
        assert_eq!(raw.status(), status, "{data:?} for {count} blocks, {sent} bytes sent");
    }
    raw.command(&on_blocks(nvm::WRITE, 1, 0, 2, Data::Transport(4096)), &[]);
    assert_eq!(raw.status(), Status::SGL_LENGTH_INVALID);
    raw.command(&on_blocks(nvm::READ, 1, 0, 2, Data::Transport(4096)), &[]);
    assert_eq!(raw.status(), Status::SGL_LENGTH_INVALID);
    raw.command(&on_blocks(nvm::READ, 1, 0, 1, Data::InCapsule(4096)), &[]);
    assert_eq!(raw.status(), Status::SGL_TYPE_INVALID);
    assert_eq!(stored(&target, 0, 2), [0; 8192]);
    // Longer than the command needs: no more than that moves.
    raw.command(&on_blocks(nvm::WRITE, 1, 0, 1, Data::InCapsule(8192)), &[7; 8192]);
    assert!(raw.status().is_success());
    raw.command(&on_blocks(nvm::WRITE, 1, 2, 1, Data::Transport(8192)), &[]);
    let ready = raw.ready();
    assert_eq!((ready.offset, ready.len), (0, 4096));
    let unit = raw.data(ready, true, &[8; 4096]);
    raw.put(&unit);
    assert!(raw.status().is_success());
    raw.command(&on_blocks(nvm::READ, 1, 0, 1, Data::Transport(8192)), &[]);
    let (common, unit) = raw.unit();
    assert_eq!(common.data(&unit), [7; 4096]);
    assert!(raw.status().is_success());
    assert_eq!(stored(&target, 0, 4), [[7; 4096], [0; 4096], [8; 4096], [0; 4096]].concat());
}

#[test]
fn an_identifier_in_use_is_refused_and_its_command_goes_on() {
    let target = target();
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    let write = on_blocks(nvm::WRITE, 5, 0, 16, Data::Transport(65536));
    raw.command(&write, &[]);
    let ready = raw.ready();
    raw.command(&on_blocks(nvm::WRITE, 5, 0, 1, Data::InCapsule(4096)), &[9; 4096]);
    let refused = raw.completion();
    assert_eq!((refused.cid, refused.status), (5, Status::ID_CONFLICT));
    let unit = raw.data(Transfer { len: 65536, ..ready }, true, &[7; 65536]);
    raw.put(&unit);
    let done = raw.completion();
    assert_eq!((done.cid, done.status), (5, Status::SUCCESS));
    raw.command(&write, &[]);
    raw.ready();
    assert_eq!(stored(&target, 0, 16), [7; 65536]);
}

#[test]
fn capsules_come_while_data_of_another_command_are_awaited() {
    let target = target();
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    raw.command(&on_blocks(nvm::WRITE, 1, 0, 16, Data::Transport(65536)), &[]);
    raw.command(&on_blocks(nvm::WRITE, 2, 16, 16, Data::Transport(65536)), &[]);
    let (first, second) = (raw.ready(), raw.ready());
    assert_ne!(first.tag, second.tag);
    let half = |ready: Transfer, offset| Transfer { offset, len: 32768, ..ready };
    let mut bytes = raw.data(half(second, 0), false, &[2; 32768]);
    bytes.extend(raw.capsule(&on_blocks(nvm::WRITE, 3, 40, 1, Data::InCapsule(4096)), &[3; 4096]));
    bytes.extend(raw.data(half(first, 0), false, &[1; 32768]));
    bytes.extend(raw.capsule(&on_blocks(nvm::WRITE, 4, 41, 16, Data::Transport(65536)), &[]));
    bytes.extend(raw.data(half(second, 32768), true, &[2; 32768]));
    bytes.extend(raw.data(half(first, 32768), true, &[1; 32768]));
    raw.put(&bytes);
    let mut done = Vec::new();
    while done.len() < 4 {
        let (common, unit) = raw.unit();
        match common.kind {
            Kind::R2T => {
                let unit = raw.data(Transfer::decode(&unit), true, &[4; 65536]);
                raw.put(&unit);
            }
            _ => {
                let end = nvme::pdu::completion(&unit);
                assert!(end.status.is_success());
                done.push(end.cid);
            }
        }
    }
    done.sort_unstable();
    assert_eq!(done, [1, 2, 3, 4]);
    let content = stored(&target, 0, 57);
    let expected = |block: usize| match block {
        0..16 => 1,
        16..32 => 2,
        40 => 3,
        41..57 => 4,
        _ => 0,
    };
    for (number, block) in content.chunks_exact(4096).enumerate() {
        assert_eq!(block, [expected(number); 4096], "block {number}");
    }
}

#[test]
fn data_that_were_not_asked_for_end_the_connection() {
    let target = target();
    type Wrong = fn(Transfer) -> Vec<(Transfer, bool, usize)>;
    let wrong: [(&str, Fatal, Wrong); 9] = [
        ("the second half first", Fatal::DataOutOfRange, |ready| {
            vec![(Transfer { offset: 32768, len: 32768, ..ready }, true, 32768)]
        }),
        ("the first half twice", Fatal::DataOutOfRange, |ready| {
            vec![(Transfer { len: 32768, ..ready }, false, 32768), (Transfer { len: 32768, ..ready }, true, 32768)]
        }),
        ("more than was asked for", Fatal::DataOutOfRange, |ready| {
            vec![(Transfer { len: 69632, ..ready }, true, 69632)]
        }),
        ("an offset that wraps", Fatal::DataOutOfRange, |ready| {
            vec![(Transfer { offset: u32::MAX - 4095, len: 4096, ..ready }, true, 4096)]
        }),
        ("a length that is not the unit's", Fatal::DataOutOfRange, |ready| {
            vec![(Transfer { len: 65536, ..ready }, true, 32768)]
        }),
        ("nothing", Fatal::DataOutOfRange, |ready| vec![(Transfer { len: 0, ..ready }, true, 0)]),
        ("another tag", Fatal::DataOutOfRange, |ready| {
            vec![(Transfer { tag: ready.tag ^ 1, len: 65536, ..ready }, true, 65536)]
        }),
        ("another command", Fatal::DataOutOfRange, |ready| {
            vec![(Transfer { cid: ready.cid ^ 1, len: 65536, ..ready }, true, 65536)]
        }),
        ("all without the last", Fatal::InvalidHeader, |ready| vec![(Transfer { len: 65536, ..ready }, false, 65536)]),
    ];
    for (what, why, units) in wrong {
        let mut host = target.connect();
        let mut raw = host.raw(NONE);
        raw.command(&on_blocks(nvm::WRITE, 8, 0, 16, Data::Transport(65536)), &[]);
        let ready = raw.ready();
        assert_eq!((ready.cid, ready.offset, ready.len), (8, 0, 65536));
        let bytes: Vec<u8> =
            units(ready).iter().flat_map(|(part, last, len)| raw.data(*part, *last, &vec![7; *len])).collect();
        // The rest of a unit may find the connection closed.
        let _ = std::io::Write::write_all(&mut raw.stream, &bytes);
        assert_eq!(raw.ended(), why as u16, "{what}");
    }
    // Without any R2T, and behind the last data.
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    let unit = raw.data(Transfer { cid: 1, tag: 0, offset: 0, len: 4096 }, true, &[7; 4096]);
    raw.put(&unit);
    assert_eq!(raw.ended(), Fatal::DataOutOfRange as u16);
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    raw.command(&on_blocks(nvm::WRITE, 8, 100, 16, Data::Transport(65536)), &[]);
    let ready = raw.ready();
    let unit = raw.data(Transfer { len: 65536, ..ready }, true, &[8; 65536]);
    raw.put(&unit);
    assert!(raw.status().is_success());
    raw.put(&unit);
    assert_eq!(raw.ended(), Fatal::DataOutOfRange as u16);
    assert_eq!(stored(&target, 0, 16), [0; 65536]);
    assert_eq!(stored(&target, 100, 16), [8; 65536]);
}

#[test]
fn more_commands_than_the_queue_has_end_the_connection() {
    let target = target();
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    // The queue has 65 entries; none of these writes ends without its data.
    for cid in 0..80 {
        let unit = raw.capsule(&on_blocks(nvm::WRITE, cid, 0, 16, Data::Transport(65536)), &[]);
        let _ = std::io::Write::write_all(&mut raw.stream, &unit);
    }
    let mut kinds = Vec::new();
    while let Some((common, _)) = raw.next_unit() {
        kinds.push(common.kind);
    }
    assert_eq!(kinds.pop(), Some(Kind::C2HTermReq));
    assert!(kinds.iter().all(|kind| *kind == Kind::R2T));
}
