//! An emulated card on the clock: the controller of the card in virtual time, before a layer with bytes.
//!
//! **A flush** is answered at once; what stands in open pages is put where it survives the end of this process first.
//!
//! The model's time follows the clock. Everything happens at its own moment of the model's time, in order, however late this is called; only the
//! answer itself can be late, and [`Books`] tell by how much.
//!
//! **What the client sees.** A real card is reached through its driver, which takes a while; this one through a socket, which takes longer. Answers
//! go out earlier by the difference, the *lead*, as far as they are known by then. Of many requests under way, answers that are due at nearly the same
//! time go out together, half of them a little early and half a little late: one call for each would cost the client more than the card gives it.

use card::{Answer, Back, Controller, Failure, Governor, Health, Op, Request};
use media::nand::Nanos;

use super::back::{Bytes, Requests};
use super::clock::Clock;
use super::pacing::{Books, Pacing};
use super::zone_times::ZoneTimes;
use crate::core::Core;
use crate::{Completion, Io, IoError, Submitted};

/// Requests that a card holds at once.
const REQUESTS: usize = 4096;
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

pub(crate) struct Card {
    pub controller: Controller,
    requests: Requests,
    clock: Box<dyn Clock>,
    /// The model's time when the clock began, less the clock's.
    begin: Nanos,
    clock_begin: Nanos,
    /// Answers up to here go out with the one before them.
    releasing: Nanos,
    synced: Nanos,
    /// When the last answer was given.
    answered: Nanos,
    books: Books,
    /// Spare blocks of each die that a drill took away.
    taken_spares: Option<Vec<u32>>,
    /// What is done to zones takes so long.
    pub zones: Option<ZoneTimes>,
    /// By how much later than others the request of a key is answered.
    held_back: Vec<(u32, Nanos)>,
    /// Answers that are held back, with their moments.
    later: Vec<(Nanos, Completion)>,
}

impl Card {
    pub fn new(controller: Controller, clock: Box<dyn Clock>, now: Nanos, zones: Option<ZoneTimes>) -> Card {
        Card {
            controller,
            requests: Requests::new(now),
            begin: now,
            clock_begin: clock.now(),
            clock,
            releasing: 0,
            synced: now,
            answered: 0,
            books: Books::new(),
            taken_spares: None,
            zones,
            held_back: Vec::new(),
            later: Vec::new(),
        }
    }

    /// Takes all spare blocks away: writes are held back from now on, or refused if `read_only`.
    pub fn use_up_reserve(&mut self, core: &mut Core, read_only: bool) {
        if let (Some(paced), None) = (core.media.paced(), &self.taken_spares) {
            self.taken_spares = Some(paced.nand_mut().wear_mut().use_up_spares());
        }
        let health = if read_only { Health::ReadOnly } else { Health::ReducedWrite };
        self.reserve_changed(core, health);
    }

    /// Gives them back.
    pub fn give_reserve_back(&mut self, core: &mut Core) {
        if let (Some(paced), Some(taken)) = (core.media.paced(), self.taken_spares.take()) {
            paced.nand_mut().wear_mut().give_spares_back(&taken);
        }
        self.reserve_changed(core, Health::Healthy);
    }

    fn reserve_changed(&mut self, core: &Core, at_least: Health) {
        if let Some(nand) = core.media.nand() {
            self.controller.reserve_changed(nand, at_least);
        }
    }

