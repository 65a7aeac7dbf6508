//! One device over every protocol, and one kind of client for NBD and NVMe: what `bench/nvme.py` and `bench/vhost.py` measure with.
//!
//! `protocols serve BYTES` serves a device in memory over TCP, and as the disk of a virtual machine where a socket is named, and
//! prints where. `protocols drive PROTOCOL ADDRESS ...` keeps a number of requests under way on a number of connections, and prints
//! how many were done in which time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use device::Device;
use export::{Address, Listener, Worker, nbd, nvme as target, vhost};
use nvme::initiator::{Command, ConnectOptions, Controller, Host, Link, Namespace};

type Failure = Box<dyn std::error::Error + Send + Sync>;
const USAGE: &str = "protocols serve BYTES [VHOST_SOCKET]\n\
    protocols drive nbd|nvme ADDRESS SUBSYSTEM read|write BLOCK_BYTES DEPTH CONNECTIONS SECONDS DEVICE_BYTES";
const SECTOR: u32 = 4096;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", bytes] => serve(bytes.parse()?, None),
        ["serve", bytes, socket] => serve(bytes.parse()?, Some(socket.as_ref())),
        ["drive", protocol, address, subsystem, kind, block, depth, connections, seconds, bytes] => {
            let load = Load {
                writes: kind == "write",
                block: block.parse()?,
                depth: depth.parse()?,
                blocks: bytes.parse::<u64>()? / block.parse::<u64>()?,
                time: Duration::from_secs_f64(seconds.parse()?),
            };
            drive(protocol, address, subsystem, connections.parse()?, &load)
        }
        _ => Err(USAGE.into()),
    }
}

/// Serves until its standard input ends.
fn serve(bytes: u64, socket: Option<&Path>) -> Result<(), Failure> {
    let device = Worker::spawn("bench", move |_| Ok(Device::memory(bytes, SECTOR).expect("a size that fits")))?;
    let uuid = device.info()?.uuid.to_string();
    let clients = Arc::default();
    let nbd = nbd::Server::new(nbd::Options::default(), &clients)?;
    let nvme = target::Server::new(target::Options::default(), &clients)?;
    let export = target::Export { name: "bench".into(), uuid, read_only: false, device: device.clone() };
    let subsystem = export.subsystem();
    nvme.add_export(export);
    let disk = vhost::Server::new("bench", device.clone(), vhost::Options::default(), &clients)?;
    if let Some(socket) = socket {
        disk.listen(Listener::unix(socket)?)?;
    }
    nbd.add_export(nbd::Export { name: String::new(), description: String::new(), read_only: false, device });
    let any = || Listener::tcp(([127, 0, 0, 1], 0).into());
    let address = |address| match address {
        Address::Tcp(address) => address.to_string(),
        other => other.to_string(),
    };
    println!("{} {} {subsystem}", address(nbd.listen(any()?)?), address(nvme.listen(any()?)?));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// What is asked of a server.
struct Load {
    writes: bool,
    /// Bytes of a request.
    block: usize,
    /// Requests under way on each connection.
    depth: usize,
    /// Requests that the device has room for.
    blocks: u64,
    time: Duration,
}

/// One connection.
trait Client: Send {
    /// Puts a request of a block into the output.
    fn submit(&mut self, writes: bool, block: u64) -> Result<(), Failure>;
    /// Sends what is in the output, and waits for the end of a request.
    fn wait(&mut self) -> Result<(), Failure>;
}

fn drive(protocol: &str, address: &str, subsystem: &str, connections: u16, load: &Load) -> Result<(), Failure> {
    let stream = || -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let mut clients: Vec<Box<dyn Client>> = Vec::new();
    let mut admin: Option<Controller<TcpStream>> = None;
    for number in 1..=connections {
        if protocol == "nbd" {
            clients.push(Box::new(Nbd::connect(stream()?, load.block, load.depth)?));
            continue;
        }
        if admin.is_none() {
            let host = Host::new("nqn.2014-08.org.example:bench", [1; 16]);
            let options = ConnectOptions { flow_control: false, ..ConnectOptions::default() };
            admin = Some(host.connect(stream()?, subsystem, &options)?);
        }
        let controller = admin.as_mut().ok_or("no controller")?;
        let namespace = controller.namespace(1)?;
        let link = controller.io_queue(stream()?, number, load.depth as u16)?.into_link();
        clients.push(Box::new(Nvme {
            link,
            namespace,
            block: load.block,
            data: vec![vec![7; load.block]; load.depth],
        }));
    }
    let done = AtomicU64::new(0);
    let (began, counter) = (Instant::now(), &done);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (1..).zip(clients).map(|(seed, client)| scope.spawn(move || work(client, seed, load, counter))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a client's thread panicked")?)
    })?;
    let seconds = began.elapsed().as_secs_f64();
    println!("{} {seconds}", done.load(Ordering::Relaxed));
    Ok(())
}

