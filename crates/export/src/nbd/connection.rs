//! One client in the transmission phase: its requests, their answers, and when it is over.

use std::time::SystemTime;

use device::{Io, IoError, Submitted};

use super::arrival::NewConnection;
use super::clients::Ticket;
use super::input::Input;
use super::proto::{Errno, REQUEST_BYTES, command};
use super::reply::{Form, Output};
use super::request::{Command, Header, Limits};
use super::status::describe;
use super::transport::Transport;
use crate::jobs::{Core, Job, Slot};
use crate::seats::Seat;
use crate::slow::{Held, Way};

/// Requests that one client may have under way.
const MAX_IN_FLIGHT: u32 = 256;
/// Work of one client before its answers are sent and it is another's turn.
const TURN: u32 = 64;
/// Bytes that cost 1 in a large request: 128 KiB make a turn, because what was read or received should be sent or
/// taken while it is still in the processor's cache, and the client's part of the work then overlaps with ours.
const COST_BYTES: u32 = 2 << 10;
/// Requests below this many bytes cost 1: many of them share one send.
const SMALL: u32 = 32 << 10;

fn cost(bytes: u32) -> u32 {
    if bytes < SMALL { 1 } else { bytes / COST_BYTES }
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It needs more bytes, this many in one piece.
    Receive(usize),
    /// It has more to do, but others are waiting.
    Again,
    /// The device takes no more just now. Whether anything was done in this turn.
    Parked(bool),
    /// It goes on when answers came or were sent.
    Blocked,
    /// Nothing more will be read.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Finish what is under way, then close.
    Draining,
    /// Wait for what is under way and throw it away.
    Broken,
}

/// Where in the stream of requests we are.
#[derive(Clone, Copy, Debug)]
enum Current {
    Header,
    /// A refused write: its payload goes by, then the error is answered.
    Refused {
        left: u32,
        cookie: u64,
        error: Errno,
    },
    /// Accepted and not yet wholly with the device. `job` is set once it is carried out in pieces.
    Request {
        header: Header,
        command: Command,
        issued: u32,
        job: Option<usize>,
    },
}

/// Counters that people see.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Requests answered or refused.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// A client.
pub struct Connection {
    /// The socket; the worker arms its receives.
    pub transport: Transport,
    /// What it sent.
    pub input: Input,
    output: Output,
    limits: Limits,
    current: Current,
    state: State,
    in_flight: u32,
    held: usize,
    /// How far the present request has come.
    way: Way,
    /// Since when the client's data are waited for, if they are.
    data_missing: Option<u64>,
    /// A receive is with the kernel.
    pub receiving: bool,
    /// The kernel will tell when the socket takes more.
    pub polling: bool,
    /// It is in a queue of the worker.
    pub queued: bool,
    /// Figures.
    pub counters: Counters,
    /// Who it is.
    pub peer: String,
    /// The export it chose.
    pub export: String,
    /// When it came.
    pub since: SystemTime,
    ticket: Ticket,
    _seat: Seat,
}

enum Step {
    Done(u32),
    Need(usize),
    Busy,
}

impl Connection {
    /// Takes over after the handshake.
    pub fn new(new: NewConnection) -> Connection {
        let mut connection = Connection {
            transport: new.transport,
            input: Input::new(),
            output: Output::default(),
            limits: new.limits,
            current: Current::Header,
            state: State::Open,
            in_flight: 0,
            held: 0,
            way: Way::default(),
            data_missing: None,
            receiving: false,
            polling: false,
            queued: false,
            counters: Counters::default(),
            peer: new.peer,
            export: new.export,
            since: SystemTime::now(),
            ticket: new.ticket,
            _seat: new.seat,
        };
        if let Err(error) = connection.transport.start(&mut connection.input) {
            connection.break_off(&error.to_string());
        }
        connection
    }

    /// Memory that it holds, bytes: what it sent and is not carried out yet, and what it asked for and has not got yet.
    pub fn memory(&self) -> usize {
        self.input.memory() + self.transport.memory() + self.held + self.output.memory()
    }

