//! The one way by which requests of every protocol reach the device: whole where the device takes them in one, otherwise in
//! pieces. Keeps those that the device has and has not answered yet, by their tag.

use std::sync::mpsc::SyncSender;
use std::time::Instant;

use device::{BatchOp, Io, IoError, Submitted, ZoneError};
use slab::Slab;

use crate::observe::Observer;
use crate::pool::Pool;
use crate::reading::Reading;
use crate::recording::Recording;
use crate::request::{Command, Request};
use crate::served::Served;
use crate::slow::{Held, Slow, Way};

/// What every connection of a device thread shares.
pub struct Core {
    /// The device.
    pub device: Served,
    /// What is under way; a request's tag is its key.
    pub jobs: Slab<Slot>,
    /// Reads that the device has.
    pub reading: Reading,
    /// Ranges that a connection, by its key, reads and writes as one step: nobody else changes them meanwhile.
    pub reserved: Vec<(usize, Request)>,
    /// NVMe controllers of hosts.
    pub nvme: nvme::Subsystem,
    /// Controllers whose I/O queues are to be closed at the end of the round.
    pub close_queues: Vec<u16>,
    /// Read buffers.
    pub pool: Pool,
    /// What clients ask is recorded.
    pub recording: Option<Recording>,
    /// What is counted of requests.
    pub observer: Observer,
    /// Those that waited long.
    pub slow: Slow,
}

/// What a tag stands for.
pub enum Slot {
    /// A client's request, whole, or the sum of its pieces.
    Job(Job),
    /// A piece of a client's request.
    Part {
        /// Key of the request.
        job: usize,
        /// Which piece.
        index: usize,
    },
    /// A request of whoever has the device as a member.
    Claim {
        /// Its tag there.
        tag: u64,
        /// Which claim of the device it is from.
        claim: u64,
    },
    /// A flush that a handle asked for.
    Flush(SyncSender<Result<(), IoError>>),
}

/// A client's request.
pub struct Job {
    /// Key of the connection.
    pub connection: usize,
    /// What was asked.
    pub request: Request,
    /// When the device took it, if it was recorded then.
    began: Option<Instant>,
    /// When it came how far.
    pub way: Way,
    /// Pieces that the device was given.
    given: usize,
    /// Pieces that it has.
    pub parts: usize,
    /// More pieces will come.
    pub issuing: bool,
    /// Nobody waits for the answer any more.
    pub abandoned: bool,
    /// Operations of a batch, if it is recorded.
    ops: Vec<BatchOp>,
    /// The first failure.
    error: Option<IoError>,
    /// What was read.
    read: Payload,
}

/// Where the data of a write are.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// It is no write.
    Nothing,
    /// In the client's input, so many bytes from its front.
    Input(usize),
    /// Here.
    Buffer(&'a [u8]),
    /// Those of a batch, and its operations.
    Batch(&'a [BatchOp], &'a [u8]),
}

/// Whom a piece comes from, and what it brings along.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Key of the connection.
    pub connection: usize,
    /// Who it is, for people.
    pub peer: &'a str,
    /// The bytes of the piece, if it is a write's.
    pub data: &'a [u8],
    /// The operations, if it is a batch.
    pub ops: &'a [BatchOp],
}

/// What was read, in order; a request that the device took in one needs no list.
#[derive(Debug, Default)]
pub struct Payload {
    first: Vec<u8>,
    rest: Vec<Vec<u8>>,
}

/// A request of which the device may have a part.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// What was asked.
    pub request: Request,
    issued: u64,
    job: Option<usize>,
}

/// What became of a request's next piece.
#[derive(Debug)]
pub enum Issued {
    /// The device does not take it now, for this reason.
    Held(Held),
    /// The device has it, and more pieces are to come.
    More,
    /// The device has all of it and answers later.
    Pending,
    /// It is answered.
    Answered(Result<Payload, IoError>),
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload { first: bytes, rest: Vec::new() }
    }
}

