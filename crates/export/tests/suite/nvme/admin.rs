//! What a controller says of itself and its device.

use device::Drill;
use nvme::Status;
use nvme::command::nvm;
use nvme::fabrics::DISCOVERY_NQN;
use nvme::initiator::{Command, ConnectOptions, LogPage};

use super::harness::*;

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[test]
fn identify_says_what_the_device_is() {
    let target = target();
    let Connected { mut controller, mut queue, namespace } = target.connect();
    let info = target.device.info().expect("the device is there");
    assert_eq!(controller.namespaces().expect("namespaces"), [1]);
    assert_eq!((namespace.blocks, namespace.nguid), (SIZE / 4096, *info.uuid.as_bytes()));
    assert_eq!(namespace.atomic_blocks, Some(256), "1 MiB is written whole");
    assert_eq!(namespace.used_blocks, 0);
    let about = controller.info().clone();
    assert_eq!((about.max_transfer_bytes, about.cntlid), (Some(1 << 20), controller.cntlid()));
    assert!(about.fuses_compare_and_write && about.model.starts_with("OpenVSL"), "{about:?}");
    queue.write(&namespace, 0, vec![1; 40960]).expect("written");
    assert_eq!(controller.namespace(1).expect("a namespace").used_blocks, 10, "what is mapped");
    queue.deallocate(&namespace, &[nvme::initiator::Range { first: 0, blocks: 4 }]).expect("deallocated");
    assert_eq!(controller.namespace(1).expect("a namespace").used_blocks, 6);
    assert!(controller.identify(0, 2).is_err() || controller.namespace(2).is_err());
    assert_eq!(refused(controller.identify(0x7f, 1)), Status::INVALID_FIELD);
}

#[test]
fn the_health_page_says_what_status_says() {
    let target = target();
    let Connected { mut controller, mut queue, namespace } = target.connect();
    for round in 0..3 {
        queue.write(&namespace, 256 * round, pattern(round as u8, MIB)).expect("written");
        queue.read(&namespace, 256 * round, 256).expect("read");
    }
    let (page, status) = (controller.smart().expect("a page"), target.device.status().expect("the device is there"));
    assert_eq!(page[0], 0, "no warning");
    assert_eq!(u64_at(&page, 32), status.bytes(status.layer.host_read_sectors).div_ceil(512_000));
    assert_eq!(u64_at(&page, 48), status.bytes(status.layer.host_written_sectors).div_ceil(512_000));
    assert_eq!((u64_at(&page, 64), u64_at(&page, 80)), (status.requests.reads, status.requests.writes));
    assert_eq!((status.requests.reads, status.requests.writes), (3, 3));
    assert_eq!((page[3], page[4], page[5]), (100, 10, 0), "spare, its threshold, used");
    // Parts of a page, and what is none.
    let part = controller.log_page(&LogPage { offset: 64, ..LogPage::new(2, 32) }).expect("a part");
    assert_eq!(part, page[64..96]);
    assert_eq!(refused(controller.log_page(&LogPage::new(0x7e, 512))), Status::INVALID_LOG_PAGE);
    assert_eq!(refused(controller.log_page(&LogPage { offset: 2, ..LogPage::new(2, 32) })), Status::INVALID_FIELD);
}

#[test]
fn an_event_tells_that_the_health_changed() {
    let files = Drilled::new();
    let target = files.serve();
    let Connected { mut controller, mut queue, namespace } = target.connect();
    let event = controller.request_event().expect("room");
    queue.write(&namespace, 7, vec![1; 4096]).expect("written");
    queue.flush(&namespace).expect("flushed");
    target.drill(Drill::Rot { lba: 7, count: 1 });
    assert_eq!(refused(queue.read(&namespace, 7, 1)), Status::READ_ERROR);
    let told = controller.event(event).expect("an event");
    assert_eq!((told & 7, told >> 16 & 0xff), (1, 2), "of the health page");
    assert_ne!(controller.smart().expect("a page")[0], 0, "the warning");
    let log = controller.log_page(&LogPage::new(1, 64)).expect("the error log");
    assert_eq!((log[8], u64_at(&log, 16)), (1, 7), "queue and block");
    // Once written anew it is sound.
    queue.write(&namespace, 7, vec![2; 4096]).expect("written");
    assert_eq!(controller.smart().expect("a page")[0], 0);
}

