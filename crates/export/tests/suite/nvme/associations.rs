//! Who may connect, with how many queues, and for how long.

use std::time::{Duration, Instant};

use device::{Device, Drill};
use nvme::Status;
use nvme::command::fabrics;
use nvme::fabrics::{ANY_CONTROLLER, Connect, DISCOVERY_NQN};
use nvme::initiator::{Command, ConnectOptions, Link, QueueOptions};

use super::harness::*;

fn asked(target: &Target) -> Connect {
    Connect {
        queue: 0,
        entries: 32,
        attributes: 0,
        keep_alive_ms: 0,
        host_id: [1; 16],
        controller: ANY_CONTROLLER,
        subsystem: target.subsystem.clone(),
        host: "nqn.2014-08.org.example:host1".into(),
    }
}

/// The first command of a connection, and how it ends.
fn first(target: &Target, command: Command) -> Status {
    let mut link = Link::connect(target.stream(), &QueueOptions::new(8)).expect("a server");
    link.execute(command).expect("an answer").status
}

#[test]
fn a_subsystem_that_there_is_not_may_come() {
    let target = target();
    let unknown = host(1).connect(target.stream(), "nqn.2026-11.org.openvsl:uuid:x", &ConnectOptions::default());
    let status = refused(unknown.map(drop));
    assert_eq!(status, Status::CONNECT_INVALID);
    assert_eq!(status.0 & Status::DNR, 0, "the host comes again");
}

#[test]
fn a_detached_device_may_come_back() {
    let target = target();
    let mut host = target.connect();
    target.device.detach(true).expect("detached");
    assert!(host.queue.flush(&host.namespace).is_err());
    let gone = refused(target.controller(&super::harness::host(1), &ConnectOptions::default()).map(drop));
    assert_eq!((gone, gone.0 & Status::DNR), (Status::CONNECT_INVALID, 0));
    target.server.remove_export("test");
    let gone = refused(target.controller(&super::harness::host(1), &ConnectOptions::default()).map(drop));
    assert_eq!((gone, gone.0 & Status::DNR), (Status::CONNECT_INVALID, 0));
}

#[test]
fn a_snapshot_is_a_subsystem_of_its_own_that_a_host_has_beside_the_device() {
    let target = target();
    let mut head = target.connect();
    head.queue.write(&head.namespace, 0, vec![1; 4096]).expect("written");
    let change = device::SnapshotChange::Create { name: "s".into(), created: 0 };
    target.device.with_device(move |device| device.change_snapshots(&change)).expect("attached").expect("made");
    head.queue.write(&head.namespace, 0, vec![2; 4096]).expect("written");

    let options = ConnectOptions::default();
    let named = |name: &str| host(1).connect(target.stream(), &format!("{}@{name}", target.subsystem), &options);
    let mut shown = named("s").expect("connected");
    let namespace = shown.namespace(1).expect("a namespace");
    let mut queue = shown.io_queue(target.stream(), 1, 8).expect("a queue");
    assert!(namespace.read_only && namespace.snapshot.is_some() && head.namespace.snapshot.is_none());
    assert_eq!(namespace.used_blocks, 1);
    assert_ne!(namespace.nguid, head.namespace.nguid);
    assert_eq!(queue.read(&namespace, 0, 1).expect("read"), [1; 4096]);
    queue.compare(&namespace, 0, vec![1; 4096]).expect("the same");
    assert_eq!(refused(queue.compare(&namespace, 0, vec![2; 4096])), Status::COMPARE_FAILED);
    assert_eq!(refused(queue.write(&namespace, 0, vec![3; 4096])), Status::WRITE_PROTECTED);
    head.queue.compare(&head.namespace, 0, vec![2; 4096]).expect("the device is still connected");
    let unknown = refused(named("t").map(drop));
    assert_eq!((unknown, unknown.0 & Status::DNR), (Status::CONNECT_INVALID, 0));
}

