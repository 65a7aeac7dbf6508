//! The NBD server as it runs, over a socket pair: a handshake, then requests cut, garbled, or left alone in the middle.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use device::{Device, MediaFormat};
use export::Worker;
use export::nbd::{Export, Options, Server};
use media::{Geometry, Memory};
use rustix::event::{PollFd, PollFlags, poll};

use super::wire::{Answers, command, option, plain};
use super::{Target, choices, wire};
use crate::choices::Choices;

pub const TARGET: Target = Target {
    name: "transmission",
    about: "the NBD server over a socket: requests, flags, ranges, payloads, structured replies, abrupt ends",
    weight: 10,
    corpus: choices,
    words: &[],
    run,
};

/// Size of the device, bytes. Small, so that its content does not count as memory that grows.
const BYTES: u64 = 2 << 20;
const SECTOR: u64 = 512;
/// Where no well-formed request of a hostile client goes.
const OURS: u64 = BYTES - 4096;

/// A server, and the thread that leads its handshakes.
struct Running {
    clients: Sender<UnixStream>,
    gone: Receiver<()>,
    witness: UnixStream,
    rounds: u8,
}

fn start() -> Running {
    let device = Worker::spawn("hostile", |_| {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 64,
            pages_per_block: 4,
            slots_per_page: 32,
            sector_bytes: SECTOR as u32,
            trailer_bytes: ftl::TRAILER_BYTES,
            unit_bytes: 4096,
        };
        let mut media = Memory::new(geometry);
        let format = MediaFormat {
            sectors: BYTES / SECTOR,
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
    let server = Server::new(Options::default(), &std::sync::Arc::default()).expect("a server");
    let export = Export { name: String::new(), description: "x".into(), read_only: false, device };
    server.add_export(Export { name: "disk".into(), ..export.clone() });
    server.add_export(Export { name: "ro".into(), read_only: true, ..export.clone() });
    server.add_export(export);
    let (clients, waiting) = channel::<UnixStream>();
    let (told, gone) = channel();
    let (witness, other) = UnixStream::pair().expect("a socket pair");
    let served = server.clone();
    std::thread::spawn(move || served.serve_connected(other.into(), "the witness"));
    std::thread::spawn(move || {
        for client in waiting {
            server.serve_connected(client.into(), "a fuzzer");
            if told.send(()).is_err() {
                return;
            }
        }
    });
    let mut running = Running { clients, gone, witness, rounds: 0 };
    let mut hello = 3u32.to_be_bytes().to_vec();
    plain(&mut hello, option::GO, &[0; 6]);
    running.witness.write_all(&hello).expect("connected");
    // The greeting, the export, the sizes, the end.
    let mut answer = [0; 18 + 20 + 12 + 20 + 14 + 20];
    running.witness.read_exact(&mut answer).expect("an answer");
    running
}

impl Running {
    /// Writes and reads something: a client that behaves is served as ever.
    fn witness(&mut self) {
        self.rounds = self.rounds.wrapping_add(1);
        let data = [self.rounds; 4096];
        let mut bytes = request(0, command::WRITE, 1, OURS, 4096);
        bytes.extend(data);
        bytes.extend(request(0, command::READ, 2, OURS, 4096));
        self.witness.write_all(&bytes).expect("the witness is connected");
        let mut answer = vec![0; 16 + 16 + 4096];
        self.witness.read_exact(&mut answer).expect("the witness is answered");
        assert!(answer[4..8] == [0; 4] && answer[20..24] == [0; 4] && answer[32..] == data, "the witness' data");
    }
}

fn request(flags: u16, kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// What the client sends, and what it expects if nothing of it was garbled.
struct Script {
    bytes: Vec<u8>,
    structured: bool,
    /// By cookie: the request's kind and length.
    asked: BTreeMap<u64, (u16, u32)>,
    sound: bool,
}

fn script(choices: &mut Choices) -> Script {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    let structured = choices.below(2) == 0;
    let mut sound = true;
    if structured {
        plain(&mut bytes, option::STRUCTURED_REPLY, &[]);
    }
    let name = choices.pick(&["disk", "ro"]);
    let mut string = (name.len() as u32).to_be_bytes().to_vec();
    string.extend(name.as_bytes());
    if choices.below(2) == 0 {
        let contexts = b"\0\0\0\x01\0\0\0\x0fbase:allocation";
        plain(&mut bytes, option::SET_META_CONTEXT, &[&string[..], contexts].concat());
    }
    if choices.one_in(8) {
        wire::option(choices, &mut bytes);
        sound = false;
    }
    plain(&mut bytes, option::GO, &[&string[..], &[0, 0]].concat());
    let mut asked = BTreeMap::new();
    for cookie in 0..200 {
        if choices.is_over() {
            break;
        }
        let kind = if choices.one_in(24) { choices.u16() } else { choices.below(9) as u16 };
        if kind == command::DISC {
            bytes.extend(request(0, kind, cookie, 0, 0));
            break;
        }
        let flags = if choices.one_in(4) { 1 << choices.below(16) } else { 0 };
        let mut offset = choices.below((OURS / SECTOR) as usize) as u64 * SECTOR;
        let mut len = (choices.below(33) as u64 * SECTOR).min(OURS - offset) as u32;
        if choices.one_in(12) {
            len = (choices.below(1 << 13) as u64 * SECTOR).min(OURS - offset) as u32;
        }
        if choices.one_in(10) {
            // Never inside of what is the witness'.
            offset = choices.hostile(offset);
            if offset < BYTES {
                offset += BYTES;
            }
        }
        if choices.one_in(10) {
            len = choices.hostile(u64::from(len)) as u32;
            offset = if offset.saturating_add(len.into()) > OURS { offset.saturating_add(BYTES) } else { offset };
        }
        if kind == command::FLUSH && !choices.one_in(4) {
            (offset, len) = (0, 0);
        }
        bytes.extend(request(flags, kind, cookie, offset, len));
        if kind == command::WRITE {
            let whole = len as usize <= 64 << 10;
            bytes.resize(bytes.len() + (len as usize).min(64 << 10), cookie as u8);
            if !whole {
                sound = false;
                break;
            }
        }
        asked.insert(cookie, (kind, len));
    }
    if choices.one_in(6) {
        bytes.extend(choices.raw(64));
        sound = false;
    }
    if choices.one_in(6) {
        bytes.truncate(choices.below(bytes.len() + 1));
        sound = false;
    }
    Script { bytes, structured, asked, sound }
}

/// Sends what the client says while taking what the server answers. With `abrupt`, hangs up instead of waiting for the end.
fn exchange(mut socket: UnixStream, mut bytes: &[u8], abrupt: bool) -> Vec<u8> {
    socket.set_nonblocking(true).expect("a socket option");
    let mut answers = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    if bytes.is_empty() {
        socket.shutdown(Shutdown::Write).expect("a connected socket");
    }
    loop {
        let flags = if bytes.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        poll(&mut [PollFd::new(&socket, flags)], None).expect("a poll");
        if !bytes.is_empty() {
            match socket.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => bytes = &[],
            }
            if bytes.is_empty() {
                if abrupt {
                    return answers;
                }
                // The server may have hung up already.
                let _ = socket.shutdown(Shutdown::Write);
            }
        }
        match socket.read(&mut buffer) {
            Ok(0) => return answers,
            Ok(count) => answers.extend(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return answers,
        }
    }
}

/// Every request is answered once, in its form.
fn check(script: &Script, answers: &[u8]) {
    let mut answers = Answers(answers);
    answers.take(18).expect("a greeting");
    while answers.option_reply().expect("a reply") != (option::GO, wire::reply::ACK) {}
    let mut open = script.asked.clone();
    while !answers.0.is_empty() {
        let magic = answers.u32().expect("a magic");
        let cookie = if magic == 0x6744_6698 {
            let error = answers.u32().expect("an error");
            let cookie = answers.u64().expect("a cookie");
            let (kind, len) = open.get(&cookie).copied().expect("a cookie that is waited for");
            assert!(!script.structured || kind != command::READ, "a simple reply to a structured read");
            assert!([0, 1, 5, 22, 28, 95].contains(&error), "error {error}");
            if kind == command::READ && error == 0 {
                answers.take(len as usize).expect("the data");
            }
            cookie
        } else {
            assert_eq!(magic, 0x668e_33ef, "the magic of a structured reply");
            assert!(script.structured, "a structured reply that was not asked for");
            let (flags, _chunk, cookie) = (answers.u16(), answers.u16(), answers.u64());
            let len = answers.u32().expect("a length");
            answers.take(len as usize).expect("a payload");
            assert_eq!(flags, Some(1), "the last chunk of its reply");
            cookie.expect("a cookie")
        };
        assert!(open.remove(&cookie).is_some(), "cookie {cookie} was not asked or is answered twice");
    }
    assert!(open.is_empty(), "never answered: {open:?}");
}

fn run(input: &[u8]) {
    static RUNNING: OnceLock<Mutex<Running>> = OnceLock::new();
    let running = RUNNING.get_or_init(|| Mutex::new(start()));
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let choices = &mut Choices::new(input);
    let script = script(choices);
    let abrupt = choices.one_in(4);
    let (client, server) = UnixStream::pair().expect("a socket pair");
    running.clients.send(server).expect("a thread that serves");
    let answers = exchange(client, &script.bytes, abrupt);
    running.gone.recv().expect("a thread that serves");
    if script.sound && !abrupt {
        check(&script, &answers);
    }
    if choices.one_in(8) || input.len().is_multiple_of(8) {
        running.witness();
    }
}
