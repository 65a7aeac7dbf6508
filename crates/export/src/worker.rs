//! A device thread: the device, its medium and its clients' sockets on one ring.
//!
//! A round of the loop takes completions, serves clients in turn, sends their answers, and makes
//! one system call that hands everything to the kernel and waits for more.

mod ending;
mod hosts;
mod kicks;
mod size;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ::nvme::Subsystem;
use device::{AttachError, Background, Device, Figures, Io, IoError, PowerCut, Status, Submitted};
use media::ring::mailbox::{Mailbox, Sender, mailbox};
use media::ring::{Entry, Owner, Ring, SharedRing, Timer};
use rustix::event::PollFlags;
use slab::Slab;

use crate::array::{ArrayError, ArrayMember, ArrayPlan};
use crate::cached::{Behind, CacheError, CachePlan};
use crate::composite::Composite;
use crate::composite::claim::Claim;
use crate::connection::{Connection, NewConnection, Session, Turn};
use crate::handle::{Call, ClientInfo, Gone, NvmeInfo, Shape, WorkerHandle};
use crate::jobs::{Core, Slot};
use crate::nvme;
use crate::observe::{Observed, Observer};
use crate::pool::Pool;
use crate::reading::Reading;
use crate::recording::Recording;
use crate::request::Request;
use crate::seats::Seats;
use crate::served::Served;
use crate::slow::{Slow, Wait};
use ending::Detaching;
use kicks::Kick;

/// Submissions between two system calls.
const RING_ENTRIES: u32 = 1024;
/// How often a device that has not answered, or takes no more, is asked again when nothing else happens.
const RETRY: Duration = Duration::from_millis(1);

/// How long a rebuild or a scrub pauses after each stripe while clients ask for something: it then takes a few per cent of the
/// time of a disk, and seldom more than a few milliseconds of a request's.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// How long a rebuild pauses when its last step failed, which it does as long as there is no room for it.
const STUCK_PAUSE: Duration = Duration::from_secs(1);

/// How long before an emulated device has something to say its thread stops sleeping and looks again and again: what the
/// kernel takes to wake a thread, also on a virtual machine.
const POLLED: Duration = Duration::from_micros(60);

/// How long no client must ask anything before the device may tidy up.
static QUIET: Timer = Timer::new(Duration::from_millis(100));
/// How often it is looked whether NVMe hosts are alive, and whether there is something to tell them.
static HOSTS_PERIOD: Timer = Timer::new(Duration::from_secs(1));
/// How long between two steps of tidying up.
static TIDY: Timer = Timer::new(Duration::from_millis(2));

/// What a completion of the ring is about, in the low bits of its token.
const BELL: u64 = 0;
const RECEIVED: u64 = 1;
const WRITABLE: u64 = 2;
const ALARM: u64 = 3;
const CANCELLED: u64 = 4;
const HOSTS: u64 = 5;
const KICKED: u64 = 6;
const KIND_BITS: u32 = 3;

/// A client that asks for nothing gives its receive buffer back if it takes more than this, bytes.
const IDLE_INPUT: usize = 64 << 10;

/// What is called when a drill cuts the device's power.
pub(crate) type OnPowerCut = Box<dyn FnOnce(PowerCut, Option<Recording>) + Send>;