    /// What it would give back if the kernel did not wait to receive into it, bytes: nothing in the middle of a request.
    pub fn idle_memory(&self) -> usize {
        if self.has_part() { 0 } else { self.input.memory().max(self.transport.idle_memory()) }
    }

    /// Gives back what it keeps for requests to come.
    pub fn shrink(&mut self) {
        self.output.shrink();
        if !self.receiving {
            self.input.shrink();
            self.transport.shrink();
        }
    }

    /// Requests under way.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether a request has come in part.
    pub fn has_part(&self) -> bool {
        !matches!(self.current, Current::Header) || !self.input.bytes().is_empty()
    }

    /// Receives what is there already; false when nothing is.
    pub fn take_now(&mut self, need: usize) -> bool {
        let (start, len, _) = self.transport.lend(&mut self.input, need, false);
        // SAFETY: the lent part of the buffer is initialised, and nobody else uses it until `received`.
        let room = unsafe { std::slice::from_raw_parts_mut(start, len) };
        let count = match rustix::net::recv(self.transport.fd(), room, rustix::net::RecvFlags::DONTWAIT) {
            // The end of the stream and errors are left to the receive that waits.
            Ok((count, _)) => count,
            Err(_) => 0,
        };
        if count == 0 {
            self.transport.unlend(&mut self.input);
            return false;
        }
        self.received(count as i32);
        true
    }

    /// A receive ended: bytes, 0 at the end of the stream, or a negative error number.
    pub fn received(&mut self, result: i32) {
        self.receiving = false;
        let count = usize::try_from(result).unwrap_or(0);
        let opened = self.transport.received(&mut self.input, count);
        match (result, opened) {
            (_, Err(error)) => self.break_off(&error.to_string()),
            (0, _) => self.drain(),
            (1.., _) => {}
            (error, _) => match rustix::io::Errno::from_raw_os_error(-error) {
                rustix::io::Errno::INTR | rustix::io::Errno::AGAIN => {}
                // We ended it, to give the memory back.
                rustix::io::Errno::CANCELED => self.shrink(),
                errno => self.break_off(&errno.to_string()),
            },
        }
    }

    /// Reads no more; answers what is under way, then ends.
    pub fn drain(&mut self) {
        if self.state == State::Open {
            self.state = State::Draining;
        }
    }

    /// Ends at once; answers of what is under way are thrown away.
    pub fn break_off(&mut self, why: &str) {
        if self.state != State::Broken {
            tracing::debug!(peer = %self.peer, export = %self.export, why, "connection closed");
            self.state = State::Broken;
            self.output = Output::default();
            self.transport.shutdown();
        }
    }

    /// Whether it can be forgotten. Shuts the socket down as soon as nothing more will be sent.
    pub fn is_over(&mut self, core: &mut Core) -> bool {
        if self.state == State::Open || self.in_flight > 0 {
            return false;
        }
        if self.state == State::Draining {
            if !self.output.is_empty() || self.polling {
                return false;
            }
            self.transport.close_notify(&mut core.pool);
            self.break_off("done");
        }
        !self.receiving && !self.polling
    }

    /// Sends what the socket takes. True when it waits for the socket to take more.
    pub fn send(&mut self, core: &mut Core) -> bool {
        if self.polling || self.state == State::Broken {
            return false;
        }
        match self.transport.send(&mut self.output, &mut core.pool) {
            Ok(all) => {
                if all && self.held == 0 {
                    self.ticket.give_back();
                }
                !all
            }
            Err(error) => {
                self.break_off(&error.to_string());
                false
            }
        }
    }

    /// Whether it may have more requests under way. Its own slowness holds up nobody else.
    pub fn can_serve(&mut self) -> bool {
        // A request that has begun holds its bytes already: it goes on.
        !matches!(self.current, Current::Header)
            || (self.in_flight < MAX_IN_FLIGHT && self.ticket.has_room(self.held + self.output.held()))
    }

