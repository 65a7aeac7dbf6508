//! The host's end of a queue against a controller's bytes: what it sends, what it takes, and what it refuses to take.

use nvme::command::nvm;
use nvme::initiator::{Broken, Command, Completion, Namespace, Payload, Queue, QueueOptions, Range};
use nvme::pdu::{self, COMMON_BYTES, Common, Digests, Fatal, Init, Kind, Transfer, flag};
use nvme::{Cqe, Data, Fuse, Sqe, Status};

const NONE: Digests = Digests { header: false, data: false };
const BOTH: Digests = Digests { header: true, data: true };
/// What the controller takes in one H2CData, bytes.
const LIMIT: u32 = 8192;

const NAMESPACE: Namespace = Namespace {
    nsid: 1,
    blocks: 1 << 20,
    block_bytes: 4096,
    used_blocks: 0,
    features: 0,
    atomic_blocks: None,
    read_only: false,
    nguid: [0; 16],
    snapshot: None,
};

/// A queue that is connected.
fn connected(depth: u16, digests: Digests) -> Queue {
    let mut queue = Queue::new(&QueueOptions { digests, ..QueueOptions::new(depth) });
    let request = queue.output().first_chunk().expect("a whole unit");
    assert_eq!(Init::decode(Kind::IcReq, request).expect("ICReq").digests, digests);
    queue.sent(pdu::INIT_BYTES);
    queue.receive(Init { align: 4, digests, limit: LIMIT }.response().as_bytes()).expect("ICResp");
    queue
}

/// The units that wait to be sent, and takes them.
fn sent(queue: &mut Queue, digests: Digests) -> Vec<(Common, Vec<u8>)> {
    let mut units = Vec::new();
    while let Some(first) = queue.output().first_chunk::<COMMON_BYTES>() {
        let common = Common::decode(first, digests, 1 << 20).expect("a sound unit");
        let unit = queue.output()[..common.len].to_vec();
        assert!(common.header_is_sound(&unit) && common.data_are_sound(&unit));
        queue.sent(common.len);
        units.push((common, unit));
    }
    units
}

fn completed(cid: u16) -> Vec<u8> {
    completed_with(cid, Status::SUCCESS, NONE)
}

fn completed_with(cid: u16, status: Status, digests: Digests) -> Vec<u8> {
    pdu::response(&Cqe::new(cid, status), digests).as_bytes().to_vec()
}

/// A C2HData; `flags` beside those of its digests.
fn data(transfer: Transfer, bytes: &[u8], flags: u8, digests: Digests) -> Vec<u8> {
    let mut unit = transfer.from_controller(false, NONE, 4).as_bytes()[..pdu::DATA_BYTES].to_vec();
    let has = |digest, flag| if digest { flag } else { 0 };
    unit[1] = flags | has(digests.header, flag::HEADER_DIGEST) | has(digests.data, flag::DATA_DIGEST);
    let head = pdu::DATA_BYTES + if digests.header { 4 } else { 0 };
    let len = head + bytes.len() + if digests.data { 4 } else { 0 };
    unit[3] = head as u8;
    unit[4..8].copy_from_slice(&(len as u32).to_le_bytes());
    if digests.header {
        unit.extend(pdu::digest(&unit));
    }
    unit.extend(bytes);
    if digests.data {
        unit.extend(pdu::digest(bytes));
    }
    unit
}

fn part(cid: u16, offset: u32, len: u32) -> Transfer {
    Transfer { cid, tag: 0, offset, len }
}

fn ready(cid: u16, offset: u32, len: u32) -> Vec<u8> {
    Transfer { cid, tag: 77, offset, len }.ready(NONE).as_bytes().to_vec()
}

#[test]
fn a_small_write_travels_in_its_capsule() {
    for digests in [NONE, BOTH] {
        let mut queue = connected(4, digests);
        let cid = queue.submit(Command::write(&NAMESPACE, 7, vec![9; 8192])).expect("room");
        let units = sent(&mut queue, digests);
        let [(common, unit)] = &units[..] else { panic!("{} units", units.len()) };
        let entry = pdu::entry(unit);
        assert_eq!((common.kind, common.data(unit)), (Kind::CapsuleCmd, &[9; 8192][..]));
        assert_eq!((entry.opcode(), entry.cid(), entry.data()), (nvm::WRITE, cid, Ok(Data::InCapsule(8192))));
        assert_eq!((entry.dwords(10), entry.dword(12)), (7, 1));
        queue.receive(&completed_with(cid, Status::SUCCESS, digests)).expect("sound");
        let done = Completion { cid, status: Status::SUCCESS, result: 0, data: vec![9; 8192] };
        assert_eq!(queue.completion(), Some(done));
        assert_eq!(queue.outstanding(), 0);
    }
}

