//! The initiator's queue in memory: completions, data and R2Ts that a controller must not send.

use nvme::initiator::{Command, Namespace, Queue, QueueOptions, Range};
use nvme::pdu::{self, Digests, Init, Kind, Transfer, flag};
use nvme::{Cqe, Status};

use super::{digests, garble, unit};
use crate::choices::Choices;
use crate::targets::{Target, choices};

pub const TARGET: Target = Target {
    name: "nvme-queue",
    about: "an NVMe host's queue against a controller: completions, data, R2Ts, digests, abrupt ends",
    weight: 300,
    corpus: choices,
    words: &[],
    run,
};

const DEPTH: u16 = 8;
const NAMESPACE: Namespace = Namespace {
    read_only: false,
    nsid: 1,
    blocks: 1 << 30,
    block_bytes: 512,
    used_blocks: 0,
    features: 0,
    atomic_blocks: None,
    nguid: [0; 16],
    snapshot: None,
};

/// What the controller may say next, almost rightly.
fn answer(choices: &mut Choices, queue: &[(u16, u32)], digests: Digests) -> Vec<u8> {
    let (mut cid, len) = if queue.is_empty() { (choices.u16(), 0) } else { choices.pick(queue) };
    if choices.one_in(12) {
        cid = choices.hostile(cid.into()) as u16;
    }
    let mut transfer = Transfer { cid, tag: choices.u16(), offset: 0, len };
    match choices.below(8) {
        0 => transfer.len = choices.hostile(len.into()) as u32 & 0xffff,
        1 => (transfer.offset, transfer.len) = (len / 2, len - len / 2),
        2 => transfer.len = len / 2,
        3 => transfer.offset = choices.hostile(0) as u32,
        _ => {}
    }
    let mut bytes = match choices.below(8) {
        0..3 => {
            let data = vec![0x5a; (transfer.len as usize).min(64 << 10)];
            transfer.len = data.len() as u32;
            unit(&transfer.from_controller(choices.one_in(2), digests, 4 << choices.below(6)), &data, digests)
        }
        3 | 4 => transfer.ready(digests).as_bytes().to_vec(),
        5 if choices.one_in(8) => pdu::terminate(Kind::C2HTermReq, pdu::Fatal::Sequence, 0, choices.raw(200)),
        6 if choices.one_in(4) => choices.raw(64).to_vec(),
        _ => {
            let status = if choices.one_in(2) { Status(choices.u16() & 0x7fff) } else { Status::SUCCESS };
            let entry = Cqe { result: choices.u64(), sq_head: choices.u16(), ..Cqe::new(cid, status) };
            pdu::response(&entry, digests).as_bytes().to_vec()
        }
    };
    if bytes.get(1).is_some() && choices.one_in(10) {
        bytes[1] ^= flag::LAST;
    }
    garble(choices, &mut bytes, 16);
    bytes
}

fn command(choices: &mut Choices) -> Command {
    let blocks = 1 + choices.below(40) as u32;
    let data = || vec![7; blocks as usize * 512];
    match choices.below(8) {
        0 => Command::flush(1),
        1 | 2 => Command::write(&NAMESPACE, 0, data()),
        3 => Command::deallocate(&NAMESPACE, &vec![Range { first: 0, blocks: 1 }; choices.below(300)]),
        4 => Command::authentication_receive(blocks * 64),
        5 => Command::compare(&NAMESPACE, 0, data()),
        _ => Command::read(&NAMESPACE, 0, blocks),
    }
}

fn run(input: &[u8]) {
    let choices = &mut Choices::new(input);
    let wanted = digests(choices);
    let mut queue = Queue::new(&QueueOptions { digests: wanted, ..QueueOptions::new(DEPTH) });
    queue.sent(pdu::INIT_BYTES);
    let limit = if choices.one_in(8) { choices.u32() } else { 4096 };
    let agreed = Init { align: 4 << choices.below(6), digests: wanted, limit };
    let mut hello = agreed.response().as_bytes().to_vec();
    garble(choices, &mut hello, 16);
    let mut is_over = queue.receive(&hello).is_err();
    // Identifier, and bytes of data, of what is outstanding.
    let mut outstanding: Vec<(u16, u32)> = Vec::new();
    let (mut submitted, mut ended) = (0, 0);
    while !choices.is_over() && queue.agreed().is_some() {
        for _ in 0..choices.below(4) {
            let fresh = command(choices);
            let len = fresh.payload.bytes();
            match queue.submit(fresh) {
                Ok(cid) => {
                    assert!(!outstanding.iter().any(|(other, _)| *other == cid), "an identifier that is in use");
                    outstanding.push((cid, len));
                    submitted += 1;
                }
                Err(_) => assert_eq!(outstanding.len(), usize::from(DEPTH), "room for what the queue has"),
            }
        }
        let bytes = answer(choices, &outstanding, wanted);
        let cut = choices.below(bytes.len() + 1);
        for piece in [&bytes[..cut], &bytes[cut..]] {
            let result = queue.receive(piece);
            assert!(!is_over || result.is_err(), "what is over goes on");
            is_over = result.is_err();
        }
        while let Some(done) = queue.completion() {
            let place = outstanding.iter().position(|(cid, _)| *cid == done.cid).expect("one that is outstanding");
            let (_, len) = outstanding.swap_remove(place);
            assert!(done.data.len() <= len as usize);
            ended += 1;
        }
        assert_eq!(submitted, ended + outstanding.len());
        // Every byte of data leaves once at most, in pieces of 4 KiB at least.
        assert!(queue.output().len() <= 512 + submitted * (40 * 512 * 2), "{} bytes of output", queue.output().len());
        if choices.one_in(3) {
            queue.sent(choices.below(queue.output().len() + 1));
        }
    }
}
