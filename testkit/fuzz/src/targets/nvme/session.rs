//! The NVMe server as it runs, over a socket pair: a handshake, then commands and data cut, garbled, or left alone in the middle. Of two
//! devices, one of which has zones.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use device::{Device, MediaFormat, ZoneShape};
use export::Worker;
use export::nvme::{Export, Options, Server};
use media::{Geometry, Memory};
use nvme::command::{admin, fabrics, nvm, zone};
use nvme::fabrics::{ANY_CONTROLLER, Connect, subsystem_name};
use nvme::initiator::{ConnectOptions, Controller, Host, IoQueue, Namespace};
use nvme::pdu::{self, COMMON_BYTES, Common, Digests, Init, Kind, Transfer, flag};
use nvme::{Data, Fuse, Sqe, property};
use rustix::event::{PollFd, PollFlags, poll};

use super::{digests, garble, unit};
use crate::choices::Choices;
use crate::runner::count;
use crate::targets::{Target, choices};

pub const TARGET: Target = Target {
    name: "nvme-session",
    about: "the NVMe server over a socket: queues, commands, ranges, zones, data, R2Ts, fused pairs, abrupt ends",
    weight: 10,
    corpus: choices,
    words: &[],
    run,
};

const SECTOR: u64 = 512;
/// Sectors of the device without zones. Few, so that its content does not count as memory that grows.
const SECTORS: u64 = 4096;
/// From the first sector of a zone to that of the next, and how many zones there are.
const ZONE: u64 = 512;
const ZONES: u32 = 12;
/// The last sectors of a device, to which no well-formed command of a hostile host writes.
const OURS: u64 = 8;
const HOSTILE: &str = "nqn.hostile";

/// A server, the thread that leads its handshakes, and a host that behaves.
struct Running {
    hosts: Sender<UnixStream>,
    gone: Receiver<()>,
    subsystem: String,
    /// The controller of the hostile host, which its I/O queues join.
    owner: Controller<UnixStream>,
    witness: IoQueue<UnixStream>,
    _witness: Controller<UnixStream>,
    namespace: Namespace,
    zoned: bool,
    rounds: u8,
}

fn start(zoned: bool) -> Running {
    let device = Worker::spawn("hostile", move |_| {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 32,
            pages_per_block: 16,
            slots_per_page: 32,
            sector_bytes: SECTOR as u32,
            trailer_bytes: ftl::TRAILER_BYTES,
            unit_bytes: 4096,
        };
        let mut media = Memory::new(geometry);
        let format = MediaFormat {
            sectors: SECTORS,
            max_request_bytes: 64 << 10,
            checkpoint_interval: 2048,
            policy: if zoned { ftl::Policy::Zones } else { ftl::Policy::Placement },
            uuid: uuid::Uuid::from_u128(1),
            key: None,
        };
        let zones = ZoneShape { size: ZONE, capacity: ZONE - 1, count: ZONES, active: 4 };
        let formatted = match zoned {
            true => Device::format_zoned(&mut media, &format, zones),
            false => Device::format_media(&mut media, &format),
        };
        formatted.expect("sizes that fit together");
        Device::on_media(Box::new(media), false)
    });
    let device = device.expect("a device in memory");
    let server = Server::new(Options::default(), &Arc::default()).expect("a server");
    let uuid = uuid::Uuid::from_u128(1).to_string();
    let subsystem = subsystem_name(&uuid);
    server.add_export(Export { name: "disk".into(), uuid, read_only: false, device });
    let (hosts, waiting) = channel::<UnixStream>();
    let (told, gone) = channel();
    let serve = |peer: &'static str| {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let server = server.clone();
        std::thread::spawn(move || server.serve_connected(theirs.into(), peer));
        ours
    };
    // At a place of its own each, so that none takes the place of another.
    let connect = |host: &Host| host.connect(serve("a host"), &subsystem, &ConnectOptions::default());
    let owner = connect(&Host::new(HOSTILE, [1; 16])).expect("connected");
    let mut admin = connect(&Host::new("nqn.witness", [2; 16])).expect("connected");
    let namespace = admin.namespace(1).expect("a namespace");
    let witness = admin.io_queue(serve("the witness"), 1, 8).expect("a queue");
    std::thread::spawn(move || {
        for host in waiting {
            server.serve_connected(host.into(), "a fuzzer");
            if told.send(()).is_err() {
                return;
            }
        }
    });
    Running { hosts, gone, subsystem, owner, witness, _witness: admin, namespace, zoned, rounds: 0 }
}