    /// Carries out requests that are there, as many as one turn allows.
    pub fn serve(&mut self, key: usize, core: &mut Core) -> Turn {
        let mut work = 0;
        loop {
            if self.state != State::Open {
                self.abandon(key, core);
                return Turn::Over;
            }
            // While the kernel writes into the receive buffer there is nothing new in it.
            if self.receiving {
                return Turn::Blocked;
            }
            if work >= TURN {
                return Turn::Again;
            }
            if !self.can_serve() {
                return Turn::Blocked;
            }
            match self.step(key, core) {
                Step::Done(cost) => work += cost,
                Step::Need(bytes) => return Turn::Receive(bytes),
                Step::Busy => return Turn::Parked(work > 0),
            }
        }
    }

    /// Gives up a request that the device has only in part: it is never answered.
    fn abandon(&mut self, key: usize, core: &mut Core) {
        core.reading.give_up(key);
        if let Current::Request { job: Some(job_key), .. } = std::mem::replace(&mut self.current, Current::Header)
            && let Some(Slot::Job(job)) = core.jobs.get_mut(job_key)
        {
            job.issuing = false;
            job.abandoned = true;
            if job.parts == 0 {
                core.reading.ended(job.held);
                core.jobs.remove(job_key);
                self.in_flight -= 1;
            }
        }
    }

    fn step(&mut self, key: usize, core: &mut Core) -> Step {
        match self.current {
            Current::Header => self.header(core),
            Current::Refused { left, cookie, error } => {
                let count = self.input.bytes().len().min(left as usize);
                self.input.consume(count);
                let left = left - count as u32;
                self.current = Current::Refused { left, cookie, error };
                if left > 0 {
                    return Step::Need(1);
                }
                self.current = Current::Header;
                self.output.error(self.form(cookie), error);
                Step::Done(1)
            }
            Current::Request { header, command, issued: 0, job: None }
                if header.len <= self.limits.max_request_bytes
                    || !matches!(
                        command,
                        Command::Read | Command::Write { .. } | Command::WriteZeroes { allocate: true, .. }
                    ) =>
            {
                self.whole(key, core, header, command)
            }
            Current::Request { header, command, issued, job } => self.piece(key, core, header, command, issued, job),
        }
    }

    /// The present request cannot go on just now.
    fn held_back(&mut self, held: Held) -> Step {
        self.way.held = held;
        Step::Busy
    }

    /// The present request cannot go on before the client has sent so many bytes.
    fn wait_for_data(&mut self, core: &Core, bytes: usize) -> Step {
        self.data_missing = self.data_missing.or(Some(core.observer.arrival()));
        Step::Need(bytes)
    }

    #[inline]
    fn data_are_there(&mut self, core: &Core) {
        if let Some(since) = self.data_missing.take() {
            self.way.client_was_late(core.observer.arrival().saturating_sub(since));
        }
    }

    fn form(&self, cookie: u64) -> Form {
        Form { structured: self.limits.structured, cookie }
    }

    #[inline]
    fn header(&mut self, core: &Core) -> Step {
        let Some(bytes) = self.input.bytes().first_chunk::<REQUEST_BYTES>() else {
            return Step::Need(REQUEST_BYTES);
        };
        let header = match Header::decode(bytes) {
            Ok(header) => header,
            Err(error) => {
                self.break_off(&error.to_string());
                return Step::Done(1);
            }
        };
        self.input.consume(REQUEST_BYTES);
        if header.kind == command::DISC {
            self.drain();
            return Step::Done(1);
        }
        self.counters.requests += 1;
        self.way = Way { arrived: core.observer.arrival(), ..Way::default() };
        self.current = match header.check(&self.limits) {
            Ok(command) => Current::Request { header, command, issued: 0, job: None },
            Err(error) => Current::Refused { left: header.payload(), cookie: header.cookie, error },
        };
        Step::Done(0)
    }

