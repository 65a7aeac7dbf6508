//! The thread of a connection to a service.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use device::BatchOp;
use media::ring::mailbox::Mailbox;
use nvme::initiator::{Command, Completion, Controller, Link, Namespace, Range};
use nvme::vendor::{Mapped, Operation};
use nvme::{Status, initiator::Error as LinkError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::connect::{self, Connected, Dial, Stream};
use crate::job::{Job, Request};
use crate::pending::{Answer, Completer};
use crate::{Capabilities, Error};

/// Ranges of mapped blocks that one command asks for.
const RANGES: u32 = 256;
/// How long to wait between two attempts to connect again.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Engine {
    dial: Dial,
    capabilities: Capabilities,
    /// Kept for the association, which ends with it.
    _controller: Controller<Stream>,
    link: Link<Stream>,
    namespace: Namespace,
    mailbox: Mailbox<Job>,
    under_way: Vec<(u16, Kind, Completer)>,
    waiting: VecDeque<(Request, Completer)>,
    closing: Option<Option<Completer>>,
    /// Changes that were sent and asked for no durability, and how many of them a flush covers.
    volatile: u64,
    flushed: u64,
    /// What the next flush is told: writes that were answered may be lost.
    lost: Option<Error>,
}

/// What is to be done when a command ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its buffer is the answer.
    Buffer,
    Nothing,
    /// Mapped blocks are.
    Ranges,
    /// It makes so many volatile changes durable.
    Flush(u64),
    /// What it did is to be made durable.
    ThenFlush,
}

impl Engine {
    pub(crate) fn new(dial: Dial, connected: Connected, mailbox: Mailbox<Job>) -> Engine {
        let Connected { controller, link, namespace, capabilities } = connected;
        Engine {
            dial,
            capabilities,
            _controller: controller,
            link,
            namespace,
            mailbox,
            under_way: Vec::new(),
            waiting: VecDeque::new(),
            closing: None,
            volatile: 0,
            flushed: 0,
            lost: None,
        }
    }

    /// Serves until the last handle is gone, or the connection.
    pub(crate) fn run(mut self) {
        let error = loop {
            let error = match self.serve() {
                Ok(()) => {
                    if let Some(Some(done)) = self.closing.take() {
                        done.complete(Ok(Answer::Done));
                    }
                    return;
                }
                Err(error) => Error::Disconnected { why: error.to_string() },
            };
            for (_, _, done) in self.under_way.drain(..) {
                done.complete(Err(error.clone()));
            }
            if !self.connect_again(&error) {
                break error;
            }
        };
        let waiting = self.waiting.drain(..).map(|(_, done)| done);
        for done in waiting.chain(self.closing.take().flatten()) {
            done.complete(Err(error.clone()));
        }
        // Whoever asks from now on hears why, until the last handle is gone.
        loop {
            match self.mailbox.receive() {
                Ok(Some(job)) => refuse(job, &error),
                Ok(None) => self.wait_for_bell(),
                Err(_) => return,
            }
        }
    }

