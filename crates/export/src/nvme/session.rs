//! A queue of a host on the device's thread: its units in the order in which they come, its commands in the order in which they
//! are done.
//!
//! A read, or a write whose data have come in one piece, goes to the device straight from the receive buffer, as an NBD request
//! does. Everything else is a *task* ([`tasks`]): a plan of device requests that are carried out one after the other (a comparison is a
//! read; a deallocation a trim for each range; a copy reads and then one write), or data that are still awaited.

mod events;
mod mapped;
mod tasks;
mod zones;

use std::collections::VecDeque;

use device::{BatchError, IoError};
use nvme::command::{Cqe, Fuse, Sqe, admin, fabrics};
use nvme::controller::{Behind, Then};
use nvme::nvm::{Command as Nvm, How, Range};
use nvme::pdu::{self, ADMIN_IN_CAPSULE_BYTES, COMMON_BYTES, Common, Digests, Fatal, IN_CAPSULE_BYTES, Kind};
use nvme::{Admitted, Data, Namespace, Status, placement};
use slab::Slab;

use super::Joined;
use super::handshake::Agreed;
use super::subject::Attached;
use crate::jobs::{Core, Issued, Payload, Source, Transfer};
use crate::link::{Link, Step, cost};
use crate::request::{Command, Request};
pub(crate) use events::collect;
use tasks::{Awaited, Fused, Task};

/// What a comparison brings along is copied until it is carried out: up to so many bytes at any time, more where there is room.
const COPIED: u64 = 16 << 10;

/// Marks the cookie of a request that is a whole command; the command's identifier stands in its low bits.
const WHOLE: u64 = 1 << 63;

/// What stands at the front of the input.
#[derive(Clone, Copy, Debug)]
enum Current {
    /// The next unit.
    Unit,
    /// A unit whose command is a request of the device that it does not have yet.
    Request {
        transfer: Transfer,
        /// Where its data begin in the input, if it brings any.
        data_at: usize,
        /// Bytes of the unit.
        len: usize,
        /// What was kept for it until its data came.
        granted: usize,
    },
}

/// Who is at the other end, and how it wants to be talked to.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its qualified name.
    pub name: String,
    /// The subsystem that it asked for.
    pub subsystem: String,
    /// How its units look.
    pub agreed: Agreed,
}

/// A host's queue.
pub struct Session {
    admitted: Admitted,
    host: Host,
    namespace: Namespace,
    current: Current,
    tasks: Slab<Task>,
    /// Tasks that can go on, in turn.
    ready: VecDeque<usize>,
    /// Tasks that wait until there is room for their data.
    ungranted: VecDeque<usize>,
    fused: Fused,
    /// The second of two fused commands, whose first still awaits its data; with its range, and how it is written.
    early_second: Option<(Task, Range, How)>,
    /// Identifiers in use, a bit each.
    used: Box<[u64; 1024]>,
    outstanding: u16,
    sq_head: u16,
}

impl Session {
    /// Begins behind Connect, with `taken` commands taken.
    pub fn new(joined: Joined, host: Host, taken: u16) -> Session {
        Session {
            admitted: joined.admitted,
            host,
            namespace: joined.namespace,
            current: Current::Unit,
            tasks: Slab::new(),
            ready: VecDeque::new(),
            ungranted: VecDeque::new(),
            fused: Fused::None,
            early_second: None,
            used: Box::new([0; 1024]),
            outstanding: 0,
            sq_head: taken % joined.admitted.entries,
        }
    }

    /// The device has another host capacity.
    pub fn resized(&mut self, bytes: u64) {
        self.namespace.bytes = bytes;
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.host.name
    }

    /// Which queue it is.
    pub fn admitted(&self) -> Admitted {
        self.admitted
    }

    /// Which digests it uses.
    pub fn digests(&self) -> Digests {
        self.host.agreed.digests
    }

    /// Whether a command is read and not yet wholly with the device, or awaits its data.
    #[inline]
    pub fn has_part(&self) -> bool {
        !matches!(self.current, Current::Unit) || !self.tasks.is_empty()
    }

    /// The request of which the device may have a part: it is not carried on with.
    pub fn give_up(&mut self) -> Option<Transfer> {
        self.ready.clear();
        self.ungranted.clear();
        match std::mem::replace(&mut self.current, Current::Unit) {
            Current::Request { transfer, .. } => Some(transfer),
            Current::Unit => None,
        }
    }

    fn is_admin(&self) -> bool {
        self.admitted.queue == 0
    }

