//! What lies in the sockets of an association whose host came again is never carried out.

use nvme::Data;
use nvme::command::nvm;
use nvme::pdu::Transfer;

use super::harness::*;

/// Puts bytes into a socket that the server may have closed.
fn late(raw: &mut Raw, bytes: &[u8]) {
    let _ = std::io::Write::write_all(&mut raw.stream, bytes);
    while raw.next_unit().is_some() {}
}

#[test]
fn a_write_that_comes_late_never_lands_after_the_new_association() {
    let target = target();
    for cut in [0, 7, 71, 72, 2000, 4167] {
        let mut old = target.connect();
        let mut raw = old.raw(NONE);
        let unit = raw.capsule(&on_blocks(nvm::WRITE, 1, 0, 1, Data::InCapsule(4096)), &[1; 4096]);
        raw.put(&unit[..cut]);
        let mut new = target.connect();
        new.queue.write(&new.namespace, 0, vec![2; 4096]).expect("written");
        late(&mut raw, &unit[cut..]);
        assert_eq!(new.queue.read(&new.namespace, 0, 1).expect("read"), [2; 4096], "cut at {cut}");
    }
}

#[test]
fn data_that_come_late_for_an_r2t_never_land() {
    let target = target();
    for sent in [0, 32768] {
        let mut old = target.connect();
        let mut raw = old.raw(NONE);
        raw.command(&on_blocks(nvm::WRITE, 1, 0, 16, Data::Transport(65536)), &[]);
        let ready = raw.ready();
        let first = raw.data(Transfer { len: 32768, ..ready }, false, &[1; 32768]);
        if sent > 0 {
            raw.put(&first);
        }
        let mut new = target.connect();
        new.queue.write(&new.namespace, 0, vec![2; 65536]).expect("written");
        let rest = raw.data(Transfer { offset: 32768, len: 32768, ..ready }, true, &[1; 32768]);
        late(&mut raw, &if sent > 0 { rest } else { [first, rest].concat() });
        assert_eq!(new.queue.read(&new.namespace, 0, 16).expect("read"), [2; 65536]);
    }
}

#[test]
fn all_queues_of_the_old_association_end_and_those_of_others_do_not() {
    let target = target();
    let mut old = target.connect();
    let mut second = old.controller.io_queue(target.stream(), 2, 8).expect("a queue");
    let mut other = target.connect_as(&host(2), &Default::default());
    target.wait_for_queues(5);
    let mut new = target.connect();
    assert!(old.queue.flush(&old.namespace).is_err());
    assert!(second.flush(&old.namespace).is_err());
    assert!(old.controller.keep_alive().is_err());
    new.queue.flush(&new.namespace).expect("flushed");
    other.queue.flush(&other.namespace).expect("another host's");
    target.wait_for_queues(4);
    assert_ne!(old.controller.cntlid(), new.controller.cntlid());
    // A queue that would join the old controller now.
    let late = old.controller.io_queue(target.stream(), 3, 8);
    assert_eq!(refused(late.map(drop)), nvme::Status::CONNECT_INVALID);
}