    /// Makes the connection anew, as long as that was asked for. Whether there is one.
    fn connect_again(&mut self, error: &Error) -> bool {
        let Some(patience) = self.dial.patience() else { return false };
        let began = Instant::now();
        while began.elapsed() < patience {
            self.hear();
            if self.closing.is_some() {
                return false;
            }
            match connect::connect(&self.dial) {
                // Another device has taken its place: nothing that was asked is about that one.
                Ok(connected) if connected.capabilities != self.capabilities => return false,
                Ok(connected) => {
                    let Connected { controller, link, namespace, .. } = connected;
                    (self._controller, self.link, self.namespace) = (controller, link, namespace);
                    if self.volatile > self.flushed {
                        self.lost = Some(error.clone());
                        self.flushed = self.volatile;
                    }
                    return true;
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        false
    }

    fn serve(&mut self) -> Result<(), LinkError> {
        loop {
            self.mailbox.answer_bell();
            self.hear();
            self.send_waiting()?;
            if self.take_completions()? {
                continue;
            }
            if self.closing.is_some() && self.under_way.is_empty() && self.waiting.is_empty() {
                return Ok(());
            }
            self.rest()?;
        }
    }

    fn hear(&mut self) {
        while self.closing.is_none() {
            match self.mailbox.receive() {
                Ok(Some(Job::Io(request, done))) => self.waiting.push_back((request, done)),
                Ok(Some(Job::Close(done))) => self.closing = Some(Some(done)),
                Ok(Some(job)) => {
                    refuse(job, &Error::Unsupported { what: "a drill; use `vsl drill` where the service runs" })
                }
                Ok(None) => return,
                Err(_) => self.closing = Some(None),
            }
        }
    }

    fn send_waiting(&mut self) -> Result<(), LinkError> {
        while self.link.has_room(1)
            && let Some((request, done)) = self.waiting.pop_front()
        {
            if let Some(lost) = self.lost.take_if(|_| matches!(request, Request::Flush)) {
                done.complete(Err(lost));
                continue;
            }
            self.volatile += u64::from(is_volatile(&request));
            let (command, kind) = match request {
                Request::Read { lba, buf } => (Command::read_into(&self.namespace, lba, buf), Kind::Buffer),
                Request::Write { lba, data, durable } => {
                    let write = Command::write(&self.namespace, lba, data.into_vec());
                    (if durable { write.with_fua() } else { write }, Kind::Buffer)
                }
                Request::Trim { lba, count, durable } => {
                    let then = if durable { Kind::ThenFlush } else { Kind::Nothing };
                    (Command::deallocate(&self.namespace, &pieces(lba, count)), then)
                }
                Request::Flush => (Command::flush(self.namespace.nsid), Kind::Flush(self.volatile)),
                Request::Batch { ops, data, durable } => {
                    let operations: Vec<Operation> = ops.iter().map(operation).collect();
                    let batch = Command::batch(&self.namespace, &operations, &data);
                    (if durable { batch.with_fua() } else { batch }, Kind::Nothing)
                }
                Request::Ranges { lba, end, since } => {
                    let look = Command::mapped_ranges(&self.namespace, lba, end - lba, RANGES);
                    (if let Some(since) = since { look.since(since) } else { look }, Kind::Ranges)
                }
            };
            self.submit(command, kind, done)?;
        }
        Ok(())
    }

    fn submit(&mut self, command: Command, kind: Kind, done: Completer) -> Result<(), LinkError> {
        let cid = self.link.submit(command)?;
        self.under_way.push((cid, kind, done));
        Ok(())
    }

    /// Sends what it can, and takes what is there. Whether anything ended.
    fn take_completions(&mut self) -> Result<bool, LinkError> {
        let mut any = false;
        loop {
            match self.link.wait() {
                Ok(completion) => self.end(completion)?,
                Err(LinkError::Io(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(any),
                Err(error) => return Err(error),
            }
            any = true;
        }
    }

    fn end(&mut self, completion: Completion) -> Result<(), LinkError> {
        let Some(at) = self.under_way.iter().position(|(cid, _, _)| *cid == completion.cid) else { return Ok(()) };
        let (_, kind, done) = self.under_way.swap_remove(at);
        if !completion.status.is_success() {
            done.complete(Err(error(completion.status)));
            return Ok(());
        }
        match kind {
            Kind::Buffer => done.complete(Ok(Answer::Buffer(completion.data))),
            Kind::Nothing => done.complete(Ok(Answer::Done)),
            Kind::Flush(covered) => {
                self.flushed = self.flushed.max(covered);
                done.complete(Ok(Answer::Done));
            }
            Kind::Ranges => {
                let Mapped { ranges, next } = Mapped::decode(&completion.data);
                let range = |(first, blocks, holds): (u64, u64, bool)| (first..first.saturating_add(blocks), holds);
                let ranges = ranges.into_iter().map(range);
                done.complete(Ok(Answer::Ranges(ranges.collect(), next)));
            }
            Kind::ThenFlush => return self.submit(Command::flush(self.namespace.nsid), Kind::Nothing, done),
        }
        Ok(())
    }

    /// Waits for the service or for somebody who asks.
    fn rest(&mut self) -> Result<(), LinkError> {
        let writes = if self.link.has_output() { PollFlags::OUT } else { PollFlags::empty() };
        let bell = self.mailbox.bell();
        let stream = self.link.stream_mut();
        let socket = stream.as_fd();
        let mut both = [PollFd::new(&bell, PollFlags::IN), PollFd::new(&socket, PollFlags::IN | writes)];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(error) => Err(LinkError::Io(error.into())),
        }
    }

    fn wait_for_bell(&self) {
        let bell = self.mailbox.bell();
        // It is looked for a message in any case.
        let _ = poll(&mut [PollFd::new(&bell, PollFlags::IN)], None);
        self.mailbox.answer_bell();
    }
}

fn refuse(job: Job, error: &Error) {
    match job {
        Job::Close(done) => done.complete(Ok(Answer::Done)),
        Job::Io(_, done) | Job::Drill(_, done) | Job::UndoDrill(_, done) | Job::PowerOn(done) => {
            done.complete(Err(error.clone()));
        }
    }
}

/// Whether a power cut may take what a request did, although it was answered.
fn is_volatile(request: &Request) -> bool {
    match request {
        Request::Write { durable, .. } | Request::Trim { durable, .. } | Request::Batch { durable, .. } => !durable,
        Request::Read { .. } | Request::Flush | Request::Ranges { .. } => false,
    }
}

fn operation(op: &BatchOp) -> Operation {
    match *op {
        BatchOp::Write { lba, count } => Operation::write(lba, count.into()),
        BatchOp::Trim { lba, count } => Operation::deallocate(lba, count),
    }
}

/// Blocks in ranges that a command takes.
fn pieces(lba: u64, count: u64) -> Vec<Range> {
    let piece = u64::from(u32::MAX);
    (0..count.div_ceil(piece))
        .map(|number| Range { first: lba + number * piece, blocks: (count - number * piece).min(piece) as u32 })
        .collect()
}

fn error(status: Status) -> Error {
    let is = |other: Status| status.code() == other.code();
    if is(Status::WRITE_PROTECTED) {
        Error::ReadOnly
    } else if is(Status::CAPACITY_EXCEEDED) {
        Error::NoSpace
    } else if is(Status::WRITE_FAULT) || is(Status::READ_ERROR) {
        Error::Media
    } else if is(Status::INVALID_NAMESPACE) {
        Error::NoSnapshot
    } else if is(Status::INVALID_OPCODE) {
        Error::Unsupported { what: "batches and the look for mapped sectors" }
    } else {
        Error::Refused { status: status.code() }
    }
}
