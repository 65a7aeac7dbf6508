//! A host that asks which subsystems there are: served on a thread of its own, since it needs no device.

use std::io;
use std::time::{Duration, Instant};

use nvme::command::{admin, fabrics};
use nvme::controller::{Behind, Controller, Event};
use nvme::discovery::Directory;
use nvme::fabrics::{ANY_CONTROLLER, Connect, DISCOVERY_NQN};
use nvme::pdu::ADMIN_IN_CAPSULE_BYTES;
use nvme::property::QUEUE_ENTRIES;
use nvme::{Cqe, Status};

use super::handshake::{Agreed, Ended, answer, read_command, refuse};
use crate::timed::Timed;

/// How often it is looked whether there is something to tell.
const LOOK: Duration = Duration::from_secs(1);
/// How long a command may take to come once it has begun, and an answer to go.
const COMMAND: Duration = Duration::from_secs(10);
/// How long a host without a keep alive timer may be silent.
const IDLE: Duration = Duration::from_secs(120);

/// The number of each discovery controller: a host has one, and they share nothing.
const CONTROLLER: u16 = 1;

/// Serves a discovery controller until its host goes. `directory` tells what there is now, and nothing once the server closes.
pub fn serve(
    mut socket: Timed,
    agreed: &Agreed,
    (cid, connect): (u16, &Connect),
    directory: impl Fn() -> Option<Directory>,
) -> Result<(), Ended> {
    let entries_fit = (2..=u32::from(QUEUE_ENTRIES)).contains(&connect.entries);
    if connect.queue != 0 || connect.controller != ANY_CONTROLLER || !entries_fit {
        return Err(refuse(&mut socket, agreed, Cqe::new(cid, Status::CONNECT_INVALID)));
    }
    let began = Instant::now();
    let now_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut controller = Controller::new(CONTROLLER, connect, 0);
    let Some(mut known) = directory() else { return Ok(()) };
    let entries = connect.entries as u16;
    let mut head = 1;
    let joined = Cqe { result: u64::from(CONTROLLER), sq_head: head, ..Cqe::new(cid, Status::SUCCESS) };
    answer(&mut socket, agreed, &joined, &[])?;
    let mut heard = Instant::now();
    loop {
        let Some(fresh) = directory() else { return Ok(()) };
        if fresh.generation != known.generation {
            controller.raise(Event::DiscoveryChanged);
        }
        known = fresh;
        // The time to look again may be over by now.
        socket.set_deadline(Instant::now() + COMMAND);
        while let Some(event) = controller.next_event() {
            answer(&mut socket, agreed, &Cqe { sq_head: head, ..event }, &[])?;
        }
        let silent = connect.keep_alive_ms == 0 && heard.elapsed() > IDLE;
        if silent || controller.is_silent(now_ms()) {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        socket.set_deadline(Instant::now() + LOOK);
        if !socket.is_readable()? {
            continue;
        }
        socket.set_deadline(Instant::now() + COMMAND);
        let (entry, _) = match read_command(&mut socket, agreed, ADMIN_IN_CAPSULE_BYTES as usize) {
            Err(Ended::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        };
        head = (head + 1) % entries;
        heard = Instant::now();
        controller.heard(now_ms());
        if entry.opcode() == admin::FABRICS && entry.function() == fabrics::DISCONNECT {
            return Ok(());
        }
        let outcome = controller.admin((&entry, &[]), DISCOVERY_NQN, Behind::Directory(&known));
        // There is nothing to be made durable.
        controller.shut_down_if_asked();
        if let Some(done) = outcome.answer {
            answer(&mut socket, agreed, &Cqe { sq_head: head, ..done }, &outcome.data)?;
        }
    }
}
