//! Hosts that have to prove who they are.

use std::os::unix::net::UnixStream;

use device::Device;
use nvme::auth::{Group, Hash, Keys, MESSAGE_BYTES, Names, Policy, Requester, SystemEntropy};
use nvme::command::nvm;
use nvme::fabrics::{ANY_CONTROLLER, Connect};
use nvme::initiator::{Command, ConnectOptions, Error, Host, Link, QueueOptions};
use nvme::{Data, Status};

use super::harness::*;

const SECRET: &str = "DHHC-1:01:jRVi0px0rkMlhTcYN568MExDVMaZdb6HCY3EbpKviWrHzzt0:";
const OTHER: &str = "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU:";

/// A server whose host 1 has to prove who it is, host 2 as well and gets a proof, and host 3 does not have to.
fn guarded() -> Target {
    let name = |number: u8| format!("nqn.2014-08.org.example:host{number}");
    let hosts = format!("{} {SECRET}\n{} {SECRET} {OTHER}\n{}\n", name(1), name(2), name(3));
    serve(only(&hosts), false, |_| Ok(Device::memory(SIZE, 4096).expect("good sizes")))
}

fn keys(host: &str, controller: Option<&str>) -> Keys {
    Keys { host: host.parse().expect("a secret"), controller: controller.map(|text| text.parse().expect("a secret")) }
}

fn connect(target: &Target, host: &Host) -> Result<Connected, Error> {
    let mut controller = target.controller(host, &ConnectOptions::default())?;
    let namespace = controller.namespace(1)?;
    let queue = controller.io_queue(target.stream(), 1, 16)?;
    Ok(Connected { controller, queue, namespace })
}

#[test]
fn a_host_with_its_secret_gets_in_on_every_queue() {
    let target = guarded();
    for hash in Hash::ALL {
        for group in [Group::Null, Group::Ffdhe2048] {
            let policy = Policy { hashes: vec![hash], groups: vec![group] };
            for (number, controller) in [(1, None), (2, Some(OTHER))] {
                let host = host(number).with_keys(keys(SECRET, controller), policy.clone());
                let mut connected = connect(&target, &host).expect("it has the secret");
                connected.queue.write(&connected.namespace, 0, vec![1; 4096]).expect("written");
                connected.controller.disconnect().expect("shut down");
            }
        }
    }
    connect(&target, &host(3)).expect("it needs none");
}

#[test]
fn a_host_without_it_stays_out_and_so_does_a_controller() {
    let target = guarded();
    let tries = [
        host(1),
        host(1).with_keys(keys(OTHER, None), Policy::default()),
        // The controller has another secret than the host believes, or none.
        host(2).with_keys(keys(SECRET, Some(SECRET)), Policy::default()),
        host(1).with_keys(keys(SECRET, Some(OTHER)), Policy::default()),
    ];
    for host in tries {
        assert!(matches!(connect(&target, &host), Err(Error::Unauthenticated(_))), "{host:?}");
    }
    target.wait_for_queues(0);
}

fn asked(target: &Target, queue: u16, controller: u16) -> Connect {
    Connect {
        queue,
        entries: 32,
        attributes: 0,
        keep_alive_ms: 0,
        host_id: [1; 16],
        controller,
        subsystem: target.subsystem.clone(),
        host: "nqn.2014-08.org.example:host1".into(),
    }
}

/// A queue that is connected, and not authenticated yet.
fn half_way(target: &Target, queue: u16, controller: u16) -> Link<UnixStream> {
    let mut link = Link::connect(target.stream(), &QueueOptions::new(8)).expect("a server");
    let done = link.execute(Command::connect(&asked(target, queue, controller))).expect("an answer");
    assert!(done.status.is_success() && done.result & nvme::fabrics::AUTHENTICATION_REQUIRED != 0);
    link
}

/// Proves host 1 on it.
fn prove(target: &Target, link: &mut Link<UnixStream>) {
    let names = Names { host: "nqn.2014-08.org.example:host1".into(), subsystem: target.subsystem.clone() };
    let entropy = Box::new(SystemEntropy::default());
    let mut requester = Requester::new(keys(SECRET, None), names, Policy::default(), entropy);
    let mut say = |message| link.execute(Command::authentication_send(message)).map(drop).expect("taken");
    say(requester.negotiate());
    let receive = || Command::authentication_receive(MESSAGE_BYTES as u32);
    let challenge = link.execute(receive()).expect("a challenge").data;
    link.execute(Command::authentication_send(requester.challenged(&challenge).expect("a reply"))).expect("taken");
    let answer = link.execute(receive()).expect("an answer").data;
    assert_eq!(requester.answered(&answer), Ok(None));
}