impl Running {
    fn sectors(&self) -> u64 {
        if self.zoned { ZONE * u64::from(ZONES) } else { SECTORS }
    }

    /// Writes and reads something, or reads zones, which are the hostile host's: a host that behaves is served as ever.
    fn witness(&mut self) {
        self.rounds = self.rounds.wrapping_add(1);
        let data = vec![self.rounds; 4096];
        let at = self.sectors() - OURS;
        if !self.zoned {
            self.witness.write(&self.namespace, at, data.clone()).expect("the witness is served");
        }
        let read = self.witness.read(&self.namespace, at, 8).expect("the witness is served");
        assert!(read == data || self.zoned);
        self.owner.keep_alive().expect("its controller is served");
    }
}

/// What a host sends, and how it goes on when the server is ready for data.
struct Script {
    bytes: Vec<u8>,
    digests: Digests,
    /// By identifier: bytes that are read where the command succeeds.
    asked: BTreeMap<u16, u32>,
    sound: bool,
}

fn connect(choices: &mut Choices, running: &Running) -> (Connect, bool) {
    let is_io = !choices.one_in(4);
    let mut connect = Connect {
        queue: if is_io { 1 + choices.below(64) as u16 } else { 0 },
        entries: 256,
        attributes: if choices.one_in(2) { 4 } else { 0 },
        keep_alive_ms: 0,
        host_id: [1; 16],
        controller: if is_io { running.owner.cntlid() } else { ANY_CONTROLLER },
        subsystem: running.subsystem.clone(),
        host: HOSTILE.into(),
    };
    let mut sound = true;
    if !is_io {
        // Not in the place of the controller that the I/O queues join.
        (connect.host, connect.host_id) = ("nqn.other".into(), [choices.byte(); 16]);
    }
    if choices.one_in(16) {
        sound = false;
        match choices.below(5) {
            0 => connect.queue = choices.hostile(1) as u16,
            1 => connect.entries = choices.hostile(256) as u32,
            2 => connect.controller = choices.hostile(1) as u16,
            3 => connect.subsystem = nvme::fabrics::DISCOVERY_NQN.into(),
            _ => connect.keep_alive_ms = choices.u32(),
        }
    }
    (connect, sound && is_io)
}

/// Where a hostile host goes on a device of so many sectors: never where the witness is.
fn range(choices: &mut Choices, sectors: u64) -> (u64, u32) {
    let end = sectors - OURS;
    let first = choices.below(end as usize) as u64;
    let count = (1 + choices.below(128) as u64).min(end - first);
    if !choices.one_in(12) {
        return (first, count as u32);
    }
    let first = choices.hostile(first);
    let beyond = if first < sectors { first + sectors } else { first };
    (beyond, choices.hostile(count) as u32 & 0xffff)
}

