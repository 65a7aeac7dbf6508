//! A guest's requests, in the order in which its queues have them, and their answers, in the order in which they are done.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use device::IoError;
use slab::Slab;

use super::back::Back;
use super::chain::{self, BadChain, Chain, Segment, gather, is_there, scatter};
use super::config::{Facts, MAX_QUEUES};
use super::inflight::Inflight;
use super::memory::Memory;
use super::proto::{HEADER_BYTES, ID_BYTES, RANGE_BYTES, Status, feature};
use super::request::{Asked, Limits, check, has_range};
use super::ring::{Places, Ring, RingError};
use crate::jobs::{Core, Issued, Payload, Source, Transfer};
use crate::link::{Link, Step};
use crate::request::{Command, Request};

/// Bytes that cost 1: 1 MiB makes a turn, at whose end the guest is called. Its data are with it already, so it gains nothing from
/// a call for each large request, and each call wakes it.
const COST_BYTES: u64 = 16 << 10;
/// Chains kept for their memory.
const SPARE: usize = 64;

/// Why a guest is not served any more.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// See [`RingError`].
    #[error(transparent)]
    Ring(#[from] RingError),
    /// A descriptor chain that is none.
    #[error("queue {queue}: {what}")]
    Chain {
        /// The queue.
        queue: usize,
        /// What is wrong.
        what: BadChain,
    },
    /// Nobody could be told how the request ended.
    #[error("queue {0}: a request without a place for its status")]
    NoStatus(usize),
    /// There are no such queues.
    #[error("queue {0} of at most {MAX_QUEUES}")]
    Queue(u32),
}

/// A request that is not answered.
struct Pending {
    queue: usize,
    head: u16,
    /// The table by which its addresses were checked: it stays mapped as long as they may be written to.
    memory: Arc<Memory>,
    chain: Chain,
}

/// A guest.
pub struct Session {
    /// Whose it is: unlike the number of a connection it is never used again.
    pub id: u64,
    facts: Facts,
    limits: Limits,
    /// The write cache is on, as the driver switched it last.
    write_back: bool,
    features: u64,
    memory: Arc<Memory>,
    region: Option<Arc<Inflight>>,
    rings: Vec<Ring>,
    /// Queues that were given up while the worker listened to them.
    unheard: Vec<usize>,
    pending: Slab<Pending>,
    current: Option<Transfer>,
    /// The queue whose turn it is.
    turn: usize,
    /// Requests taken: each has its number, whichever queue it is from.
    counter: u64,
    /// The piece of a write that goes to the device next, see [`Session::transfer`].
    piece: Vec<u8>,
    spare: Vec<Chain>,
    /// By which the front end is told something, where it can be.
    back: Option<Back>,
    /// A queue was started.
    begun: bool,
}

impl Session {
    /// One whose front end has said nothing yet.
    pub fn new(id: u64, facts: Facts, write_back: bool) -> Session {
        let mut session = Session {
            id,
            facts,
            limits: facts.limits,
            write_back,
            features: 0,
            memory: Arc::new(Memory::empty()),
            region: None,
            rings: Vec::new(),
            unheard: Vec::new(),
            pending: Slab::new(),
            current: None,
            turn: 0,
            counter: 0,
            piece: Vec::new(),
            spare: Vec::new(),
            back: None,
            begun: false,
        };
        session.settle_cache();
        session
    }

    /// The front end can be told something from now on.
    pub fn set_back(&mut self, back: Back) {
        self.back = Some(back);
    }

    /// The device has another host capacity: the front end is told, reads the configuration space anew and tells its guest.
    pub fn resized(&mut self, bytes: u64) {
        if self.limits.bytes == bytes {
            return;
        }
        (self.facts.limits.bytes, self.limits.bytes) = (bytes, bytes);
        self.config_changed();
    }

    fn config_changed(&self) {
        if let Some(Err(error)) = self.back.as_ref().map(Back::config_changed) {
            tracing::warn!(%error, "vhost: the front end could not be told of another size; its guest learns it when it starts anew");
        }
    }

    /// The features that both sides have.
    pub fn set_features(&mut self, features: u64) {
        self.features = features;
        self.settle_cache();
    }

    /// Switches the write cache.
    pub fn set_write_back(&mut self, on: bool) {
        self.write_back = on;
        self.settle_cache();
    }

    /// The configuration space.
    pub fn config(&self) -> [u8; super::config::CONFIG_BYTES] {
        self.facts.config(self.write_back)
    }

