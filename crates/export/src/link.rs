//! One client's socket on a device's thread, whatever protocol it speaks: what was received and what is to be sent, what it has
//! under way, and when it is over.

use std::time::SystemTime;

use device::IoError;

use crate::clients::Ticket;
use crate::input::Input;
use crate::jobs::{Core, Issued, Job, Origin, Payload, Slot, Source, Transfer};
use crate::output::Output;
use crate::request::{Command, Request};
use crate::seats::Seat;
use crate::slow::{Held, Way};
use crate::transport::Transport;

/// Requests that one client may have under way.
const MAX_IN_FLIGHT: u32 = 256;
/// Bytes that cost 1 in a large request: 128 KiB make a turn, because what was read or received should be sent or
/// taken while it is still in the processor's cache, and the client's part of the work then overlaps with ours.
const COST_BYTES: u64 = 2 << 10;
/// Requests below this many bytes cost 1: many of them share one send.
const SMALL: u64 = 32 << 10;

/// What a request costs of its client's turn.
#[inline]
pub fn cost(bytes: u64) -> u32 {
    if bytes < SMALL { 1 } else { u32::try_from(bytes / COST_BYTES).unwrap_or(u32::MAX) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Finish what is under way, then close.
    Draining,
    /// Wait for what is under way and throw it away.
    Broken,
}

/// What a step of a session came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done, at this cost.
    Done(u32),
    /// So many bytes must be there in one piece.
    Need(usize),
    /// The device takes no more just now.
    Busy,
    /// Nothing is asked; the client rings a bell of its own when it asks again.
    Idle,
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

/// Who a client is, as its handshake found out.
pub struct Arrival {
    /// The socket.
    pub transport: Transport,
    /// Who it is, for people.
    pub peer: String,
    /// The export it chose.
    pub export: String,
    /// Given back when the connection ends.
    pub ticket: Ticket,
    /// What makes the device wait for it, from [`crate::WorkerHandle::reserve`].
    pub seat: Seat,
}

/// A client's socket.
pub struct Link {
    /// The socket; the worker arms its receives.
    pub transport: Transport,
    /// What it sent.
    pub input: Input,
    /// What it is to get.
    pub output: Output,
    state: State,
    in_flight: u32,
    held: usize,
    /// How far the present request has come.
    pub way: Way,
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
    /// How the last of its requests that failed ended, in the protocol's numbers.
    pub last_error: Option<u16>,
    ticket: Ticket,
    _seat: Seat,
}

impl Link {
    /// Takes over after the handshake.
    pub fn new(arrival: Arrival) -> Link {
        let mut link = Link {
            transport: arrival.transport,
            input: Input::new(),
            output: Output::default(),
            state: State::Open,
            in_flight: 0,
            held: 0,
            way: Way::default(),
            data_missing: None,
            receiving: false,
            polling: false,
            queued: false,
            counters: Counters::default(),
            peer: arrival.peer,
            export: arrival.export,
            since: SystemTime::now(),
            last_error: None,
            ticket: arrival.ticket,
            _seat: arrival.seat,
        };
        if let Err(error) = link.transport.start(&mut link.input) {
            link.break_off(&error.to_string());
        }
        link
    }

    /// Memory that it holds, bytes: what it sent and is not carried out yet, and what it asked for and has not got yet.
    pub fn memory(&self) -> usize {
        self.input.memory() + self.transport.memory() + self.held + self.output.memory()
    }

    /// What it would give back if the kernel did not wait to receive into it, bytes.
    pub fn idle_memory(&self) -> usize {
        self.input.memory().max(self.transport.idle_memory())
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

    /// Whether requests are read from it.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
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
    pub fn has_room(&mut self) -> bool {
        self.in_flight < MAX_IN_FLIGHT && self.ticket.has_room(self.held + self.output.held())
    }

    /// A new request was read.
    #[inline]
    pub fn request_came(&mut self, core: &Core) {
        self.counters.requests += 1;
        self.way_begins(core);
    }

    /// From here on a request's time is ours.
    #[inline]
    pub fn way_begins(&mut self, core: &Core) {
        self.way = Way { arrived: core.observer.arrival(), ..Way::default() };
    }

    /// The present request cannot go on before the client has sent so many bytes.
    pub fn wait_for_data(&mut self, core: &Core, bytes: usize) -> Step {
        self.data_missing = self.data_missing.or(Some(core.observer.arrival()));
        Step::Need(bytes)
    }

    /// The present request cannot go on just now.
    pub fn hold_back(&mut self, why: Held) -> Step {
        self.way.held = why;
        Step::Busy
    }

    /// The data that [`Link::wait_for_data`] waited for have come.
    #[inline]
    pub fn data_are_there(&mut self, core: &Core) {
        if let Some(since) = self.data_missing.take() {
            self.way.client_was_late(core.observer.arrival().saturating_sub(since));
        }
    }

    /// The session keeps so many bytes for a request to come.
    pub fn hold(&mut self, bytes: usize) {
        self.held += bytes;
    }

    /// It does not any more.
    pub fn let_go(&mut self, bytes: usize) {
        self.held -= bytes;
    }

    /// Hands the next piece of a request to the device.
    #[inline]
    pub fn issue(&mut self, key: usize, core: &mut Core, transfer: &mut Transfer, source: Source<'_>) -> Issued {
        let request = transfer.request;
        let held = held_by(&request);
        let new = transfer.is_new();
        let ops = if let Source::Batch(ops, _) = source { ops } else { &[] };
        let waits = core.held_back(key, transfer, ops);
        if let Some(why) =
            waits.or_else(|| (new && held > 0 && !core.reading.may_begin(key, held)).then_some(Held::Reads))
        {
            self.way.held = why;
            return Issued::Held(why);
        }
        let max = core.device.info().max_request_bytes;
        if new && held > max as usize && !self.ticket.has_large_room(self.held + self.output.held() + held) {
            // Those who hold the room may never read: better a clear answer than to wait for them.
            return Issued::Answered(Err(IoError::TooLarge));
        }
        let data = match source {
            Source::Nothing => &[],
            Source::Buffer(data) | Source::Batch(_, data) => data,
            Source::Input(at) => {
                let piece = transfer.piece(max) as usize;
                let Some(data) = self.input.bytes().get(at..at + piece) else {
                    // Sessions wait until a piece is there; no write may ever pass for done without its data.
                    return Issued::Answered(Err(IoError::OutOfRange));
                };
                data
            }
        };
        let issued = core.issue(transfer, Origin { connection: key, peer: &self.peer, data, ops }, &mut self.way);
        let begun = new && (!transfer.is_new() || matches!(issued, Issued::Pending));
        if begun {
            self.in_flight += 1;
            self.held += held;
            core.reading.began(held);
        }
        match &issued {
            Issued::Held(why) => self.way.held = *why,
            Issued::Answered(_) if !transfer.is_new() => self.over(core, &request),
            _ => {}
        }
        issued
    }

    /// Gives up a request that the device has only in part: it is never answered.
    pub fn abandon(&mut self, key: usize, core: &mut Core, transfer: Option<Transfer>) {
        core.reading.give_up(key);
        let Some(job_key) = transfer.and_then(|transfer| transfer.job()) else { return };
        let Some(job) = core.job(job_key) else { return };
        job.issuing = false;
        job.abandoned = true;
        if job.parts == 0
            && let Slot::Job(job) = core.jobs.remove(job_key)
        {
            self.over(core, &job.request);
        }
    }

    /// A request that was under way is not any more.
    fn over(&mut self, core: &mut Core, request: &Request) {
        self.in_flight -= 1;
        self.held -= held_by(request);
        core.reading.ended(held_by(request));
    }

    /// A job is done: its request and its result, if anybody is to be answered.
    pub fn finish(&mut self, core: &mut Core, job: Job) -> Option<(Request, Result<Payload, IoError>)> {
        let (request, abandoned) = (job.request, job.abandoned);
        self.over(core, &request);
        let result = core.ended(&self.peer, job);
        if abandoned || self.state == State::Broken {
            if let Ok(read) = result {
                read.into_pieces().for_each(|piece| core.pool.put(piece));
            }
            return None;
        }
        Some((request, result))
    }

    /// A request succeeded.
    #[inline]
    pub fn count(&mut self, request: &Request) {
        match request.command {
            Command::Read => self.counters.read_bytes += request.len,
            Command::Write { .. } | Command::Append { .. } | Command::Batch { .. } => {
                self.counters.written_bytes += request.len
            }
            _ => {}
        }
    }
}

/// Bytes of read buffers that a request holds.
fn held_by(request: &Request) -> usize {
    if request.command == Command::Read { request.len as usize } else { 0 }
}
