//! A virtual machine without a machine: memory in a file, rings made by hand, and a front end that hands both over.

#![allow(dead_code)] // each program uses its own part

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight};
use vhost::vhost_user::{Frontend, VhostUserFrontend, VhostUserProtocolFeatures as Protocol};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap, MmapRegion, VolatileMemory};
use vmm_sys_util::eventfd::EventFd;

use export::vhost::proto::{command, feature};

pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;
/// Descriptors of each queue.
pub const SIZE: u16 = 128;
/// Memory of the guest, bytes.
pub const MEMORY: u64 = 16 << 20;
/// Where its data stand: below are the rings.
pub const DATA: u64 = 1 << 20;
/// Where a queue's available and used rings are behind its table.
const AVAILABLE: u64 = 0x8000;
const USED: u64 = 0xa000;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A descriptor: address, bytes, flags, next.
pub type Descriptor = (u64, u32, u16, u16);

/// A queue as its driver sees it.
pub struct Queue {
    pub base: u64,
    pub kick: EventFd,
    pub call: EventFd,
    pub err: EventFd,
    pub available: u16,
    pub used: u16,
}

pub struct Guest {
    pub memory: GuestMemoryMmap,
    pub frontend: Frontend,
    pub queues: Vec<Queue>,
    pub region: Option<(VhostUserInflight, File)>,
    file: File,
}

/// A file that becomes memory.
pub fn memory_file(bytes: u64) -> File {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(bytes).expect("its size");
    file
}

pub fn frontend(stream: UnixStream) -> Frontend {
    Frontend::from_stream(stream, 64)
}

impl Guest {
    /// One that is connected and has said nothing.
    pub fn connect(path: &Path, queues: u64) -> Guest {
        Guest::over(UnixStream::connect(path).expect("the server listens"), queues)
    }

    pub fn over(stream: UnixStream, queues: u64) -> Guest {
        let file = memory_file(MEMORY);
        let backing = FileOffset::new(file.try_clone().expect("a descriptor"), 0);
        let memory = GuestMemoryMmap::from_ranges_with_files([(GuestAddress(0), MEMORY as usize, Some(backing))]);
        let eventfd = || EventFd::new(0x800).expect("a descriptor");
        let queue = |index: u64| Queue {
            base: index * 0x1_0000,
            kick: eventfd(),
            call: eventfd(),
            err: eventfd(),
            available: 0,
            used: 0,
        };
        let frontend = frontend(stream);
        Guest {
            memory: memory.expect("mapped"),
            frontend,
            queues: (0..queues).map(queue).collect(),
            region: None,
            file,
        }
    }

    /// One that runs, with every feature that is offered.
    pub fn start(path: &Path, queues: u64) -> Guest {
        let mut guest = Guest::connect(path, queues);
        guest.negotiate(u64::MAX);
        guest.run().expect("started");
        guest
    }

    /// Agrees on those of the features that are wanted and offered.
    pub fn negotiate(&mut self, wanted: u64) {
        self.frontend.set_owner().expect("taken");
        let offered = self.frontend.get_features().expect("features");
        self.frontend.set_features(offered & wanted | feature::PROTOCOL_FEATURES).expect("taken");
        let protocol = self.frontend.get_protocol_features().expect("protocol features");
        let wanted = Protocol::MQ
            | Protocol::CONFIG
            | Protocol::INFLIGHT_SHMFD
            | Protocol::CONFIGURE_MEM_SLOTS
            | Protocol::REPLY_ACK;
        self.frontend.set_protocol_features(protocol & wanted).expect("taken");
        self.frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    }

    /// Has the back end keep what is in flight in a region of its own making, or in the one that it made before.
    pub fn track(&mut self) {
        if self.region.is_none() {
            let asked = VhostUserInflight::new(0, 0, self.queues.len() as u16, SIZE);
            self.region = Some(self.frontend.get_inflight_fd(&asked).expect("a region"));
        }
        if let Some((said, file)) = &self.region {
            self.frontend.set_inflight_fd(said, file.as_raw_fd()).expect("taken");
        }
    }

    pub fn table(&self) -> VhostUserMemoryRegionInfo {
        let host = vm_memory::GuestMemoryBackend::get_host_address(&self.memory, GuestAddress(0)).expect("mapped");
        VhostUserMemoryRegionInfo {
            guest_phys_addr: 0,
            memory_size: MEMORY,
            userspace_addr: host as u64,
            mmap_offset: 0,
            mmap_handle: self.file.as_raw_fd(),
        }
    }