/// A command of the zoned command set: the entry, the bytes that go with it, and how many come back.
fn zoned(choices: &mut Choices, cid: u16, (first, count): (u64, u32)) -> (Sqe, u32, u32) {
    // A zone's beginning more often than not.
    let first = if choices.one_in(6) { first } else { first / ZONE * ZONE };
    let place = |opcode| Sqe::new(opcode, cid, 1).with(10, first as u32).with(11, (first >> 32) as u32);
    match choices.below(6) {
        0 => {
            let all = u32::from(choices.one_in(8)) << 8;
            let action = if choices.one_in(12) { choices.byte().into() } else { 1 + choices.below(4) as u32 };
            (place(zone::MANAGEMENT_SEND).with(13, all | action), 0, 0)
        }
        1 => {
            let dwords = 1 + choices.below(2048) as u32;
            let asks = if choices.one_in(6) { choices.u32() } else { (choices.below(6) as u32) << 8 };
            (place(zone::MANAGEMENT_RECEIVE).with(12, dwords - 1).with(13, asks), 0, 4 * dwords)
        }
        2 | 3 => (place(zone::APPEND).with(12, count.saturating_sub(1) & 0xffff), count * SECTOR as u32, 0),
        4 => (place(nvm::WRITE).with(12, count.saturating_sub(1) & 0xffff), count * SECTOR as u32, 0),
        _ => (place(nvm::READ).with(12, count.saturating_sub(1) & 0xffff), 0, count * SECTOR as u32),
    }
}

/// A command with its data: in its capsule, or sent when the server asks for them.
fn with_data(choices: &mut Choices, entry: Sqe, from: u32, to: u32) -> (Sqe, Vec<u8>, u32) {
    if from > 0 && from <= pdu::IN_CAPSULE_BYTES && !choices.one_in(3) {
        return (entry.with_data(Data::InCapsule(from)), vec![entry.cid() as u8; from as usize], 0);
    }
    (entry.with_data(Data::Transport(from + to)), Vec::new(), to)
}

fn io(choices: &mut Choices, cid: u16, running: &Running) -> (Sqe, Vec<u8>, u32) {
    let sectors = running.sectors();
    let (first, count) = range(choices, sectors);
    if running.zoned && !choices.one_in(4) {
        let (entry, from, to) = zoned(choices, cid, (first, count));
        return with_data(choices, entry, from, to);
    }
    let opcode = match choices.below(10) {
        0 => nvm::FLUSH,
        1 | 2 => nvm::READ,
        3 => nvm::COMPARE,
        4 => nvm::WRITE_ZEROES,
        5 => nvm::DATASET_MANAGEMENT,
        6 => nvm::VERIFY,
        7 => nvm::COPY,
        8 if choices.one_in(8) => choices.byte(),
        8 if choices.one_in(2) => return place(choices, cid),
        _ => nvm::WRITE,
    };
    let mut entry = Sqe::new(opcode, cid, 1).with(10, first as u32).with(11, (first >> 32) as u32);
    let (mut from, mut to) = (0, 0);
    match opcode {
        nvm::DATASET_MANAGEMENT => {
            let ranges = choices.below(256);
            entry = entry.with(10, ranges as u32).with(11, 4);
            let mut data = vec![0; 16 * (ranges + 1)];
            for range_bytes in data.chunks_exact_mut(16) {
                let (first, count) = range(choices, sectors);
                range_bytes[4..8].copy_from_slice(&count.to_le_bytes());
                range_bytes[8..].copy_from_slice(&first.to_le_bytes());
            }
            let in_capsule = data.len() <= pdu::IN_CAPSULE_BYTES as usize;
            let kind = if in_capsule { Data::InCapsule } else { Data::Transport };
            return (entry.with_data(kind(data.len() as u32)), data, 0);
        }
        nvm::COPY => {
            let (first, count) = range(choices, sectors);
            let mut data = vec![0; 32];
            data[8..16].copy_from_slice(&first.to_le_bytes());
            data[16..18].copy_from_slice(&(count.saturating_sub(1) as u16).to_le_bytes());
            let target = choices.below((sectors - OURS - 128) as usize) as u64;
            let entry = entry.with(10, target as u32).with(11, 0).with(12, 0);
            return (entry.with_data(Data::InCapsule(32)), data, 0);
        }
        nvm::READ => to = count * SECTOR as u32,
        nvm::WRITE | nvm::COMPARE => from = count * SECTOR as u32,
        _ => {}
    }
    entry = entry.with(12, count.saturating_sub(1) & 0xffff | u32::from(choices.one_in(4)) << 30);
    if opcode == nvm::WRITE && choices.one_in(4) {
        let directive = choices.hostile(2) as u32 & 0xf;
        entry = entry.with(12, entry.dword(12) | directive << 20).with(13, (choices.below(9) as u32) << 16);
    }
    entry = match choices.below(12) {
        0 => entry.with_fuse(Fuse::First),
        1 => entry.with_fuse(Fuse::Second),
        _ => entry,
    };
    with_data(choices, entry, from, to)
}