    /// A driver that knows of no flush must find everything durable that was answered (VIRTIO 1.3, 5.2.6.2).
    fn settle_cache(&mut self) {
        let flushes = self.features & (feature::FLUSH | feature::CONFIG_WCE) != 0;
        self.limits.write_through = !self.write_back || !flushes;
    }

    /// A new memory table; gives the old one back, which requests under way may still hold.
    ///
    /// # Errors
    /// A queue that runs is not in it.
    pub fn set_memory(&mut self, memory: Arc<Memory>) -> Result<Arc<Memory>, Refused> {
        let old = std::mem::replace(&mut self.memory, memory);
        for ring in self.rings.iter_mut().filter(|ring| ring.is_running()) {
            ring.find(&self.memory)?;
        }
        Ok(old)
    }

    /// The in-flight region, for queues that start from now on.
    pub fn set_region(&mut self, region: Arc<Inflight>) {
        self.region = Some(region);
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring, Refused> {
        if index >= u32::from(MAX_QUEUES) {
            return Err(Refused::Queue(index));
        }
        while self.rings.len() <= index as usize {
            self.rings.push(Ring::new(self.rings.len()));
        }
        Ok(&mut self.rings[index as usize])
    }

    /// How many descriptors a queue has.
    ///
    /// # Errors
    /// It cannot have so many.
    pub fn set_size(&mut self, index: u32, size: u32) -> Result<(), Refused> {
        Ok(self.ring(index)?.set_size(size)?)
    }

    /// Where a queue's rings stand.
    ///
    /// # Errors
    /// They are not in the guest's memory.
    pub fn set_places(&mut self, index: u32, places: Places) -> Result<(), Refused> {
        let memory = Arc::clone(&self.memory);
        Ok(self.ring(index)?.set_places(places, &memory)?)
    }

    /// Where a queue's available ring goes on.
    ///
    /// # Errors
    /// There is no such queue, or no such place.
    pub fn set_base(&mut self, index: u32, base: u32) -> Result<(), Refused> {
        let base = u16::try_from(base).map_err(|_| RingError::Size(index as usize, base))?;
        self.ring(index)?.set_base(base);
        Ok(())
    }

    /// By what a guest wakes us; begins to serve the queue if that was missing.
    ///
    /// # Errors
    /// What is known of the queue does not fit together.
    pub fn set_kick(&mut self, index: u32, fd: OwnedFd) -> Result<(), Refused> {
        let ring = self.ring(index)?;
        ring.kick = Some(Arc::new(fd));
        let unheard = ring.armed.take();
        self.unheard.extend(unheard);
        if !std::mem::replace(&mut self.begun, true) {
            // A front end that comes again goes on with the size that it knew, and the device may have got another one meanwhile. Before its
            // queues run it would not listen.
            self.config_changed();
        }
        self.start(index)
    }

    /// By what a guest is woken, or told that the queue is given up.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn set_call(&mut self, index: u32, fd: Option<OwnedFd>, err: bool) -> Result<(), Refused> {
        let ring = self.ring(index)?;
        // A back end that died may have answered and not called. Whether the guest heard of it nobody knows, and a call too many
        // does no harm.
        if let (Some(fd), false) = (&fd, err) {
            super::ring::signal(fd);
        }
        *(if err { &mut ring.err } else { &mut ring.call }) = fd;
        Ok(())
    }

    /// Lets a queue be served, or not for now.
    ///
    /// # Errors
    /// What is known of the queue does not fit together.
    pub fn enable(&mut self, index: u32, on: bool) -> Result<(), Refused> {
        self.ring(index)?.enabled = on;
        self.start(index)
    }

    fn start(&mut self, index: u32) -> Result<(), Refused> {
        let event_idx = self.features & feature::EVENT_IDX != 0;
        // Without protocol features there is no message that would enable it.
        let always = self.features & feature::PROTOCOL_FEATURES == 0;
        let (memory, region) = (Arc::clone(&self.memory), self.region.clone());
        let ring = self.ring(index)?;
        ring.enabled |= always;
        if ring.start(&memory, event_idx, region.as_ref())? {
            let last = ring.last_replay();
            self.counter = self.counter.max(last);
        }
        Ok(())
    }