impl Payload {
    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(Vec::len).sum::<usize>()
    }

    fn of(bytes: Option<Vec<u8>>) -> Payload {
        Payload { first: bytes.unwrap_or_default(), rest: Vec::new() }
    }

    /// The buffers in order.
    pub fn into_pieces(self) -> impl Iterator<Item = Vec<u8>> {
        std::iter::once(self.first).chain(self.rest)
    }

    fn put(&mut self, index: usize, bytes: Vec<u8>) {
        let Some(index) = index.checked_sub(1) else {
            self.first = bytes;
            return;
        };
        if self.rest.len() <= index {
            self.rest.resize_with(index + 1, Vec::new);
        }
        self.rest[index] = bytes;
    }
}

impl Transfer {
    /// A request of which the device has nothing yet.
    #[inline]
    pub fn new(request: Request) -> Transfer {
        Transfer { request, issued: 0, job: None }
    }

    /// Whether the device has none of it.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.job.is_none()
    }

    /// Key of its job, if it is carried out in pieces and the first was tried.
    pub fn job(&self) -> Option<usize> {
        self.job
    }

    /// Bytes that the device has.
    #[inline]
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Bytes of the next piece.
    #[inline]
    pub fn piece(&self, max_request_bytes: u32) -> u64 {
        let left = self.request.len - self.issued;
        if self.request.command.is_sized() { left.min(u64::from(max_request_bytes)) } else { left }
    }
}

impl Core {
    /// Why the next piece of a request must wait, whatever the device says.
    #[inline]
    pub fn held_back(&self, connection: usize, transfer: &Transfer, ops: &[BatchOp]) -> Option<Held> {
        if transfer.is_new() && self.device.queue_depth().is_some_and(|depth| self.jobs.len() >= usize::from(depth)) {
            return Some(Held::Depth);
        }
        let shift = self.device.info().sector_bytes.trailing_zeros();
        let is_reserved = |op: &BatchOp| {
            let sectors = op.sectors();
            let (offset, len) = (sectors.start << shift, (sectors.end - sectors.start) << shift);
            self.is_reserved(connection, &Request { offset, len, ..transfer.request })
        };
        let reserved = match transfer.request.command {
            Command::Batch { .. } => ops.iter().any(is_reserved),
            command => command.changes() && self.is_reserved(connection, &transfer.request),
        };
        reserved.then_some(Held::Reserved)
    }

    /// Hands the next piece of a request to the device.
    #[inline]
    pub fn issue(&mut self, transfer: &mut Transfer, from: Origin<'_>, way: &mut Way) -> Issued {
        if let Command::Append { .. } = transfer.request.command {
            return self.append(transfer, from, way);
        }
        let max = self.device.info().max_request_bytes;
        if transfer.is_new() && transfer.piece(max) == transfer.request.len {
            self.whole(transfer.request, from, way)
        } else {
            self.piece(transfer, max, from, way)
        }
    }

    /// Hands what is appended to a zone to the device, as a write at the end of the zone as it is now.
    fn append(&mut self, transfer: &mut Transfer, from: Origin<'_>, way: &mut Way) -> Issued {
        let shift = self.device.info().sector_bytes.trailing_zeros();
        let Request { offset, len, .. } = transfer.request;
        let place = self
            .device
            .zones()
            .map_or(Err(ZoneError::Piecemeal), |zones| zones.append_at(offset >> shift, len >> shift));
        let request = match place {
            Ok(lba) => Request { offset: lba << shift, ..transfer.request },
            Err(error) => return Issued::Answered(Err(error.into())),
        };
        let issued = self.whole(request, from, way);
        if !matches!(issued, Issued::Held(_)) {
            transfer.request = request;
        }
        issued
    }

