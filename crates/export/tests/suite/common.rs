//! A server on a socket of its own, and a client that speaks raw bytes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use device::{AttachError, Device};
use export::Listener;
use export::nbd::{Export, Options, Server};
use export::{ClientInfo, Worker, WorkerHandle};
use media::ring::SharedRing;

pub use export::nbd::proto;

pub const MIB: u64 = 1 << 20;
/// Size of the test device, bytes.
pub const SIZE: u64 = 256 * MIB;

pub struct TestServer {
    pub server: Server,
    pub device: WorkerHandle,
    pub path: PathBuf,
}

/// A server with the exports "" and "ro" (read-only) of one device in memory.
pub fn serve(options: Options, sector_bytes: u32) -> TestServer {
    serve_with(options, move |_| Ok(Device::memory(SIZE, sector_bytes).expect("good sizes")))
}

/// The same with another device.
pub fn serve_device(attach: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static) -> TestServer {
    serve_with(Options::default(), attach)
}

fn serve_with(
    options: Options,
    attach: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static,
) -> TestServer {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("openvsl-export-{}-{number}.sock", std::process::id()));
    let device = Worker::spawn("test", attach).expect("attached");
    let server = Server::new(options, &Arc::default()).expect("a server");
    let export = Export { name: String::new(), description: "a test".into(), read_only: false, device: device.clone() };
    server.add_export(Export { name: "ro".into(), read_only: true, ..export.clone() });
    server.add_export(export);
    server.listen(Listener::unix(&path).expect("a free path")).expect("a thread");
    TestServer { server, device, path }
}

pub fn serve_default() -> TestServer {
    serve(Options::default(), 512)
}

impl TestServer {
    /// Connects and takes the greeting.
    pub fn connect(&self) -> Client<UnixStream> {
        let stream = UnixStream::connect(&self.path).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket option");
        Client::greeted(stream)
    }

    /// Connects and chooses an export with structured replies and `base:allocation`.
    pub fn go(&self, export: &str) -> Client<UnixStream> {
        let mut client = self.connect();
        client.structured();
        client.set_context(export);
        client.go(export);
        client
    }

    /// Waits until so many clients are left on the device.
    pub fn wait_for_clients(&self, count: usize) {
        self.wait_until(|clients| clients.len() == count);
    }

