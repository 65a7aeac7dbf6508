//! A device as the disk of a virtual machine: every request, what a hostile guest can put into its memory, and what is carried
//! out again when a back end has died.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use device::{
    AttachError, AttachOptions, Capacity, CarriedDrills, CreateOptions, Device, Drill, Durability, FormatOptions,
    Setting, Unsynced, create, mark_for_drills,
};
use export::vhost::proto::{command, feature};
use export::vhost::{Options, Server};
use export::{Bounds, Clients, Listener, Worker, WorkerHandle};
use media::ring::SharedRing;
use vhost::VhostBackend;
use vhost::vhost_user::VhostUserFrontend;

use crate::guest::{DATA, Guest, INDIRECT, MEMORY, NEXT, SIZE, WRITE, memory_file};

const BYTES: u64 = 64 << 20;

struct TestServer {
    _server: Server,
    device: WorkerHandle,
    path: PathBuf,
}

fn serve_with(
    options: Options,
    attach: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static,
) -> TestServer {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("openvsl-vhost-{}-{number}.sock", std::process::id()));
    let device = Worker::spawn("disk", attach).expect("attached");
    let server = Server::new("disk", device.clone(), options, &Arc::new(Clients::default())).expect("a server");
    server.listen(Listener::unix(&path).expect("a free path")).expect("a thread");
    TestServer { _server: server, device, path }
}

fn serve() -> TestServer {
    serve_with(Options::default(), |_| Ok(Device::memory(BYTES, 512).expect("good sizes")))
}

/// A device on a file, on which faults may be put by command.
struct Files {
    _directory: tempfile::TempDir,
    paths: Vec<PathBuf>,
}

impl Files {
    fn new() -> Files {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = vec![directory.path().join("d.vsl")];
        let options = CreateOptions {
            advertised_bytes: 256 << 20,
            raw_bytes: 384 << 20,
            profile: None,
            parity: 0,
            format: FormatOptions { sector_bytes: 4096, capacity: Capacity::Advertised, label: "t".into() },
        };
        create(&paths, &options).expect("created");
        mark_for_drills(&paths, true).expect("marked");
        Files { _directory: directory, paths }
    }

    fn serve(&self) -> TestServer {
        let paths = self.paths.clone();
        serve_with(Options::default(), move |ring| {
            let options = AttachOptions { drills: CarriedDrills::default(), ..AttachOptions::default() };
            Device::attach(&paths, &options, ring)
        })
    }
}

fn drill(server: &TestServer, drill: Drill) {
    server.device.with_device(move |device| device.drill(drill)).expect("attached").expect("begun");
}

fn range(sector: u64, count: u32, flags: u32) -> Vec<u8> {
    let mut bytes = sector.to_le_bytes().to_vec();
    bytes.extend(count.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes
}

#[test]
fn a_guest_reads_writes_flushes_discards_and_zeroes() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    let data: Vec<u8> = (0..64 << 10).map(|at| (at % 251) as u8).collect();
    guest.write(8, &data);
    assert_eq!(guest.read(8, data.len()), data);
    assert_eq!(guest.ask(0, command::FLUSH, 0, &[], 0).0, 0);
    assert_eq!(guest.ask(0, command::DISCARD, 0, &range(8, 8, 0), 0).0, 0);
    assert_eq!(guest.read(8, 4096), [0; 4096]);
    for flags in [0, 1] {
        guest.write(16, &[7; 4096]);
        assert_eq!(guest.ask(0, command::WRITE_ZEROES, 0, &range(16, 8, flags), 0).0, 0);
        assert_eq!(guest.read(16, 4096), [0; 4096], "flags {flags}");
    }
    assert_eq!(guest.read(24, 4096), data[8192..][..4096], "only what was asked for");
    let (status, id) = guest.ask(0, command::GET_ID, 0, &[], 20);
    let uuid = server.device.info().expect("attached").uuid.simple().to_string();
    assert_eq!((status, id.as_slice()), (0, &uuid.as_bytes()[..20]));
    let client = server.device.clients().expect("attached").remove(0);
    assert_eq!((client.protocol, client.export.as_str()), ("vhost", "disk"));
    assert!(client.requests >= 10 && client.written_bytes >= 64 << 10 && client.read_bytes >= 64 << 10, "{client:?}");
}