/// Something with placement handles: how they stand, or that some get other reclaim units.
fn place(choices: &mut Choices, cid: u16) -> (Sqe, Vec<u8>, u32) {
    if choices.one_in(2) {
        let dwords = choices.below(512) as u32;
        let entry = Sqe::new(nvm::IO_MANAGEMENT_RECEIVE, cid, 1).with(10, choices.hostile(1) as u32).with(11, dwords);
        return with_data(choices, entry, 0, 4 * (dwords + 1));
    }
    let handles = choices.below(8);
    let data: Vec<u8> = (0..handles).flat_map(|_| [choices.below(9) as u8, 0]).collect();
    let entry = Sqe::new(nvm::IO_MANAGEMENT_SEND, cid, 1)
        .with(10, 1 | (handles as u32).saturating_sub(1) << 16)
        .with_data(Data::InCapsule(data.len() as u32));
    (entry, data, 0)
}

/// An admin command, and the data in its capsule.
fn admin(choices: &mut Choices, cid: u16) -> (Sqe, Vec<u8>) {
    if choices.one_in(8) {
        // Events of a handle: these kinds of them, or fewer than it says.
        let kinds = choices.pick(&[&[0x00, 0x03, 0x80][..], &[0x80], &[1], &[]]).to_vec();
        let dword = (choices.below(9) | choices.below(5) << 16) as u32;
        let opcode = choices.pick(&[admin::SET_FEATURES, admin::SET_FEATURES, admin::GET_FEATURES]);
        let entry = Sqe::new(opcode, cid, 1).with(10, 0x1e).with(11, dword).with(12, choices.below(2) as u32);
        return match opcode {
            admin::GET_FEATURES => (entry.with_data(Data::Transport(choices.below(64) as u32)), Vec::new()),
            _ => (entry.with_data(Data::InCapsule(kinds.len() as u32)), kinds),
        };
    }
    (plain_admin(choices, cid), Vec::new())
}

fn plain_admin(choices: &mut Choices, cid: u16) -> Sqe {
    let len = 4 << choices.below(14);
    let property = choices.pick(&[0x00, 0x08, 0x14, 0x1c, 0x40, 0xffff_fff0]);
    match choices.below(12) {
        0 => Sqe::fabrics(fabrics::PROPERTY_GET, cid).with(10, choices.below(3) as u32).with(11, property),
        1 => Sqe::fabrics(fabrics::PROPERTY_SET, cid).with(11, property).with(12, choices.hostile(0x46_0001) as u32),
        2 => Sqe::fabrics(choices.byte(), cid).with(10, choices.u32()).with(11, choices.u32()),
        3 => Sqe::new(admin::GET_LOG_PAGE, cid, u32::MAX)
            .with(10, (len / 4 - 1) << 16 | u32::from(choices.byte()))
            .with(12, choices.hostile(0) as u32)
            .with_data(Data::Transport(len)),
        4 => {
            Sqe::new(admin::SET_FEATURES, cid, 0).with(10, choices.below(32) as u32).with(11, choices.hostile(1) as u32)
        }
        5 => Sqe::new(admin::GET_FEATURES, cid, 0).with(10, choices.below(4096) as u32),
        6 => Sqe::new(admin::ABORT, cid, 0).with(10, choices.u32()),
        7 | 8 => Sqe::new(admin::ASYNC_EVENT_REQUEST, cid, 0),
        9 => Sqe::new(choices.byte(), cid, choices.below(3) as u32),
        _ => Sqe::new(admin::IDENTIFY, cid, choices.below(3) as u32)
            .with(10, choices.below(0x20) as u32)
            .with_data(Data::Transport(4096)),
    }
}