/// The same loop for every protocol.
fn work(mut client: Box<dyn Client>, seed: u64, load: &Load, done: &AtomicU64) -> Result<(), Failure> {
    let mut random = seed;
    let mut submit = |client: &mut dyn Client| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        client.submit(load.writes, (random >> 33) % load.blocks)
    };
    let end = Instant::now() + load.time;
    for _ in 0..load.depth {
        submit(&mut *client)?;
    }
    let mut count = 0;
    while Instant::now() < end {
        client.wait()?;
        count += 1;
        submit(&mut *client)?;
    }
    for _ in 0..load.depth {
        client.wait()?;
    }
    done.fetch_add(count + load.depth as u64, Ordering::Relaxed);
    Ok(())
}

struct Nvme {
    link: Link<TcpStream>,
    namespace: Namespace,
    block: usize,
    /// Buffers that no command has.
    data: Vec<Vec<u8>>,
}

impl Client for Nvme {
    fn submit(&mut self, writes: bool, block: u64) -> Result<(), Failure> {
        let blocks = (self.block / self.namespace.block_bytes as usize) as u64;
        let data = self.data.pop().ok_or("more requests than buffers")?;
        let command = match writes {
            true => Command::write(&self.namespace, block * blocks, data),
            false => Command::read_into(&self.namespace, block * blocks, data),
        };
        self.link.submit(command)?;
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        self.data.push(self.link.wait()?.succeeded("a request")?.data);
        Ok(())
    }
}

/// An NBD client like the above: simple replies, output gathered, 256 KiB read at a time, a buffer for each request.
struct Nbd {
    stream: TcpStream,
    block: usize,
    output: Vec<u8>,
    input: Box<[u8]>,
    /// What of the input was not looked at yet.
    fresh: std::ops::Range<usize>,
    /// A request's buffer, by its cookie, and whether it reads.
    requests: Vec<(Vec<u8>, bool)>,
    /// Cookies that no request has.
    free: Vec<usize>,
}

impl Nbd {
    fn connect(mut stream: TcpStream, block: usize, depth: usize) -> Result<Nbd, Failure> {
        stream.read_exact(&mut [0; 18])?;
        // Flags; then GO for the default export.
        let mut hello = vec![0, 0, 0, 3];
        hello.extend(b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0");
        stream.write_all(&hello)?;
        loop {
            let mut reply = [0; 20];
            stream.read_exact(&mut reply)?;
            let kind = u32::from_be_bytes([reply[12], reply[13], reply[14], reply[15]]);
            let len = u32::from_be_bytes([reply[16], reply[17], reply[18], reply[19]]);
            std::io::copy(&mut (&mut stream).take(len.into()), &mut std::io::sink())?;
            match kind {
                1 => break,
                3 => {}
                other => return Err(format!("reply {other:#x} to NBD_OPT_GO").into()),
            }
        }
        Ok(Nbd {
            stream,
            block,
            output: Vec::new(),
            input: vec![0; 256 << 10].into_boxed_slice(),
            fresh: 0..0,
            requests: vec![(vec![7; block], false); depth],
            free: (0..depth).collect(),
        })
    }

    /// Fills a buffer from the input.
    fn take(&mut self, into: &mut [u8]) -> Result<(), Failure> {
        let mut at = 0;
        while at < into.len() {
            if self.fresh.is_empty() {
                // As the link does: what was gathered goes out when there is nothing left to look at.
                self.stream.write_all(&self.output)?;
                self.output.clear();
                let count = self.stream.read(&mut self.input)?;
                if count == 0 {
                    return Err("the server closed the connection".into());
                }
                self.fresh = 0..count;
            }
            let count = self.fresh.len().min(into.len() - at);
            into[at..at + count].copy_from_slice(&self.input[self.fresh.start..self.fresh.start + count]);
            self.fresh.start += count;
            at += count;
        }
        Ok(())
    }
}

impl Client for Nbd {
    fn submit(&mut self, writes: bool, block: u64) -> Result<(), Failure> {
        let cookie = self.free.pop().ok_or("more requests than buffers")?;
        self.requests[cookie].1 = !writes;
        self.output.extend(0x2560_9513u32.to_be_bytes());
        self.output.extend([0, 0, 0, u8::from(writes)]);
        self.output.extend((cookie as u64).to_be_bytes());
        self.output.extend((block * self.block as u64).to_be_bytes());
        self.output.extend((self.block as u32).to_be_bytes());
        if writes {
            self.output.extend(&self.requests[cookie].0);
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let mut reply = [0; 16];
        self.take(&mut reply)?;
        let (head, cookie) = reply.split_at(8);
        let cookie = u64::from_be_bytes(cookie.try_into()?) as usize;
        if *head != [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0] {
            return Err("a request failed".into());
        }
        let (data, reads) = self.requests.get_mut(cookie).ok_or("an answer to nothing")?;
        if *reads {
            let mut data = std::mem::take(data);
            self.take(&mut data)?;
            self.requests[cookie].0 = data;
        }
        self.free.push(cookie);
        Ok(())
    }
}
