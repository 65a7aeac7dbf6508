//! Link and controller of an emulated card: what stands between its requests and the layer, in time.
//!
//! **A write's way.** The layer takes it: it stands in the capacitor-backed buffer. It is answered when it would be through link and front
//! end (one request at a time). When the buffer is full or the groomer behind, the write waits in order.
//! **A read's way.** The layer says where its sectors are; when the flash has given all, over the link and out.
//! **A flush** is answered at once; what stands in open pages is put where it survives the end of this process first.
//!
//! The model's time follows the clock. Everything happens at its own moment of the model's time, in order, however late this is called; only the
//! answer itself can be late, and [`Books`] tell by how much.
//!
//! **What the client sees.** A real card is reached through its driver, which takes a while; this one through a socket, which takes longer. Answers
//! go out earlier by the difference, the *lead*, as far as they are known by then. Of many requests under way, answers that are due at nearly the same
//! time go out together, half of them a little early and half a little late: one call for each would cost the client more than the card gives it.

use std::collections::{HashMap, VecDeque};

use card::{Governor, Health};
use media::nand::{FrontEnd, Nanos};

use super::clock::Clock;
use super::pacing::{Books, Pacing};
use crate::core::Core;
use crate::{Completion, Io, IoError, Submitted};

/// The tag of flushes that no client asked for.
const BACKGROUND: u64 = u64::MAX;
/// Longest time that something flushed stays in the page cache only.
const SYNC_EVERY: Nanos = 1_000_000_000;
/// While no client waits for anything, this much later is soon enough.
const NOBODY_WAITS: Nanos = 1_000_000;
/// So long after an answer the next request is looked for again and again: a client of one request at a time asks at once, and
/// waking a thread for it would take longer than the card takes.
const LINGER: Nanos = 50_000;

/// Answers go out together when they are due within this of each other, and within this share of their requests' time.
const TOGETHER: Nanos = 16_000;
const TOGETHER_SHARE: Nanos = 16;

/// What a write or trim asks for.
enum Ask {
    Write(Vec<u8>),
    Trim { count: u64 },
    Zeroes { count: u64, allocate: bool },
}

/// A write or trim that waits to be taken.
struct Waiting {
    tag: u64,
    lba: u64,
    fua: bool,
    ask: Ask,
    /// When it is through link and front end.
    through: Nanos,
}

impl Waiting {
    fn of(tag: u64, io: &Io, through: Nanos) -> Option<Waiting> {
        let (lba, fua, ask) = match *io {
            Io::Write { lba, data, fua } => (lba, fua, Ask::Write(data.to_vec())),
            Io::Trim { lba, count, fua } => (lba, fua, Ask::Trim { count }),
            Io::WriteZeroes { lba, count, fua, allocate } => (lba, fua, Ask::Zeroes { count, allocate }),
            Io::Read { .. } | Io::Flush => return None,
        };
        Some(Waiting { tag, lba, fua, ask, through })
    }

    fn io(&self) -> Io<'_> {
        let Waiting { lba, fua, .. } = *self;
        match self.ask {
            Ask::Write(ref data) => Io::Write { lba, data, fua },
            Ask::Trim { count } => Io::Trim { lba, count, fua },
            Ask::Zeroes { count, allocate } => Io::WriteZeroes { lba, count, fua, allocate },
        }
    }
}

/// An answer on its way.
struct Answer {
    /// When it is to go out.
    at: Nanos,
    /// When it should have: earlier if the inner medium was slow.
    due: Nanos,
    /// How much earlier or later it may go out, to go with others.
    play: Nanos,
    completion: Completion,
}

/// What an engine is made of.
pub(crate) struct Parts {
    pub front: FrontEnd,
    pub governor: Option<Governor>,
    pub clock: Box<dyn Clock>,
    /// By how much earlier answers go out: to reads, and to the rest.
    pub lead: [Nanos; 2],
    /// Nanoseconds by which each written byte is held back once the reserve is used up.
    pub reduced_hold: f64,
}

/// The engine.
pub(crate) struct Engine {
    front: FrontEnd,
    governor: Option<Governor>,
    clock: Box<dyn Clock>,
    /// The model's time when the clock began, less the clock's.
    begin: Nanos,
    clock_begin: Nanos,
    now: Nanos,
    lead: [Nanos; 2],
    /// Writes that the layer could not take yet.
    waiting: VecDeque<Waiting>,
    /// Answers in the order of time: of reads, and of the rest.
    answers: [VecDeque<Answer>; 2],
    /// Answers up to here go out with the one before them.
    releasing: Nanos,
    /// When every request came that is not answered.
    arrived: HashMap<u64, Nanos>,
    /// Something was trimmed since the last flush.
    trimmed: bool,
    /// A flush was answered of which the disk knows nothing yet.
    unsynced: bool,
    syncing: bool,
    synced: Nanos,
    host_written: u64,
    /// When the last answer was given.
    answered: Nanos,
    books: Books,
    reduced_hold: f64,
    /// Spare blocks of each die that a drill took away.
    taken_spares: Option<Vec<u32>>,
    /// A drill has it as worn out as can be.
    worn_out: bool,
}