    /// Brings a queue to rest; `answer` gets where its available ring goes on.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn stop(&mut self, index: u32, answer: SyncSender<u16>) -> Result<(), Refused> {
        let ring = self.ring(index)?;
        ring.stop(answer);
        Ok(())
    }

    /// The queues, and under which numbers the worker listened to kicks that it need not hear any more.
    pub fn queues(&mut self) -> (&mut [Ring], &mut Vec<usize>) {
        (&mut self.rings, &mut self.unheard)
    }

    /// Whether a request is taken and not yet wholly with the device.
    #[inline]
    pub fn has_part(&self) -> bool {
        self.current.is_some()
    }

    /// The request of which the device may have a part: it is not carried on with. It stays in the in-flight region.
    pub fn give_up(&mut self) -> Option<Transfer> {
        self.current.take()
    }

    /// Memory that it keeps, bytes, beside what requests hold.
    pub fn memory_bytes(&self) -> usize {
        let segments = |chain: &Chain| (chain.readable.capacity() + chain.writable.capacity()) * size_of::<Segment>();
        let chains = self.spare.iter().chain(self.pending.iter().map(|(_, pending)| &pending.chain));
        self.piece.capacity() + chains.map(segments).sum::<usize>()
    }

    /// Gives back what it keeps for requests to come.
    pub fn shrink(&mut self) {
        self.spare = Vec::new();
        if self.current.is_none() {
            self.piece = Vec::new();
        }
    }

    /// Takes the next step.
    #[inline]
    pub fn step(&mut self, link: &mut Link, key: usize, core: &mut Core) -> Step {
        if core.device.power_cut().is_some() {
            // Its answers would be in the guest's memory at once, and nobody is told of anything any more.
            return Step::Idle;
        }
        if let Some(transfer) = self.current {
            return self.transfer(link, key, core, transfer);
        }
        match self.next(link, core) {
            Ok(step) => step,
            Err(error) => self.refuse(link, &error),
        }
    }

    /// A guest that cannot be answered any more.
    fn refuse(&mut self, link: &mut Link, error: &Refused) -> Step {
        tracing::warn!(peer = %link.peer, export = %link.export, %error, "vhost: the guest broke the rules; its connection is closed");
        self.rings.iter().for_each(Ring::fail);
        link.break_off(&error.to_string());
        Step::Done(1)
    }

    fn next(&mut self, link: &mut Link, core: &mut Core) -> Result<Step, Refused> {
        let Some((queue, head)) = self.take()? else {
            let mut more = false;
            for ring in &mut self.rings {
                more |= ring.listen(&self.memory)?;
            }
            return Ok(if more { Step::Done(1) } else { Step::Idle });
        };
        link.request_came(core);
        let mut chain = self.spare.pop().unwrap_or_default();
        let (table, size) = self.rings[queue].table();
        let may_be_indirect = self.features & feature::INDIRECT_DESC != 0;
        let read = chain.read(&self.memory, table, size, head, may_be_indirect);
        read.map_err(|what| Refused::Chain { queue, what })?;
        let status = status_at(&chain).filter(|at| self.memory.covers(*at, 1)).ok_or(Refused::NoStatus(queue))?;
        let asked = self.asked(&chain);
        let pending = Pending { queue, head, memory: Arc::clone(&self.memory), chain };
        match asked {
            Ok(Asked::Device { command, offset, len }) if len > 0 || command == Command::Flush => {
                let cookie = self.pending.insert(pending) as u64;
                self.current = Some(Transfer::new(Request { command, offset, len, cookie, view: None }));
                Ok(Step::Done(0))
            }
            Ok(Asked::Id) => {
                let into = (chain::bytes(&pending.chain.writable) - 1).min(ID_BYTES as u64) as usize;
                let there = scatter(&pending.memory, &pending.chain.writable, 0, &self.facts.id[..into]);
                self.answer_with(pending, status, if there { Status::Ok } else { Status::IoErr })?;
                Ok(Step::Done(1))
            }
            Ok(Asked::Device { .. }) => {
                self.answer_with(pending, status, Status::Ok)?;
                Ok(Step::Done(1))
            }
            Err(error) => {
                self.answer_with(pending, status, error)?;
                Ok(Step::Done(1))
            }
        }
    }

    /// What a chain asks for: its header is read once, so that what was checked is what is done.
    fn asked(&self, chain: &Chain) -> Result<Asked, Status> {
        let (mut header, mut range) = ([0; HEADER_BYTES], [0; RANGE_BYTES]);
        if !gather(&self.memory, &chain.readable, 0, &mut header) {
            return Err(Status::IoErr);
        }
        let out = chain::bytes(&chain.readable) - HEADER_BYTES as u64;
        let into = chain::bytes(&chain.writable) - 1;
        if has_range(&header) && !gather(&self.memory, &chain.readable, HEADER_BYTES as u64, &mut range) {
            return Err(Status::IoErr);
        }
        let asked = check(&header, out, into, &range, &self.limits)?;
        let data = match asked {
            Asked::Device { command: Command::Read, .. } | Asked::Id => &chain.writable,
            Asked::Device { command: Command::Write { .. }, .. } => &chain.readable,
            Asked::Device { .. } => return Ok(asked),
        };
        if is_there(&self.memory, data) { Ok(asked) } else { Err(Status::IoErr) }
    }

    /// The next request: first what the back end before had taken, over all queues in the order in which it took them.
    fn take(&mut self) -> Result<Option<(usize, u16)>, RingError> {
        let replays = self.rings.iter().enumerate();
        let oldest = replays.filter_map(|(index, ring)| ring.next_replay().map(|counter| (counter, index))).min();
        if let Some((_, index)) = oldest {
            return Ok(self.rings[index].take_replay().map(|head| (index, head)));
        }
        let count = self.rings.len();
        for offset in 0..count {
            let index = (self.turn + offset) % count;
            if let Some(head) = self.rings[index].take(&self.memory, self.counter + 1)? {
                self.counter += 1;
                self.turn = index + 1;
                return Ok(Some((index, head)));
            }
        }
        Ok(None)
    }

    /// Hands the next piece of the present request to the device.
    ///
    /// A write's piece is copied out of the guest's memory first: the guest may change it at any moment, and the device's checksum
    /// must be of the bytes that it stores.
    fn transfer(&mut self, link: &mut Link, key: usize, core: &mut Core, mut transfer: Transfer) -> Step {
        let request = transfer.request;
        let piece = transfer.piece(core.device.info().max_request_bytes);
        let mut data = Source::Nothing;
        if let Command::Write { .. } = request.command {
            self.piece.resize(self.piece.len().max(piece as usize), 0);
            let to = &mut self.piece[..piece as usize];
            let from = self.pending.get(request.cookie as usize);
            let skip = HEADER_BYTES as u64 + transfer.issued();
            if !from.is_some_and(|from| gather(&from.memory, &from.chain.readable, skip, to)) {
                // It was all there when the request came, in a table that is still mapped.
                link.break_off("a write's data are gone");
                return Step::Done(1);
            }
            data = Source::Buffer(to);
        }
        let issued = link.issue(key, core, &mut transfer, data);
        self.current = match issued {
            Issued::Held(_) | Issued::More => Some(transfer),
            _ => None,
        };
        match issued {
            Issued::Held(_) => return Step::Busy,
            Issued::Answered(_) if core.device.power_cut().is_some() => {}
            Issued::Answered(result) => self.answer(link, core, &request, result),
            _ => {}
        }
        Step::Done(if request.command.is_sized() { (piece / COST_BYTES).max(1) as u32 } else { 1 })
    }

    /// A request is done.
    pub fn answer(&mut self, link: &mut Link, core: &mut Core, request: &Request, result: Result<Payload, IoError>) {
        let Some(pending) = self.pending.try_remove(request.cookie as usize) else { return };
        let status = match result {
            Ok(read) => {
                link.count(request);
                let mut skip = 0;
                let mut there = true;
                for bytes in read.into_pieces() {
                    there &= scatter(&pending.memory, &pending.chain.writable, skip, &bytes);
                    skip += bytes.len() as u64;
                    core.pool.put(bytes);
                }
                if there { Status::Ok } else { Status::IoErr }
            }
            Err(_) => Status::IoErr,
        };
        let Some(at) = status_at(&pending.chain) else { return };
        if let Err(error) = self.answer_with(pending, at, status) {
            self.refuse(link, &error);
        }
    }

    /// Writes the status and gives the chain back to the guest.
    fn answer_with(&mut self, pending: Pending, at: u64, status: Status) -> Result<(), Refused> {
        let Pending { queue, head, memory, chain } = pending;
        if !memory.write(at, &[status as u8]) {
            return Err(Refused::NoStatus(queue));
        }
        let written = u32::try_from(chain::bytes(&chain.writable)).unwrap_or(u32::MAX);
        self.rings[queue].answered(&self.memory, head, written)?;
        if self.spare.len() < SPARE {
            self.spare.push(chain);
        }
        Ok(())
    }

    /// Calls the guest for what was answered.
    #[inline]
    pub fn tell(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.tell(&self.memory));
    }
}

/// Where a request's status goes: the last byte that the device may write.
fn status_at(chain: &Chain) -> Option<u64> {
    let last = chain.writable.last()?;
    last.address.checked_add(u64::from(last.bytes) - 1)
}