    /// What is wrong with the card, in words.
    pub fn trouble(&self) -> Option<&'static str> {
        match self.controller.health() {
            _ if self.controller.is_shut_down() => Some("too hot: it has switched itself off"),
            Health::ReadOnly => Some("worn out: it takes no more writes"),
            Health::ReducedWrite => Some("its reserve is used up: writes are held back"),
            _ if self.controller.governor.as_ref().is_some_and(Governor::is_too_warm) => {
                Some("too warm: writes are held back")
            }
            Health::Healthy | Health::Warning => None,
        }
    }

    /// The clock's time as the model counts it.
    fn time(&self) -> Nanos {
        self.begin + (self.clock.now() - self.clock_begin)
    }

    /// Takes a request that was checked, which is answered so much later than others of its kind.
    pub fn submit<'a>(
        &mut self,
        core: &mut Core,
        (placement, later): (u8, Nanos),
        tag: u64,
        mut io: Io<'a>,
    ) -> Submitted<'a> {
        self.run(core, self.time());
        if self.requests.held.len() >= REQUESTS {
            return Submitted::Busy(io);
        }
        let sector = core.ftl.config().geometry.sector_bytes;
        let (op, lba, bytes) = match &io {
            Io::Read { lba, buf } | Io::ReadSnapshot { lba, buf, .. } => (Op::Read, *lba, buf.len() as u32),
            Io::Write { lba, data, .. } => (Op::Write, *lba, data.len() as u32),
            // How much it is about makes no difference to the card.
            Io::Trim { lba, .. } | Io::WriteZeroes { lba, .. } => (Op::Trim, *lba, sector),
            Io::Batch { ops, data, .. } => {
                let op = if data.is_empty() { Op::Trim } else { Op::Write };
                (op, ops[0].sectors().start, (data.len() as u32).max(sector))
            }
            Io::Flush => (Op::Flush, 0, 0),
        };
        let key = self.requests.hold(placement, tag, &mut io);
        if later > 0 {
            self.held_back.push((key, later));
        }
        let mut back = Bytes::with(core, &mut self.requests, key, io);
        self.controller.submit(&mut back, key, Request::new(op, lba * u64::from(sector), bytes));
        back.keep_current();
        self.controller.collect(&mut back);
        Submitted::Pending
    }

    /// Takes what happened up to now and gives the next answer whose time has come.
    pub fn poll(&mut self, core: &mut Core) -> Option<Completion> {
        let now = self.time();
        self.run(core, now);
        if self.requests.unsynced && self.requests.now >= self.synced + SYNC_EVERY {
            self.sync(core);
        }
        if let Some(at) = self.later.iter().position(|(due, _)| *due <= now) {
            return Some(self.later.swap_remove(at).1);
        }
        let Some((line, _)) = self.next_answer().filter(|(_, goes_at)| *goes_at <= now) else {
            self.releasing = 0;
            return None;
        };
        let due = self.controller.take_answer(line, Nanos::MAX)?;
        self.releasing = self.releasing.max(now + self.play(&due.answer));
        let held = self.requests.held.remove(due.answer.tag as usize);
        self.answered = self.time();
        self.books.answered(held.arrived, due.due.max(held.arrived), self.answered);
        let result = match due.answer.result {
            Ok(()) => held.result,
            Err(Failure::ReadOnly) => Err(IoError::ReadOnly),
            Err(_) => Err(IoError::Media),
        };
        let done = Completion { tag: held.tag, result };
        let found = self.held_back.iter().position(|(key, _)| *key == due.answer.tag);
        if let Some((_, later)) = found.map(|at| self.held_back.swap_remove(at)) {
            self.later.push((due.answer.at + later, done));
            return self.poll(core);
        }
        Some(done)
    }

    /// How much earlier or later an answer may go out, to go with others. Alone it has nobody to go with.
    fn play(&self, answer: &Answer) -> Nanos {
        match self.requests.held.get(answer.tag as usize) {
            Some(held) if self.requests.held.len() > 1 => {
                (answer.at.saturating_sub(held.arrived) / TOGETHER_SHARE).min(TOGETHER)
            }
            _ => 0,
        }
    }

    /// The line of the answer that goes out next, and when it goes: together with the one after it where that is due soon.
    fn next_answer(&self) -> Option<(usize, Nanos)> {
        let line = self.controller.next_line();
        let front = &self.controller.due(line, 0)?.answer;
        if front.at <= self.releasing {
            return Some((line, 0));
        }
        let last = front.at + self.play(front);
        let next = [self.controller.due(line, 1), self.controller.due(1 - line, 0)];
        let company = next.into_iter().flatten().any(|next| next.answer.at <= last);
        Some((line, if company { last } else { front.at }))
    }

    /// How long nothing happens by itself, nanoseconds; `None` while only a client or the inner medium can make something happen.
    pub fn time_left(&mut self, core: &mut Core) -> Option<Nanos> {
        if self.is_idle() && self.time() < self.answered + LINGER {
            return Some(0);
        }
        let answers = self.next_answer().map(|(_, goes_at)| goes_at);
        let sync = (self.requests.unsynced && !self.requests.syncing).then_some(self.synced + SYNC_EVERY);
        // What the layer refused is offered again, also when nothing is under way that could make room: a full disk may have got some.
        let offer = self.controller.has_waiting().then_some(self.requests.now + NOBODY_WAITS);
        let event = self.next_event(core);
        let later = self.later.iter().map(|(due, _)| *due).min();
        let next = answers.into_iter().chain(later).chain(event).chain(sync).chain(offer).min()?;
        let left = next.saturating_sub(self.time());
        Some(if self.is_idle() { left.max(NOBODY_WAITS) } else { left })
    }

    /// Whether no request waits for its answer.
    pub fn is_idle(&self) -> bool {
        self.requests.held.is_empty() && self.later.is_empty()
    }

    /// Lets time pass until something happens.
    pub fn wait(&mut self, core: &mut Core) {
        // With nothing to come from the model, the inner medium is waited for, which hands what was asked of it to the kernel.
        let inner_only = self.next_answer().is_none()
            && self.later.is_empty()
            && self.next_event(core).is_none()
            && core.in_flight > 0;
        match self.time_left(core) {
            Some(left) if !inner_only => self.clock.wait(left),
            _ => core.wait(),
        }
    }

    /// In quiet times: hands what was written to the disk, and lets the groomer work ahead. Returns whether there is more to do.
    pub fn idle(&mut self, core: &mut Core) -> bool {
        self.run(core, self.time());
        let mut back = Bytes::new(core, &mut self.requests);
        let more = back.idle();
        self.controller.collect(&mut back);
        self.sync(core);
        more
    }

    /// How well answers keep to their moments.
    pub fn pacing(&self) -> Pacing {
        self.books.report(self.time())
    }

    fn next_event(&mut self, core: &mut Core) -> Option<Nanos> {
        self.controller.next_event(&mut Bytes::new(core, &mut self.requests))
    }

    /// Lets everything happen up to and including `now`, each thing at its own moment.
    fn run(&mut self, core: &mut Core, now: Nanos) {
        let mut back = Bytes::new(core, &mut self.requests);
        self.controller.advance(&mut back, now);
        self.controller.offer(&mut back);
        self.controller.collect(&mut back);
    }

    /// Has the layer make everything durable, with nobody waiting for it.
    fn sync(&mut self, core: &mut Core) {
        let mut back = Bytes::new(core, &mut self.requests);
        if back.sync() {
            self.synced = back.now();
            self.controller.collect(&mut back);
        }
    }
}