fn script(choices: &mut Choices, running: &Running) -> Script {
    let digests = digests(choices);
    let mut hello = Init { align: 4 << choices.below(6), digests, limit: 1 }.request().as_bytes().to_vec();
    let mut sound = !garble(choices, &mut hello, 32);
    let (connect, is_sound_io) = connect(choices, running);
    let mut bytes = hello;
    let mut first = unit(&pdu::command(&connect.entry(0), 1024, digests, 4), &connect.data(), digests);
    sound &= !garble(choices, &mut first, 32) && is_sound_io;
    bytes.extend(first);
    let mut asked = BTreeMap::new();
    let mut units = 3;
    if connect.queue == 0 {
        let enable = property::configuration::ENABLE | property::configuration::ENTRY_SIZES;
        let entry = Sqe::fabrics(fabrics::PROPERTY_SET, 1).with(11, property::CC).with(12, enable);
        bytes.extend(pdu::command(&entry, 0, digests, 4).as_bytes());
    }
    for cid in 2..200 {
        if choices.is_over() {
            break;
        }
        let cid = if choices.one_in(24) { cid / 2 } else { cid };
        let (entry, data, read) = match connect.queue {
            0 => {
                let (entry, data) = admin(choices, cid);
                (entry, data, 0)
            }
            _ => io(choices, cid, running),
        };
        let mut capsule = unit(&pdu::command(&entry, data.len(), digests, 4), &data, digests);
        sound &= !garble(choices, &mut capsule, 40) && asked.insert(cid, read).is_none();
        if choices.one_in(40) {
            // Data that nobody asked for.
            let part = Transfer { cid, tag: choices.below(8) as u16, offset: 0, len: 512 };
            capsule.extend(unit(&part.from_host(choices.one_in(2), digests, 4), &[1; 512], digests));
            sound = false;
        }
        bytes.extend(capsule);
        units += 1;
    }
    count(units, "PDUs");
    // The first of two fused commands is answered once something comes behind it.
    bytes.extend(pdu::command(&Sqe::new(nvm::FLUSH, 250, 1), 0, digests, 4).as_bytes());
    asked.insert(250, 0);
    if choices.one_in(6) {
        bytes.truncate(choices.below(bytes.len() + 1));
        sound = false;
    }
    Script { bytes, digests, asked, sound }
}

/// Takes what the server says apart; answers R2Ts.
struct Conversation<'a, 'b> {
    choices: &'a mut Choices<'b>,
    script: &'a mut Script,
    received: Vec<u8>,
    /// Bytes of data by identifier.
    read: BTreeMap<u16, u32>,
    connected: bool,
}

impl Conversation<'_, '_> {
    fn take(&mut self) {
        while let Some(first) = self.received.first_chunk::<COMMON_BYTES>() {
            let common = Common::decode(first, self.script.digests, 1 << 20).expect("the server's units are sound");
            if self.received.len() < common.len {
                return;
            }
            let unit: Vec<u8> = self.received.drain(..common.len).collect();
            assert!(common.header_is_sound(&unit) && common.data_are_sound(&unit), "{common:?}");
            match common.kind {
                Kind::IcResp | Kind::C2HTermReq => {}
                Kind::CapsuleResp => self.done(pdu::completion(&unit)),
                Kind::C2HData => {
                    let part = Transfer::decode(&unit);
                    *self.read.entry(part.cid).or_default() += part.len;
                    if common.flags & flag::SUCCESS != 0 {
                        self.done(nvme::Cqe::new(part.cid, nvme::Status::SUCCESS));
                    }
                }
                Kind::R2T => self.ready(Transfer::decode(&unit)),
                other => panic!("{other:?} from a controller"),
            }
        }
    }