impl Engine {
    pub fn new(parts: Parts, now: Nanos) -> Engine {
        Engine {
            front: parts.front,
            governor: parts.governor,
            begin: now,
            clock_begin: parts.clock.now(),
            clock: parts.clock,
            now,
            lead: parts.lead,
            releasing: 0,
            waiting: VecDeque::new(),
            answers: [VecDeque::new(), VecDeque::new()],
            arrived: HashMap::new(),
            trimmed: false,
            unsynced: false,
            syncing: false,
            synced: now,
            host_written: 0,
            answered: 0,
            books: Books::new(),
            reduced_hold: parts.reduced_hold,
            taken_spares: None,
            worn_out: false,
        }
    }

    /// Heat and power, where the data sheet knows of them.
    pub fn governor(&mut self) -> Option<&mut Governor> {
        self.governor.as_mut()
    }

    /// Whether the data sheet knows of heat and power.
    pub fn has_governor(&self) -> bool {
        self.governor.is_some()
    }

    /// Takes all spare blocks away: writes are held back from now on, or refused if `read_only`.
    pub fn use_up_reserve(&mut self, core: &mut Core, read_only: bool) {
        if let (Some(paced), None) = (core.media.paced(), &self.taken_spares) {
            self.taken_spares = Some(paced.nand_mut().wear_mut().use_up_spares());
        }
        self.worn_out = read_only;
    }

    /// Gives them back.
    pub fn give_reserve_back(&mut self, core: &mut Core) {
        if let (Some(paced), Some(taken)) = (core.media.paced(), self.taken_spares.take()) {
            paced.nand_mut().wear_mut().give_spares_back(&taken);
        }
        self.worn_out = false;
    }

    /// How near its end the card is, as far as drills say so: wear itself begins anew with each attach.
    pub fn health(&self) -> Health {
        match (self.worn_out, &self.taken_spares) {
            (true, _) => Health::ReadOnly,
            (false, Some(_)) => Health::ReducedWrite,
            (false, None) => Health::Healthy,
        }
    }

