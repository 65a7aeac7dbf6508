//! Connections that break, devices that go, and what the handle says about it.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use device::AttachError;
use export::Listener;
use export::nbd::Options;
use export::{DetachError, Worker};

use crate::common::proto::command;
use crate::common::{self, Client, request, serve_default};

#[test]
fn abrupt_disconnects_with_requests_in_flight_harm_nobody() {
    let server = serve_default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            let mut client = server.go("");
            let mut rounds = 0u64;
            while !done.load(Ordering::Relaxed) || rounds < 100 {
                let offset = 32 * common::MIB + rounds % 64 * 4096;
                let data = [rounds as u8; 4096];
                assert_eq!(client.write(0, offset, &data), 0);
                assert_eq!(client.read(offset, 4096), data);
                rounds += 1;
            }
        });
        for round in 0..300u32 {
            let mut client = server.go("");
            let mut bytes = Vec::new();
            for number in 0..64 {
                if round % 2 == 0 {
                    bytes.extend(request(command::READ, 0, number, number * 65536, 65536));
                } else {
                    bytes.extend(request(command::WRITE, 0, number, number * 4096, 4096));
                    bytes.extend([7; 4096]);
                }
            }
            // Cut anywhere, also inside of a header or a payload.
            let len = if round % 3 == 0 { bytes.len() } else { bytes.len() - (round as usize * 37) % bytes.len() };
            client.put(&bytes[..len]);
            drop(client);
        }
        done.store(true, Ordering::Relaxed);
        bystander.join().expect("the bystander was served");
    });
    server.wait_for_clients(0);
}

#[test]
fn garbage_between_requests_closes_only_its_connection() {
    let server = serve_default();
    let mut bystander = server.go("");
    let mut hostile = server.go("");
    hostile.put(&[0xaa; 1000]);
    hostile.assert_closed();
    bystander.assert_works();
    server.wait_for_clients(1);
}

#[test]
fn a_half_closed_client_gets_its_answers() {
    let server = serve_default();
    let mut client = server.go("");
    for number in 0..10 {
        client.request(command::READ, 0, number, 0, 4096);
    }
    client.stream.shutdown(Shutdown::Write).expect("a connected socket");
    for _ in 0..10 {
        assert_eq!(client.reply().data.len(), 4096);
    }
    client.assert_closed();
}

#[test]
fn detach_refuses_while_clients_are_connected() {
    let server = serve_default();
    let mut client = server.go("");
    client.assert_works();
    let refused = server.device.detach(false);
    assert_eq!(refused, Err(DetachError::Clients { name: "test".into(), clients: 1 }));
    client.assert_works();
    drop(client);
    server.wait_for_clients(0);
    assert_eq!(server.device.detach(false), Ok(()));
    assert!(matches!(server.device.detach(false), Err(DetachError::Gone(_))));
    let gone = server.device.status().expect_err("detached");
    assert_eq!(gone.to_string(), "test: not attached any more; attach it again");
    assert!(server.device.flush().is_err() && server.device.clients().is_err());
}

#[test]
fn a_forced_detach_closes_clients_that_are_idle_dawdling_or_deaf() {
    let server = serve_default();
    let mut idle = server.go("");
    let mut dawdling = server.go("");
    dawdling.put(&request(command::WRITE, 0, 1, 0, 8 << 20));
    dawdling.put(&vec![1; 3 << 20]);
    let mut deaf = server.go("");
    for number in 0..64 {
        deaf.request(command::READ, 0, number, 0, 1 << 20);
    }
    // One write that began, and as many reads as fit into what a client may leave unread.
    server.wait_until(|clients| clients.iter().map(|client| client.requests).sum::<u64>() > 8);
    assert_eq!(server.device.detach(true), Ok(()));
    idle.assert_closed();
    dawdling.stream.write_all(&[1; 16]).expect_err("closed");
    // A client that comes now is told so, and may ask for another export.
    let mut late = server.connect();
    for name in ["", "ro"] {
        late.option(common::proto::option::GO, &common::info(name, &[]));
        assert_eq!(late.option_reply().kind, common::proto::reply::ERR_UNKNOWN);
    }
}