#[test]
fn what_a_guest_may_not_ask_is_answered_with_its_status() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    let last = BYTES / 512;
    assert_eq!(guest.ask(0, command::IN, last, &[], 512).0, 1);
    assert_eq!(guest.ask(0, command::OUT, last - 1, &[0; 1024], 0).0, 1);
    assert_eq!(guest.ask(0, command::IN, u64::MAX, &[], 512).0, 1);
    assert_eq!(guest.ask(0, command::IN, 0, &[], 100).0, 1);
    assert_eq!(guest.ask(0, 77, 0, &[], 0).0, 2);
    assert_eq!(guest.ask(0, command::DISCARD, 0, &range(0, 8, 1), 0).0, 2);
    assert_eq!(guest.ask(0, command::DISCARD, 0, &[0; 32], 0).0, 1);
    assert_eq!(guest.ask(0, command::DISCARD, 0, &[0; 8], 0).0, 1);
    assert_eq!(guest.ask(0, command::WRITE_ZEROES, 0, &range(last, 1, 0), 0).0, 1);
    guest.write(0, &[1; 512]);
}

#[test]
fn a_read_only_disk_takes_no_writes() {
    let options = Options { read_only: true, ..Options::default() };
    let server = serve_with(options, |_| Ok(Device::memory(BYTES, 512).expect("good sizes")));
    let mut guest = Guest::start(&server.path, 1);
    let features = guest.frontend.get_features().expect("features");
    assert_eq!(features & (feature::RO | feature::DISCARD | feature::WRITE_ZEROES), feature::RO);
    assert_eq!(guest.ask(0, command::OUT, 0, &[1; 512], 0).0, 1);
    assert_eq!(guest.ask(0, command::WRITE_ZEROES, 0, &range(0, 1, 0), 0).0, 1);
    assert_eq!(guest.read(0, 512), [0; 512]);
}

#[test]
fn the_configuration_says_what_the_device_is() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    let config = guest.config(0, 60);
    let word = |at: usize| u32::from_le_bytes([config[at], config[at + 1], config[at + 2], config[at + 3]]);
    assert_eq!((u64::from(word(0)), word(20), config[32]), (BYTES / 512, 512, 1));
    assert_eq!(guest.config(56, 40)[1..], [0; 39], "a longer space than there is ends in zeros");
    assert_eq!(guest.frontend.get_queue_num().expect("queues"), 64);
    // Without a write cache a write is durable when it is answered.
    guest.frontend.set_config(32, vhost::vhost_user::message::VhostUserConfigFlags::WRITABLE, &[0]).expect("taken");
    assert_eq!(guest.config(32, 1), [0]);
}

#[test]
fn a_device_that_writes_through_says_that_it_has_no_cache() {
    let server = serve();
    let setting = Setting::Durability(Durability::WriteThrough);
    server.device.with_device(move |device| device.set(&[setting])).expect("attached").expect("set");
    assert_eq!(Guest::start(&server.path, 1).config(32, 1), [0]);
}