    /// Whether there is something to do that needs no input.
    pub fn can_go_on(&self, link: &mut Link) -> bool {
        let waits = !self.ungranted.is_empty() || !self.ready.is_empty();
        waits && (self.ready.iter().any(|task| !self.tasks[*task].reads) || link.has_room())
    }

    /// Does what needs no input: events, tasks that can go on, room for awaited data. Nothing where there is none of that.
    #[inline]
    pub fn advance(&mut self, link: &mut Link, key: usize, core: &mut Core) -> Option<Step> {
        if self.is_admin()
            && let Some(event) = core.nvme.controller(self.admitted.controller).and_then(|it| it.next_event())
        {
            self.respond(link, event);
            return Some(Step::Done(1));
        }
        if self.ready.is_empty() && self.ungranted.is_empty() {
            return None;
        }
        // What needs room for its answer, or for data to come, waits until there is some; what needs none goes by.
        let room = link.has_room();
        if let Some(place) = self.ready.iter().position(|task| room || !self.tasks[*task].reads) {
            return Some(self.issue_task(link, key, core, place));
        }
        let task = if room { self.ungranted.pop_front() } else { None };
        task.map(|task| {
            self.grant(link, task);
            Step::Done(1)
        })
    }

    /// Takes the next step with what was received.
    #[inline]
    pub fn step(&mut self, link: &mut Link, key: usize, core: &mut Core) -> Step {
        if let Current::Request { transfer, data_at, len, granted } = self.current {
            return self.issue(link, key, core, transfer, (data_at, len, granted));
        }
        let Some(bytes) = link.input.bytes().first_chunk::<COMMON_BYTES>() else {
            return Step::Need(COMMON_BYTES);
        };
        let most = self.namespace.max_request_bytes.max(IN_CAPSULE_BYTES) as usize;
        let unit = match Common::decode(bytes, self.host.agreed.digests, most) {
            Ok(unit) => unit,
            Err((why, field)) => return self.fatal(link, why, field),
        };
        if link.input.bytes().len() < unit.len {
            return Step::Need(unit.len);
        }
        if !unit.header_is_sound(link.input.bytes()) {
            return self.fatal(link, Fatal::HeaderDigest, 0);
        }
        match unit.kind {
            Kind::CapsuleCmd => self.capsule(link, key, core, &unit),
            Kind::H2CData => self.data(link, key, core, &unit),
            Kind::H2CTermReq => {
                link.break_off("the host ended the connection");
                Step::Done(1)
            }
            _ => self.fatal(link, Fatal::Sequence, 0),
        }
    }

    /// Tells the host why, and ends the connection.
    fn fatal(&mut self, link: &mut Link, why: Fatal, field: u32) -> Step {
        let unit = &link.input.bytes()[..link.input.bytes().len().min(pdu::COMMAND_BYTES)];
        let bytes = pdu::terminate(Kind::C2HTermReq, why, field, unit);
        tracing::debug!(peer = %link.peer, queue = self.admitted.queue, %why, field, "connection ended");
        link.output.small(&bytes);
        link.drain();
        Step::Done(1)
    }

    /// A command.
    #[inline]
    fn capsule(&mut self, link: &mut Link, key: usize, core: &mut Core, unit: &Common) -> Step {
        let entry = pdu::entry(link.input.bytes());
        let cid = entry.cid();
        link.request_came(core);
        let now_ms = core.observer.arrival() / 1_000_000;
        if let Some(controller) = core.nvme.controller(self.admitted.controller) {
            controller.heard(now_ms);
        }
        self.sq_head = if self.sq_head + 1 >= self.admitted.entries { 0 } else { self.sq_head + 1 };
        let (word, bit) = (usize::from(cid / 64), 1 << (cid % 64));
        let conflict = self.used[word] & bit != 0;
        if !conflict {
            if self.outstanding >= self.admitted.entries {
                return self.fatal(link, Fatal::Sequence, 0);
            }
            self.used[word] |= bit;
            self.outstanding += 1;
        }
        let most = if self.is_admin() { ADMIN_IN_CAPSULE_BYTES } else { IN_CAPSULE_BYTES };
        if unit.data_len > most as usize {
            return self.fatal(link, Fatal::DataLimit, 4);
        }
        let sound = unit.data_are_sound(link.input.bytes());
        let checked = if conflict {
            Err(Status::ID_CONFLICT)
        } else if !sound {
            Err(Status::TRANSPORT_ERROR)
        } else if self.is_admin() {
            let data = unit.data(link.input.bytes()).to_vec();
            link.input.consume(unit.len);
            return self.admin(link, core, (&entry, &data));
        } else if entry.opcode() == admin::FABRICS {
            link.input.consume(unit.len);
            return self.fabrics(link, core, &entry);
        } else {
            self.command(&entry, unit)
        };
        let answer = match checked {
            Ok((command, data)) => return self.begin(link, key, core, &entry, (command, data), unit),
            Err(status) => Cqe::new(cid, status),
        };
        // A command that is refused comes between the two of a pair as well.
        self.miss_second(link, core);
        if conflict {
            self.send(link, answer)
        } else {
            self.fail(link, core, answer.cid, answer.status, entry.dwords(10))
        }
        link.input.consume(unit.len);
        Step::Done(1)
    }

