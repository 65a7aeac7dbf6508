//! Compare and Write as one: locks of cluster file systems stand on it.

use nvme::command::nvm;
use nvme::initiator::Namespace;
use nvme::{Data, Fuse, Status};

use super::harness::*;

fn block(byte: u8) -> Vec<u8> {
    vec![byte; 4096]
}

#[test]
fn the_write_is_carried_out_only_where_the_comparison_holds() {
    let target = target();
    for digests in [NONE, BOTH] {
        let Connected { mut queue, namespace, controller: _admin } = target.connect_with(digests);
        queue.write(&namespace, 5, block(1)).expect("written");
        queue.compare_and_write(&namespace, 5, block(1), block(2)).expect("it holds");
        assert_eq!(queue.read(&namespace, 5, 1).expect("read"), block(2));
        assert_eq!(refused(queue.compare_and_write(&namespace, 5, block(1), block(3))), Status::COMPARE_FAILED);
        assert_eq!(queue.read(&namespace, 5, 1).expect("read"), block(2), "not carried out");
        // Of the last byte.
        let mut almost = block(2);
        almost[4095] = 0;
        assert_eq!(refused(queue.compare_and_write(&namespace, 5, almost, block(3))), Status::COMPARE_FAILED);
        assert_eq!(queue.read(&namespace, 5, 1).expect("read"), block(2), "not carried out");
        // So large that both wait for an R2T.
        let (old, new) = (pattern(1, 65536), pattern(2, 65536));
        queue.write(&namespace, 8, old.clone()).expect("written");
        queue.compare_and_write(&namespace, 8, old.clone(), new.clone()).expect("it holds");
        assert_eq!(queue.read(&namespace, 8, 16).expect("read"), new);
        assert_eq!(refused(queue.compare_and_write(&namespace, 8, old, block(9).repeat(16))), Status::COMPARE_FAILED);
        assert_eq!(queue.read(&namespace, 8, 16).expect("read"), new);
    }
}

#[test]
fn both_are_answered_and_the_second_says_that_the_first_failed() {
    let target = target();
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    let compare = on_blocks(nvm::COMPARE, 1, 0, 1, Data::InCapsule(4096)).with_fuse(Fuse::First);
    let write = on_blocks(nvm::WRITE, 2, 0, 1, Data::InCapsule(4096)).with_fuse(Fuse::Second);
    for (expected, ends) in [(0, [Status::SUCCESS; 2]), (9, [Status::COMPARE_FAILED, Status::FUSED_FAILED])] {
        let pair = [raw.capsule(&compare, &block(expected)), raw.capsule(&write, &block(1))].concat();
        raw.put(&pair);
        let mut answers = [raw.completion(), raw.completion()];
        answers.sort_by_key(|answer| answer.cid);
        assert_eq!(answers.map(|answer| answer.status), ends);
    }
    // Two ranges that are not the same.
    let other = on_blocks(nvm::WRITE, 2, 1, 1, Data::InCapsule(4096)).with_fuse(Fuse::Second);
    let pair = [raw.capsule(&compare, &block(1)), raw.capsule(&other, &block(7))].concat();
    raw.put(&pair);
    for _ in 0..2 {
        assert!(!raw.status().is_success());
    }
    raw.command(&on_blocks(nvm::READ, 3, 0, 2, Data::Transport(8192)), &[]);
    let (common, unit) = raw.unit();
    assert_eq!(common.data(&unit), [block(1), block(0)].concat());
}

#[test]
fn a_pair_that_is_split_fails_and_writes_nothing() {
    let target = target();
    let mut host = target.connect();
    let mut raw = host.raw(NONE);
    let compare = on_blocks(nvm::COMPARE, 1, 0, 1, Data::InCapsule(4096)).with_fuse(Fuse::First);
    let write = on_blocks(nvm::WRITE, 2, 0, 1, Data::InCapsule(4096)).with_fuse(Fuse::Second);
    // A second without a first.
    raw.command(&write, &block(7));
    assert_eq!(raw.status(), Status::FUSED_MISSING);
    // Another command between them: both fail, the other does not.
    let flush = nvme::Sqe::new(nvm::FLUSH, 3, 1);
    let bytes = [raw.capsule(&compare, &block(0)), raw.capsule(&flush, &[]), raw.capsule(&write, &block(7))].concat();
    raw.put(&bytes);
    let mut ends: Vec<_> = (0..3).map(|_| raw.completion()).map(|end| (end.cid, end.status)).collect();
    ends.sort_by_key(|(cid, _)| *cid);
    assert_eq!(ends, [(1, Status::FUSED_MISSING), (2, Status::FUSED_MISSING), (3, Status::SUCCESS)]);
    // Two firsts; the pair of the second of them goes on.
    let again = compare.with_cid(4);
    let bytes =
        [raw.capsule(&compare, &block(9)), raw.capsule(&again, &block(0)), raw.capsule(&write, &block(1))].concat();
    raw.put(&bytes);
    let mut ends: Vec<_> = (0..3).map(|_| raw.completion()).map(|end| (end.cid, end.status)).collect();
    ends.sort_by_key(|(cid, _)| *cid);
    assert_eq!(ends, [(1, Status::FUSED_MISSING), (2, Status::SUCCESS), (4, Status::SUCCESS)]);
    raw.command(&on_blocks(nvm::READ, 3, 0, 1, Data::Transport(4096)), &[]);
    let (common, unit) = raw.unit();
    assert_eq!(common.data(&unit), block(1));
}

#[test]
fn a_pair_does_not_survive_a_reconnect() {
    let target = target();
    let mut old = target.connect();
    let mut raw = old.raw(NONE);
    let compare = on_blocks(nvm::COMPARE, 1, 0, 1, Data::InCapsule(4096)).with_fuse(Fuse::First);
    raw.command(&compare, &block(0));
    let mut new = target.connect();
    let mut again = new.raw(NONE);
    let write = on_blocks(nvm::WRITE, 2, 0, 1, Data::InCapsule(4096)).with_fuse(Fuse::Second);
    again.command(&write, &block(7));
    assert_eq!(again.status(), Status::FUSED_MISSING);
    again.command(&on_blocks(nvm::READ, 3, 0, 1, Data::Transport(4096)), &[]);
    let (common, unit) = again.unit();
    assert_eq!(common.data(&unit), block(0));
}

#[test]
fn nobody_comes_between_the_comparison_and_the_write() {
    let target = target();
    let namespace = target.connect().namespace;
    let each = 60u64;
    std::thread::scope(|scope| {
        for number in 1..=3 {
            let target = &target;
            scope.spawn(move || count_up(target, number, namespace, each));
        }
    });
    let Connected { mut queue, controller: _admin, .. } = target.connect();
    assert_eq!(count_in(&queue.read(&namespace, 0, 1).expect("read")), 3 * each);
}

fn count_in(block: &[u8]) -> u64 {
    u64::from_le_bytes(block[..8].try_into().expect("eight bytes"))
}

/// Adds 1 so often to a counter that others count up as well.
fn count_up(target: &Target, number: u8, namespace: Namespace, times: u64) {
    let mut connected = target.connect_as(&host(number), &Default::default());
    for _ in 0..times {
        loop {
            let old = connected.queue.read(&namespace, 0, 1).expect("read");
            let mut new = old.clone();
            new[..8].copy_from_slice(&(count_in(&old) + 1).to_le_bytes());
            match connected.queue.compare_and_write(&namespace, 0, old, new) {
                Ok(()) => break,
                failed => assert_eq!(refused(failed), Status::COMPARE_FAILED),
            }
        }
    }
}