    /// Hands a request to the device that takes it in one.
    #[inline]
    fn whole(&mut self, request: Request, from: Origin<'_>, way: &mut Way) -> Issued {
        let began = self.recorded_now();
        match self.submit(&request, request.offset, request.len, &from) {
            Err(why) => Issued::Held(Held::Device(why)),
            Ok(Some(result)) => {
                way.taken = self.observer.arrival();
                self.answered(from.peer, (began, *way), (&request, from.ops), result.is_ok());
                Issued::Answered(result.map(Payload::of))
            }
            Ok(None) => {
                way.taken = self.observer.arrival();
                let job = Job::new(from.connection, request, (began, *way));
                let ops = if began.is_some() { from.ops.to_vec() } else { Vec::new() };
                self.jobs.insert(Slot::Job(Job { given: 1, parts: 1, issuing: false, ops, ..job }));
                Issued::Pending
            }
        }
    }

    /// Hands the next piece of a request to the device that is larger than it takes in one.
    fn piece(&mut self, transfer: &mut Transfer, max: u32, from: Origin<'_>, way: &mut Way) -> Issued {
        let request = transfer.request;
        let times = (self.recorded_now(), *way);
        let key =
            *transfer.job.get_or_insert_with(|| self.jobs.insert(Slot::Job(Job::new(from.connection, request, times))));
        let len = transfer.piece(max);
        // What has failed once is not carried on with; a write's data go by.
        if self.job(key).is_none_or(|job| job.error.is_none()) {
            match self.submit(&request, request.offset + transfer.issued, len, &from) {
                Err(why) => return Issued::Held(Held::Device(why)),
                Ok(Some(result)) => {
                    if let Some(job) = self.job(key) {
                        let index = job.give();
                        job.part_done(index, result);
                    }
                }
                Ok(None) => {
                    let index = self.job(key).map_or(0, Job::give);
                    self.jobs.insert(Slot::Part { job: key, index });
                }
            }
        }
        if transfer.issued == 0 {
            way.taken = self.observer.arrival();
        }
        transfer.issued += len;
        let done = transfer.issued == request.len;
        let Some(job) = self.job(key) else { return Issued::Pending };
        job.way = *way;
        job.issuing = !done;
        match (done, job.parts) {
            (false, _) => Issued::More,
            (true, 0) => match self.jobs.remove(key) {
                Slot::Job(job) => Issued::Answered(self.ended(from.peer, job)),
                _ => Issued::Pending,
            },
            (true, _) => Issued::Pending,
        }
    }