    /// A fabrics command on an I/O queue: only its end is one that belongs there.
    fn fabrics(&mut self, link: &mut Link, core: &mut Core, entry: &Sqe) -> Step {
        self.miss_second(link, core);
        if entry.function() == fabrics::DISCONNECT {
            self.respond(link, Cqe::new(entry.cid(), Status::SUCCESS));
            link.drain();
        } else {
            self.fail(link, core, entry.cid(), Status::SEQUENCE_ERROR, 0);
        }
        Step::Done(1)
    }

    /// What an I/O command asks, and how its data come.
    #[inline]
    fn command(&self, entry: &Sqe, unit: &Common) -> Result<(Nvm, Data), Status> {
        let command = Nvm::decode(entry, &self.namespace)?;
        let data = command.data(entry)?;
        match data {
            Data::InCapsule(len) if len as usize != unit.data_len => Err(Status::SGL_LENGTH_INVALID),
            Data::Transport(_) if unit.data_len > 0 => Err(Status::SGL_TYPE_INVALID),
            _ => Ok((command, data)),
        }
    }

    /// Begins an I/O command that is sound.
    #[inline]
    fn begin(
        &mut self,
        link: &mut Link,
        key: usize,
        core: &mut Core,
        entry: &Sqe,
        (command, data): (Nvm, Data),
        unit: &Common,
    ) -> Step {
        let (cid, fuse) = (entry.cid(), entry.fuse().unwrap_or(Fuse::None));
        let refused = match fuse {
            _ if (matches!(command, Nvm::Compare(range) if range.len > COPIED)
                && matches!(data, Data::InCapsule(_))
                || matches!(command, Nvm::MappedRanges { .. } | Nvm::PlacementStatus(_) | Nvm::ZoneReport(_)))
                && !link.has_room() =>
            {
                self.miss_second(link, core);
                Some(Status::INTERRUPTED)
            }
            Fuse::Second => (!self.fused.pair()).then_some(Status::FUSED_MISSING),
            Fuse::First | Fuse::None => {
                self.miss_second(link, core);
                // One pair at a time: the host may try again.
                (fuse == Fuse::First && !matches!(self.fused, Fused::None)).then_some(Status::ABORTED)
            }
        };
        if let Some(status) = refused {
            link.input.consume(unit.len);
            self.fail(link, core, cid, status, entry.dwords(10));
            return Step::Done(1);
        }
        if matches!(command, Nvm::Write(..)) {
            events::note_unknown(core, &self.namespace, entry);
        }
        if command.from_host() > 0 && matches!(data, Data::Transport(_)) {
            link.input.consume(unit.len);
            let awaited =
                Awaited { command, fuse, len: command.from_host() as u32, got: 0, granted: false, fails: None };
            let task = self.tasks.insert(Task { awaits: Some(awaited), ..Task::new(cid) });
            if fuse == Fuse::First {
                self.fused = Fused::Awaiting { task, paired: false };
            }
            self.ungranted.push_back(task);
            return Step::Done(1);
        }
        let whole = |command, range: Range| Request {
            command,
            offset: range.offset,
            len: range.len,
            cookie: WHOLE | u64::from(cid),
            view: self.namespace.snapshot,
        };
        let request = match command {
            Nvm::Flush => whole(Command::Flush, Range { offset: 0, len: 0 }),
            Nvm::Read(range) if link.has_room() => whole(Command::Read, range),
            Nvm::Read(range) => {
                // Its turn comes when answers were taken; the host's data for other commands come meanwhile.
                link.input.consume(unit.len);
                let request = Request { cookie: 0, ..whole(Command::Read, range) };
                self.plan(Task { reads: true, ..Task::new(cid) }, [request]);
                return Step::Done(1);
            }
            Nvm::PlacementStatus(bytes) => {
                link.input.consume(unit.len);
                let left = |handle| core.device.left_in_placement(handle);
                let data = Payload::from(placement::status(&self.namespace, left, bytes));
                self.respond_with(link, core, Cqe::new(cid, Status::SUCCESS), data);
                return Step::Done(cost(bytes as u64));
            }
            Nvm::MappedRanges { range, most, since } => {
                link.input.consume(unit.len);
                let Ok(mapped) = mapped::ranges(&core.device, range, most, since, &self.namespace) else {
                    self.fail(link, core, cid, Status::INVALID_NAMESPACE, range.offset >> self.namespace.block_shift);
                    return Step::Done(1);
                };
                let data = Payload::from(mapped.encode(command.to_host()));
                self.respond_with(link, core, Cqe::new(cid, Status::SUCCESS), data);
                return Step::Done(cost(command.to_host() as u64));
            }
            Nvm::ZoneReport(wanted) => {
                link.input.consume(unit.len);
                let data = Payload::from(zones::report(&core.device, &wanted, &self.namespace));
                self.respond_with(link, core, Cqe::new(cid, Status::SUCCESS), data);
                return Step::Done(cost(wanted.bytes as u64));
            }
            Nvm::Write(range, how) if fuse == Fuse::None => whole(self.write_command(core, how), range),
            Nvm::Append(range, how) => whole(self.append_command(core, how), range),
            Nvm::WriteZeroes { range, durable, deallocate } => {
                let fua = durable || self.writes_through(core);
                whole(Command::WriteZeroes { fua, allocate: !deallocate }, range)
            }
            _ => {
                let data = unit.data(link.input.bytes())[..command.from_host()].to_vec();
                link.input.consume(unit.len);
                link.hold(data.len());
                let held = data.len();
                self.start(link, core, Task { data, held, ..Task::new(cid) }, command, fuse);
                return Step::Done(cost(held as u64));
            }
        };
        let at = (if command.from_host() > 0 { unit.data_at } else { 0 }, unit.len, 0);
        self.issue(link, key, core, Transfer::new(request), at)
    }