#[test]
fn only_listed_hosts_may_connect() {
    let target =
        serve(only("nqn.2014-08.org.example:host2\n"), false, |_| Ok(Device::memory(SIZE, 4096).expect("sizes")));
    target.connect_as(&host(2), &ConnectOptions::default());
    let refused_host = refused(target.controller(&host(1), &ConnectOptions::default()).map(drop));
    assert_eq!(refused_host, Status::CONNECT_HOST);
    let discovery = host(1).connect(target.stream(), DISCOVERY_NQN, &ConnectOptions::default());
    assert_eq!(refused(discovery.map(drop)), Status::CONNECT_HOST, "nor may they ask what there is");
}

#[test]
fn what_does_not_fit_in_a_connect_is_refused() {
    let target = target();
    let base = asked(&target);
    let one = |change: &dyn Fn(&mut Connect)| {
        let mut connect = base.clone();
        change(&mut connect);
        first(&target, Command::connect(&connect))
    };
    assert_eq!(one(&|_| {}), Status::SUCCESS);
    assert_eq!(one(&|connect| connect.controller = 5), Status::CONNECT_INVALID);
    assert_eq!(one(&|connect| connect.entries = 1), Status::CONNECT_INVALID);
    assert_eq!(one(&|connect| connect.entries = 65536), Status::CONNECT_INVALID);
    assert_eq!(one(&|connect| connect.subsystem = "x".into()), Status::CONNECT_INVALID);
    assert_eq!(one(&|connect| connect.host = "x".into()), Status::CONNECT_INVALID);
    assert_eq!(one(&|connect| connect.queue = 1), Status::CONNECT_INVALID, "of no controller");
    // Another command first, and a Connect without its data.
    assert_eq!(first(&target, Command::keep_alive()), Status::SEQUENCE_ERROR);
    let empty = Command::sending(base.entry(0), vec![0; 512]);
    assert_eq!(first(&target, empty), Status::SGL_LENGTH_INVALID);
    // A queue of somebody else's controller, one that is there already, and one too many.
    let mut host = target.connect();
    let queue = |change: &dyn Fn(&mut Connect)| {
        one(&|connect| {
            connect.controller = host.controller.cntlid();
            connect.queue = 2;
            change(connect);
        })
    };
    assert_eq!(queue(&|connect| connect.host_id = [2; 16]), Status::HOST_ID_INCONSISTENT);
    assert_eq!(queue(&|connect| connect.host = "nqn.2014-08.org.example:host2".into()), Status::HOST_ID_INCONSISTENT);
    assert_eq!(queue(&|connect| connect.queue = 1), Status::CONNECT_INVALID);
    assert_eq!(queue(&|connect| connect.queue = 65), Status::CONNECT_INVALID);
    assert_eq!(queue(&|_| {}), Status::SUCCESS);
    // A second Connect on a queue that is connected.
    let again = host.queue.link().execute(Command::connect(&base)).expect("an answer");
    assert!(!again.status.is_success());
    host.queue.flush(&host.namespace).expect("nothing happened to the others");
}

#[test]
fn two_hosts_have_controllers_of_their_own_and_one_device() {
    let target = target();
    let mut one = target.connect_as(&host(1), &ConnectOptions::default());
    let mut two = target.connect_as(&host(2), &ConnectOptions { flow_control: false, ..ConnectOptions::default() });
    assert_ne!(one.controller.cntlid(), two.controller.cntlid());
    one.queue.write(&one.namespace, 3, vec![1; 4096]).expect("written");
    assert_eq!(two.queue.read(&two.namespace, 3, 1).expect("read"), [1; 4096]);
    two.controller.set_feature(6, 0).expect("its cache is off");
    assert_eq!(one.controller.feature(6).expect("the cache"), 1, "a host's own matter");
    let hosts: Vec<String> = target
        .device
        .clients()
        .expect("the device is there")
        .iter()
        .filter_map(|client| client.nvme.as_ref().map(|nvme| nvme.host.clone()))
        .collect();
    assert_eq!(hosts.iter().filter(|host| host.ends_with("host1")).count(), 2, "{hosts:?}");
    one.controller.disconnect().expect("shut down");
    two.queue.flush(&two.namespace).expect("the other goes on");
}