#[test]
fn segments_of_any_size_carry_a_request() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    let data: Vec<u8> = (0..4096).map(|at| (at % 253) as u8).collect();
    // The header in two parts and together with data; data in three; the status behind data in one part.
    guest.header(DATA, command::OUT, 80);
    guest.put(DATA + 16, &data[..1000]);
    guest.put(DATA + 0x3000, &data[1000..1001]);
    guest.put(DATA + 0x5000, &data[1001..]);
    let parts =
        [(DATA, 7, 0), (DATA + 7, 1009, 0), (DATA + 0x3000, 1, 0), (DATA + 0x5000, 3095, 0), (DATA + 0x8000, 1, WRITE)];
    guest.chain(0, 5, &parts);
    guest.offer(0, 5);
    guest.kick(0);
    assert_eq!(guest.answered(0), Some((5, 1)));
    assert_eq!(guest.get(DATA + 0x8000, 1), [0]);
    guest.header(DATA, command::IN, 80);
    let parts = [(DATA, 16, 0), (DATA + 0x2000, 100, WRITE), (DATA + 0x3000, 3000, WRITE), (DATA + 0x5000, 997, WRITE)];
    guest.chain(0, 40, &parts);
    guest.offer(0, 40);
    guest.kick(0);
    assert_eq!(guest.answered(0), Some((40, 4097)));
    let read = [guest.get(DATA + 0x2000, 100), guest.get(DATA + 0x3000, 3000), guest.get(DATA + 0x5000, 996)].concat();
    assert!(read == data, "in the order of the segments");
    assert_eq!(guest.get(DATA + 0x5000 + 996, 1), [0]);
}

#[test]
fn a_request_larger_than_the_device_takes_in_one_is_carried_out_whole() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    let data: Vec<u8> = (0..3 << 20).map(|at| (at % 247) as u8).collect();
    guest.write(100, &data);
    assert!(guest.read(100, data.len()) == data);
    assert_eq!(guest.ask(0, command::WRITE_ZEROES, 0, &range(100, 3 << 11, 0), 0).0, 0);
    assert!(guest.read(100, data.len()).iter().all(|byte| *byte == 0));
}

#[test]
fn queues_are_served_side_by_side() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 4);
    for round in 0..200u64 {
        for index in 0..4 {
            let sector = (round * 4 + index) * 8;
            guest.queue_write(index as usize, 3 * (round % 8) as u16, sector, round as u8);
        }
        (0..4).for_each(|index| guest.kick(index));
        for index in 0..4 {
            assert_eq!(guest.answered(index), Some((3 * (round % 8) as u32, 1)));
        }
    }
    for round in [0, 77, 199u64] {
        assert_eq!(guest.read(round * 32 + 24, 4096), [round as u8; 4096]);
    }
}

#[test]
fn without_event_indices_the_flags_say_who_wants_to_be_woken() {
    let server = serve();
    let mut guest = Guest::connect(&server.path, 1);
    guest.negotiate(!feature::EVENT_IDX);
    guest.run().expect("started");
    assert!(guest.is_called(0), "as it starts");
    for round in 0..50 {
        guest.write(round, &[round as u8; 512]);
        assert!(guest.is_called(0), "for each");
    }
    // NO_INTERRUPT: whoever polls is not called. A call for a request comes before the answer to the next one.
    guest.put(0x8000, &[1, 0]);
    guest.write(7, &[9; 512]);
    let _ = guest.queues[0].call.read();
    guest.write(7, &[9; 512]);
    assert_eq!(guest.read(7, 512), [9; 512]);
    assert!(guest.queues[0].call.read().is_err());
}

#[test]
fn a_queue_that_is_stopped_goes_on_where_it_was() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    for round in 0..300u64 {
        guest.write(round, &[round as u8; 512]);
        if round % 100 == 50 {
            let base = guest.frontend.get_vring_base(0).expect("at rest");
            assert_eq!(base, u32::from(guest.queues[0].available));
            guest.run_queue(0).expect("started again");
        }
    }
    assert_eq!(guest.read(299, 512), [43; 512]);
}

