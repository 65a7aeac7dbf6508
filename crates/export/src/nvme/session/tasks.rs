//! Tasks of a queue: commands that take more than one request of the device, pairs of fused commands, and data that are awaited.

use std::collections::VecDeque;

use device::{BatchOp, IoError};
use nvme::Status;
use nvme::command::{Cqe, Fuse};
use nvme::nvm::{Command as Nvm, How, Range};
use nvme::pdu::{self, Common, Fatal};
use nvme::vendor::OPERATION_BYTES;

use super::{Session, WHOLE, events, status_of, zones};
use crate::jobs::{Core, Issued, Payload, Source, Transfer};
use crate::link::{Link, Step, cost};
use crate::request::{Command, Request};
use crate::slow::Held;

/// A command that takes more than one request of the device, or whose data are awaited.
#[derive(Debug)]
pub(super) struct Task {
    /// The command that is answered; nothing where nobody asked.
    pub(super) cid: Option<u16>,
    /// The second of two fused commands, answered with the first.
    pub(super) second: Option<u16>,
    /// What is asked of the device next.
    pub(super) plan: VecDeque<Request>,
    /// Data of the host, or what is copied.
    pub(super) data: Vec<u8>,
    /// What must be stored for a comparison to succeed.
    pub(super) expected: Option<Vec<u8>>,
    /// What is read is kept for a write.
    pub(super) gathers: bool,
    /// Answered with data.
    pub(super) reads: bool,
    /// Bytes that it counts as holding.
    pub(super) held: usize,
    /// Data are awaited for this command.
    pub(super) awaits: Option<Awaited>,
    /// Operations of a batch, whose data begin behind the list of them.
    pub(super) ops: Vec<BatchOp>,
    /// The range is kept for itself while it is compared and written.
    pub(super) reserves: bool,
    /// Where something was appended, byte.
    pub(super) appended: Option<u64>,
}

/// Data on their way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    pub(super) command: Nvm,
    pub(super) fuse: Fuse,
    pub(super) len: u32,
    pub(super) got: u32,
    /// The host was told that we are ready.
    pub(super) granted: bool,
    /// It fails like this once all of them are there.
    pub(super) fails: Option<Status>,
}

/// The first of two fused commands: the second must be the queue's next command. A queue has one such pair at a time.
#[derive(Debug)]
pub(super) enum Fused {
    None,
    /// The first's data are awaited; its key.
    Awaiting {
        task: usize,
        paired: bool,
    },
    /// The first is there.
    First {
        cid: u16,
        range: Range,
        expected: Vec<u8>,
        paired: bool,
    },
}

impl Fused {
    /// Whether the second has come.
    pub(super) fn is_paired(&self) -> bool {
        matches!(self, Fused::Awaiting { paired: true, .. } | Fused::First { paired: true, .. })
    }

    /// The second has come; whether there is a first that waits for it.
    pub(super) fn pair(&mut self) -> bool {
        match self {
            Fused::Awaiting { paired, .. } | Fused::First { paired, .. } => !std::mem::replace(paired, true),
            Fused::None => false,
        }
    }
}

impl Task {
    pub(super) fn new(cid: u16) -> Task {
        Task {
            cid: Some(cid),
            second: None,
            plan: VecDeque::new(),
            data: Vec::new(),
            expected: None,
            gathers: false,
            reads: false,
            held: 0,
            awaits: None,
            ops: Vec::new(),
            reserves: false,
            appended: None,
        }
    }
}

impl Session {
    /// Something else than the second of two fused commands came: the first fails.
    pub(super) fn miss_second(&mut self, link: &mut Link, core: &mut Core) {
        if self.fused.is_paired() {
            return;
        }
        match std::mem::replace(&mut self.fused, Fused::None) {
            Fused::None => {}
            Fused::First { cid, range, expected, .. } => {
                link.let_go(expected.len());
                self.fail(link, core, cid, Status::FUSED_MISSING, range.offset >> self.namespace.block_shift);
            }
            Fused::Awaiting { task, .. } => {
                // Its data still come; it fails with the last of them.
                if let Some(awaited) = self.tasks.get_mut(task).and_then(|task| task.awaits.as_mut()) {
                    awaited.fuse = Fuse::None;
                    awaited.fails = Some(Status::FUSED_MISSING);
                }
            }
        }
    }

