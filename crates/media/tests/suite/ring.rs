//! One ring, several users: the kernel's and that of threads do the same.

use std::fs::File;
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use media::ring::{Completion, Entry, Owner, Ring, SharedRing, Timer};
use rustix::event::{EventfdFlags, PollFlags};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

fn both() -> [SharedRing; 2] {
    [Ring::new(4).expect("io_uring"), Ring::of_threads().expect("an epoll")]
}

fn push(ring: &SharedRing, owner: Owner, token: u64, entry: Entry) {
    // SAFETY: the tests wait for what they push, or end the process.
    unsafe { ring.borrow_mut().push(owner, token, entry) }.expect("push");
}

/// An entry that is done at once, with one.
fn nop(ring: &SharedRing, owner: Owner, token: u64) {
    static READY: LazyLock<File> = LazyLock::new(|| File::open("/dev/null").expect("it is everywhere"));
    push(ring, owner, token, Entry::Poll { fd: READY.as_raw_fd(), events: PollFlags::IN, multi: false });
}

fn completion(ring: &SharedRing, owner: Owner) -> Completion {
    loop {
        ring.borrow_mut().wait_for(owner).expect("wait");
        if let Some(completion) = ring.borrow_mut().next(owner) {
            return completion;
        }
    }
}

/// Pushes one entry and waits for its result.
fn result(ring: &SharedRing, owner: Owner, entry: Entry) -> i32 {
    push(ring, owner, 7, entry);
    let Completion { token, result, more } = completion(ring, owner);
    assert_eq!((token, more), (7, false));
    result
}

#[test]
fn completions_are_kept_apart_and_pushes_beyond_the_queue_go_through() {
    for ring in both() {
        let owners: Vec<Owner> = (0..3).map(|_| ring.borrow_mut().register()).collect();
        for token in 0..300 {
            nop(&ring, owners[token as usize % 3], token);
        }
        for (number, owner) in owners.iter().enumerate() {
            let mut tokens = Vec::new();
            while tokens.len() < 100 {
                ring.borrow_mut().wait_for(*owner).expect("wait");
                while let Some(completion) = ring.borrow_mut().next(*owner) {
                    assert_eq!(completion.result, 1);
                    tokens.push(completion.token);
                }
            }
            tokens.sort_unstable();
            assert_eq!(tokens, (0..100).map(|n| n * 3 + number as u64).collect::<Vec<_>>());
            assert_eq!(ring.borrow().under_way(*owner), 0);
        }
    }
}