#[test]
fn the_memory_table_may_change_while_requests_are_under_way() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    guest.write(0, &[5; 512]);
    let table = guest.table();
    let more = memory_file(1 << 20);
    use std::os::fd::AsRawFd;
    let extra = vhost::VhostUserMemoryRegionInfo {
        guest_phys_addr: 1 << 32,
        memory_size: 1 << 20,
        userspace_addr: 1 << 40,
        mmap_offset: 0,
        mmap_handle: more.as_raw_fd(),
    };
    for round in 0..50u8 {
        guest.queue_write(0, 0, 8, round);
        guest.kick(0);
        guest.frontend.set_mem_table(&[table, extra]).expect("taken");
        assert_eq!(guest.answered(0), Some((0, 1)));
        guest.frontend.remove_mem_region(&extra).expect("there");
        guest.frontend.add_mem_region(&extra).expect("taken");
        guest.frontend.set_mem_table(&[table]).expect("taken");
    }
    assert_eq!(guest.read(8, 4096), [49; 4096]);
    guest.frontend.set_mem_table(&[extra]).expect_err("the queue's rings are not in it");
    assert!(guest.is_closed());
}

/// Puts one chain into the guest's queue and says whether the connection is closed for it.
fn closes(describe: impl FnOnce(&mut Guest)) -> bool {
    let server = serve();
    let mut bystander = server.device.clients().expect("attached");
    let mut guest = Guest::start(&server.path, 1);
    guest.write(0, &[1; 512]);
    guest.header(DATA, command::IN, 0);
    describe(&mut guest);
    guest.kick(0);
    let closed = guest.is_closed();
    assert_eq!(guest.queues[0].err.read().is_ok(), closed, "the front end is told which queue it was");
    // The device is there for the next one.
    let mut next = Guest::start(&server.path, 1);
    assert_eq!(next.read(0, 512), [1; 512]);
    bystander.clear();
    closed
}

#[test]
fn a_chain_that_comes_back_to_itself_closes_its_connection() {
    assert!(closes(|guest| {
        guest.describe(0, 0, (DATA, 16, NEXT, 1));
        guest.describe(0, 1, (DATA, 16, NEXT, 0));
        guest.offer(0, 0);
    }));
}

#[test]
fn an_indirect_table_that_comes_back_to_itself_closes_its_connection() {
    assert!(closes(|guest| {
        guest.describe(0, 0, (DATA + 0x1000, 32, INDIRECT, 0));
        guest.describe(DATA + 0x1000, 0, (DATA, 16, NEXT, 1));
        guest.describe(DATA + 0x1000, 1, (DATA, 16, NEXT, 0));
        guest.offer(0, 0);
    }));
}

#[test]
fn an_indirect_table_in_another_closes_its_connection() {
    assert!(closes(|guest| {
        guest.describe(0, 0, (DATA + 0x1000, 16, INDIRECT, 0));
        guest.describe(DATA + 0x1000, 0, (DATA + 0x1000, 16, INDIRECT, 0));
        guest.offer(0, 0);
    }));
}

#[test]
fn an_indirect_table_outside_of_memory_closes_its_connection() {
    assert!(closes(|guest| {
        guest.describe(0, 0, (MEMORY - 16, 32, INDIRECT, 0));
        guest.describe(MEMORY - 16, 0, (DATA, 16, NEXT, 1));
        guest.offer(0, 0);
    }));
}

#[test]
fn a_descriptor_beyond_the_table_closes_its_connection() {
    assert!(closes(|guest| {
        guest.describe(0, 0, (DATA, 16, NEXT, SIZE));
        guest.offer(0, 0);
    }));
}

#[test]
fn a_head_beyond_the_table_closes_its_connection() {
    assert!(closes(|guest| guest.offer(0, SIZE)));
}

#[test]
fn more_heads_than_descriptors_close_their_connection() {
    assert!(closes(|guest| guest.claim(0, guest.queues[0].available + SIZE + 1)));
}

#[test]
fn a_request_without_a_status_closes_its_connection() {
    assert!(closes(|guest| {
        guest.chain(0, 0, &[(DATA, 16, 0), (DATA + 0x1000, 512, 0)]);
        guest.offer(0, 0);
    }));
}

#[test]
fn a_status_outside_of_memory_closes_its_connection() {
    assert!(closes(|guest| {
        guest.chain(0, 0, &[(DATA, 16, 0), (MEMORY, 1, WRITE)]);
        guest.offer(0, 0);
    }));
}