    /// A write as the device takes it.
    fn write_command(&self, core: &mut Core, how: How) -> Command {
        Command::Write { fua: how.durable || self.writes_through(core), placement: how.placement }
    }

    /// An append as the device takes it.
    fn append_command(&self, core: &mut Core, how: How) -> Command {
        Command::Append { fua: how.durable || self.writes_through(core) }
    }

    /// Whether the host switched the cache off.
    fn writes_through(&self, core: &mut Core) -> bool {
        core.nvme.controller(self.admitted.controller).is_some_and(|controller| controller.writes_through())
    }

    /// Hands the next piece of a command that is one request to the device.
    #[inline]
    fn issue(
        &mut self,
        link: &mut Link,
        key: usize,
        core: &mut Core,
        mut transfer: Transfer,
        (data_at, len, granted): (usize, usize, usize),
    ) -> Step {
        let source = if data_at > 0 { Source::Input(data_at) } else { Source::Nothing };
        let issued = link.issue(key, core, &mut transfer, source);
        let request = transfer.request;
        match issued {
            Issued::Held(_) | Issued::More => self.current = Current::Request { transfer, data_at, len, granted },
            Issued::Pending | Issued::Answered(_) => {
                self.current = Current::Unit;
                link.input.consume(len);
                link.let_go(granted);
            }
        }
        match issued {
            Issued::Held(_) => return Step::Busy,
            Issued::Answered(result) => self.answer(link, key, core, &request, result),
            Issued::Pending | Issued::More => {}
        }
        Step::Done(cost(request.len.min(u64::from(self.namespace.max_request_bytes))))
    }

    /// The device is done with a request.
    #[inline]
    pub fn answer(
        &mut self,
        link: &mut Link,
        key: usize,
        core: &mut Core,
        request: &Request,
        result: Result<Payload, IoError>,
    ) {
        if request.cookie & WHOLE == 0 {
            return self.went_on(link, key, core, request, result);
        }
        let cid = (request.cookie & 0xffff) as u16;
        match result {
            Ok(read) => {
                link.count(request);
                let done = Cqe::new(cid, Status::SUCCESS);
                match request.command {
                    Command::Read => self.respond_with(link, core, done, read),
                    Command::Append { .. } => {
                        let lba = request.offset >> self.namespace.block_shift;
                        self.respond(link, Cqe { result: lba, ..done });
                    }
                    _ => self.respond(link, done),
                }
            }
            Err(error) => {
                let lba = request.offset >> self.namespace.block_shift;
                self.fail(link, core, cid, status_of(error, request.command), lba);
            }
        }
    }