#[test]
fn a_large_write_waits_for_the_controller_and_goes_in_order() {
    let content: Vec<u8> = (0..40960u32).map(|at| (at / 512) as u8).collect();
    for digests in [NONE, BOTH] {
        let mut queue = connected(4, digests);
        let cid = queue.submit(Command::write(&NAMESPACE, 0, content.clone())).expect("room");
        let units = sent(&mut queue, digests);
        assert_eq!(pdu::entry(&units[0].1).data(), Ok(Data::Transport(40960)));
        assert_eq!(units[0].0.data_len, 0);
        let mut received: Vec<u8> = Vec::new();
        for (offset, len) in [(0, 20480), (20480, 20480)] {
            queue.receive(Transfer { cid, tag: 5, offset, len }.ready(digests).as_bytes()).expect("sound");
            let units = sent(&mut queue, digests);
            for (number, (common, unit)) in units.iter().enumerate() {
                let transfer = Transfer::decode(unit);
                assert_eq!((common.kind, transfer.cid, transfer.tag), (Kind::H2CData, cid, 5));
                assert_eq!((transfer.offset, transfer.len), (received.len() as u32, common.data_len as u32));
                assert!(transfer.len <= LIMIT);
                assert_eq!(common.flags & flag::LAST != 0, number + 1 == units.len());
                received.extend(common.data(unit));
            }
        }
        assert_eq!(received, content);
    }
}

#[test]
fn a_read_is_put_together_however_its_bytes_arrive() {
    let content: Vec<u8> = (0..16384u32).map(|at| (at / 100) as u8).collect();
    for digests in [NONE, BOTH] {
        for step in [1, 7, 100_000] {
            let mut queue = connected(4, digests);
            let [first, second] = [0, 4].map(|at| queue.submit(Command::read(&NAMESPACE, at, 4)).expect("room"));
            // The data of two commands alternate; one ends with its data, the other with a completion.
            let mut bytes = data(part(first, 0, 4096), &content[..4096], 0, digests);
            bytes.extend(data(part(second, 0, 16384), &content, flag::LAST, digests));
            bytes.extend(completed_with(second, Status::SUCCESS, digests));
            bytes.extend(data(part(first, 4096, 12288), &content[4096..], flag::LAST | flag::SUCCESS, digests));
            for piece in bytes.chunks(step) {
                queue.receive(piece).expect("sound");
            }
            for cid in [second, first] {
                let done = queue.completion().expect("an end");
                assert_eq!((done.cid, done.status, &done.data), (cid, Status::SUCCESS, &content));
            }
        }
    }
}

#[test]
fn a_wrong_data_digest_spoils_its_command_only() {
    let mut queue = connected(4, BOTH);
    let [first, second] = [0, 1].map(|at| queue.submit(Command::read(&NAMESPACE, at, 1)).expect("room"));
    let mut wrong = data(part(first, 0, 4096), &[1; 4096], flag::LAST | flag::SUCCESS, BOTH);
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    queue.receive(&wrong).expect("the connection goes on");
    queue.receive(&data(part(second, 0, 4096), &[2; 4096], flag::LAST | flag::SUCCESS, BOTH)).expect("sound");
    let ends: Vec<_> = std::iter::from_fn(|| queue.completion()).map(|done| (done.cid, done.status)).collect();
    assert_eq!(ends, [(first, Status::TRANSPORT_ERROR), (second, Status::SUCCESS)]);
}

#[test]
fn no_more_commands_than_the_queue_has() {
    let mut queue = connected(3, NONE);
    let cids: Vec<u16> = (0..3).map(|_| queue.submit(Command::flush(1)).expect("room")).collect();
    assert!(queue.submit(Command::flush(1)).is_err());
    queue.receive(&completed(cids[1])).expect("sound");
    assert_eq!((queue.outstanding(), queue.has_room(1)), (3, false), "its completion was not taken");
    queue.completion().expect("an end");
    assert_eq!(queue.outstanding(), 2);
    assert!(queue.submit_fused(Command::flush(1), Command::flush(1)).is_err(), "room for one of two");
    let again = queue.submit(Command::flush(1)).expect("room");
    assert!(!cids.contains(&again), "a late completion of the old command would be taken for the new one's");
}