#[test]
fn something_to_read_behind_something_to_write_closes_its_connection() {
    assert!(closes(|guest| {
        guest.chain(0, 0, &[(DATA, 16, WRITE), (DATA + 0x1000, 512, 0)]);
        guest.offer(0, 0);
    }));
}

#[test]
fn data_outside_of_memory_are_an_error_of_their_request_only() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    for (kind, flags) in [(command::IN, WRITE), (command::OUT, 0)] {
        for address in [MEMORY, MEMORY - 511, u64::MAX - 100] {
            guest.header(DATA, kind, 0);
            guest.put(DATA + 16, &[0xff]);
            guest.chain(0, 0, &[(DATA, 16, 0), (address, 512, flags), (DATA + 16, 1, WRITE)]);
            guest.offer(0, 0);
            guest.kick(0);
            assert!(guest.answered(0).is_some(), "{address:#x}");
            assert_eq!(guest.get(DATA + 16, 1), [1], "{address:#x}");
        }
    }
    guest.chain(0, 0, &[(DATA, 15, 0), (DATA + 16, 1, WRITE)]);
    guest.offer(0, 0);
    guest.kick(0);
    assert!(guest.answered(0).is_some());
    assert_eq!(guest.get(DATA + 16, 1), [1], "half a header");
    assert_eq!(guest.read(0, 512), [0; 512]);
}

#[test]
fn lengths_that_add_up_to_gigabytes_cost_no_memory() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    let part = (DATA, MEMORY as u32 - DATA as u32, WRITE);
    let mut parts = vec![(0x4000, 16, 0)];
    parts.extend([part; 100]);
    parts.push((DATA + 16, 1, WRITE));
    guest.header(0x4000, command::IN, 0);
    guest.chain(0, 0, &parts);
    guest.offer(0, 0);
    guest.kick(0);
    assert!(guest.answered(0).is_some());
    assert_eq!(guest.get(DATA + 16, 1), [1]);
    assert!(server.device.clients().expect("attached")[0].memory_bytes < 1 << 20);
}

#[test]
fn what_cannot_be_a_kick_or_memory_closes_its_connection() {
    let server = serve();
    let file = memory_file(4096);
    use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
    let disguised = |file: std::fs::File| {
        // SAFETY: the descriptor is the file's own, which is given up here.
        unsafe { vmm_sys_util::eventfd::EventFd::from_raw_fd(file.into_raw_fd()) }
    };
    let mut guest = Guest::start(&server.path, 1);
    let error = guest.frontend.set_vring_kick(0, &disguised(file.try_clone().expect("a descriptor")));
    assert!(error.is_err() && guest.is_closed());
    let mut guest = Guest::start(&server.path, 1);
    let error = guest.frontend.set_vring_call(0, &disguised(file.try_clone().expect("a descriptor")));
    assert!(error.is_err() && guest.is_closed());
    let mut guest = Guest::start(&server.path, 1);
    let short = vhost::VhostUserMemoryRegionInfo { mmap_handle: file.as_raw_fd(), ..guest.table() };
    assert!(guest.frontend.set_mem_table(&[short]).is_err() && guest.is_closed());
    for (index, size) in [(0, 3), (0, 2048), (64, 128)] {
        let mut guest = Guest::connect(&server.path, 1);
        guest.negotiate(u64::MAX);
        let refused = guest.frontend.set_vring_num(index, size).is_err();
        assert!(refused, "{size} descriptors of queue {index}");
    }
    assert_eq!(Guest::start(&server.path, 1).read(0, 512), [0; 512]);
}