    /// A command of the admin queue.
    fn admin(&mut self, link: &mut Link, core: &mut Core, command: (&Sqe, &[u8])) -> Step {
        events::collect(core);
        let attached = Attached::new(&core.device, &self.namespace);
        let Some((controller, events)) = core.nvme.controller_with_events(self.admitted.controller) else {
            link.break_off("its controller is gone");
            return Step::Done(1);
        };
        let outcome = controller.admin(command, &self.host.subsystem, Behind::Device(&attached, events));
        if let Some(answer) = outcome.answer {
            self.respond_with(link, core, answer, Payload::from(outcome.data));
        }
        match outcome.then {
            Then::Nothing => {}
            Then::Flush => {
                let flush = Request { command: Command::Flush, offset: 0, len: 0, cookie: 0, view: None };
                self.plan(Task { cid: None, ..Task::new(0) }, [flush]);
            }
            Then::CloseQueues => {
                // Requests to be told of events are forgotten without an answer.
                self.used.fill(0);
                self.outstanding = 0;
                core.close_queues.push(self.admitted.controller);
            }
            Then::Abort(cid) => self.respond(link, Cqe::new(cid, Status::ABORTED)),
        }
        Step::Done(8)
    }

    /// An identifier may be used again.
    fn release(&mut self, cid: u16) {
        let (word, bit) = (usize::from(cid / 64), 1u64 << (cid % 64));
        if self.used[word] & bit != 0 {
            self.used[word] &= !bit;
            self.outstanding -= 1;
        }
    }

    /// A command failed.
    fn fail(&mut self, link: &mut Link, core: &mut Core, cid: u16, status: Status, lba: u64) {
        if let Some(controller) = core.nvme.controller(self.admitted.controller) {
            controller.note_failure(self.admitted.queue, cid, status, lba);
        }
        link.last_error = Some(status.code());
        self.respond(link, Cqe::new(cid, status));
    }

    /// A command is answered.
    #[inline]
    fn respond(&mut self, link: &mut Link, answer: Cqe) {
        self.release(answer.cid);
        self.send(link, answer);
    }

    #[inline]
    fn send(&mut self, link: &mut Link, answer: Cqe) {
        link.output.small(pdu::response(&self.headed(answer), self.host.agreed.digests).as_bytes());
    }

    /// The completion with how far the queue's entries are taken, where the host wants to know.
    #[inline]
    fn headed(&self, answer: Cqe) -> Cqe {
        Cqe { sq_head: if self.admitted.no_flow_control { 0 } else { self.sq_head }, ..answer }
    }

    /// A command is answered with data.
    #[inline]
    fn respond_with(&mut self, link: &mut Link, core: &mut Core, answer: Cqe, data: Payload) {
        self.release(answer.cid);
        // Without flow control a success needs no completion behind its data.
        let short = self.admitted.no_flow_control && answer.result == 0;
        let answer = self.headed(answer);
        self.host.agreed.answer(&mut link.output, &mut core.pool, &answer, data, short);
    }
}

/// A device's error in the words of the specification.
fn status_of(error: IoError, command: Command) -> Status {
    match (error, command) {
        (IoError::OutOfRange, _) => Status::LBA_RANGE,
        (IoError::Batch(BatchError::OutOfRange(_)), _) => Status::LBA_RANGE,
        (IoError::Batch(BatchError::TooLarge { .. }), _) => Status::SIZE_LIMIT,
        (IoError::Batch(BatchError::Overlap(..)), _) => Status::BATCH_OVERLAP,
        (IoError::TooLarge | IoError::Batch(_) | IoError::Scattered, _) => Status::INVALID_FIELD,
        (IoError::Zone(error), _) => zones::status_of(error),
        (IoError::ReadOnly, _) => Status::WRITE_PROTECTED,
        (IoError::NoSpace | IoError::Full, _) => Status::CAPACITY_EXCEEDED,
        // With the snapshot that it shows the namespace is gone.
        (IoError::NoSnapshot, _) => Status::INVALID_NAMESPACE,
        (IoError::Media, Command::Read) => Status::READ_ERROR,
        (IoError::Media, _) => Status::WRITE_FAULT,
    }
}