/// A device thread's state. Outside of the thread there is only its [`WorkerHandle`].
pub struct Worker {
    pub(crate) name: String,
    pub(crate) core: Core,
    /// The array that the device is a member of, or the volumes that are cached on it.
    pub(crate) claims: Vec<Claim>,
    /// How often it was claimed.
    pub(crate) claimed: u64,
    pub(crate) ring: SharedRing,
    owner: Owner,
    mailbox: Mailbox<Call>,
    pub(crate) seats: Seats,
    connections: Slab<Connection>,
    /// Bells of virtual machines that the ring listens to.
    kicks: Slab<Kick>,
    /// Clients that can go on.
    ready: VecDeque<usize>,
    /// Clients that the device refused, those first that got nothing in their last turn.
    starved: VecDeque<usize>,
    parked: VecDeque<usize>,
    flushes: VecDeque<SyncSender<Result<(), IoError>>>,
    detaching: Option<Detaching>,
    /// The device may have something to tidy up.
    untidy: bool,
    /// Clients asked something since the alarm was set.
    active: bool,
    /// The timer for NVMe hosts is set.
    watching_hosts: bool,
    /// When they were looked at last, milliseconds by the observer's clock.
    looked_at_hosts_ms: u64,
    /// The alarm is set. One for many waits: a limit on each wait would cost every request a timer.
    alarm: bool,
    /// Before this no further step of a rebuild or a scrub begins.
    next_step: Instant,
    /// When the alarm went off last, the device was tidied up.
    tidying: bool,
    on_power_cut: Option<OnPowerCut>,
    /// The host capacity that clients and handles know of, bytes.
    told_bytes: Arc<AtomicU64>,
    /// Empty between rounds; kept for its memory.
    turns: Vec<(usize, Turn)>,
}

impl Worker {
    /// Starts a thread for a device, named after it, and attaches the device there with `attach`.
    ///
    /// # Errors
    /// What `attach` gave, or the operating system has no thread or ring for us.
    pub fn spawn(
        name: &str,
        attach: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static,
    ) -> Result<WorkerHandle, AttachError> {
        let owned = name.to_owned();
        let failed = move |error: io::Error| no_thread(&owned, &error);
        Worker::spawn_serving(name, |ring, _| attach(ring).map(Served::from), failed)
    }

    /// Starts a thread for an array of devices, named after it, and makes or assembles it there. Its members serve nobody else until it is
    /// detached; its thread ends with a detach only, also when the last handle is gone.
    ///
    /// # Errors
    /// See [`ArrayError`].
    pub fn spawn_array(name: &str, members: Vec<ArrayMember>, plan: ArrayPlan) -> Result<WorkerHandle, ArrayError> {
        let array = name.to_owned();
        let start = move |_: &SharedRing, back: &Sender<Call>| {
            Composite::start_array(&array, &members, &plan, back).map(Served::from)
        };
        Worker::spawn_serving(name, start, |error| ArrayError::Thread(error.to_string()))
    }

    /// Starts a thread for a cached volume, named after it, and makes or opens it there. What is behind serves nobody else until it is
    /// detached, and the cache device only further volumes.
    ///
    /// # Errors
    /// See [`CacheError`].
    pub fn spawn_cached(
        name: &str,
        cache: WorkerHandle,
        behind: Behind,
        plan: CachePlan,
    ) -> Result<WorkerHandle, CacheError> {
        let volume = name.to_owned();
        let start = move |_: &SharedRing, back: &Sender<Call>| {
            Composite::start_cached(&volume, &cache, &behind, &plan, back).map(Served::from)
        };
        Worker::spawn_serving(name, start, |error| CacheError::Thread(error.to_string()))
    }