    /// Tells the host that there is room for the data of a command.
    pub(super) fn grant(&mut self, link: &mut Link, key: usize) {
        let task = &mut self.tasks[key];
        let (Some(awaited), Some(cid)) = (&mut task.awaits, task.cid) else { return };
        awaited.granted = true;
        task.held = awaited.len as usize;
        link.hold(task.held);
        let ready = pdu::Transfer { cid, tag: key as u16, offset: 0, len: awaited.len };
        link.output.small(ready.ready(self.host.agreed.digests).as_bytes());
    }

    /// Data of a command that were asked for.
    pub(super) fn data(&mut self, link: &mut Link, key: usize, core: &mut Core, unit: &Common) -> Step {
        let part = pdu::Transfer::decode(link.input.bytes());
        let found = self.tasks.get_mut(usize::from(part.tag));
        let Some(task) = found.filter(|task| task.cid == Some(part.cid)) else {
            return self.fatal(link, Fatal::DataOutOfRange, 10);
        };
        let Some(awaited) = task.awaits.as_mut().filter(|awaited| awaited.granted) else {
            return self.fatal(link, Fatal::DataOutOfRange, 10);
        };
        // In order, as the specification demands, and no more than was asked for.
        if part.offset != awaited.got {
            return self.fatal(link, Fatal::DataOutOfRange, 12);
        }
        if part.len as usize != unit.data_len || part.len == 0 || part.len > awaited.len - awaited.got {
            return self.fatal(link, Fatal::DataOutOfRange, 16);
        }
        let last = awaited.got + part.len == awaited.len;
        if last != (unit.flags & pdu::flag::LAST != 0) {
            return self.fatal(link, Fatal::InvalidHeader, 1);
        }
        if let Some(controller) = core.nvme.controller(self.admitted.controller) {
            controller.heard(core.observer.arrival() / 1_000_000);
        }
        if !unit.data_are_sound(link.input.bytes()) {
            awaited.fails = awaited.fails.or(Some(Status::TRANSPORT_ERROR));
        }
        let Awaited { command, fuse, got, fails, len, .. } = *awaited;
        let task_key = usize::from(part.tag);
        if let (Nvm::Write(range, how) | Nvm::Append(range, how), Fuse::None, None, 0, true) =
            (command, fuse, fails, got, last)
        {
            // All of it in one piece: from the receive buffer to the device, as small writes go.
            let task = self.tasks.remove(task_key);
            link.way_begins(core);
            let command = match command {
                Nvm::Append(..) => self.append_command(core, how),
                _ => self.write_command(core, how),
            };
            let cookie = WHOLE | u64::from(part.cid);
            let view = self.namespace.snapshot;
            let request = Request { command, offset: range.offset, len: range.len, cookie, view };
            return self.issue(link, key, core, Transfer::new(request), (unit.data_at, unit.len, task.held));
        }
        awaited.got += part.len;
        if fails.is_none() {
            task.data.reserve_exact(len as usize - got as usize);
            task.data.extend_from_slice(unit.data(link.input.bytes()));
        }
        link.input.consume(unit.len);
        if last {
            let mut task = self.tasks.remove(task_key);
            task.awaits = None;
            match fails {
                None => self.start(link, core, task, command, fuse),
                Some(status) => {
                    if matches!(self.fused, Fused::Awaiting { task, .. } if task == task_key) {
                        self.fused = Fused::None;
                    }
                    self.refuse(link, core, task, status);
                    self.pair_up(link, core);
                }
            }
        }
        Step::Done(cost(u64::from(part.len)))
    }

    /// The second of two fused commands that came before its first goes on, or fails with it.
    pub(super) fn pair_up(&mut self, link: &mut Link, core: &mut Core) {
        if let Some((task, range, how)) = self.early_second.take() {
            self.start(link, core, task, Nvm::Write(range, how), Fuse::Second);
        }
    }

