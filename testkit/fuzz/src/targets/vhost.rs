//! A device as the disk of a virtual machine whose guest, or whose front end, means ill: descriptor chains, indices, memory that
//! changes under requests, and messages.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use device::{Device, MediaFormat};
use export::vhost::proto::command;
use export::vhost::{Options, Server};
use export::{Clients, Worker};
use media::{Geometry, Memory};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo};

use super::{Target, choices};
use crate::choices::Choices;
use crate::runner::count;

#[path = "../../../../crates/export/tests/suite/guest.rs"]
mod guest;

use guest::{DATA, Guest, INDIRECT, MEMORY, NEXT, SIZE, WRITE};

pub const TARGET: Target = Target {
    name: "vhost",
    about: "a virtual machine's disk: descriptor chains, rings, memory tables and messages of hostile guests",
    weight: 10,
    corpus: choices,
    words: &[],
    run,
};

/// Size of the device, bytes. Small, so that its content does not count as memory that grows.
const BYTES: u64 = 2 << 20;
/// Where indirect tables stand.
const TABLES: u64 = DATA + 0x8000;
/// Chains of one input, at most: half of the queue, so that two rounds never share a descriptor by honest means.
const CHAINS: u16 = 64;
/// How long a round may take.
const PATIENCE: Duration = Duration::from_secs(30);

struct Running {
    server: Arc<Server>,
    guest: Guest,
}

fn serve() -> Server {
    let device = Worker::spawn("hostile", |_| {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 64,
            pages_per_block: 4,
            slots_per_page: 32,
            sector_bytes: 512,
            trailer_bytes: ftl::TRAILER_BYTES,
            unit_bytes: 4096,
        };
        let mut media = Memory::new(geometry);
        let format = MediaFormat {
            sectors: BYTES / 512,
            max_request_bytes: 16 << 10,
            checkpoint_interval: 2048,
            policy: ftl::Policy::default(),
            uuid: uuid::Uuid::from_u128(1),
            key: None,
        };
        Device::format_media(&mut media, &format).expect("sizes that fit together");
        Device::on_media(Box::new(media), false)
    });
    let device = device.expect("a device in memory");
    Server::new("disk", device, Options::default(), &Arc::new(Clients::default())).expect("a server")
}

fn connect(server: &Arc<Server>) -> UnixStream {
    let (client, other) = UnixStream::pair().expect("a socket pair");
    let server = Arc::clone(server);
    std::thread::spawn(move || server.serve_connected(other.into(), "a fuzzer"));
    client
}

/// Starts a machine anew, with one empty queue and an in-flight region. Its memory stays: to make and map it takes longer than a
/// round of chains.
fn restart(server: &Arc<Server>, guest: &mut Guest) {
    // There is one front end at a time.
    hang_up(guest);
    guest.put(guest.queues[0].base, &[0; 0x1_0000]);
    (guest.queues[0].available, guest.queues[0].used) = (0, 0);
    let _ = guest.queues[0].err.read();
    guest.region = None;
    guest.frontend = guest::frontend(connect(server));
    guest.negotiate(u64::MAX);
    guest.track();
    guest.run().expect("started");
}

fn below(choices: &mut Choices, limit: u64) -> u64 {
    choices.below(limit as usize) as u64
}

/// Ends the guest's connection.
fn hang_up(guest: &mut Guest) {
    let (other, _) = UnixStream::pair().expect("a socket pair");
    guest.frontend = guest::frontend(other);
}

/// An address: in the guest, at an edge of it, or nowhere.
fn address(choices: &mut Choices) -> u64 {
    match below(choices, 8) {
        0 => MEMORY - below(choices, 64),
        1 => choices.hostile(0),
        2 => below(choices, 0x1_0000),
        3 => TABLES + 16 * below(choices, 256),
        _ => DATA + 512 * below(choices, 4096),
    }
}