#[test]
fn before_it_has_proven_itself_a_queue_does_nothing() {
    let target = guarded();
    let admin = Command::property_get(nvme::property::CAP, true);
    let read = nvme::Sqe::new(nvm::READ, 0, 1).with_data(Data::Transport(4096));
    for command in [admin, Command::receiving(read, 4096), Command::keep_alive()] {
        let mut link = half_way(&target, 0, ANY_CONTROLLER);
        if let Ok(done) = link.execute(command) {
            assert!(!done.status.is_success(), "{done:?}");
        }
    }
    target.wait_for_queues(0);
}

#[test]
fn whoever_knows_a_name_only_ends_nobodys_association() {
    let target = guarded();
    let mut owner = connect(&target, &host(1).with_keys(keys(SECRET, None), Policy::default())).expect("let in");
    let mut stranger = half_way(&target, 0, ANY_CONTROLLER);
    assert!(connect(&target, &host(1).with_keys(keys(OTHER, None), Policy::default())).is_err());
    owner.queue.write(&owner.namespace, 0, vec![1; 4096]).expect("the association goes on");
    // Once it has proven itself, it has come again.
    prove(&target, &mut stranger);
    target.wait_for_queues(1);
    assert!(owner.queue.flush(&owner.namespace).is_err());
}

#[test]
fn a_queue_that_is_still_proving_itself_ends_with_its_association() {
    let target = guarded();
    let host = host(1).with_keys(keys(SECRET, None), Policy::default());
    let old = connect(&target, &host).expect("let in");
    let mut queue = half_way(&target, 2, old.controller.cntlid());
    let mut admin = half_way(&target, 0, ANY_CONTROLLER);
    let mut new = connect(&target, &host).expect("let in");
    new.queue.write(&new.namespace, 0, vec![2; 4096]).expect("written");
    prove(&target, &mut queue);
    prove(&target, &mut admin);
    let late = Command::write(&new.namespace, 0, vec![1; 4096]);
    if let Ok(done) = queue.execute(late) {
        assert_ne!(done.status, Status::SUCCESS);
    }
    assert!(admin.execute(Command::property_get(nvme::property::CAP, true)).is_err());
    assert_eq!(new.queue.read(&new.namespace, 0, 1).expect("read"), [2; 4096]);
    target.wait_for_queues(2);
}

#[test]
fn a_queue_that_is_still_proving_itself_ends_with_a_reset() {
    let target = guarded();
    let host = host(1).with_keys(keys(SECRET, None), Policy::default());
    let mut host = connect(&target, &host).expect("let in");
    let mut queue = half_way(&target, 2, host.controller.cntlid());
    for value in [0, nvme::property::configuration::ENABLE | nvme::property::configuration::ENTRY_SIZES] {
        let set = Command::property_set(nvme::property::CC, value);
        assert!(host.controller.link().execute(set).expect("an answer").status.is_success());
    }
    prove(&target, &mut queue);
    assert!(queue.execute(Command::flush(1)).is_err(), "a queue from before the reset");
    let mut queue = half_way(&target, 2, host.controller.cntlid());
    prove(&target, &mut queue);
    assert!(queue.execute(Command::flush(1)).expect("an answer").status.is_success(), "one of after it");
}

#[test]
fn of_two_that_prove_themselves_for_the_same_queue_one_gets_it() {
    let target = guarded();
    let host = host(1).with_keys(keys(SECRET, None), Policy::default());
    let host = connect(&target, &host).expect("let in");
    let [mut first, mut second] = [(); 2].map(|()| half_way(&target, 2, host.controller.cntlid()));
    prove(&target, &mut second);
    prove(&target, &mut first);
    assert!(second.execute(Command::flush(1)).expect("an answer").status.is_success());
    assert!(first.execute(Command::flush(1)).is_err(), "the queue is there already");
    target.wait_for_queues(3);
}