#[test]
fn a_request_for_events_is_aborted_and_a_command_that_is_done_is_not() {
    let target = target();
    let Connected { mut controller, mut queue, namespace } = target.connect();
    let events: Vec<u16> = (0..4).map(|_| controller.request_event().expect("room")).collect();
    let fifth = controller.link().execute(Command::async_event_request()).expect("an end");
    assert_eq!(fifth.status, Status::EVENT_LIMIT);
    assert!(controller.abort(0, events[2]).expect("an answer"));
    let aborted = controller.link().wait_for(&[events[2]]).expect("an end");
    assert_eq!(aborted.status, Status::ABORTED);
    assert!(!controller.abort(0, events[2]).expect("an answer"), "it is gone");
    assert!(!controller.abort(1, 5).expect("an answer"));
    queue.flush(&namespace).expect("flushed");
    controller.keep_alive().expect("the others wait on");
}

#[test]
fn features_are_set_and_told_and_those_that_there_are_not_are_refused() {
    let target = target();
    let Connected { mut controller, .. } = target.connect();
    for (feature, value) in [(0x06, 0), (0x0b, 0x1ff), (0x0f, 5000)] {
        controller.set_feature(feature, value).expect("set");
        assert_eq!(controller.feature(feature).expect("a value"), value, "{feature:#x}");
    }
    for feature in [0x00, 0x10, 0x7f, 0xc0] {
        assert_eq!(refused(controller.feature(feature)).code(), Status::INVALID_FIELD.code(), "{feature:#x}");
        assert!(!refused(controller.set_feature(feature, 1)).is_success(), "{feature:#x}");
    }
    let read = nvme::Sqe::new(nvm::READ, 0, 1);
    let odd = controller.link().execute(Command::receiving(read, 4096)).expect("an end");
    assert!(!odd.status.is_success(), "I/O on the admin queue");
}

#[test]
fn a_discovery_controller_lists_the_subsystems_and_tells_of_changes() {
    let target = target();
    let mut discovery = host(1).connect(target.stream(), DISCOVERY_NQN, &ConnectOptions::default()).expect("connected");
    discovery.set_feature(0x0b, 1 << 31).expect("set");
    let before = discovery.discover().expect("a list");
    // Without an address of TCP there is none to list.
    assert!(before.entries.is_empty(), "{before:?}");
    let event = discovery.request_event().expect("room");
    // By then the target has looked for news in vain, which it does once a second.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    target.server.remove_export("test");
    assert_eq!(discovery.event(event).expect("an event") >> 16 & 0xff, 0x70);
    assert!(discovery.discover().expect("a list").generation > before.generation);
    discovery.disconnect().expect("shut down");
}

#[test]
fn over_tcp_the_list_says_where_the_subsystem_is() {
    let target = target();
    let address =
        target.server.listen(export::Listener::tcp("127.0.0.1:0".parse().expect("an address")).expect("a port"));
    let export::Address::Tcp(address) = address.expect("a thread") else { panic!("TCP") };
    let stream = || std::net::TcpStream::connect(address).expect("the server listens");
    let mut discovery = host(1).connect(stream(), DISCOVERY_NQN, &ConnectOptions::default()).expect("connected");
    let list = discovery.discover().expect("a list");
    let found: Vec<_> = list.entries.iter().filter(|entry| entry.subsystem == target.subsystem).collect();
    let [entry] = &found[..] else { panic!("{list:?}") };
    assert_eq!((entry.transport, entry.kind, entry.family), (3, 2, 1));
    assert_eq!((entry.address.as_str(), entry.service.clone()), ("127.0.0.1", address.port().to_string()));
    let mut controller = host(1).connect(stream(), &entry.subsystem, &ConnectOptions::default()).expect("connected");
    let namespace = controller.namespace(1).expect("a namespace");
    let mut queue = controller.io_queue(stream(), 1, 8).expect("a queue");
    queue.write(&namespace, 0, vec![3; 4096]).expect("written");
    assert_eq!(queue.read(&namespace, 0, 1).expect("read"), [3; 4096]);
}