fn bytes(choices: &mut Choices) -> u32 {
    match below(choices, 6) {
        0 => choices.hostile(0) as u32,
        1 => 1,
        2 => 16,
        3 => 16 * below(choices, 40) as u32,
        _ => 512 * (1 + below(choices, 64)) as u32,
    }
}

fn index(choices: &mut Choices) -> u16 {
    if choices.one_in(16) { choices.hostile(0) as u16 } else { below(choices, u64::from(SIZE)) as u16 }
}

fn descriptor(choices: &mut Choices) -> guest::Descriptor {
    let flags = match below(choices, 8) {
        0 => choices.byte().into(),
        1 => INDIRECT,
        2 | 3 => WRITE,
        4 => WRITE | NEXT,
        _ => NEXT,
    };
    (address(choices), bytes(choices), flags, index(choices))
}

/// A request that is almost one: a header, data and a status, each of which may be wrong.
fn request(choices: &mut Choices, guest: &mut Guest, head: u16) {
    let known = [command::IN, command::OUT, command::FLUSH, command::GET_ID, command::DISCARD, command::WRITE_ZEROES];
    let kind = if choices.one_in(16) { choices.hostile(0) as u32 } else { choices.pick(&known) };
    let sector = if choices.one_in(8) { choices.hostile(0) } else { below(choices, BYTES / 512) };
    let at = DATA + 0x20_0000 + u64::from(head) * 0x1000;
    guest.header(at, kind, sector);
    guest.put(at + 16, &sector.to_le_bytes());
    guest.put(at + 24, &(1 + choices.byte() as u32).to_le_bytes());
    guest.put(at + 28, &(below(choices, 3) as u32).to_le_bytes());
    let mut parts = vec![(at, if choices.one_in(16) { bytes(choices) } else { 16 }, 0)];
    for _ in 0..below(choices, 4) {
        let direction = if kind == command::IN || choices.one_in(16) { WRITE } else { 0 };
        let (address, bytes) = if choices.one_in(8) {
            (address(choices), bytes(choices))
        } else if kind >= command::DISCARD {
            (at + 16, 16)
        } else {
            (DATA + 512 * below(choices, 4096), 512 * (1 + below(choices, 32)) as u32)
        };
        parts.push((address, bytes, direction));
    }
    if !choices.one_in(16) {
        parts.push((at + 0x800, 1, WRITE));
    }
    if choices.one_in(4) {
        let table = TABLES + 0x4000 + u64::from(head) * 0x100;
        for (number, (address, bytes, flags)) in (0u16..).zip(&parts) {
            let more = if usize::from(number) + 1 < parts.len() { NEXT } else { 0 };
            guest.describe(table, number, (*address, *bytes, flags | more, number + 1));
        }
        guest.describe(guest.queues[0].base, head, (table, 16 * parts.len() as u32, INDIRECT, 0));
    } else {
        guest.chain(0, head, &parts);
    }
}