    fn spawn_serving<E: Send + 'static>(
        name: &str,
        start: impl FnOnce(&SharedRing, &Sender<Call>) -> Result<Served, E> + Send + 'static,
        failed: impl Fn(io::Error) -> E + Clone + Send + 'static,
    ) -> Result<WorkerHandle, E> {
        let (sender, mailbox) = mailbox().map_err(&failed)?;
        let begins = failed.clone();
        let own = sender.clone();
        let seats = Seats::default();
        let worker_seats = seats.clone();
        let (answer, wait) = sync_channel(1);
        let thread_name = name.replace('\0', "");
        let device_name = name.to_owned();
        std::thread::Builder::new()
            .name(thread_name.clone())
            .spawn(move || {
                // The thread's own sender goes with what starts it: a device without handles is to be noticed.
                let start = move |ring: &SharedRing| start(ring, &own);
                match Worker::start(device_name, mailbox, worker_seats, start, begins) {
                    Ok(worker) => {
                        // The spawning thread waits for this answer.
                        let _ = answer.send(Ok((worker.shape(), Arc::clone(&worker.told_bytes))));
                        worker.run();
                    }
                    Err(error) => drop(answer.send(Err(error))),
                }
            })
            .map_err(&failed)?;
        let shape = wait.recv().map_err(|_| failed(io::Error::other("the device's thread failed; see the log")))??;
        Ok(WorkerHandle::new(name, shape, sender, seats))
    }

    fn start<E>(
        name: String,
        mailbox: Mailbox<Call>,
        seats: Seats,
        attach: impl FnOnce(&SharedRing) -> Result<Served, E>,
        failed: impl Fn(io::Error) -> E,
    ) -> Result<Worker, E> {
        let ring = Ring::new(RING_ENTRIES).map_err(&failed)?;
        let owner = ring.borrow_mut().register();
        let device = attach(&ring)?;
        if device.info().emulation.is_some() {
            be_exact();
        }
        let slow = Slow::of(device.info().emulation.is_some());
        let told_bytes = Arc::new(AtomicU64::new(device.info().bytes()));
        let mut worker = Worker {
            name,
            core: Core {
                device,
                jobs: Slab::new(),
                reading: Reading::default(),
                reserved: Vec::new(),
                nvme: Subsystem::default(),
                close_queues: Vec::new(),
                pool: Pool::default(),
                recording: None,
                observer: Observer::new(),
                slow,
            },
            claims: Vec::new(),
            claimed: 0,
            ring,
            owner,
            mailbox,
            seats,
            connections: Slab::new(),
            kicks: Slab::new(),
            ready: VecDeque::new(),
            starved: VecDeque::new(),
            parked: VecDeque::new(),
            flushes: VecDeque::new(),
            detaching: None,
            untidy: true,
            active: true,
            watching_hosts: false,
            looked_at_hosts_ms: 0,
            alarm: false,
            tidying: false,
            on_power_cut: None,
            told_bytes,
            next_step: Instant::now(),
            turns: Vec::new(),
        };
        worker.listen_to_bell().map_err(failed)?;
        Ok(worker)
    }

    fn shape(&self) -> Shape {
        let info = self.core.device.info();
        Shape {
            bytes: info.bytes(),
            sector_bytes: info.sector_bytes,
            max_request_bytes: info.max_request_bytes,
            read_only: self.core.device.is_read_only(),
        }
    }

    /// Every figure of the device, in words too; its memory with what its clients hold.
    pub(crate) fn status(&self) -> Status {
        let status = self.core.device.status();
        Status { figures: self.with_clients(status.figures), ..status }
    }

    /// The same without words, unless something is wrong, which people want to read: nothing is allocated.
    pub(crate) fn figures(&self) -> (Figures, Option<Status>) {
        let figures = self.with_clients(self.core.device.figures());
        (figures, figures.trouble.is_some().then(|| self.status()))
    }

    fn with_clients(&self, figures: Figures) -> Figures {
        self.claims.iter().for_each(|claim| claim.saw_mapped(figures.mapped_sectors));
        let clients: usize = self.connections.iter().map(|(_, connection)| connection.memory()).sum();
        Figures { memory_bytes: figures.memory_bytes + (clients + self.core.pool.memory()) as u64, ..figures }
    }

    /// The device, for control calls.
    ///
    /// # Errors
    /// It is an array, or a cached volume.
    pub(crate) fn device(&mut self) -> Result<&mut Device, Gone> {
        match &mut self.core.device {
            Served::Device(device, _) => Ok(device),
            Served::Composite(one) => {
                Err(Gone::Composite { name: self.name.clone(), kind: one.kind(), members: one.members() })
            }
        }
    }

    /// Whether it is about to go.
    pub(crate) fn is_detaching(&self) -> bool {
        self.detaching.is_some()
    }

    /// Serves another device from here on, which holds what the one before did.
    pub(crate) fn serve_instead(&mut self, device: Device) {
        let is_emulated = device.info().emulation.is_some();
        if is_emulated {
            be_exact();
        }
        self.core.slow = Slow::of(is_emulated);
        self.core.device = Served::from(device);
        (self.untidy, self.active) = (true, true);
    }

    /// What is served.
    pub(crate) fn served(&mut self) -> &mut Served {
        &mut self.core.device
    }

    pub(crate) fn clients(&self) -> Vec<ClientInfo> {
        self.connections
            .iter()
            .map(|(id, connection)| ClientInfo {
                id,
                protocol: connection.protocol(),
                peer: connection.link.peer.clone(),
                export: connection.link.export.clone(),
                tls: connection.link.transport.is_tls(),
                since: connection.link.since,
                requests: connection.link.counters.requests,
                read_bytes: connection.link.counters.read_bytes,
                written_bytes: connection.link.counters.written_bytes,
                in_flight: connection.link.in_flight(),
                nvme: connection.nvme().map(|session| NvmeInfo {
                    host: session.host().to_owned(),
                    controller: session.admitted().controller,
                    queue: session.admitted().queue,
                    header_digest: session.digests().header,
                    data_digest: session.digests().data,
                }),
                last_error: connection.link.last_error,
                memory_bytes: connection.memory() as u64,
            })
            .collect()
    }

    pub(crate) fn add_connection(&mut self, new: NewConnection) {
        if self.detaching.is_some() {
            return;
        }
        if let Session::Nvme(session) = &new.session
            && !self.admit(session)
        {
            tracing::debug!(device = %self.name, peer = %new.arrival.peer, "its association is over");
            return;
        }
        tracing::debug!(device = %self.name, peer = %new.arrival.peer, export = %new.arrival.export, "client connected");
        let key = self.connections.insert(Connection::new(new));
        // The device may have got another size since the handshake.
        let bytes = self.core.device.info().bytes();
        self.connections[key].resized(bytes);
        self.make_ready(key);
    }

    pub(crate) fn disconnect(&mut self, client: usize) -> bool {
        let Some(connection) = self.connections.get_mut(client) else { return false };
        connection.link.break_off("closed by the operator");
        self.make_ready(client);
        true
    }

    pub(crate) fn on_power_cut(&mut self, call: OnPowerCut) {
        self.on_power_cut = Some(call);
    }

    pub(crate) fn recording(&mut self) -> &mut Option<Recording> {
        &mut self.core.recording
    }

    /// Tells the log of requests that waited long.
    fn tell_slow(&mut self) {
        let Some((requests, worst)) = self.core.slow.take(self.core.observer.arrival()) else { return };
        let drills = self.core.device.drills_in_words();
        let Wait { ns, peer: client, request: Request { command, offset, len, .. }, why } = worst;
        let longest_ms = ns / 1_000_000;
        tracing::warn!(device = %self.name, requests, longest_ms, client, ?command, offset, len, drills, "requests waited long: {why}");
    }

    pub(crate) fn observe(&mut self, fresh: Observed) -> Observed {
        self.tell_slow();
        self.core.observer.look(fresh, self.connections.len())
    }

    pub(crate) fn flush(&mut self, answer: SyncSender<Result<(), IoError>>) {
        self.flushes.push_back(answer);
    }

    fn run(mut self) {
        tracing::info!(device = %self.name, "attached");
        let failure = loop {
            if self.core.device.power_cut().is_some() {
                return self.power_off();
            }
            if self.detached() {
                break None;
            }
            if let Err(error) = self.round() {
                break Some(error);
            }
        };
        self.close(failure);
    }

    fn round(&mut self) -> io::Result<()> {
        self.core.observer.round_begins();
        self.take_completions()?;
        if self.serve_claims() {
            self.untidy = true;
            self.active = true;
        }
        self.start_flushes();
        self.poll_device();
        self.look_at_size();
        let starved = std::mem::take(&mut self.starved);
        let parked = std::mem::take(&mut self.parked);
        self.ready.extend(starved.into_iter().chain(parked));
        if !self.ready.is_empty() {
            self.untidy = true;
            self.active = true;
        }
        let mut turns = std::mem::take(&mut self.turns);
        for key in self.ready.drain(..) {
            if let Some(connection) = self.connections.get_mut(key) {
                turns.push((key, connection.serve(key, &mut self.core)));
            }
        }
        // Before the sends, so that what the device finished by itself goes with them.
        self.poll_device();
        if self.core.device.power_cut().is_some() {
            // What was done just now is told to nobody.
            return Ok(());
        }
        for (key, turn) in turns.drain(..) {
            self.dispatch(key, turn)?;
        }
        self.turns = turns;
        if !self.claims.is_empty() {
            let room = self.core.device.device().and_then(|device| device.room_left());
            self.claims.iter_mut().for_each(|claim| claim.reply(room));
        }
        self.close_queues();
        self.core.observer.round_ends(self.core.jobs.len());
        self.tell_slow();
        self.go_on_beside();
        self.rest()
    }

    /// Rebuilds and scrubs: one stripe after the other while nobody asks anything, with pauses while clients do.
    fn go_on_beside(&mut self) {
        if !self.core.device.has_background() || self.detaching.is_some() || Instant::now() < self.next_step {
            return;
        }
        let pause = match self.core.device.background() {
            Background::Stuck => STUCK_PAUSE,
            Background::Slowly(pause) if self.active => pause.max(STEP_PAUSE),
            Background::Slowly(pause) => pause,
            _ if self.active => STEP_PAUSE,
            _ => Duration::ZERO,
        };
        self.next_step = Instant::now() + pause;
    }

    /// Hands everything to the kernel; waits when there is nothing to do.
    fn rest(&mut self) -> io::Result<()> {
        self.set_alarm()?;
        self.watch_hosts()?;
        let time_left = self.core.device.time_left();
        let mut ring = self.ring.borrow_mut();
        if !self.ready.is_empty() || self.core.device.can_go_on() {
            ring.submit()
        } else if let Some(left) = time_left {
            // Sleeping is not exact enough for the last stretch.
            let waiting = self.claims.iter().any(Claim::is_waiting) || self.core.device.is_waiting();
            let refused = waiting || !(self.starved.is_empty() && self.parked.is_empty() && self.flushes.is_empty());
            match left.checked_sub(POLLED) {
                Some(left) if refused || self.detaching.is_some() => ring.wait(Some(left.min(RETRY))),
                Some(left) => ring.wait(Some(left)),
                None => {
                    // The array and its other members may have no other core. Where only a client needs one, it is better off on another.
                    if !self.claims.is_empty() {
                        std::thread::yield_now();
                    }
                    ring.submit()
                }
            }
        } else if !self.starved.is_empty()
            || !self.parked.is_empty()
            || !self.flushes.is_empty()
            || !self.core.jobs.is_empty()
            || self.claims.iter().any(Claim::is_waiting)
            || self.core.device.is_waiting()
        {
            // What its medium has under way is announced by a completion of the ring; nothing else is.
            let retry = self.core.device.is_idle().then_some(RETRY);
            ring.wait(retry.or_else(|| self.detaching.as_ref().map(Detaching::time_left)))
        } else if let Some(detaching) = &self.detaching {
            if self.connections.is_empty() && self.core.jobs.is_empty() {
                return ring.submit();
            }
            ring.wait(Some(detaching.time_left()))
        } else if self.core.device.has_background() {
            let left = self.next_step.saturating_duration_since(Instant::now());
            // The step under way is announced by a completion; what it waits for besides is not.
            ring.wait(Some(left.max(RETRY)))
        } else {
            ring.wait(None)
        }
    }

    /// Makes sure that the thread wakes up for tidying as long as there is something to tidy.
    fn set_alarm(&mut self) -> io::Result<()> {
        // A snapshot may have been deleted, and nobody asks anything.
        self.untidy |= self.core.device.is_untidy();
        if !self.untidy || self.alarm {
            return Ok(());
        }
        self.alarm = true;
        let entry = Entry::Timeout(if self.tidying { &TIDY } else { &QUIET });
        // SAFETY: the entry points to a static.
        unsafe { self.ring.borrow_mut().push(self.owner, ALARM, entry) }
    }

    /// The alarm went off: lets the device make things durable and clear up, if nobody asked anything of it meanwhile.
    fn tidy(&mut self) -> io::Result<()> {
        self.alarm = false;
        self.tidying = !std::mem::take(&mut self.active) && self.core.jobs.is_empty() && self.detaching.is_none();
        if self.tidying {
            self.core.pool.clear();
            self.shrink_connections()?;
            self.untidy = self.core.device.idle();
        }
        Ok(())
    }

    /// Gives back what clients' buffers take. Where the kernel may be about to receive into one, the receive ends first.
    fn shrink_connections(&mut self) -> io::Result<()> {
        for (key, connection) in &mut self.connections {
            connection.shrink();
            if connection.link.receiving && connection.idle_memory() > IDLE_INPUT {
                self.ring.borrow_mut().cancel(self.owner, RECEIVED | (key as u64) << KIND_BITS, CANCELLED)?;
            }
        }
        Ok(())
    }

    fn take_completions(&mut self) -> io::Result<()> {
        loop {
            let Some(completion) = self.ring.borrow_mut().next(self.owner) else { return Ok(()) };
            let key = (completion.token >> KIND_BITS) as usize;
            match completion.token & ((1 << KIND_BITS) - 1) {
                BELL => {
                    self.mailbox.answer_bell();
                    self.receive_calls();
                    if !completion.more {
                        self.listen_to_bell()?;
                    }
                }
                RECEIVED => {
                    if let Some(connection) = self.connections.get_mut(key) {
                        connection.link.received(completion.result);
                    }
                    self.make_ready(key);
                }
                ALARM => self.tidy()?,
                HOSTS => self.look_at_hosts(),
                CANCELLED => {}
                KICKED => self.kicked(key, completion.result, completion.more)?,
                _ => {
                    if let Some(connection) = self.connections.get_mut(key) {
                        connection.link.polling = false;
                    }
                    self.make_ready(key);
                }
            }
        }
    }

    fn receive_calls(&mut self) {
        loop {
            match self.mailbox.receive() {
                Ok(Some(call)) => call(self),
                Ok(None) => return,
                Err(_) => {
                    // Nobody can reach this device any more.
                    if self.detaching.is_none() {
                        self.begin_detach(None);
                    }
                    return;
                }
            }
        }
    }

    pub(crate) fn start_flushes(&mut self) {
        while let Some(answer) = self.flushes.pop_front() {
            let tag = self.core.jobs.vacant_key();
            match self.core.device.submit(tag as u64, Io::Flush) {
                // An asker that went away needs no answer.
                Submitted::Done(result) => drop(answer.send(result.map(drop))),
                Submitted::Pending => drop(self.core.jobs.insert(Slot::Flush(answer))),
                Submitted::Busy(_) => {
                    self.flushes.push_front(answer);
                    return;
                }
            }
        }
    }

    /// Takes the device's answers to their clients.
    pub(crate) fn poll_device(&mut self) {
        while let Some(done) = self.core.device.poll() {
            let Some(slot) = self.core.jobs.try_remove(done.tag as usize) else { continue };
            let key = match slot {
                Slot::Job(mut job) => {
                    job.part_done(0, done.result);
                    let key = job.connection;
                    if let Some(connection) = self.connections.get_mut(key) {
                        connection.finish(&mut self.core, job);
                    }
                    key
                }
                Slot::Part { job: job_key, index } => {
                    let Some(job) = self.core.job(job_key) else { continue };
                    job.part_done(index, done.result);
                    let key = job.connection;
                    if job.parts == 0
                        && !job.issuing
                        && let Slot::Job(job) = self.core.jobs.remove(job_key)
                        && let Some(connection) = self.connections.get_mut(key)
                    {
                        connection.finish(&mut self.core, job);
                    }
                    key
                }
                Slot::Claim { tag, claim } => {
                    self.claim_done(claim, tag, done.result);
                    continue;
                }
                Slot::Flush(answer) => {
                    // An asker that went away needs no answer.
                    let _ = answer.send(done.result.map(drop));
                    continue;
                }
            };
            self.make_ready(key);
        }
    }

    fn make_ready(&mut self, key: usize) {
        if let Some(connection) = self.connections.get_mut(key)
            && !connection.link.queued
        {
            connection.link.queued = true;
            self.ready.push_back(key);
        }
    }

    /// After a client's turn: send its answers, and ask the kernel for more.
    fn dispatch(&mut self, key: usize, turn: Turn) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        connection.link.queued = false;
        connection.tell();
        let waits = connection.link.send(&mut self.core);
        if waits {
            connection.link.polling = true;
            let entry =
                Entry::Poll { fd: connection.link.transport.fd().as_raw_fd(), events: PollFlags::OUT, multi: false };
            // SAFETY: the entry points to nothing; the descriptor stays open until it completes.
            unsafe { self.ring.borrow_mut().push(self.owner, WRITABLE | (key as u64) << KIND_BITS, entry)? };
        }
        match turn {
            // A client sends a payload right behind its header, often in a call of its own: by now it is there, and
            // taking it costs less than going to sleep for it.
            Turn::Receive(need) if connection.has_part() && connection.link.take_now(need) => self.make_ready(key),
            Turn::Receive(need) => {
                let (address, len, whole) = connection.link.transport.lend(&mut connection.link.input, need, true);
                let (fd, bytes) = (connection.link.transport.fd().as_raw_fd(), len as u32);
                let entry = Entry::Receive { fd, address, bytes, whole };
                connection.link.receiving = true;
                let token = RECEIVED | (key as u64) << KIND_BITS;
                // SAFETY: the lent part of the buffer neither moves nor is touched until the completion is
                // taken, the connection is kept until then, and a buffer still lent is never freed.
                unsafe { self.ring.borrow_mut().push(self.owner, token, entry)? };
                // Its queued commands may have got room by what was just sent.
                if self
                    .connections
                    .get_mut(key)
                    .is_some_and(|connection| connection.nvme().is_some() && connection.can_go_on())
                {
                    self.make_ready(key);
                }
            }
            Turn::Again => self.make_ready(key),
            Turn::Parked(progress) => {
                connection.link.queued = true;
                if progress { self.parked.push_back(key) } else { self.starved.push_back(key) }
            }
            Turn::Blocked if connection.can_go_on() => self.make_ready(key),
            Turn::Blocked | Turn::Idle | Turn::Over => {}
        }
        self.settle(key);
        Ok(())
    }

    /// Forgets a client that is over.
    fn settle(&mut self, key: usize) {
        if let Some(connection) = self.connections.get_mut(key)
            && connection.link.is_over(&mut self.core)
        {
            let gone = self.connections.remove(key);
            self.hear_no_more(key);
            self.core.reading.give_up(key);
            self.core.reserved.retain(|(owner, _)| *owner != key);
            if let Some(queue) = gone.nvme().map(nvme::Session::admitted)
                && queue.queue == 0
            {
                self.leave(queue.controller);
            }
            tracing::debug!(device = %self.name, peer = %gone.link.peer, export = %gone.link.export, "client gone");
            for queue in [&mut self.ready, &mut self.starved, &mut self.parked] {
                queue.retain(|queued| *queued != key);
            }
        }
    }

    fn listen_to_bell(&mut self) -> io::Result<()> {
        let entry = Entry::Poll { fd: self.mailbox.bell().as_raw_fd(), events: PollFlags::IN, multi: true };
        // SAFETY: the entry points to nothing; the descriptor lives as long as the mailbox.
        unsafe { self.ring.borrow_mut().push(self.owner, BELL, entry) }
    }
}

/// Lets the kernel wake this thread exactly, for an emulated card: its moments are a few microseconds apart, and the kernel would round each
/// wake-up by fifty. Where that must not be set, it does.
fn be_exact() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// The error of a device for which the operating system has no thread, or no ring.
fn no_thread(name: &str, error: &io::Error) -> AttachError {
    AttachError::Media { path: PathBuf::from(name), what: format!("cannot start the device's thread: {error}") }
}