#[test]
fn waiting_ends_for_anybody_or_for_one_owner_or_with_time() {
    for ring in both() {
        let one = ring.borrow_mut().register();
        let two = ring.borrow_mut().register();
        nop(&ring, one, 1);
        ring.borrow_mut().wait(None).expect("wait");
        // A completion of the first owner waits, so this must return; and so must waiting for an idle owner.
        ring.borrow_mut().wait(None).expect("wait");
        ring.borrow_mut().wait_for(two).expect("wait");
        static TIMER: Timer = Timer::new(Duration::from_millis(20));
        let start = Instant::now();
        push(&ring, two, 2, Entry::Timeout(&TIMER));
        ring.borrow_mut().wait_for(two).expect("wait");
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert_eq!(ring.borrow_mut().next(two).map(|completion| completion.token), Some(2));
        assert_eq!(ring.borrow_mut().next(one).map(|completion| completion.token), Some(1));
        let start = Instant::now();
        ring.borrow_mut().wait(Some(Duration::from_millis(20))).expect("wait");
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}

#[test]
fn an_owner_that_is_gone_leaves_its_number_when_nothing_is_under_way() {
    for ring in both() {
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
}

#[test]
fn a_file_is_written_made_durable_read_and_punched() {
    for ring in both() {
        let owner = ring.borrow_mut().register();
        let file = tempfile::tempfile().expect("a file");
        let (fd, mut bytes) = (file.as_raw_fd(), [5u8; 4096]);
        let (reserve, punch) = (FallocateFlags::KEEP_SIZE, FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE);
        let allocate = |mode| Entry::Allocate { fd, position: 0, bytes: 1 << 20, mode };
        assert_eq!(result(&ring, owner, allocate(reserve)), 0);
        let write = Entry::Write { fd, address: bytes.as_ptr(), bytes: 4096, position: 8192 };
        assert_eq!(result(&ring, owner, write), 4096);
        assert_eq!(result(&ring, owner, Entry::SyncData { fd }), 0);
        bytes = [0; 4096];
        let read = |address, position| Entry::Read { fd, address, bytes: 4096, position };
        assert_eq!(result(&ring, owner, read(bytes.as_mut_ptr(), 8192)), 4096);
        assert_eq!(bytes, [5; 4096]);
        assert_eq!(result(&ring, owner, read(bytes.as_mut_ptr(), 12000)), 288, "the file ends there");
        assert_eq!(result(&ring, owner, allocate(punch)), 0);
        assert_eq!(result(&ring, owner, read(bytes.as_mut_ptr(), 8192)), 4096);
        assert_eq!(bytes, [0; 4096]);
        let nowhere = Entry::SyncData { fd: RawFd::MAX };
        assert_eq!(result(&ring, owner, nowhere), -Errno::BADF.raw_os_error());
    }
}

#[test]
fn a_socket_gives_what_is_there_or_the_whole_or_what_came_before_the_end() {
    for ring in both() {
        let owner = ring.borrow_mut().register();
        let (mut client, server) = UnixStream::pair().expect("sockets");
        let (fd, mut bytes) = (server.as_raw_fd(), [0u8; 100]);
        let address = bytes.as_mut_ptr();
        let receive = |whole| Entry::Receive { fd, address, bytes: 100, whole };
        client.write_all(&[1; 10]).expect("room");
        assert_eq!(result(&ring, owner, receive(false)), 10);

        push(&ring, owner, 1, receive(true));
        for _ in 0..10 {
            assert!(ring.borrow_mut().next(owner).is_none(), "not the whole of it");
            client.write_all(&[2; 10]).expect("room");
            ring.borrow_mut().submit().expect("submit");
        }
        assert_eq!(completion(&ring, owner).result, 100);

        push(&ring, owner, 2, receive(true));
        ring.borrow_mut().cancel(owner, 2, 3).expect("cancel");
        let mut ends = [completion(&ring, owner), completion(&ring, owner)];
        ends.sort_by_key(|end| end.token);
        assert_eq!(ends.map(|end| (end.token, end.result)), [(2, -Errno::CANCELED.raw_os_error()), (3, 0)]);

        push(&ring, owner, 4, receive(true));
        client.write_all(&[3; 60]).expect("room");
        ring.borrow_mut().submit().expect("submit");
        client.shutdown(Shutdown::Both).expect("it was open");
        assert_eq!(completion(&ring, owner).result, 60);
        assert_eq!(result(&ring, owner, receive(true)), 0, "the end");
    }
}

#[test]
fn a_bell_rings_for_each_write_though_nobody_reads_it() {
    for ring in both() {
        let owner = ring.borrow_mut().register();
        let bell = rustix::event::eventfd(0, EventfdFlags::empty()).expect("an eventfd");
        push(&ring, owner, 1, Entry::Poll { fd: bell.as_raw_fd(), events: PollFlags::IN, multi: true });
        for _ in 0..3 {
            ring.borrow_mut().wait(Some(Duration::ZERO)).expect("wait");
            assert!(ring.borrow_mut().next(owner).is_none(), "it is silent");
            rustix::io::write(&bell, &1u64.to_ne_bytes()).expect("the counter has room");
            let Completion { token, result, more } = completion(&ring, owner);
            assert_eq!((token, result, more), (1, 1, true));
        }
        ring.borrow_mut().cancel(owner, 1, 2).expect("cancel");
        let mut ends = [completion(&ring, owner), completion(&ring, owner)];
        ends.sort_by_key(|end| end.token);
        assert_eq!((ends[0].result, ends[0].more), (-Errno::CANCELED.raw_os_error(), false));
        assert_eq!(ring.borrow().under_way(owner), 0);
    }
}
