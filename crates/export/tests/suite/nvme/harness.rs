//! A server with one device, hosts that connect to it, and raw units.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use device::{
    AttachError, AttachOptions, Capacity, CreateOptions, Device, Drill, FormatOptions, Setting, create, mark_for_drills,
};
use export::nvme::{Export, Hosts, Options, Server};
use export::{Listener, Worker, WorkerHandle};
use media::ring::SharedRing;
use nvme::initiator::{ConnectOptions, Controller, Error, Host, IoQueue, Namespace};
use nvme::pdu::{self, COMMON_BYTES, Common, Digests};
use nvme::{Cqe, Data, Sqe, Status};

pub const MIB: usize = 1 << 20;
/// Size of the test device, bytes.
pub const SIZE: u64 = 64 << 20;
pub const NONE: Digests = Digests { header: false, data: false };
pub const BOTH: Digests = Digests { header: true, data: true };

pub struct Target {
    pub server: Server,
    pub device: WorkerHandle,
    pub subsystem: String,
    pub path: PathBuf,
}

/// A server with a device in memory.
pub fn target() -> Target {
    target_of(4096, 4096)
}

/// The same with these sizes of sectors and blocks.
pub fn target_of(sector_bytes: u32, block_bytes: u32) -> Target {
    serve(Options::default(), false, move |_| {
        let mut device = Device::memory(SIZE, sector_bytes).expect("good sizes");
        device.set(&[Setting::NvmeBlock(block_bytes)]).expect("a good size");
        Ok(device)
    })
}

pub fn serve(
    options: Options,
    read_only: bool,
    attach: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static,
) -> Target {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("openvsl-nvme-{}-{number}.sock", std::process::id()));
    let device = Worker::spawn("test", attach).expect("attached");
    let server = Server::new(options, &Arc::default()).expect("a server");
    let uuid = device.info().expect("the device is there").uuid.to_string();
    let export = Export { name: "test".into(), uuid, read_only, device: device.clone() };
    let subsystem = export.subsystem();
    server.add_export(export);
    server.listen(Listener::unix(&path).expect("a free path")).expect("a thread");
    Target { server, device, subsystem, path }
}

/// Options with which only these hosts may connect.
pub fn only(hosts: &str) -> Options {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(hosts.as_bytes()).expect("room");
    Options { hosts: Hosts::load(file.path()).expect("a file of hosts"), ..Options::default() }
}

/// A device on a file, on which drills may be carried out.
pub struct Drilled {
    _directory: tempfile::TempDir,
    paths: Vec<PathBuf>,
}

impl Drilled {
    pub fn new() -> Drilled {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let paths = vec![directory.path().join("d.vsl")];
        let options = CreateOptions {
            advertised_bytes: 64 << 20,
            raw_bytes: 128 << 20,
            profile: None,
            parity: 0,
            format: FormatOptions { sector_bytes: 4096, capacity: Capacity::Advertised, label: "t".into() },
        };
        create(&paths, &options).expect("created");
        mark_for_drills(&paths, true).expect("marked");
        Drilled { _directory: directory, paths }
    }

    pub fn serve(&self) -> Target {
        let paths = self.paths.clone();
        serve(Options::default(), false, move |ring| Device::attach(&paths, &AttachOptions::default(), ring))
    }
}

pub fn host(number: u8) -> Host {
    Host::new(&format!("nqn.2014-08.org.example:host{number}"), [number; 16])
}

/// A host's controller and its first I/O queue.
pub struct Connected {
    pub controller: Controller<UnixStream>,
    pub queue: IoQueue<UnixStream>,
    pub namespace: Namespace,
}

impl Target {
    pub fn stream(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket option");
        stream
    }

    pub fn controller(&self, host: &Host, options: &ConnectOptions) -> Result<Controller<UnixStream>, Error> {
        host.connect(self.stream(), &self.subsystem, options)
    }

    pub fn connect(&self) -> Connected {
        self.connect_as(&host(1), &ConnectOptions::default())
    }

    pub fn connect_with(&self, digests: Digests) -> Connected {
        self.connect_as(&host(1), &ConnectOptions { digests, ..ConnectOptions::default() })
    }

    pub fn connect_as(&self, host: &Host, options: &ConnectOptions) -> Connected {
        let mut controller = self.controller(host, options).expect("connected");
        let namespace = controller.namespace(1).expect("a namespace");
        let queue = controller.io_queue(self.stream(), 1, 64).expect("a queue");
        Connected { controller, queue, namespace }
    }