    /// Makes a plan for a command whose data are there.
    pub(super) fn start(&mut self, link: &mut Link, core: &mut Core, mut task: Task, command: Nvm, fuse: Fuse) {
        let Some(cid) = task.cid else { return };
        let view = self.namespace.snapshot;
        let read =
            |range: Range| Request { command: Command::Read, offset: range.offset, len: range.len, cookie: 0, view };
        let fua = self.writes_through(core);
        let write = |range: Range, how: How| Request {
            command: Command::Write { fua: how.durable || fua, placement: how.placement },
            ..read(range)
        };
        match (command, fuse) {
            (Nvm::Compare(range), Fuse::First) => {
                let paired = self.fused.is_paired();
                self.fused = Fused::First { cid, range, expected: task.data, paired };
                return self.pair_up(link, core);
            }
            (Nvm::Compare(range), _) => {
                task.expected = Some(std::mem::take(&mut task.data));
                self.plan(task, [read(range)]);
            }
            (Nvm::Write(range, how), Fuse::Second) if matches!(self.fused, Fused::Awaiting { .. }) => {
                self.early_second = Some((task, range, how));
                return;
            }
            (Nvm::Write(range, how), Fuse::Second) => {
                let pair = std::mem::replace(&mut self.fused, Fused::None);
                let Fused::First { cid: first, range: compared, expected, .. } = pair else {
                    return self.refuse(link, core, task, Status::FUSED_MISSING);
                };
                task.held += expected.len();
                if compared != range {
                    link.let_go(task.held);
                    self.fail(link, core, first, Status::INVALID_FIELD, 0);
                    return self.fail(link, core, cid, Status::FUSED_FAILED, 0);
                }
                let pair =
                    Task { cid: Some(first), second: Some(cid), expected: Some(expected), reserves: true, ..task };
                self.plan(pair, [read(range), write(range, how)]);
            }
            (Nvm::Write(range, how), _) => self.plan(task, [write(range, how)]),
            (Nvm::Append(range, how), _) => {
                let command = Command::Append { fua: how.durable || fua };
                self.plan(task, [Request { command, ..read(range) }]);
            }
            (Nvm::Zone { action, zone }, _) => {
                let wanted = zones::wanted(&core.device, action, zone);
                self.plan(
                    task,
                    wanted.into_iter().map(|(command, offset)| Request { command, ..read(Range { offset, len: 0 }) }),
                );
            }
            (Nvm::UpdatePlacements(_), _) => match self.namespace.updated(&task.data) {
                Ok(handles) => {
                    for handle in handles {
                        events::note_renewed(core, &self.namespace, handle);
                        core.device.renew_placement(handle);
                    }
                    self.plan(task, []);
                }
                Err(status) => self.refuse(link, core, task, status),
            },
            (Nvm::Deallocate(_), _) => match self.namespace.deallocated(&task.data) {
                Ok(ranges) => {
                    let trim = |range| Request { command: Command::Trim { fua }, ..read(range) };
                    self.plan(task, ranges.into_iter().map(trim));
                }
                Err(status) => self.refuse(link, core, task, status),
            },
            (Nvm::Copy { to, durable, .. }, _) => match self.namespace.copied(to, &task.data) {
                Ok((ranges, target)) => {
                    link.hold(target.len as usize);
                    let task = Task { held: task.held + target.len as usize, data: Vec::new(), gathers: true, ..task };
                    let how = How { durable, placement: 0 };
                    self.plan(task, ranges.into_iter().map(read).chain([write(target, how)]));
                }
                Err(status) => self.refuse(link, core, task, status),
            },
            (Nvm::Verify(range), _) => {
                let most = u64::from(self.namespace.max_request_bytes);
                let parts = (0..range.len.div_ceil(most))
                    .map(|part| Range { offset: range.offset + part * most, len: most.min(range.len - part * most) });
                self.plan(task, parts.map(read));
            }
            (Nvm::Batch { operations, bytes, durable }, _) => {
                let list = &task.data[..operations * OPERATION_BYTES];
                match self.namespace.batch(list) {
                    Ok(operations) => {
                        let command = Command::Batch { fua: durable || fua };
                        let request =
                            Request { command, offset: operations[0].1.offset, len: bytes as u64, cookie: 0, view };
                        task.ops = self.in_sectors(core, &operations);
                        self.plan(task, [request]);
                    }
                    Err(status) => self.refuse(link, core, task, status),
                }
            }
            // A hint needs nothing; the others were requests from the start.
            _ => self.plan(task, []),
        }
        // What has nothing to do is done.
        while let Some(empty) = self.ready.iter().position(|key| self.tasks[*key].plan.is_empty()) {
            if let Some(key) = self.ready.remove(empty) {
                self.done(link, core, key, Status::SUCCESS);
            }
        }
    }

    pub(super) fn plan(&mut self, task: Task, requests: impl IntoIterator<Item = Request>) {
        let key = self.tasks.insert(task);
        let cookie = key as u64;
        self.tasks[key].plan = requests.into_iter().map(|request| Request { cookie, ..request }).collect();
        self.ready.push_back(key);
    }