    fn done(&mut self, done: nvme::Cqe) {
        if !self.connected {
            self.connected = true;
            return;
        }
        if !self.script.sound {
            return;
        }
        let asked = self.script.asked.remove(&done.cid).expect("an answer to what was asked, and one only");
        let read = self.read.remove(&done.cid).unwrap_or_default();
        assert!(!done.status.is_success() || read == asked, "{read} bytes of {asked}");
    }

    fn ready(&mut self, ready: Transfer) {
        let choices = &mut *self.choices;
        assert!(ready.len > 0 && ready.len <= 64 << 10, "{ready:?}");
        let mut parts = vec![ready];
        if choices.one_in(3) {
            let half = ready.len / 2;
            parts = vec![
                Transfer { len: half, ..ready },
                Transfer { offset: ready.offset + half, len: ready.len - half, ..ready },
            ];
        }
        if choices.one_in(16) {
            self.script.sound = false;
            let at = choices.below(parts.len());
            match choices.below(4) {
                0 => parts.swap(0, at),
                1 => parts[at].tag = choices.hostile(ready.tag.into()) as u16,
                2 => parts[at].offset = choices.hostile(ready.offset.into()) as u32,
                _ => drop(parts.remove(at)),
            }
        }
        let parts_sent = parts.len();
        count(parts_sent as u64, "PDUs");
        for (number, part) in parts.into_iter().enumerate() {
            let data = vec![part.cid as u8; part.len as usize];
            let last = number + 1 == parts_sent;
            let mut unit = unit(&part.from_host(last, self.script.digests, 4), &data, self.script.digests);
            self.script.sound &= !garble(choices, &mut unit, 32);
            self.script.bytes.extend(unit);
        }
    }

    /// Whether nothing more is to be waited for.
    fn is_over(&self) -> bool {
        !self.script.sound || self.script.asked.is_empty()
    }
}

/// Sends what the host says while taking what the server answers. With `abrupt`, hangs up instead of waiting for the end.
fn exchange(mut socket: UnixStream, choices: &mut Choices, script: &mut Script, abrupt: bool) {
    socket.set_nonblocking(true).expect("a socket option");
    let mut talk = Conversation { choices, script, received: Vec::new(), read: BTreeMap::new(), connected: false };
    let mut buffer = vec![0; 64 << 10];
    let (mut sent, mut closed) = (0, false);
    loop {
        if sent == talk.script.bytes.len() {
            if abrupt {
                return;
            }
            if talk.is_over() && !closed {
                // The server may have hung up already.
                let _ = socket.shutdown(Shutdown::Write);
                closed = true;
            }
        }
        let flags =
            if sent == talk.script.bytes.len() || closed { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        poll(&mut [PollFd::new(&socket, flags)], None).expect("a poll");
        if sent < talk.script.bytes.len() && !closed {
            match socket.write(&talk.script.bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => closed = true,
            }
        }
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                talk.received.extend(&buffer[..count]);
                talk.take();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    assert!(!talk.script.sound || talk.script.asked.is_empty(), "never answered: {:?}", talk.script.asked);
}

fn run(input: &[u8]) {
    static RUNNING: [OnceLock<Mutex<Running>>; 2] = [OnceLock::new(), OnceLock::new()];
    let choices = &mut Choices::new(input);
    let zoned = choices.one_in(3);
    let running = RUNNING[usize::from(zoned)].get_or_init(|| Mutex::new(start(zoned)));
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let mut script = script(choices, &running);
    let abrupt = choices.one_in(4);
    let (host, server) = UnixStream::pair().expect("a socket pair");
    running.hosts.send(server).expect("a thread that serves");
    exchange(host, choices, &mut script, abrupt);
    running.gone.recv().expect("a thread that serves");
    if choices.one_in(8) || input.len().is_multiple_of(8) {
        running.witness();
    }
}