    /// Waits until so many queues are left on the device.
    pub fn wait_for_queues(&self, count: usize) {
        for _ in 0..4000 {
            if self.device.clients().expect("the device is there").len() == count {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("not {count}: {:?}", self.device.clients());
    }

    pub fn drill(&self, drill: Drill) {
        self.device.with_device(move |device| device.drill(drill).map(drop)).expect("a device").expect("a drill");
    }
}

impl Connected {
    /// The I/O queue's stream, for units that the queue would not send. From then on the queue itself is not used.
    pub fn raw(&mut self, digests: Digests) -> Raw {
        let stream = self.queue.link().stream_mut().try_clone().expect("a descriptor");
        Raw { stream, digests }
    }
}

/// Units as they are.
pub struct Raw {
    pub stream: UnixStream,
    pub digests: Digests,
}

impl Raw {
    pub fn put(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes it");
    }

    /// A command, with the data of its capsule.
    pub fn command(&mut self, entry: &Sqe, data: &[u8]) {
        let unit = self.capsule(entry, data);
        self.put(&unit);
    }

    pub fn capsule(&self, entry: &Sqe, data: &[u8]) -> Vec<u8> {
        with_data(pdu::command(entry, data.len(), self.digests, 4), data, self.digests)
    }

    /// H2CData, whatever length its header says of the data.
    pub fn data(&self, transfer: pdu::Transfer, last: bool, data: &[u8]) -> Vec<u8> {
        let sound = pdu::Transfer { len: data.len() as u32, ..transfer };
        let mut unit = with_data(sound.from_host(last, self.digests, 4), data, self.digests);
        if sound != transfer {
            assert!(!self.digests.header, "its digest would be wrong");
            unit[16..20].copy_from_slice(&transfer.len.to_le_bytes());
        }
        unit
    }

    pub fn unit(&mut self) -> (Common, Vec<u8>) {
        self.next_unit().expect("a unit")
    }

    /// The next unit; nothing where the server has closed the connection.
    pub fn next_unit(&mut self) -> Option<(Common, Vec<u8>)> {
        let mut unit = vec![0; COMMON_BYTES];
        match self.stream.read_exact(&mut unit) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the server says nothing"),
            Err(_) => return None,
        }
        let common = Common::decode(unit.first_chunk().expect("8 bytes"), self.digests, 16 * MIB).expect("sound");
        unit.resize(common.len, 0);
        self.stream.read_exact(&mut unit[COMMON_BYTES..]).expect("a whole unit");
        assert!(common.header_is_sound(&unit) && common.data_are_sound(&unit), "{common:?}");
        Some((common, unit))
    }

    pub fn completion(&mut self) -> Cqe {
        let (common, unit) = self.unit();
        assert_eq!(common.kind, pdu::Kind::CapsuleResp, "{common:?}");
        pdu::completion(&unit)
    }

    pub fn status(&mut self) -> Status {
        self.completion().status
    }

    /// An R2T.
    pub fn ready(&mut self) -> pdu::Transfer {
        let (common, unit) = self.unit();
        assert_eq!(common.kind, pdu::Kind::R2T, "{common:?}");
        pdu::Transfer::decode(&unit)
    }

    /// The server ends the connection; why.
    pub fn ended(&mut self) -> u16 {
        let (common, unit) = self.unit();
        assert_eq!(common.kind, pdu::Kind::C2HTermReq, "{common:?}");
        assert!(self.next_unit().is_none(), "nothing behind the end");
        u16::from_le_bytes([unit[8], unit[9]])
    }
}

fn with_data(head: pdu::Head, data: &[u8], digests: Digests) -> Vec<u8> {
    let mut unit = [head.as_bytes(), data].concat();
    if digests.data && !data.is_empty() {
        unit.extend(pdu::digest(data));
    }
    unit
}

/// Write, or another command on blocks.
pub fn on_blocks(opcode: u8, cid: u16, first: u64, count: u32, data: Data) -> Sqe {
    let entry = Sqe::new(opcode, cid, 1).with(10, first as u32).with(11, (first >> 32) as u32).with(12, count - 1);
    entry.with_data(data)
}

pub fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed).wrapping_add((at >> 9) as u8)).collect()
}

/// The status with which the controller refused.
pub fn refused<T>(result: Result<T, Error>) -> Status {
    match result {
        Err(Error::Refused { status, .. }) => status,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    }
}