    /// Submits a piece under the key that the next job gets. `None` where the device answers later; why, where it takes nothing.
    #[inline]
    fn submit(
        &mut self,
        request: &Request,
        offset: u64,
        len: u64,
        from: &Origin<'_>,
    ) -> Result<Option<Answer>, &'static str> {
        let shift = self.device.info().sector_bytes.trailing_zeros();
        let (lba, count) = (offset >> shift, len >> shift);
        let data = from.data;
        let io = match request.command {
            Command::Read => {
                let buf = self.pool.take(len as usize);
                match request.view {
                    None => Io::Read { lba, buf },
                    Some(id) => Io::ReadSnapshot { id, lba, buf },
                }
            }
            Command::Write { fua, .. } | Command::Append { fua } => Io::Write { lba, data, fua },
            Command::Flush => Io::Flush,
            Command::Trim { fua } => Io::Trim { lba, count, fua },
            Command::WriteZeroes { fua, allocate } => Io::WriteZeroes { lba, count, fua, allocate },
            Command::Batch { fua } => Io::Batch { ops: from.ops, data, fua },
            Command::Zone(_) => Io::Flush,
        };
        let placement = if let Command::Write { placement, .. } = request.command { placement } else { 0 };
        let tag = self.jobs.vacant_key() as u64;
        let submitted = match request.command {
            Command::Zone(action) => self.device.submit_zone(lba, tag, action),
            _ => self.device.submit_in(request.view, placement, tag, io),
        };
        match submitted {
            Submitted::Done(result) => Ok(Some(result)),
            Submitted::Pending => Ok(None),
            Submitted::Busy(io) => {
                if let Io::Read { buf, .. } | Io::ReadSnapshot { buf, .. } = io {
                    self.pool.put(buf);
                }
                Err(self.device.held_back())
            }
        }
    }

    /// Whether something else reads and writes some of it as one step.
    #[inline]
    fn is_reserved(&self, connection: usize, request: &Request) -> bool {
        let other = |owner: usize, reserved: &Request| owner != connection || reserved.cookie != request.cookie;
        self.reserved.iter().any(|(owner, reserved)| other(*owner, reserved) && reserved.overlaps(request))
    }

    /// Keeps a range for requests of this cookie, until [`Core::release`]; false while something else has a part of it.
    pub fn reserve(&mut self, connection: usize, request: &Request) -> bool {
        if self.is_reserved(connection, request) {
            return false;
        }
        let own = |(owner, reserved): &(usize, Request)| *owner == connection && reserved.cookie == request.cookie;
        if !self.reserved.iter().any(own) {
            self.reserved.push((connection, *request));
        }
        true
    }

    /// Gives a range free.
    pub fn release(&mut self, connection: usize, cookie: u64) {
        self.reserved.retain(|(owner, reserved)| *owner != connection || reserved.cookie != cookie);
    }

    /// The time, if there is a recording that needs it.
    #[inline]
    fn recorded_now(&self) -> Option<Instant> {
        self.recording.is_some().then(Instant::now)
    }

    /// A job has its last answer: its result.
    pub fn ended(&mut self, peer: &str, job: Job) -> Result<Payload, IoError> {
        self.answered(peer, (job.began, job.way), (&job.request, &job.ops), job.error.is_none());
        match job.error {
            Some(error) => {
                job.read.into_pieces().for_each(|piece| self.pool.put(piece));
                Err(error)
            }
            None => Ok(job.read),
        }
    }

    /// A request is answered, `done` or not; it is counted, and recorded if there is a recording that was there when the device
    /// took it.
    #[inline]
    fn answered(&mut self, peer: &str, (began, way): Times, (request, ops): (&Request, &[BatchOp]), done: bool) {
        self.observer.answered(request.command, way.arrived, done.then_some(request.len));
        if self.slow.answered(peer, way, self.observer.arrival(), request) {
            self.observer.waited_long();
        }
        if let (Some(recording), Some(began)) = (&self.recording, began) {
            recording.answered(began, request, ops, self.device.info().sector_bytes);
        }
    }

    /// A request that is under way.
    pub fn job(&mut self, key: usize) -> Option<&mut Job> {
        match self.jobs.get_mut(key) {
            Some(Slot::Job(job)) => Some(job),
            _ => None,
        }
    }
}

impl Job {
    /// A request of which the device has nothing yet.
    fn new(connection: usize, request: Request, (began, way): Times) -> Job {
        Job {
            connection,
            request,
            began,
            way,
            given: 0,
            parts: 0,
            issuing: true,
            abandoned: false,
            ops: Vec::new(),
            error: None,
            read: Payload::default(),
        }
    }

    /// The device has one more piece; its index.
    fn give(&mut self) -> usize {
        self.parts += 1;
        self.given += 1;
        self.given - 1
    }

    /// A piece is done.
    pub fn part_done(&mut self, index: usize, result: Result<Option<Vec<u8>>, IoError>) {
        self.parts -= 1;
        match result {
            Ok(Some(bytes)) => self.read.put(index, bytes),
            Ok(None) => {}
            Err(error) => self.error = self.error.or(Some(error)),
        }
    }
}

/// A device's answer, with what was read.
type Answer = Result<Option<Vec<u8>>, IoError>;

/// When the device took a request, if it was recorded then; and how it came there.
type Times = (Option<Instant>, Way);
