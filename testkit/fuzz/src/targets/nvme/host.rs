//! A host over a stream in memory, whose controller answers each command, seldom well.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::OnceLock;
use std::time::Duration;

use nvme::auth::{Group, Keys, Policy};
use nvme::command::{admin, fabrics};
use nvme::initiator::{Command, ConnectOptions, Controller, Error, Host};
use nvme::pdu::{self, COMMON_BYTES, Common, Digests, Init, Kind, Transfer};
use nvme::{Cqe, Sqe, Status};

use super::{digests, garble, unit};
use crate::choices::Choices;
use crate::targets::{Target, choices};

pub const TARGET: Target = Target {
    name: "nvme-host",
    about: "an NVMe host against a controller: Connect, authentication, properties, Identify, log pages, events",
    weight: 100,
    corpus: choices,
    words: &[],
    run,
};

/// A controller as hostile as its choices.
struct Hostile<'a> {
    choices: Choices<'a>,
    digests: Digests,
    received: Vec<u8>,
    output: VecDeque<u8>,
    commands: u32,
}

impl Hostile<'_> {
    fn answer(&mut self, entry: &Sqe) {
        let choices = &mut self.choices;
        self.commands += 1;
        let mut done = Cqe::new(entry.cid(), Status::SUCCESS);
        let mut data = Vec::new();
        match (entry.opcode(), entry.function()) {
            (admin::FABRICS, fabrics::CONNECT) => {
                let authenticate = if choices.one_in(2) { nvme::fabrics::AUTHENTICATION_REQUIRED } else { 0 };
                done.result = authenticate | 1;
            }
            (admin::FABRICS, fabrics::PROPERTY_GET) => {
                done.result = if choices.one_in(4) { choices.u64() } else { 1 << 24 | 9 };
            }
            (admin::FABRICS, fabrics::AUTHENTICATION_RECEIVE) => {
                // A challenge, or a success, with lengths that may fit.
                data = vec![1, choices.below(5) as u8, 0, 0, 1, 0, 32, 0, 1, 0, 0, 0, 1, 0, 0, 0];
                data.extend([9; 64]);
                garble(choices, &mut data, 3);
            }
            (admin::IDENTIFY | admin::GET_LOG_PAGE, _) => {
                let len = entry.data().map_or(0, nvme::Data::len).min(1 << 16) as usize;
                data = vec![0; len];
                let noise = choices.raw(64);
                let at = choices.below(len.saturating_sub(noise.len()) + 1);
                if let Some(place) = data.get_mut(at..at + noise.len()) {
                    place.copy_from_slice(noise);
                }
                // Fields that matter: sizes of a namespace, records of a discovery log.
                for at in [0, 8, 26, 130, 77, 1792] {
                    if choices.one_in(3)
                        && let Some(byte) = data.get_mut(at)
                    {
                        *byte = choices.hostile(1) as u8;
                    }
                }
            }
            _ => {}
        }
        if choices.one_in(10) {
            done.status = Status(choices.u16() & 0x7fff);
        }
        let mut bytes = Vec::new();
        if !data.is_empty() {
            let part = Transfer { cid: entry.cid(), tag: 0, offset: 0, len: data.len() as u32 };
            bytes.extend(unit(&part.from_controller(false, self.digests, 4), &data, self.digests));
        }
        bytes.extend(pdu::response(&done, self.digests).as_bytes());
        garble(choices, &mut bytes, 24);
        self.output.extend(bytes);
    }
}

impl Read for Hostile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = if self.choices.one_in(4) { 1 + self.choices.below(100) } else { buffer.len() };
        self.output.read(&mut buffer[..most])
    }
}

impl Write for Hostile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A host that asks without end would never be done.
        if self.commands > 4000 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.received.extend(bytes);
        while let Some(first) = self.received.first_chunk::<COMMON_BYTES>() {
            let digests = if first[0] == Kind::IcReq as u8 { Digests::default() } else { self.digests };
            let common = Common::decode(first, digests, 1 << 20).expect("the host's units are sound");
            if self.received.len() < common.len {
                break;
            }
            let unit: Vec<u8> = self.received.drain(..common.len).collect();
            assert!(common.header_is_sound(&unit) && common.data_are_sound(&unit));
            match common.kind {
                Kind::IcReq => {
                    let mut hello =
                        Init { align: 4, digests: self.digests, limit: 8192 }.response().as_bytes().to_vec();
                    garble(&mut self.choices, &mut hello, 20);
                    if let Some(agreed) = hello.first_chunk().and_then(|hello| Init::decode(Kind::IcResp, hello).ok()) {
                        self.digests = agreed.digests;
                    }
                    self.output.extend(hello);
                }
                Kind::CapsuleCmd => self.answer(&pdu::entry(&unit)),
                Kind::H2CData | Kind::H2CTermReq => {}
                other => panic!("{other:?} from a host"),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn use_it(mut controller: Controller<Hostile<'_>>) -> Result<(), Error> {
    controller.namespaces()?;
    controller.smart()?;
    let log = controller.discover();
    assert!(log.is_err() || log.is_ok_and(|log| log.entries.len() <= 1024));
    controller.request_queues(4)?;
    let event = controller.request_event()?;
    controller.event(event)?;
    controller.link().execute(Command::keep_alive())?;
    let namespace = controller.namespace(1)?;
    assert!(namespace.block_bytes >= 512);
    controller.abort(1, 1).map(drop)
}

fn run(input: &[u8]) {
    static HOST: OnceLock<Host> = OnceLock::new();
    let host = HOST.get_or_init(|| {
        let secret = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:".parse().expect("a secret");
        let keys = Keys { host: secret, controller: None };
        Host::new("nqn.h", [1; 16]).with_keys(keys, Policy { groups: vec![Group::Null], ..Policy::default() })
    });
    let mut choices = Choices::new(input);
    let digests = digests(&mut choices);
    let hostile = Hostile { choices, digests, received: Vec::new(), output: VecDeque::new(), commands: 0 };
    let options = ConnectOptions { digests, pause: Duration::ZERO, ..ConnectOptions::default() };
    // How it ends is the controller's choice; that it ends is ours.
    if let Ok(controller) = host.connect(hostile, "nqn.s", &options) {
        let _ = use_it(controller);
    }
}