    /// Carries out a request that the device takes in one.
    #[inline]
    fn whole(&mut self, key: usize, core: &mut Core, header: Header, command: Command) -> Step {
        let form = self.form(header.cookie);
        let (lba, count) = self.sectors(header.offset, header.len);
        let len = header.len as usize;
        let payload = header.payload() as usize;
        let io = match command {
            Command::Flush => Io::Flush,
            Command::BlockStatus { one } => {
                let (extents, looked) = describe(&core.device, lba, count, self.limits.sector_bytes, one);
                self.output.block_status(form, &extents);
                self.current = Current::Header;
                return Step::Done(1 + looked);
            }
            Command::Read if len == 0 => {
                self.output.read_header(form, header.offset, 0);
                self.current = Current::Header;
                return Step::Done(1);
            }
            _ if len == 0 || command == Command::Cache => {
                self.output.success(form);
                self.current = Current::Header;
                return Step::Done(1);
            }
            Command::Read if !core.reading.may_begin(key, len) => return self.held_back(Held::Reads),
            Command::Read => Io::Read { lba, buf: core.pool.take(len) },
            Command::Write { fua } => {
                if self.input.bytes().len() < len {
                    return self.wait_for_data(core, len);
                }
                self.data_are_there(core);
                Io::Write { lba, data: &self.input.bytes()[..len], fua }
            }
            Command::Trim { fua } => Io::Trim { lba, count, fua },
            Command::WriteZeroes { fua, allocate } => Io::WriteZeroes { lba, count, fua, allocate },
            Command::Cache => Io::Flush,
        };
        let tag = core.jobs.vacant_key();
        let began = core.recorded_now();
        match core.device.submit(tag as u64, io) {
            Submitted::Busy(io) => {
                if let Io::Read { buf, .. } = io {
                    core.pool.put(buf);
                }
                return self.held_back(Held::Device(core.device.held_back()));
            }
            Submitted::Done(result) => {
                self.way.taken = core.observer.arrival();
                core.answered(&self.peer, (began, self.way), &header, command, result.is_ok());
                self.answer(core, &header, command, result);
            }
            Submitted::Pending => {
                let held = if command == Command::Read { len } else { 0 };
                self.held += held;
                core.reading.began(held);
                self.way.taken = core.observer.arrival();
                self.in_flight += 1;
                let job = Job { parts: 1, issuing: false, ..Job::new(key, header, command, held, (began, self.way)) };
                core.jobs.insert(Slot::Job(job));
            }
        }
        self.input.consume(payload);
        self.current = Current::Header;
        Step::Done(if payload > 0 || command == Command::Read { cost(header.len) } else { 1 })
    }