#[test]
fn fused_commands_follow_each_other() {
    let mut queue = connected(4, NONE);
    let (compare, write) = (vec![1; 4096], vec![2; 4096]);
    let (compare, write) = (Command::compare(&NAMESPACE, 3, compare), Command::write(&NAMESPACE, 3, write));
    let (compare, write) = queue.submit_fused(compare, write).expect("room");
    let entries: Vec<Sqe> = sent(&mut queue, NONE).iter().map(|(_, unit)| pdu::entry(unit)).collect();
    let fuses: Vec<_> = entries.iter().map(|entry| (entry.opcode(), entry.cid(), entry.fuse())).collect();
    assert_eq!(fuses, [(nvm::COMPARE, compare, Ok(Fuse::First)), (nvm::WRITE, write, Ok(Fuse::Second))]);
}

#[test]
fn ranges_are_laid_out_as_the_specification_draws_them() {
    let range = Range { first: 0x1_0000_0002, blocks: 5 };
    let command = Command::deallocate(&NAMESPACE, &[range, range]);
    assert_eq!((command.entry.dword(10), command.entry.dword(11)), (1, 4));
    let Payload::Out(bytes) = command.payload else { panic!("data for the controller") };
    assert_eq!(bytes[16..], [0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]);
    let command = Command::copy(&NAMESPACE, 9, &[range]);
    let Payload::Out(bytes) = command.payload else { panic!("data for the controller") };
    assert_eq!((bytes.len(), bytes[8], bytes[12], bytes[16]), (32, 2, 1, 4));
    let Payload::Out(bytes) = Command::deallocate(&NAMESPACE, &vec![range; 1000]).payload else { panic!("data") };
    assert_eq!(bytes.len(), 256 * 16);
}

/// What a controller must not send, with the command that it is about: a read of 4 KiB and a write of 16 KiB are outstanding.
type Wrong = fn(read: u16, write: u16) -> Vec<u8>;

#[test]
fn a_controller_that_does_not_keep_to_the_protocol_is_hung_up_on() {
    let protocol = Broken::Protocol;
    let last = flag::LAST | flag::SUCCESS;
    let wrong: &[(&str, Broken, Wrong)] = &[
        ("data beyond the buffer", protocol(Fatal::DataOutOfRange, 16), |read, _| {
            data(part(read, 0, 4100), &[0; 4100], 0, NONE)
        }),
        ("data with a gap", protocol(Fatal::DataOutOfRange, 12), |read, _| {
            data(part(read, 512, 512), &[0; 512], 0, NONE)
        }),
        ("data twice", protocol(Fatal::DataOutOfRange, 12), |read, _| {
            [data(part(read, 0, 512), &[0; 512], 0, NONE), data(part(read, 0, 512), &[0; 512], 0, NONE)].concat()
        }),
        ("data of another length than the unit", protocol(Fatal::DataOutOfRange, 16), |read, _| {
            data(part(read, 0, 512), &[0; 508], 0, NONE)
        }),
        ("data for a write", protocol(Fatal::InvalidHeader, 8), |_, write| {
            data(part(write, 0, 512), &[0; 512], 0, NONE)
        }),
        ("data for nothing", protocol(Fatal::InvalidHeader, 8), |_, _| data(part(999, 0, 512), &[0; 512], 0, NONE)),
        ("the end before the last data", protocol(Fatal::InvalidHeader, 1), |read, _| {
            data(part(read, 0, 4096), &[0; 4096], flag::SUCCESS, NONE)
        }),
        ("success with half of the data", Broken::Short, |read, _| {
            [data(part(read, 0, 512), &[0; 512], flag::LAST, NONE), completed(read)].concat()
        }),
        ("success with no data", Broken::Short, |read, _| completed(read)),
        ("two completions", protocol(Fatal::InvalidHeader, 20), |_, write| {
            [completed(write), completed(write)].concat()
        }),
        ("a completion for nothing", protocol(Fatal::InvalidHeader, 20), |_, _| completed(3)),
        ("an R2T of nothing", protocol(Fatal::DataOutOfRange, 16), |_, write| ready(write, 0, 0)),
        ("an R2T beyond the data", protocol(Fatal::DataOutOfRange, 16), |_, write| ready(write, 0, 16385)),
        ("an R2T that leaves a gap", protocol(Fatal::DataOutOfRange, 12), |_, write| ready(write, 4096, 4096)),
        ("an R2T twice", protocol(Fatal::DataOutOfRange, 12), |_, write| {
            [ready(write, 0, 8192), ready(write, 0, 8192)].concat()
        }),
        ("an R2T for a read", protocol(Fatal::InvalidHeader, 8), |read, _| ready(read, 0, 4096)),
        ("an R2T whose numbers wrap", protocol(Fatal::DataOutOfRange, 12), |_, write| ready(write, u32::MAX, 2)),
        ("a unit of a host", protocol(Fatal::Sequence, 0), |_, _| {
            pdu::command(&Sqe::new(nvm::FLUSH, 0, 1), 0, NONE, 4).as_bytes().to_vec()
        }),
        ("a second ICResp", protocol(Fatal::Sequence, 0), |_, _| {
            Init { align: 4, digests: NONE, limit: LIMIT }.response().as_bytes().to_vec()
        }),
        ("a unit of no kind", protocol(Fatal::InvalidHeader, 0), |_, _| vec![0x55; 8]),
        ("a header of another length", protocol(Fatal::InvalidHeader, 2), |_, _| vec![5, 0, 25, 0, 24, 0, 0, 0]),
    ];
    for (what, broken, bytes) in wrong {
        let mut queue = connected(4, NONE);
        let read = queue.submit(Command::read(&NAMESPACE, 0, 1)).expect("room");
        let write = queue.submit(Command::write(&NAMESPACE, 0, vec![1; 16384])).expect("room");
        sent(&mut queue, NONE);
        let bytes = bytes(read, write);
        assert_eq!(queue.receive(&bytes), Err(*broken), "{what}");
        assert_eq!(queue.receive(&[]), Err(*broken), "{what}: nothing more is taken");
        let told = sent(&mut queue, NONE).pop().map(|(common, unit)| (common.kind, unit));
        match broken {
            Broken::Protocol(why, _) => {
                let (kind, unit) = told.expect("a last unit");
                assert_eq!((kind, unit[8]), (Kind::H2CTermReq, *why as u8), "{what}");
            }
            _ => assert!(told.is_none(), "{what}"),
        }
    }
    // The same bytes, kept to the protocol.
    let mut queue = connected(4, NONE);
    let read = queue.submit(Command::read(&NAMESPACE, 0, 1)).expect("room");
    queue.receive(&data(part(read, 0, 4096), &[0; 4096], last, NONE)).expect("sound");
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let mut queue = connected(4, BOTH);
    let cid = queue.submit(Command::flush(1)).expect("room");
    let mut unit = completed_with(cid, Status::SUCCESS, BOTH);
    unit[12] ^= 1;
    assert_eq!(queue.receive(&unit), Err(Broken::Protocol(Fatal::HeaderDigest, 0)));
    assert_eq!(queue.completion(), None);
}