    /// Waits until the device's clients are as they should be.
    pub fn wait_until(&self, condition: impl Fn(&[ClientInfo]) -> bool) {
        for _ in 0..2000 {
            if condition(&self.device.clients().expect("the device is there")) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("never as it should be: {:?}", self.device.clients());
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct OptionReply {
    pub option: u32,
    pub kind: u32,
    pub body: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub cookie: u64,
    /// 0 for success.
    pub error: u32,
    /// Of a structured reply.
    pub chunk: Option<u16>,
    /// What an OFFSET_DATA chunk carries behind its offset, or a BLOCK_STATUS chunk behind its id.
    pub data: Vec<u8>,
}

pub struct Client<S> {
    pub stream: S,
}

impl<S: Read + Write> Client<S> {
    pub fn greeted(stream: S) -> Client<S> {
        let mut client = Client { stream };
        assert_eq!(client.take(8), b"NBDMAGIC");
        assert_eq!(client.take(8), b"IHAVEOPT");
        assert_eq!(client.take(2), [0, 3]);
        client.put(&[0, 0, 0, 3]);
        client
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes it");
    }

    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("the server answers");
        bytes
    }

    fn take_u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    fn take_u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn take_u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    /// The server closed the connection and sent nothing more.
    pub fn assert_closed(&mut self) {
        match self.stream.read(&mut [0; 64]) {
            Ok(0) => {}
            Ok(count) => panic!("{count} bytes instead of the end"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }

    pub fn option(&mut self, code: u32, body: &[u8]) {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend(code.to_be_bytes());
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        self.put(&bytes);
    }

    pub fn option_reply(&mut self) -> OptionReply {
        assert_eq!(self.take_u64(), 0x0003_e889_0455_65a9);
        let (option, kind, len) = (self.take_u32(), self.take_u32(), self.take_u32());
        OptionReply { option, kind, body: self.take(len as usize) }
    }

    /// Sends an option and collects replies up to the last.
    pub fn haggle(&mut self, code: u32, body: &[u8]) -> Vec<OptionReply> {
        self.option(code, body);
        let mut replies = Vec::new();
        loop {
            let reply = self.option_reply();
            assert_eq!(reply.option, code);
            let last = reply.kind == proto::reply::ACK || reply.kind >= 1 << 31;
            replies.push(reply);
            if last {
                return replies;
            }
        }
    }

    /// The kind of the last reply to an option.
    pub fn outcome(&mut self, code: u32, body: &[u8]) -> u32 {
        self.haggle(code, body).last().expect("one reply at least").kind
    }

    pub fn structured(&mut self) {
        assert_eq!(self.outcome(proto::option::STRUCTURED_REPLY, &[]), proto::reply::ACK);
    }

    pub fn set_context(&mut self, export: &str) {
        let replies = self.haggle(proto::option::SET_META_CONTEXT, &context(export, &["base:allocation"]));
        assert_eq!(replies.len(), 2);
        assert_eq!(replies[0].body, b"\0\0\0\x01base:allocation");
    }

    pub fn go(&mut self, export: &str) {
        assert_eq!(self.outcome(proto::option::GO, &info(export, &[])), proto::reply::ACK);
    }

    pub fn request(&mut self, kind: u16, flags: u16, cookie: u64, offset: u64, len: u32) {
        self.put(&request(kind, flags, cookie, offset, len));
    }

    pub fn reply(&mut self) -> Reply {
        match self.take_u32() {
            0x6744_6698 => {
                let error = self.take_u32();
                Reply { cookie: self.take_u64(), error, chunk: None, data: Vec::new() }
            }
            0x668e_33ef => {
                let (flags, chunk, cookie, len) = (self.take_u16(), self.take_u16(), self.take_u64(), self.take_u32());
                assert_eq!(flags, proto::chunk::DONE);
                let mut body = self.take(len as usize);
                let skip = match chunk {
                    proto::chunk::ERROR => {
                        assert_eq!(body.len(), 6);
                        let error = u32::from_be_bytes([body[0], body[1], body[2], body[3]]);
                        return Reply { cookie, error, chunk: Some(chunk), data: Vec::new() };
                    }
                    proto::chunk::OFFSET_DATA => 8,
                    proto::chunk::BLOCK_STATUS => 4,
                    _ => 0,
                };
                Reply { cookie, error: 0, chunk: Some(chunk), data: body.split_off(skip) }
            }
            magic => panic!("reply magic {magic:#x}"),
        }
    }

    /// One request and its reply's error, 0 for success.
    pub fn error(&mut self, kind: u16, flags: u16, offset: u64, len: u32) -> u32 {
        self.request(kind, flags, 77, offset, len);
        let reply = self.reply();
        assert_eq!(reply.cookie, 77);
        reply.error
    }

    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> u32 {
        self.request(proto::command::WRITE, flags, 78, offset, data.len() as u32);
        self.put(data);
        let reply = self.reply();
        assert_eq!(reply.cookie, 78);
        reply.error
    }

    pub fn read(&mut self, offset: u64, len: u32) -> Vec<u8> {
        self.request(proto::command::READ, 0, 79, offset, len);
        let reply = self.reply();
        assert_eq!((reply.cookie, reply.error), (79, 0));
        if reply.chunk.is_none() { self.take(len as usize) } else { reply.data }
    }

    /// Extents of a range: length and flags.
    pub fn extents(&mut self, flags: u16, offset: u64, len: u32) -> Vec<(u32, u32)> {
        self.request(proto::command::BLOCK_STATUS, flags, 80, offset, len);
        let reply = self.reply();
        assert_eq!((reply.cookie, reply.error, reply.chunk), (80, 0, Some(proto::chunk::BLOCK_STATUS)));
        let number = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        reply.data.chunks(8).map(|extent| (number(extent), number(&extent[4..]))).collect()
    }

    /// Extents of a range as each chosen context tells them, with its number.
    pub fn contexts(&mut self, offset: u64, len: u32) -> Vec<(u32, Vec<(u32, u32)>)> {
        self.request(proto::command::BLOCK_STATUS, 0, 81, offset, len);
        let mut contexts = Vec::new();
        loop {
            assert_eq!(self.take_u32(), 0x668e_33ef);
            let (flags, chunk, cookie, len) = (self.take_u16(), self.take_u16(), self.take_u64(), self.take_u32());
            assert_eq!((chunk, cookie), (proto::chunk::BLOCK_STATUS, 81));
            let context = self.take_u32();
            let extents = (0..len / 8).map(|_| (self.take_u32(), self.take_u32())).collect();
            contexts.push((context, extents));
            if flags == proto::chunk::DONE {
                return contexts;
            }
        }
    }

    /// Still works after whatever happened before.
    pub fn assert_works(&mut self) {
        assert_eq!(self.read(0, 512).len(), 512);
    }
}

pub fn request(kind: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// A string of the protocol.
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// The body of INFO and GO.
pub fn info(export: &str, kinds: &[u16]) -> Vec<u8> {
    let mut bytes = string(export);
    bytes.extend((kinds.len() as u16).to_be_bytes());
    kinds.iter().for_each(|kind| bytes.extend(kind.to_be_bytes()));
    bytes
}

/// The body of LIST_META_CONTEXT and SET_META_CONTEXT.
pub fn context(export: &str, queries: &[&str]) -> Vec<u8> {
    let mut bytes = string(export);
    bytes.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| bytes.extend(string(query)));
    bytes
}