#[test]
fn several_queues_serve_one_host_at_a_time() {
    let target = target();
    let mut host = target.connect();
    assert_eq!(host.controller.request_queues(8).expect("queues"), 8);
    let queues: Vec<_> =
        (2..=8).map(|qid| host.controller.io_queue(target.stream(), qid, 32).expect("a queue")).collect();
    target.wait_for_queues(9);
    let namespace = host.namespace;
    std::thread::scope(|scope| {
        for (number, mut queue) in (1u64..).zip(queues) {
            scope.spawn(move || {
                // As many writes at a time as the queue has, in and out of capsules, then all of them read.
                let link = queue.link();
                let place = |round: u64| number * 1024 + 8 * round;
                let data =
                    |round: u64| vec![(number + round) as u8; if round.is_multiple_of(3) { 32768 } else { 4096 }];
                for round in 0..100 {
                    if !link.has_room(1) {
                        assert!(link.wait().expect("an end").status.is_success());
                    }
                    link.submit(Command::write(&namespace, place(round), data(round))).expect("room");
                }
                while link.outstanding() > 0 {
                    assert!(link.wait().expect("an end").status.is_success());
                }
                for round in 0..100 {
                    let expected = data(round);
                    let count = (expected.len() / 4096) as u32;
                    assert_eq!(queue.read(&namespace, place(round), count).expect("read"), expected);
                }
            });
        }
    });
}

#[test]
fn a_silent_host_is_given_up_and_one_that_says_so_is_kept() {
    let target = target();
    let options = ConnectOptions { keep_alive_ms: 1000, ..ConnectOptions::default() };
    let silent = target.connect_as(&host(1), &options);
    let mut alive = target.connect_as(&host(2), &options);
    let began = Instant::now();
    while target.device.clients().expect("the device is there").len() > 2 {
        alive.controller.keep_alive().expect("it is kept");
        assert!(began.elapsed() < Duration::from_secs(60), "the silent host is never given up");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(began.elapsed() >= Duration::from_secs(1), "not before its time");
    alive.queue.flush(&alive.namespace).expect("it is kept");
    drop(silent);
}

#[test]
fn a_host_is_kept_and_answered_during_a_long_flush() {
    let files = Drilled::new();
    let target = files.serve();
    let options = ConnectOptions { keep_alive_ms: 1000, ..ConnectOptions::default() };
    let mut host = target.connect_as(&host(1), &options);
    host.queue.write(&host.namespace, 0, vec![1; 4096]).expect("written");
    target.drill(Drill::StallDie { die: 0, ms: 4000 });
    let link = host.queue.link();
    let flush = link.submit(Command::flush(1)).expect("room");
    link.send().expect("sent");
    link.stream_mut().set_nonblocking(true).expect("a socket option");
    let (began, mut answered) = (Instant::now(), 0);
    loop {
        match link.wait_for(&[flush]) {
            Ok(done) => break assert!(done.status.is_success()),
            Err(nvme::initiator::Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(other) => panic!("after {:?}: {other}", began.elapsed()),
        }
        host.controller.keep_alive().expect("answered");
        answered += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(answered > 0, "answered before the flush was");
    host.controller.keep_alive().expect("still there");
}

#[test]
fn a_reset_closes_the_io_queues_and_the_controller_may_be_enabled_again() {
    let target = target();
    let mut host = target.connect();
    let set = |value| Command::property_set(nvme::property::CC, value);
    let reset = host.controller.link().execute(set(0)).expect("an answer");
    assert!(reset.status.is_success());
    assert!(host.queue.flush(&host.namespace).is_err());
    target.wait_for_queues(1);
    let early = host.controller.io_queue(target.stream(), 1, 8);
    assert_eq!(refused(early.map(drop)), Status::SEQUENCE_ERROR);
    let enable = nvme::property::configuration::ENABLE | nvme::property::configuration::ENTRY_SIZES;
    host.controller.link().execute(set(enable)).expect("an answer");
    let mut queue = host.controller.io_queue(target.stream(), 1, 8).expect("a queue");
    queue.flush(&host.namespace).expect("flushed");
    queue.disconnect().expect("the queue ends alone");
    target.wait_for_queues(1);
    host.controller.keep_alive().expect("the controller is still there");
    let odd = nvme::Sqe::fabrics(fabrics::AUTHENTICATION_RECEIVE, 0);
    let odd = host.controller.link().execute(Command::bare(odd)).expect("an answer");
    assert!(!odd.status.is_success(), "nobody asked for it");
}