/// One round of chains: each is answered, or the connection is closed.
fn chains(choices: &mut Choices, running: &mut Running) {
    let Running { server, guest } = running;
    let (mut honest, mut offered) = (true, 0);
    for number in 0..=below(choices, u64::from(CHAINS)) as u16 {
        // Far enough apart for the longest of them.
        let head = number * 6 % (SIZE - 8);
        if choices.one_in(4) {
            for place in 0..below(choices, 6) as u16 {
                let told = descriptor(choices);
                guest.describe(0, (head + place) % SIZE, told);
            }
            let table = TABLES + 16 * below(choices, 256);
            let told = descriptor(choices);
            guest.describe(table, 0, told);
        } else {
            request(choices, guest, head);
        }
        let head = if choices.one_in(64) { index(choices) } else { head };
        guest.offer(0, head);
        offered += 1;
        if number * 6 >= SIZE - 8 {
            break;
        }
    }
    if choices.one_in(64) {
        honest = false;
        guest.claim(0, choices.hostile(0) as u16);
    }
    guest.kick(0);
    // While it is at work: descriptors, data and the memory table change.
    for _ in 0..below(choices, 8) {
        let (at, told) = (index(choices) % SIZE, descriptor(choices));
        guest.describe(0, at, told);
        guest.put(DATA + 512 * below(choices, 4096), &[choices.byte(); 512]);
    }
    if choices.one_in(8) {
        let extra = VhostUserMemoryRegionInfo {
            guest_phys_addr: 1 << 32,
            userspace_addr: 1 << 45,
            mmap_offset: 512 * below(choices, 3),
            ..guest.table()
        };
        let table = if choices.one_in(4) { vec![extra] } else { vec![guest.table(), extra] };
        // It may be refused, and the connection closed.
        let _ = guest.frontend.set_mem_table(&table);
        let _ = guest.frontend.set_mem_table(&[guest.table()]);
    }
    let began = Instant::now();
    let closed = loop {
        if guest.queues[0].err.read().is_ok() || guest.frontend.get_features().is_err() {
            break true;
        }
        if guest.used_idx(0) == guest.queues[0].available {
            break false;
        }
        assert!(!honest || began.elapsed() < PATIENCE, "a chain is neither answered nor refused");
        if !honest && began.elapsed() > Duration::from_millis(5) {
            break true;
        }
    };
    // Those that were answered, and the one that closed the queue.
    let answered = u64::from(guest.used_idx(0).wrapping_sub(guest.queues[0].used)) + u64::from(closed);
    count(answered.min(offered), "descriptor chains");
    guest.queues[0].used = guest.used_idx(0);
    if closed {
        restart(server, guest);
    }
}

/// Messages that are almost what a front end says.
fn messages(choices: &mut Choices, running: &mut Running) {
    let Running { server, guest } = running;
    hang_up(guest);
    let mut stream = connect(server);
    let file = guest::memory_file(4096);
    for _ in 0..below(choices, 24) {
        let size = if choices.one_in(4) { choices.hostile(0) as u32 } else { choices.pick(&[0, 8, 16, 24, 40, 44]) };
        let mut message = u32::from(choices.byte() % 48).to_le_bytes().to_vec();
        message.extend(u32::from(choices.pick(&[1u8, 9, 5, 0])).to_le_bytes());
        message.extend(size.to_le_bytes());
        for _ in 0..size.min(64) / 4 {
            let word = if choices.one_in(2) { below(choices, 4) as u32 } else { choices.hostile(0) as u32 };
            message.extend(word.to_le_bytes());
        }
        let sent = if choices.one_in(4) {
            send_with(&stream, &message, file.as_raw_fd())
        } else {
            stream.write_all(&message).is_ok()
        };
        if !sent {
            break;
        }
    }
    // Whatever it answered is thrown away; it must end when the socket does.
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    let _ = stream.read(&mut [0; 4096]);
    drop(stream);
    restart(server, guest);
}

/// Sends bytes with a descriptor.
fn send_with(stream: &UnixStream, bytes: &[u8], fd: i32) -> bool {
    use vmm_sys_util::sock_ctrl_msg::ScmSocket;
    stream.send_with_fd(bytes, fd).is_ok()
}

fn run(input: &[u8]) {
    static RUNNING: OnceLock<Mutex<Running>> = OnceLock::new();
    let running = RUNNING.get_or_init(|| {
        let server = Arc::new(serve());
        let mut guest = Guest::over(connect(&server), 1);
        restart(&server, &mut guest);
        Mutex::new(Running { server, guest })
    });
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let choices = &mut Choices::new(input);
    if choices.one_in(32) {
        messages(choices, &mut running);
    }
    chains(choices, &mut running);
    if choices.one_in(16) {
        // A guest that behaves is served as ever.
        let Running { server, guest } = &mut *running;
        restart(server, guest);
        assert_eq!(guest.ask(0, command::GET_ID, 0, &[], 20), (0, b"00000000000000000000".to_vec()));
        guest.write(0, &[choices.byte(); 512]);
    }
}