    /// Hands over memory and queues.
    pub fn run(&mut self) -> vhost::Result<()> {
        self.frontend.set_mem_table(&[self.table()])?;
        (0..self.queues.len()).try_for_each(|index| self.run_queue(index))
    }

    pub fn run_queue(&mut self, index: usize) -> vhost::Result<()> {
        let host = self.table().userspace_addr;
        let queue = &self.queues[index];
        let places = VringConfigData {
            queue_max_size: 1024,
            queue_size: SIZE,
            flags: 0,
            desc_table_addr: host + queue.base,
            used_ring_addr: host + queue.base + USED,
            avail_ring_addr: host + queue.base + AVAILABLE,
            log_addr: None,
        };
        self.frontend.set_vring_call(index, &queue.call)?;
        self.frontend.set_vring_err(index, &queue.err)?;
        self.frontend.set_vring_num(index, SIZE)?;
        // As QEMU does after a back end died: what the used ring says.
        self.frontend.set_vring_base(index, self.used_idx(index))?;
        self.frontend.set_vring_addr(index, &places)?;
        self.frontend.set_vring_kick(index, &queue.kick)?;
        self.frontend.set_vring_enable(index, true)
    }

    /// The same machine with another front end, after its back end died.
    pub fn reconnect(&mut self, path: &Path) {
        self.frontend = frontend(UnixStream::connect(path).expect("the server listens"));
        self.negotiate(u64::MAX);
        self.track();
        self.run().expect("started");
    }

    pub fn put(&self, address: u64, bytes: &[u8]) {
        self.memory.write_slice(bytes, GuestAddress(address)).expect("inside");
    }

    pub fn get(&self, address: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.memory.read_slice(&mut bytes, GuestAddress(address)).expect("inside");
        bytes
    }

    /// Writes a descriptor into a table.
    pub fn describe(&self, table: u64, index: u16, (address, bytes, flags, next): Descriptor) {
        let mut words = address.to_le_bytes().to_vec();
        words.extend(bytes.to_le_bytes());
        words.extend(flags.to_le_bytes());
        words.extend(next.to_le_bytes());
        self.put(table + u64::from(index) * 16, &words);
    }

    /// Writes a chain from a descriptor on: the parts follow one another.
    pub fn chain(&self, index: usize, head: u16, parts: &[(u64, u32, u16)]) {
        for (number, (address, bytes, flags)) in (head..).zip(parts) {
            let more = if usize::from(number - head) + 1 < parts.len() { NEXT } else { 0 };
            self.describe(self.queues[index].base, number, (*address, *bytes, *flags | more, number + 1));
        }
    }

    /// Makes a chain available, without waking anybody.
    pub fn offer(&mut self, index: usize, head: u16) {
        let queue = &mut self.queues[index];
        let (ring, slot) = (queue.base + AVAILABLE, queue.available % SIZE);
        queue.available = queue.available.wrapping_add(1);
        let available = queue.available;
        self.put(ring + 4 + u64::from(slot) * 2, &head.to_le_bytes());
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.put(ring + 2, &available.to_le_bytes());
    }

    /// Says how far the available ring goes, whatever is true.
    pub fn claim(&mut self, index: usize, available: u16) {
        self.queues[index].available = available;
        self.put(self.queues[index].base + AVAILABLE + 2, &available.to_le_bytes());
    }

    pub fn kick(&self, index: usize) {
        self.queues[index].kick.write(1).expect("an eventfd");
    }