    /// Carries out the next piece of a request that is larger than the device takes in one.
    fn piece(
        &mut self,
        key: usize,
        core: &mut Core,
        header: Header,
        command: Command,
        issued: u32,
        job: Option<usize>,
    ) -> Step {
        let large = header.len as usize;
        if job.is_none() && command == Command::Read {
            if !core.reading.may_begin(key, large) {
                return self.held_back(Held::Reads);
            }
            if !self.ticket.take_large(large) {
                // Those who hold it may never read: better a clear answer than to wait for them.
                self.output.error(self.form(header.cookie), Errno::NoMem);
                self.current = Current::Header;
                return Step::Done(1);
            }
        }
        let job_key = job.unwrap_or_else(|| {
            let held = if command == Command::Read { large } else { 0 };
            self.held += held;
            core.reading.began(held);
            self.in_flight += 1;
            let times = (core.recorded_now(), self.way);
            core.jobs.insert(Slot::Job(Job::new(key, header, command, held, times)))
        });
        self.current = Current::Request { header, command, issued, job: Some(job_key) };
        let failed = core.job(job_key).is_none_or(|job| job.error.is_some());
        let len = (header.len - issued).min(self.limits.max_request_bytes);
        let offset = header.offset + u64::from(issued);
        let (lba, count) = self.sectors(offset, len);
        let bytes = len as usize;
        let mut work = 1;
        if matches!(command, Command::Write { .. }) {
            if self.input.bytes().len() < bytes {
                return self.wait_for_data(core, bytes);
            }
            self.data_are_there(core);
        }
        if !failed {
            work = cost(len);
            let io = match command {
                Command::Write { fua } => Io::Write { lba, data: &self.input.bytes()[..bytes], fua },
                Command::WriteZeroes { fua, allocate } => Io::WriteZeroes { lba, count, fua, allocate },
                _ => Io::Read { lba, buf: core.pool.take(bytes) },
            };
            let index = core.job(job_key).map_or(0, Job::add_part);
            let tag = core.jobs.vacant_key();
            match core.device.submit(tag as u64, io) {
                Submitted::Busy(io) => {
                    if let Io::Read { buf, .. } = io {
                        core.pool.put(buf);
                    }
                    if let Some(job) = core.job(job_key) {
                        job.drop_part();
                    }
                    return self.held_back(Held::Device(core.device.held_back()));
                }
                Submitted::Done(result) => {
                    if let Some(job) = core.job(job_key) {
                        job.part_done(index, result);
                    }
                }
                Submitted::Pending => {
                    core.jobs.insert(Slot::Part { job: job_key, index });
                }
            }
            if issued == 0 {
                self.way.taken = core.observer.arrival();
            }
            if let Some(job) = core.job(job_key) {
                job.way = self.way;
            }
        }
        if matches!(command, Command::Write { .. }) {
            self.input.consume(bytes);
        }
        let issued = issued + len;
        self.current = Current::Request { header, command, issued, job: Some(job_key) };
        if issued == header.len {
            self.current = Current::Header;
            if let Some(job) = core.job(job_key) {
                job.issuing = false;
                if job.parts == 0
                    && let Slot::Job(job) = core.jobs.remove(job_key)
                {
                    self.finish(core, job);
                }
            }
        }
        Step::Done(work)
    }

    /// A job that was under way is done.
    pub fn finish(&mut self, core: &mut Core, job: Job) {
        self.in_flight -= 1;
        self.held -= job.held;
        core.reading.ended(job.held);
        core.answered(&self.peer, (job.began, job.way), &job.header, job.command, job.error.is_none());
        if job.abandoned || self.state == State::Broken {
            job.pieces.into_iter().for_each(|piece| core.pool.put(piece));
            return;
        }
        let form = self.form(job.header.cookie);
        if let Some(error) = job.error {
            self.output.error(form, errno(error, job.command));
        } else if job.command == Command::Read {
            self.counters.read_bytes += u64::from(job.header.len);
            self.output.read_header(form, job.header.offset, job.header.len);
            for piece in job.pieces {
                self.output.payload(piece, &mut core.pool);
            }
        } else {
            self.count_written(&job.header);
            self.output.success(form);
        }
    }

    #[inline]
    fn answer(&mut self, core: &mut Core, header: &Header, command: Command, result: Result<Option<Vec<u8>>, IoError>) {
        let form = self.form(header.cookie);
        match result {
            Err(error) => self.output.error(form, errno(error, command)),
            Ok(Some(bytes)) => {
                self.counters.read_bytes += u64::from(header.len);
                self.output.read_header(form, header.offset, header.len);
                self.output.payload(bytes, &mut core.pool);
            }
            Ok(None) => {
                self.count_written(header);
                self.output.success(form);
            }
        }
    }

    fn count_written(&mut self, header: &Header) {
        if header.kind == command::WRITE {
            self.counters.written_bytes += u64::from(header.len);
        }
    }

    fn sectors(&self, offset: u64, len: u32) -> (u64, u64) {
        let shift = self.limits.sector_bytes.trailing_zeros();
        (offset >> shift, u64::from(len) >> shift)
    }
}

/// A device's error in the words of the specification.
fn errno(error: IoError, command: Command) -> Errno {
    match (error, command) {
        (IoError::OutOfRange, Command::Write { .. } | Command::WriteZeroes { .. }) => Errno::NoSpc,
        (IoError::OutOfRange | IoError::TooLarge, _) => Errno::Inval,
        (IoError::ReadOnly, _) => Errno::Perm,
        (IoError::NoSpace, _) => Errno::NoSpc,
        (IoError::Media, _) => Errno::Io,
    }
}