/// From the moment when a client may believe that it is connected, a detach must not believe otherwise.
#[test]
fn a_client_that_may_begin_counts_at_once() {
    let server = serve_default();
    for _ in 0..500 {
        let mut client = server.connect();
        client.go("");
        let refused = server.device.detach(false);
        assert_eq!(refused, Err(DetachError::Clients { name: "test".into(), clients: 1 }));
        client.assert_works();
        drop(client);
        server.wait_for_clients(0);
    }
    let seat = server.device.reserve().expect("attached");
    assert!(matches!(server.device.detach(false), Err(DetachError::Clients { clients: 1, .. })));
    drop(seat);
    // To ask what there is takes no seat.
    let mut asking = server.connect();
    asking.option(common::proto::option::INFO, &common::info("", &[]));
    while asking.option_reply().kind != common::proto::reply::ACK {}
    assert_eq!(server.device.detach(false), Ok(()));
    assert!(server.device.reserve().is_err());
}

/// CVE-2024-7409 (qemu): a client that kept its socket open while the server went away met state that was gone.
#[test]
fn clients_held_open_do_not_stop_a_server_from_closing() {
    let server = serve_default();
    let mut connected = server.go("");
    // The handshake's last answer may come before its thread has handed the connection over.
    connected.assert_works();
    let mut in_handshake = server.connect();
    let (device, path) = (server.device.clone(), server.path.clone());
    drop(server);
    assert!(!path.exists(), "the socket's file goes with the server");
    in_handshake.assert_closed();
    connected.assert_works();
    assert_eq!(device.detach(true), Ok(()));
    connected.assert_closed();
}

#[test]
fn a_device_without_handles_is_detached() {
    let (told, wait) = std::sync::mpsc::channel::<()>();
    let handle = Worker::spawn("orphan", move |_| {
        // Dropped when the thread ends.
        THREAD_END.with(|cell| *cell.borrow_mut() = Some(told));
        Ok(device::Device::memory(common::SIZE, 4096).expect("good sizes"))
    })
    .expect("a device in memory");
    drop(handle);
    assert!(wait.recv().is_err(), "the thread ended");
}

thread_local! {
    static THREAD_END: std::cell::RefCell<Option<std::sync::mpsc::Sender<()>>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn an_attach_that_fails_says_why() {
    let refused = Worker::spawn("broken", |_| {
        Err(AttachError::Foreign { path: "x".into(), found: "an ext4 file system".into() })
    });
    assert!(matches!(refused, Err(AttachError::Foreign { .. })));
}

#[test]
fn control_calls_run_beside_clients() {
    let server = serve_default();
    let mut client = server.go("");
    assert_eq!(server.device.info().expect("attached").bytes(), common::SIZE);
    assert_eq!(server.device.with_device(|device| device.info().sector_bytes), Ok(512));
    assert_eq!(server.device.flush(), Ok(()));
    server.device.status().expect("attached");
    client.assert_works();
}

#[test]
fn tcp_works_like_a_unix_socket() {
    let server = serve_default();
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let address = match server.server.listen(listener).expect("a thread") {
        export::Address::Tcp(address) => address,
        other => panic!("{other}"),
    };
    let mut client = Client::greeted(TcpStream::connect(address).expect("the server listens"));
    client.structured();
    client.go("");
    assert_eq!(client.write(0, 0, &[3; 4096]), 0);
    assert_eq!(client.read(0, 4096), [3; 4096]);
    let peer = server.device.clients().expect("attached")[0].peer.clone();
    assert_eq!(peer, client.stream.local_addr().expect("connected").to_string());
}

#[test]
fn a_dead_socket_file_is_replaced_and_a_live_one_is_not() {
    let server = serve_default();
    let error = Listener::unix(&server.path).expect_err("in use");
    assert!(error.to_string().contains(&server.path.display().to_string()), "{error}");
    let dead = server.path.with_extension("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).expect("a free path"));
    assert!(dead.exists());
    let server = export::nbd::Server::new(Options::default(), &std::sync::Arc::default()).expect("a server");
    server.listen(Listener::unix(&dead).expect("nobody listens there")).expect("a thread");
    drop(server);
    assert!(!dead.exists());
}