    pub fn used_idx(&self, index: usize) -> u16 {
        let bytes = self.get(self.queues[index].base + USED + 2, 2);
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    /// Whether the guest is called, in time: the call comes after the used ring tells of an answer.
    pub fn is_called(&self, index: usize) -> bool {
        let began = Instant::now();
        while self.queues[index].call.read().is_err() {
            if began.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    }

    /// The next answered chain, if one comes in time: its head, and the bytes written.
    pub fn answered(&mut self, index: usize) -> Option<(u32, u32)> {
        let began = Instant::now();
        while self.used_idx(index) == self.queues[index].used {
            if began.elapsed() > PATIENCE {
                return None;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        let queue = &mut self.queues[index];
        let slot = queue.used % SIZE;
        queue.used = queue.used.wrapping_add(1);
        let element = self.get(self.queues[index].base + USED + 4 + u64::from(slot) * 8, 8);
        let word = |at: usize| u32::from_le_bytes([element[at], element[at + 1], element[at + 2], element[at + 3]]);
        Some((word(0), word(4)))
    }

    /// Makes a chain answered, as its back end would.
    pub fn tell_used(&mut self, index: usize, head: u16) {
        let (ring, used) = (self.queues[index].base + USED, self.used_idx(index));
        self.put(ring + 4 + u64::from(used % SIZE) * 8, &u32::from(head).to_le_bytes());
        self.put(ring + 2, &used.wrapping_add(1).to_le_bytes());
    }

    /// The in-flight region, as a back end that died left it.
    pub fn region_parts(&self) -> Parts {
        let (said, file) = self.region.as_ref().expect("a region");
        let backing = FileOffset::new(file.try_clone().expect("a descriptor"), 0);
        let bytes = said.mmap_size as usize;
        Parts { mapping: MmapRegion::from_file(backing, bytes).expect("mapped"), part: bytes / self.queues.len() }
    }

    /// Writes a request's header.
    pub fn header(&self, address: u64, kind: u32, sector: u64) {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        self.put(address, &bytes);
    }

    /// Asks with a chain of header, data and status, and waits: the status, and what was read.
    pub fn ask(&mut self, index: usize, kind: u32, sector: u64, out: &[u8], into: usize) -> (u8, Vec<u8>) {
        let (header, status) = (DATA, DATA + 16);
        let (from, to) = (DATA + 0x1000, DATA + (4 << 20));
        self.header(header, kind, sector);
        self.put(from, out);
        self.put(status, &[0xff]);
        let mut parts = vec![(header, 16, 0)];
        parts.extend((!out.is_empty()).then_some((from, out.len() as u32, 0)));
        parts.extend((into > 0).then_some((to, into as u32, WRITE)));
        parts.push((status, 1, WRITE));
        self.chain(index, 0, &parts);
        self.offer(index, 0);
        self.kick(index);
        let (head, written) = self.answered(index).expect("an answer");
        assert_eq!((head, written), (0, into as u32 + 1));
        (self.get(status, 1)[0], self.get(to, into))
    }

    pub fn write(&mut self, sector: u64, data: &[u8]) {
        assert_eq!(self.ask(0, command::OUT, sector, data, 0).0, 0, "written");
    }

    pub fn read(&mut self, sector: u64, bytes: usize) -> Vec<u8> {
        let (status, data) = self.ask(0, command::IN, sector, &[], bytes);
        assert_eq!(status, 0, "read");
        data
    }

    /// Puts a write of 4 KiB of one byte into a queue, from a descriptor on, at a place of its own.
    pub fn queue_write(&mut self, index: usize, head: u16, sector: u64, byte: u8) {
        let at = DATA + u64::from(head) * 0x2000 + index as u64 * 0x10_0000;
        self.header(at, command::OUT, sector);
        self.put(at + 0x1000, &[byte; 4096]);
        self.put(at + 16, &[0xff]);
        self.chain(index, head, &[(at, 16, 0), (at + 0x1000, 4096, 0), (at + 16, 1, WRITE)]);
        self.offer(index, head);
    }

    /// Part of the configuration space.
    pub fn config(&mut self, offset: u32, bytes: u32) -> Vec<u8> {
        let asked = vec![0; bytes as usize];
        let (_, payload) =
            self.frontend.get_config(offset, bytes, VhostUserConfigFlags::empty(), &asked).expect("a configuration");
        payload
    }

    /// Whether the back end has closed the connection, within the time for an answer.
    pub fn is_closed(&mut self) -> bool {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if self.frontend.get_features().is_err() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }
}

/// The parts of an in-flight region.
pub struct Parts {
    mapping: MmapRegion<()>,
    part: usize,
}

impl Parts {
    /// Notes a request as taken, as the one of this number, or as answered.
    pub fn note(&self, index: usize, head: u16, in_flight: u8, counter: u64) {
        let (region, part) = (self.mapping.as_volatile_slice(), index * self.part);
        region.write_obj(1u16, part + 8).expect("its version");
        region.write_obj(SIZE, part + 10).expect("its size");
        let entry = part + 16 + 16 * usize::from(head);
        region.write_obj(in_flight, entry).expect("in flight");
        region.write_obj(counter, entry + 8).expect("its number");
    }

    /// Notes how many were answered.
    pub fn answered(&self, index: usize, used: u16) {
        self.mapping.as_volatile_slice().write_obj(used, index * self.part + 14).expect("inside");
    }

    /// Whether a request is noted as taken.
    pub fn is_noted(&self, index: usize, head: u16) -> u8 {
        self.mapping.as_volatile_slice().read_obj(index * self.part + 16 + 16 * usize::from(head)).expect("inside")
    }
}