    /// What is wrong with the card, in words.
    pub fn trouble(&self) -> Option<&'static str> {
        match self.health() {
            _ if self.governor.as_ref().is_some_and(Governor::is_shut_down) => {
                Some("too hot: it has switched itself off")
            }
            Health::ReadOnly => Some("worn out: it takes no more writes"),
            Health::ReducedWrite => Some("its reserve is used up: writes are held back"),
            Health::Healthy | Health::Warning => None,
        }
    }

    /// Temperature inside, degrees Celsius.
    pub fn celsius(&self) -> Option<f64> {
        self.governor.as_ref().map(Governor::celsius)
    }

    /// Power over the last tenth of a second, watts.
    pub fn watts(&self) -> Option<f64> {
        self.governor.as_ref().map(Governor::watts)
    }

    /// Above it writes are held back, watts.
    pub fn power_limit_watts(&self) -> Option<f64> {
        self.governor.as_ref().map(Governor::limit_watts).filter(|limit| limit.is_finite())
    }

    /// Nanoseconds by which each written byte is held back.
    pub fn hold(&self) -> f64 {
        card::hold(self.governor.as_ref(), self.health(), self.reduced_hold)
    }

    /// The clock's time as the model counts it.
    fn time(&self) -> Nanos {
        self.begin + (self.clock.now() - self.clock_begin)
    }

    /// Takes a request that was checked.
    pub fn submit<'a>(&mut self, core: &mut Core, tag: u64, io: Io<'a>) -> Submitted<'a> {
        let now = self.time();
        self.run(core, now);
        if self.governor.as_ref().is_some_and(Governor::is_shut_down) {
            return Submitted::Done(Err(IoError::Media));
        }
        let bytes = match &io {
            Io::Read { .. } | Io::Flush => return self.pass(core, tag, io),
            Io::Write { data, .. } => data.len() as u32,
            Io::Trim { .. } | Io::WriteZeroes { .. } => 0,
        };
        if self.health() == Health::ReadOnly {
            return Submitted::Done(Err(IoError::ReadOnly));
        }
        let hold = self.hold();
        let through = self.front.arrive(self.now, bytes, (hold * f64::from(bytes)) as Nanos);
        self.arrived.insert(tag, self.now);
        if !self.waiting.is_empty() || !self.take(core, tag, &io, through) {
            self.waiting.extend(Waiting::of(tag, &io, through));
        }
        Submitted::Pending
    }

    /// Reads and flushes go to the layer at once.
    fn pass<'a>(&mut self, core: &mut Core, tag: u64, io: Io<'a>) -> Submitted<'a> {
        let read = matches!(io, Io::Read { .. });
        // A trim is in no page yet; and where writes fail, the layer has to say so.
        let behind_capacitors = !self.trimmed && core.ftl.failure().is_none();
        if !read && behind_capacitors {
            core.keep_open_pages();
            self.unsynced = true;
            self.arrived.insert(tag, self.now);
            let at = self.front.taken(self.now);
            self.answer(1, at, 0, Completion { tag, result: Ok(None) });
            return Submitted::Pending;
        }
        match core.submit(tag, io) {
            Submitted::Busy(io) => return Submitted::Busy(io),
            Submitted::Pending => {
                self.arrived.insert(tag, self.now);
            }
            Submitted::Done(result) => {
                self.arrived.insert(tag, self.now);
                self.done(Completion { tag, result }, read, 0);
            }
        }
        self.trimmed &= read;
        Submitted::Pending
    }

    /// Takes what happened up to now and gives the next answer whose time has come.
    pub fn poll(&mut self, core: &mut Core) -> Option<Completion> {
        let now = self.time();
        self.run(core, now);
        self.sync_now_and_then(core);
        let Some((line, _)) = self.next_answer().filter(|(_, goes_at)| *goes_at <= now) else {
            self.releasing = 0;
            return None;
        };
        let front = self.answers[line].front()?;
        self.releasing = self.releasing.max(now + front.play);
        let Answer { due, completion, .. } = self.answers[line].pop_front()?;
        let arrived = self.arrived.remove(&completion.tag).unwrap_or(due);
        self.answered = self.time();
        self.books.answered(arrived, due, self.answered);
        Some(completion)
    }

    /// The line of the answer that goes out next, and when it goes: together with the one after it where that is due soon.
    fn next_answer(&self) -> Option<(usize, Nanos)> {
        let at = |line: usize, index: usize| self.answers[line].get(index).map(|answer| answer.at);
        let line = match (at(0, 0), at(1, 0)) {
            (Some(read), Some(other)) => usize::from(other < read),
            (Some(_), None) => 0,
            (None, _) => 1,
        };
        let front = self.answers[line].front()?;
        if front.at <= self.releasing {
            return Some((line, 0));
        }
        let last = front.at + front.play;
        let company = [at(line, 1), at(1 - line, 0)].into_iter().flatten().any(|next| next <= last);
        Some((line, if company { last } else { front.at }))
    }

    /// How long nothing happens by itself, nanoseconds; `None` while only a client or the inner medium can make something happen.
    pub fn time_left(&self, core: &mut Core) -> Option<Nanos> {
        if self.arrived.is_empty() && self.time() < self.answered + LINGER {
            return Some(0);
        }
        let answers = self.next_answer().map(|(_, goes_at)| goes_at);
        let sync = (self.unsynced && !self.syncing).then_some(self.synced + SYNC_EVERY);
        // What the layer refused is offered again, also when nothing is under way that could make room: a full disk may have got some.
        let offer = (!self.waiting.is_empty()).then_some(self.now + NOBODY_WAITS);
        let next = answers.into_iter().chain(Engine::next_event(core)).chain(sync).chain(offer).min()?;
        let left = next.saturating_sub(self.time());
        Some(if self.arrived.is_empty() { left.max(NOBODY_WAITS) } else { left })
    }

    /// Whether no request waits for its answer.
    pub fn is_idle(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Lets time pass until something happens.
    pub fn wait(&self, core: &mut Core) {
        // With nothing to come from the model, the inner medium is waited for, which hands what was asked of it to the kernel.
        let inner_only = self.next_answer().is_none() && Engine::next_event(core).is_none() && core.in_flight > 0;
        match self.time_left(core) {
            Some(left) if !inner_only => self.clock.wait(left),
            _ => core.wait(),
        }
    }

    /// In quiet times: hands what was written to the disk, and lets the groomer work ahead. Returns whether there is more to do.
    pub fn idle(&mut self, core: &mut Core) -> bool {
        let now = self.time();
        self.run(core, now);
        let more = core.ftl.idle();
        core.carry_out(&[]);
        self.collect(core, 0);
        self.sync(core);
        more
    }

    /// How well answers keep to their moments.
    pub fn pacing(&self) -> Pacing {
        self.books.report(self.time())
    }

    fn next_event(core: &mut Core) -> Option<Nanos> {
        core.media.paced().and_then(|paced| paced.next_event())
    }

    /// Lets everything happen up to and including `now`, each thing at its own moment.
    fn run(&mut self, core: &mut Core, now: Nanos) {
        while let Some(at) = Engine::next_event(core).filter(|at| *at <= now) {
            self.advance(core, at);
            self.drain(core);
        }
        self.advance(core, now);
        self.drain(core);
        if let Some(governor) = self.governor.as_mut().filter(|governor| governor.is_due(now))
            && let Some(paced) = core.media.paced()
        {
            governor.update(now, paced.nand().joules(), self.host_written);
        }
    }

    fn advance(&mut self, core: &mut Core, to: Nanos) {
        self.now = self.now.max(to);
        if let Some(paced) = core.media.paced() {
            paced.advance(to);
        }
    }

    /// Tells the layer what the flash finished, and lets it take what waits.
    fn drain(&mut self, core: &mut Core) {
        while let Some(done) = core.next_done() {
            let late = core.media.paced().map_or(0, |paced| paced.lateness());
            core.finish_media(done);
            core.carry_out(&[]);
            self.collect(core, late);
        }
        while let Some(write) = self.waiting.pop_front() {
            if !self.take(core, write.tag, &write.io(), write.through) {
                self.waiting.push_front(write);
                break;
            }
        }
    }

    /// The layer takes a write or trim, or has no room for it just now.
    fn take(&mut self, core: &mut Core, tag: u64, io: &Io, through: Nanos) -> bool {
        // A write is durable when it is taken, behind capacitors; trims are told to the media when somebody asks for it.
        let (passed, written, fua, trim) = match *io {
            Io::Write { lba, data, fua } => (Io::Write { lba, data, fua: false }, data.len() as u64, fua, false),
            Io::Trim { lba, count, fua } => (Io::Trim { lba, count, fua }, 0, fua, true),
            Io::WriteZeroes { lba, count, fua, allocate } => {
                (Io::WriteZeroes { lba, count, fua: fua && !allocate, allocate }, 0, fua, !allocate)
            }
            Io::Read { .. } | Io::Flush => return true,
        };
        match core.submit(tag, passed) {
            Submitted::Busy(_) => return false,
            Submitted::Pending => {}
            Submitted::Done(result) => {
                if result.is_ok() {
                    self.host_written += written;
                }
                if fua && !trim {
                    core.keep_open_pages();
                    self.unsynced = true;
                }
                let at = self.front.taken(self.now.max(through));
                self.answer(1, at, 0, Completion { tag, result });
            }
        }
        self.trimmed |= trim && !fua;
        self.collect(core, 0);
        true
    }

    /// Takes the layer's answers; the last thing that they waited for came so much later than it should.
    fn collect(&mut self, core: &mut Core, late: Nanos) {
        while let Some(completion) = core.completion() {
            if completion.tag == BACKGROUND {
                self.syncing = false;
                if let Err(error) = completion.result {
                    tracing::error!(%error, "what was flushed cannot be handed to the disk");
                }
                continue;
            }
            let read = matches!(completion.result, Ok(Some(_)) | Err(_));
            self.done(completion, read, late);
        }
    }

    /// A request is done at this moment, `late` after its time: on its way to the host.
    fn done(&mut self, completion: Completion, read: bool, late: Nanos) {
        let (line, at) = match &completion.result {
            Ok(Some(bytes)) => (0, self.front.leave(self.now, bytes.len() as u32)),
            _ => (usize::from(!read), self.front.taken(self.now)),
        };
        self.answer(line, at, late, completion);
    }

    /// Has an answer go out at `at`, less the lead. What it waited for was `late`.
    fn answer(&mut self, line: usize, at: Nanos, late: Nanos, completion: Completion) {
        let arrived = self.arrived.get(&completion.tag).copied().unwrap_or(self.now);
        let due = at.saturating_sub(self.lead[line].saturating_add(late));
        // Within a line answers are in the order of time.
        let earliest = self.answers[line].back().map_or(self.now, |last| last.at.max(self.now));
        let at = at.saturating_sub(self.lead[line]).max(earliest);
        // Alone it has nobody to go with.
        let play = if self.arrived.len() > 1 { (at.saturating_sub(arrived) / TOGETHER_SHARE).min(TOGETHER) } else { 0 };
        self.answers[line].push_back(Answer { at, due: due.max(arrived), play, completion });
    }

    fn sync_now_and_then(&mut self, core: &mut Core) {
        if self.unsynced && self.now >= self.synced + SYNC_EVERY {
            self.sync(core);
        }
    }

    /// Has the layer make everything durable, with nobody waiting for it.
    fn sync(&mut self, core: &mut Core) {
        if self.syncing {
            return;
        }
        match core.submit(BACKGROUND, Io::Flush) {
            Submitted::Busy(_) => return,
            Submitted::Pending => self.syncing = true,
            Submitted::Done(_) => {}
        }
        (self.unsynced, self.synced) = (false, self.now);
        self.collect(core, 0);
    }
}