    /// A batch's operations as the device wants them.
    fn in_sectors(&self, core: &Core, operations: &[(bool, Range)]) -> Vec<BatchOp> {
        let shift = core.device.info().sector_bytes.trailing_zeros();
        let op = |(trims, range): &(bool, Range)| {
            let (lba, count) = (range.offset >> shift, range.len >> shift);
            match trims {
                true => BatchOp::Trim { lba, count },
                // More than 32 bits are more than a batch takes, whatever the number is.
                false => BatchOp::Write { lba, count: u32::try_from(count).unwrap_or(u32::MAX) },
            }
        };
        operations.iter().map(op).collect()
    }

    pub(super) fn refuse(&mut self, link: &mut Link, core: &mut Core, task: Task, status: Status) {
        link.let_go(task.held);
        if let Some(cid) = task.cid {
            self.fail(link, core, cid, status, 0);
        }
    }

    /// Hands the next request of the task at this place among those that are ready to the device.
    pub(super) fn issue_task(&mut self, link: &mut Link, key: usize, core: &mut Core, place: usize) -> Step {
        let task_key = self.ready[place];
        let task = &self.tasks[task_key];
        let Some(request) = task.plan.front().copied() else {
            self.ready.remove(place);
            return Step::Done(0);
        };
        link.way_begins(core);
        if task.reserves && request.command == Command::Read && !core.reserve(key, &request) {
            return link.hold_back(Held::Reserved);
        }
        let source = match request.command {
            Command::Write { .. } | Command::Append { .. } => Source::Buffer(&task.data),
            Command::Batch { .. } => Source::Batch(&task.ops, &task.data[task.ops.len() * OPERATION_BYTES..]),
            _ => Source::Nothing,
        };
        let mut transfer = Transfer::new(request);
        let issued = link.issue(key, core, &mut transfer, source);
        if let Issued::Held(_) = issued {
            return Step::Busy;
        }
        self.tasks[task_key].plan.pop_front();
        self.ready.remove(place);
        if let Issued::Answered(result) = issued {
            self.answer(link, key, core, &transfer.request, result);
        }
        Step::Done(cost(request.len))
    }

    /// A task has got one of its answers.
    pub(super) fn went_on(
        &mut self,
        link: &mut Link,
        key: usize,
        core: &mut Core,
        request: &Request,
        result: Result<Payload, IoError>,
    ) {
        let task_key = request.cookie as usize;
        let Some(task) = self.tasks.get_mut(task_key) else { return };
        let mut status = Status::SUCCESS;
        match result {
            Ok(read) => {
                if task.reads {
                    let cid = task.cid;
                    self.tasks.remove(task_key);
                    link.count(request);
                    return match cid {
                        Some(cid) => self.respond_with(link, core, Cqe::new(cid, Status::SUCCESS), read),
                        None => read.into_pieces().for_each(|piece| core.pool.put(piece)),
                    };
                }
                let mut at = 0;
                for piece in read.into_pieces() {
                    if task.gathers {
                        task.data.extend_from_slice(&piece);
                    } else if let Some(expected) = &task.expected
                        && request.command == Command::Read
                        && expected.get(at..at + piece.len()) != Some(&piece[..])
                    {
                        status = Status::COMPARE_FAILED;
                    }
                    at += piece.len();
                    core.pool.put(piece);
                }
                if matches!(request.command, Command::Write { .. } | Command::Append { .. } | Command::Batch { .. }) {
                    link.count(request);
                }
                if let Command::Append { .. } = request.command {
                    task.appended = Some(request.offset);
                }
            }
            Err(error) => status = status_of(error, request.command),
        }
        if status == Status::SUCCESS && !task.plan.is_empty() {
            return self.ready.push_back(task_key);
        }
        if task.reserves {
            core.release(key, request.cookie);
        }
        self.done(link, core, task_key, status);
    }

    /// A task is over.
    pub(super) fn done(&mut self, link: &mut Link, core: &mut Core, task_key: usize, status: Status) {
        let task = self.tasks.remove(task_key);
        link.let_go(task.held);
        let Some(cid) = task.cid else {
            if let Some(controller) = core.nvme.controller(self.admitted.controller) {
                controller.shut_down();
            }
            return;
        };
        if status == Status::SUCCESS {
            let result = task.appended.map_or(0, |offset| offset >> self.namespace.block_shift);
            self.respond(link, Cqe { result, ..Cqe::new(cid, status) });
        } else {
            self.fail(link, core, cid, status, 0);
        }
        match (task.second, status) {
            (Some(second), Status::SUCCESS) => self.respond(link, Cqe::new(second, status)),
            (Some(second), _) => self.fail(link, core, second, Status::FUSED_FAILED, 0),
            (None, _) => {}
        }
    }
}
