//! One ring, several users.

use std::time::{Duration, Instant};

use io_uring::{opcode, types};
use media::ring::{Owner, Ring, SharedRing};

fn nop(ring: &SharedRing, owner: Owner, token: u64) {
    // SAFETY: the entry points to nothing.
    unsafe { ring.borrow_mut().push(owner, token, opcode::Nop::new().build()) }.expect("push");
}

#[test]
fn completions_are_kept_apart_and_pushes_beyond_the_queue_go_through() {
    let ring = Ring::new(4).expect("io_uring");
    let owners: Vec<Owner> = (0..3).map(|_| ring.borrow_mut().register()).collect();
    for token in 0..300 {
        nop(&ring, owners[token as usize % 3], token);
    }
    for (number, owner) in owners.iter().enumerate() {
        let mut tokens = Vec::new();
        while tokens.len() < 100 {
            ring.borrow_mut().wait_for(*owner).expect("wait");
            while let Some(completion) = ring.borrow_mut().next(*owner) {
                assert_eq!(completion.result, 0);
                tokens.push(completion.token);
            }
        }
        tokens.sort_unstable();
        assert_eq!(tokens, (0..100).map(|n| n * 3 + number as u64).collect::<Vec<_>>());
        assert_eq!(ring.borrow().under_way(*owner), 0);
    }
}

#[test]
fn waiting_ends_for_anybody_or_for_one_owner_or_with_time() {
    let ring = Ring::new(8).expect("io_uring");
    let one = ring.borrow_mut().register();
    let two = ring.borrow_mut().register();
    nop(&ring, one, 1);
    ring.borrow_mut().wait(None).expect("wait");
    // A completion of the first owner waits, so this must return; and so must waiting for an idle owner.
    ring.borrow_mut().wait(None).expect("wait");
    ring.borrow_mut().wait_for(two).expect("wait");
    let timer = types::Timespec::new().nsec(20_000_000);
    let start = Instant::now();
    // SAFETY: the time lives until the completion came, below.
    unsafe { ring.borrow_mut().push(two, 2, opcode::Timeout::new(&timer).build()) }.expect("push");
    ring.borrow_mut().wait_for(two).expect("wait");
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert_eq!(ring.borrow_mut().next(two).map(|completion| completion.token), Some(2));
    assert_eq!(ring.borrow_mut().next(one).map(|completion| completion.token), Some(1));
    let start = Instant::now();
    ring.borrow_mut().wait(Some(Duration::from_millis(20))).expect("wait");
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn an_owner_that_is_gone_leaves_its_number_when_nothing_is_under_way() {
    let ring = Ring::new(8).expect("io_uring");
    let gone = ring.borrow_mut().register();
    nop(&ring, gone, 1);
    ring.borrow_mut().unregister(gone);
    let next = ring.borrow_mut().register();
    assert_ne!(next, gone, "its completion is still to come");
    nop(&ring, next, 2);
    ring.borrow_mut().wait_for(next).expect("wait");
    assert_eq!(ring.borrow_mut().next(next).map(|completion| completion.token), Some(2));
    assert_eq!(ring.borrow_mut().register(), gone);
    assert!(ring.borrow_mut().next(gone).is_none());
}