#[test]
fn one_front_end_at_a_time_and_silent_ones_keep_nobody_out() {
    let bounds = Bounds { handshake_timeout: Duration::from_millis(300), ..Bounds::default() };
    let server =
        serve_with(Options { bounds, ..Options::default() }, |_| Ok(Device::memory(BYTES, 512).expect("good sizes")));
    let silent = std::os::unix::net::UnixStream::connect(&server.path).expect("it listens");
    let mut guest = Guest::start(&server.path, 1);
    let second = Guest::connect(&server.path, 1);
    assert!(second.frontend.get_features().is_err(), "closed when its time was over");
    guest.write(0, &[3; 512]);
    drop(silent);
    drop(guest);
    let mut third = Guest::start(&server.path, 1);
    assert_eq!(third.read(0, 512), [3; 512]);
    assert_eq!(server.device.clients().expect("attached").len(), 1);
}

#[test]
fn a_front_end_that_hangs_up_in_a_message_keeps_nobody_out() {
    use std::io::Write;
    let server = serve();
    for count in [1, 11, 12, 19] {
        let mut stream = std::os::unix::net::UnixStream::connect(&server.path).expect("it listens");
        // GET_FEATURES, whole, and part of a SET_FEATURES.
        let whole = [1u32, 1, 0].map(u32::to_le_bytes).concat();
        let part = [2u32, 1, 8, 0, 0].map(u32::to_le_bytes).concat();
        stream.write_all(&[&whole, &part[..count]].concat()).expect("taken");
        drop(stream);
        let began = std::time::Instant::now();
        Guest::start(&server.path, 1).write(0, &[1; 512]);
        assert!(began.elapsed() < Bounds::default().handshake_timeout / 2, "waited for the rest of {count} bytes");
    }
}

#[test]
fn a_detach_ends_a_guest_when_it_must() {
    let server = serve();
    let mut guest = Guest::start(&server.path, 1);
    guest.write(0, &[3; 512]);
    assert!(server.device.detach(false).is_err(), "a guest is connected");
    guest.write(1, &[4; 512]);
    assert_eq!(server.device.detach(true), Ok(()));
    assert!(guest.is_closed());
}

#[test]
fn a_flush_is_answered_when_it_is_done_and_not_before() {
    let files = Files::new();
    let server = files.serve();
    let mut guest = Guest::start(&server.path, 1);
    guest.write(0, &[3; 4096]);
    let unsynced = Unsynced::Drop;
    drill(&server, Drill::PowerCut { at_write: None, at_program: Some(1), unsynced, seed: Some(1) });
    guest.header(DATA, command::FLUSH, 0);
    guest.put(DATA + 16, &[0xff]);
    guest.chain(0, 0, &[(DATA, 16, 0), (DATA + 16, 1, WRITE)]);
    guest.offer(0, 0);
    guest.kick(0);
    assert!(guest.is_closed(), "the power is cut");
    assert_eq!((guest.get(DATA + 16, 1)[0], guest.used_idx(0)), (0xff, 1), "nobody promised anything");
}

#[test]
fn what_a_dead_back_end_had_taken_is_carried_out_by_the_next() {
    let files = Files::new();
    let server = files.serve();
    let mut guest = Guest::connect(&server.path, 1);
    guest.negotiate(u64::MAX);
    guest.track();
    guest.run().expect("started");
    guest.write(0, &[1; 4096]);
    assert_eq!(guest.ask(0, command::FLUSH, 0, &[], 0).0, 0);
    drill(&server, Drill::PowerCut { at_write: Some(1), at_program: None, unsynced: Unsynced::Keep, seed: Some(1) });
    // None of them is ever answered; two are to one sector.
    for (head, sector, byte) in [(9, 8, 2), (6, 16, 3), (3, 16, 4), (0, 24, 5)] {
        guest.queue_write(0, head, sector, byte);
    }
    guest.kick(0);
    assert!(guest.is_closed());
    assert_eq!(guest.used_idx(0), 2);
    server.device.wait_until_gone();
    let server = files.serve();
    guest.reconnect(&server.path);
    let told: Vec<_> = (0..4).map(|_| guest.answered(0).map(|(head, _)| head)).collect();
    assert_eq!(told, [Some(9), Some(6), Some(3), Some(0)]);
    for (sector, byte) in [(0, 1), (8, 2), (16, 4), (24, 5)] {
        assert!(guest.read(sector, 4096) == [byte; 4096], "sector {sector}");
    }
    assert_eq!(guest.used_idx(0), 10, "each was answered once");
}

