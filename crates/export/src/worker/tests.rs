//! A worker whose rounds are made by hand.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use device::{Device, Setting};

use super::*;
use crate::clients::{Clients, Ticket};
use crate::link::Arrival;
use crate::nbd;
use crate::nbd::request::Limits;
use crate::transport::Transport;

const MIB: usize = 1 << 20;
/// Bytes of the device, and of the memory that clients share.
const BYTES: usize = 4 * MIB;

/// A worker on a device in memory with so many clients, and what rings its bell.
pub(crate) fn worker_with(count: usize) -> (Worker, Vec<UnixStream>, Sender<Call>) {
    let (sender, calls) = mailbox().expect("an eventfd");
    let seats = Seats::default();
    let memory = |_: &SharedRing| Ok(Device::memory(BYTES as u64, 4096).expect("good sizes").into());
    let mut worker = Worker::start("test".into(), calls, seats.clone(), memory, |error| no_thread("test", &error))
        .expect("a device in memory");
    let shared = Arc::new(Clients::new(BYTES));
    let limits = Limits {
        bytes: BYTES as u64,
        sector_bytes: 4096,
        max_request_bytes: 1 << 20,
        read_only: false,
        structured: false,
        has_contexts: false,
        view: None,
    };
    let clients = (0..count)
        .map(|_| {
            let (client, server) = UnixStream::pair().expect("sockets");
            let arrival = Arrival {
                transport: Transport::new(server.into(), None),
                peer: String::new(),
                export: String::new(),
                ticket: Ticket::new(&shared),
                seat: seats.take().expect("open"),
            };
            worker.add_connection(NewConnection {
                arrival,
                session: Session::Nbd(nbd::Session::new(limits, Vec::new())),
            });
            client
        })
        .collect();
    (worker, clients, sender)
}

/// Reads of what is on the medium are not answered on the spot.
fn fill(worker: &mut Worker) {
    for lba in (0..BYTES / 4096).step_by(256) {
        let write = Io::Write { lba: lba as u64, data: &[7; MIB], fua: false };
        assert!(!matches!(worker.served().submit(0, write), Submitted::Busy(_)));
    }
    assert!(!matches!(worker.served().submit(0, Io::Flush), Submitted::Busy(_)));
    worker.poll_device();
}

fn read(offset: usize, len: usize) -> [u8; 28] {
    let mut request = [0; 28];
    request[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
    request[16..24].copy_from_slice(&(offset as u64).to_be_bytes());
    request[24..].copy_from_slice(&(len as u32).to_be_bytes());
    request
}

fn serve(worker: &mut Worker) {
    for (key, connection) in &mut worker.connections {
        connection.serve(key, &mut worker.core);
    }
}

impl Worker {
    fn read_bytes(&self) -> usize {
        self.connections.iter().map(|(_, one)| one.link.counters.read_bytes as usize).sum()
    }
}

#[test]
fn clients_have_no_more_requests_with_the_device_at_once_than_its_queue_depth() {
    const EACH: usize = 16;
    for (depth, most) in [(None, 2 * EACH), (Some(1), 1), (Some(5), 5)] {
        let (mut worker, mut clients, _sender) = worker_with(2);
        worker.device().expect("a device").set(&[Setting::QueueDepth(depth)]).expect("a good depth");
        fill(&mut worker);
        for client in &mut clients {
            for number in 0..EACH {
                client.write_all(&read(number * 4096, 4096)).expect("the server takes it");
            }
        }
        for (_, connection) in &mut worker.connections {
            assert!(connection.link.take_now(28 * EACH));
        }
        let mut left = 2 * EACH;
        while left > 0 {
            serve(&mut worker);
            assert_eq!(worker.core.jobs.len(), most.min(left), "of {left}, depth {depth:?}");
            worker.poll_device();
            left = 2 * EACH - worker.read_bytes() / 4096;
        }
    }
}

/// A read that is larger than the device takes in one has room taken for it once, however often it must wait for its turn.
#[test]
fn a_large_read_that_waits_for_the_queue_depth_takes_its_room_once() {
    let (mut worker, mut clients, _sender) = worker_with(2);
    fill(&mut worker);
    worker.device().expect("a device").set(&[Setting::QueueDepth(Some(1))]).expect("a good depth");
    clients[0].write_all(&read(0, 4096)).expect("the server takes it");
    clients[1].write_all(&read(0, BYTES)).expect("the server takes it");
    for (_, connection) in &mut worker.connections {
        assert!(connection.link.take_now(28));
    }
    for _ in 0..100 {
        serve(&mut worker);
        assert_eq!(worker.core.jobs.len(), 1);
    }
    while worker.read_bytes() < 4096 + BYTES {
        worker.poll_device();
        serve(&mut worker);
    }
}