#[test]
fn a_termination_says_why() {
    let mut queue = connected(4, BOTH);
    let unit = pdu::terminate(Kind::C2HTermReq, Fatal::HeaderDigest, 12, &[1; 72]);
    assert_eq!(queue.receive(&unit), Err(Broken::Terminated { why: 3, field: 12 }));
}

#[test]
fn a_connection_is_not_agreed_upon_at_any_price() {
    let answers = [
        (Init { align: 4, digests: BOTH, limit: LIMIT }, Broken::Protocol(Fatal::InvalidHeader, 11)),
        (Init { align: 4, digests: NONE, limit: 1 }, Broken::Protocol(Fatal::InvalidHeader, 12)),
    ];
    for (answer, broken) in answers {
        let mut queue = Queue::new(&QueueOptions::new(4));
        assert_eq!(queue.receive(answer.response().as_bytes()), Err(broken));
        assert_eq!(queue.agreed(), None);
    }
    let mut queue = Queue::new(&QueueOptions::new(4));
    assert_eq!(queue.receive(&completed(0)), Err(Broken::Protocol(Fatal::Sequence, 0)));
}

#[test]
fn failed_reads_end_without_their_data() {
    let mut queue = connected(4, NONE);
    let read = queue.submit(Command::read(&NAMESPACE, 0, 1)).expect("room");
    queue.receive(&completed_with(read, Status::READ_ERROR, NONE)).expect("sound");
    assert_eq!(queue.completion().map(|done| done.status), Some(Status::READ_ERROR));
}

#[test]
fn messages_may_be_shorter_than_their_buffer() {
    let mut queue = connected(4, NONE);
    let cid = queue.submit(Command::authentication_receive(4096)).expect("room");
    queue.receive(&data(part(cid, 0, 16), &[3; 16], flag::LAST | flag::SUCCESS, NONE)).expect("sound");
    assert_eq!(queue.completion().map(|done| done.data), Some(vec![3; 16]));
}