#[test]
fn requests_are_carried_out_again_in_the_order_in_which_they_were_taken() {
    let server = serve();
    let mut guest = Guest::connect(&server.path, 2);
    guest.negotiate(u64::MAX);
    guest.track();
    // All to one sector, taken in this order by a back end that died when it had answered one of them.
    let taken = [(0, 60, 1), (0, 20, 2), (1, 3, 3), (0, 9, 4), (0, 90, 5), (1, 0, 6)];
    for (index, head, byte) in taken {
        guest.queue_write(index, head, 8, byte);
    }
    let parts = guest.region_parts();
    for (index, head, byte) in taken {
        parts.note(index, head, u8::from(head != 20), 1000 + u64::from(byte));
    }
    parts.answered(0, 1);
    guest.tell_used(0, 20);
    guest.track();
    guest.run().expect("started");
    let told: Vec<_> = (0..4).map(|_| guest.answered(0).map(|(head, _)| head)).collect();
    assert_eq!(told, [Some(20), Some(60), Some(9), Some(90)]);
    let told: Vec<_> = (0..2).map(|_| guest.answered(1).map(|(head, _)| head)).collect();
    assert_eq!(told, [Some(3), Some(0)]);
    assert_eq!((guest.used_idx(0), guest.used_idx(1)), (4, 2), "each was answered once");
    let last = guest.read(8, 4096);
    assert!(last == [5; 4096] || last == [6; 4096], "the last one of either queue: {}", last[0]);
    guest.write(16, &[9; 4096]);
}

#[test]
fn a_guest_is_woken_for_what_a_dead_back_end_answered_and_did_not_say() {
    let server = serve();
    let mut guest = Guest::connect(&server.path, 1);
    guest.negotiate(u64::MAX);
    guest.track();
    // The back end before died between the used ring and the call: nothing is left to be carried out again.
    guest.queue_write(0, 20, 8, 1);
    let parts = guest.region_parts();
    parts.note(0, 20, 0, 1);
    parts.answered(0, 1);
    guest.tell_used(0, 20);
    guest.run().expect("started");
    assert!(guest.is_called(0), "for what it has not heard of");
    assert_eq!(guest.answered(0).map(|(head, _)| head), Some(20));
}

#[test]
fn what_is_under_way_stands_in_the_region_and_what_is_answered_does_not() {
    let files = Files::new();
    let server = files.serve();
    let mut guest = Guest::connect(&server.path, 1);
    guest.negotiate(u64::MAX);
    guest.track();
    guest.run().expect("started");
    // So much that the first of it is on the medium only.
    guest.write(0, &[1; 3 << 20]);
    assert_eq!(guest.ask(0, command::FLUSH, 0, &[], 0).0, 0);
    // A read that takes long, and a write that does not.
    drill(&server, Drill::StallDie { die: 0, ms: 1000 });
    guest.header(0x4000, command::IN, 0);
    guest.chain(0, 100, &[(0x4000, 16, 0), (DATA + (8 << 20), 4096, WRITE), (0x4010, 1, WRITE)]);
    guest.offer(0, 100);
    guest.queue_write(0, 7, 8, 2);
    guest.kick(0);
    assert_eq!(guest.answered(0), Some((7, 1)));
    let parts = guest.region_parts();
    assert_eq!((parts.is_noted(0, 100), parts.is_noted(0, 7)), (1, 0));
    assert_eq!(guest.answered(0), Some((100, 4097)));
    assert!(guest.get(DATA + (8 << 20), 4096) == [1; 4096]);
    guest.write(0, &[3; 4096]);
    assert_eq!(parts.is_noted(0, 100), 0);
}
