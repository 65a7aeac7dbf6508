//! A spinning disk: one arm, one platter, a queue it chooses from, memory for reading ahead and for writes.
//!
//! **How requests are scheduled.** Of the requests in its queue the drive does the one whose first byte it can reach soonest (shortest
//! positioning time first); one that was passed over too often goes next. Cached writes are put on the platter when no request
//! waits, or along with the requests once half of their memory is taken.

mod mechanics;
mod segments;

use std::collections::{BTreeMap, VecDeque};

use media::nand::{Server, micros};

use crate::agenda::{Agenda, Answers, transfer};
use crate::device::{Answer, Nanos, Op, Request, VirtualDevice};
use crate::report::{Busy, Report};
use mechanics::Mechanics;
use segments::Segments;

/// Ranges that a disk's memory is divided into for reads.
const SEGMENTS: usize = 16;
/// A request that so many others passed goes next.
const PASSED: u32 = 256;
/// Cached writes on either side of the arm among which the drive chooses.
const NEIGHBOURS: usize = 32;
/// Cached writes that follow each other are put on the platter together up to here, bytes: reads shall come in between.
const LARGEST_WORK: u64 = 1 << 20;

/// A spinning disk.
pub struct Disk {
    sheet: profile::Disk,
    mechanics: Mechanics,
    now: Nanos,
    /// The electronics, one request at a time; link transfers.
    electronics: Server,
    link: Server,
    /// Requests on their way through the electronics.
    arriving: Agenda<(u32, Request)>,
    queue: VecDeque<Waiting>,
    /// The arm's work, and when it is done.
    work: Option<(Nanos, Work)>,
    /// The byte under the head.
    stands: u64,
    segments: Segments,
    /// Answered writes that are not on the platter: offset to length.
    dirty: BTreeMap<u64, u64>,
    dirty_bytes: u64,
    /// Flushes that wait until nothing is dirty.
    flushes: Vec<u32>,
    answers: Answers,
    report: Report,
    arm: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: u32,
    write: bool,
    offset: u64,
    bytes: u64,
    passed: u32,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Read { tag: u32, offset: u64, bytes: u64 },
    Write { tag: u32 },
    Destage { offset: u64, bytes: u64 },
}

/// What the arm could do next.
enum Choice {
    Queued(usize),
    Dirty(u64),
}

impl Disk {
    /// A disk from its data sheet.
    pub fn new(sheet: &profile::Disk) -> Self {
        Disk {
            mechanics: Mechanics::new(sheet),
            now: 0,
            electronics: Server::default(),
            link: Server::default(),
            arriving: Agenda::default(),
            queue: VecDeque::new(),
            work: None,
            stands: 0,
            segments: Segments::new(SEGMENTS, (sheet.cache_bytes / SEGMENTS as u64).max(1)),
            dirty: BTreeMap::new(),
            dirty_bytes: 0,
            flushes: Vec::new(),
            answers: Answers::default(),
            report: Report::default(),
            arm: 0,
            sheet: sheet.clone(),
        }
    }

    fn caches_writes(&self) -> bool {
        self.sheet.write_cache && self.flushes.is_empty()
    }

    /// A request has come through the electronics.
    fn arrived(&mut self, now: Nanos, tag: u32, request: Request) {
        let (offset, bytes) = (request.offset, u64::from(request.bytes));
        match request.op {
            Op::Trim => self.answers.put(now, tag, Ok(())),
            Op::Flush if self.dirty.is_empty() && !self.destaging() => self.answers.put(now, tag, Ok(())),
            Op::Flush => self.flushes.push(tag),
            Op::Read => {
                let held = self.in_dirty(offset, bytes)
                    || self.segments.ready(now, offset, offset + bytes).is_some_and(|at| at == now);
                if held {
                    self.answer_read(now, tag, bytes);
                } else {
                    self.queue.push_back(Waiting { tag, write: false, offset, bytes, passed: 0 });
                }
            }
            Op::Write => {
                let room = self.dirty_bytes + bytes <= self.sheet.cache_bytes;
                if self.caches_writes() && room {
                    self.keep(now, offset, bytes);
                    self.answers.put(now, tag, Ok(()));
                } else {
                    self.queue.push_back(Waiting { tag, write: true, offset, bytes, passed: 0 });
                }
            }
        }
    }

    fn destaging(&self) -> bool {
        matches!(self.work, Some((_, Work::Destage { .. })))
    }

    /// Whether a range is among the writes in memory, or being put on the platter from there.
    fn in_dirty(&self, offset: u64, bytes: u64) -> bool {
        if let Some((_, Work::Destage { offset: start, bytes: held })) = self.work
            && start <= offset
            && offset + bytes <= start + held
        {
            return true;
        }
        self.dirty.range(..=offset).next_back().is_some_and(|(start, held)| offset + bytes <= start + held)
    }

    fn answer_read(&mut self, now: Nanos, tag: u32, bytes: u64) {
        let at = self.link.serve(now, transfer(bytes, self.sheet.link_bytes_per_s));
        self.answers.put(at, tag, Ok(()));
    }

    /// Takes a write into memory, joined with what it touches: the same sectors are written once.
    fn keep(&mut self, now: Nanos, offset: u64, bytes: u64) {
        self.segments.written(now, offset, offset + bytes);
        let (mut start, mut end) = (offset, offset + bytes);
        while let Some((&at, &held)) = self.dirty.range(..end).next_back() {
            let touches_only = at + held == start && end - at > LARGEST_WORK;
            if at + held < start || touches_only {
                break;
            }
            self.dirty.remove(&at);
            self.dirty_bytes -= held;
            start = start.min(at);
            end = end.max(at + held);
        }
        self.dirty.insert(start, end - start);
        self.dirty_bytes += end - start;
    }

    /// What the arm does next, if there is anything.
    fn choose(&mut self, now: Nanos) -> Option<Choice> {
        let depth = (self.sheet.queue_depth as usize).min(self.queue.len());
        // The head stays with a stream that it reads: a request further on may be nearer by its angle, but coming back costs a turn.
        if let Some(first) = self.queue.front().filter(|first| !first.write)
            && self.segments.ready(now, first.offset, first.offset + first.bytes).is_some()
        {
            return Some(Choice::Queued(0));
        }
        let mut best: Option<(Nanos, Choice)> = None;
        for (at, waiting) in self.queue.iter().take(depth).enumerate() {
            if waiting.passed >= PASSED {
                return Some(Choice::Queued(at));
            }
            let time = self.reach(now, waiting.offset, waiting.bytes, waiting.write);
            if best.as_ref().is_none_or(|(least, _)| time < *least) {
                best = Some((time, Choice::Queued(at)));
            }
        }
        let pressed = self.dirty_bytes * 2 >= self.sheet.cache_bytes || !self.flushes.is_empty();
        if best.is_none() || pressed {
            let here = self.dirty.range(self.stands..).take(NEIGHBOURS);
            let before = self.dirty.range(..self.stands).rev().take(NEIGHBOURS);
            for (&offset, _) in here.chain(before) {
                let time = self.mechanics.position(now, self.stands, offset, true);
                if best.as_ref().is_none_or(|(least, _)| time < *least) {
                    best = Some((time, Choice::Dirty(offset)));
                }
            }
        }
        best.map(|(_, choice)| choice)
    }

    /// How long until the first byte of a request can be had.
    fn reach(&self, now: Nanos, offset: u64, bytes: u64, write: bool) -> Nanos {
        // The first byte of both: a whole large request that the head reads on to would lose against a seek to the one behind it.
        if !write && self.segments.ready(now, offset, offset + bytes).is_some() {
            return self.segments.ready(now, offset, offset + 1).map_or(0, |first| first - now);
        }
        self.mechanics.position(now, self.stands, offset, write)
    }

    /// Gives the idle arm something to do.
    fn start(&mut self, now: Nanos) {
        if self.work.is_some() {
            return;
        }
        while let Some(choice) = self.choose(now) {
            let (offset, bytes, write, tag) = match choice {
                Choice::Queued(at) => {
                    let Some(waiting) = self.queue.remove(at) else { return };
                    for passed in self.queue.iter_mut().take(at) {
                        passed.passed += 1;
                    }
                    (waiting.offset, waiting.bytes, waiting.write, Some(waiting.tag))
                }
                Choice::Dirty(offset) => {
                    let bytes = self.dirty.remove(&offset).unwrap_or_default();
                    self.dirty_bytes -= bytes;
                    (offset, bytes, true, None)
                }
            };
            let end = offset + bytes;
            if !write && let Some(ready) = self.segments.ready(now, offset, end) {
                if ready == now {
                    if let Some(tag) = tag {
                        self.answer_read(now, tag, bytes);
                    }
                    continue;
                }
                // The head is reading that way already.
                self.begin(now, ready, Work::Read { tag: tag.unwrap_or_default(), offset, bytes });
                return;
            }
            if let Some(stands) = self.segments.freeze(now) {
                self.stands = stands;
            }
            let there = now + self.mechanics.position(now, self.stands, offset, write);
            let done = there + self.mechanics.pass(offset, bytes);
            self.stands = end;
            let work = match (write, tag) {
                (false, tag) => Work::Read { tag: tag.unwrap_or_default(), offset, bytes },
                (true, Some(tag)) => Work::Write { tag },
                (true, None) => Work::Destage { offset, bytes },
            };
            if write {
                self.segments.written(now, offset, end);
            }
            self.begin(now, done, work);
            return;
        }
    }

    fn begin(&mut self, now: Nanos, done: Nanos, work: Work) {
        self.arm += done - now;
        self.work = Some((done, work));
    }

    /// The arm's work is done.
    fn finish(&mut self, now: Nanos, work: Work) {
        match work {
            Work::Read { tag, offset, bytes } => {
                let end = offset + bytes;
                let rate = self.mechanics.rate(end.min(self.sheet.bytes - 1));
                self.segments.read(now, offset, end, rate, self.sheet.bytes);
                // The link moves while the platter turns; only the end of it comes after the last byte.
                let last = bytes.min(u64::from(self.sheet.sector_bytes) * 8);
                self.answer_read(now, tag, last);
            }
            Work::Write { tag } => self.answers.put(now, tag, Ok(())),
            Work::Destage { .. } => {}
        }
        if self.dirty.is_empty() {
            for tag in self.flushes.drain(..) {
                self.answers.put(now, tag, Ok(()));
            }
        }
        // Room in memory: writes that waited for it are answered.
        if self.caches_writes() {
            let mut at = 0;
            while at < self.queue.len() {
                let Waiting { tag, write, offset, bytes, .. } = self.queue[at];
                if write && self.dirty_bytes + bytes <= self.sheet.cache_bytes {
                    self.queue.remove(at);
                    self.keep(now, offset, bytes);
                    self.answers.put(now, tag, Ok(()));
                } else {
                    at += 1;
                }
            }
        }
    }

    fn next_own(&self) -> Option<Nanos> {
        [self.arriving.next_at(), self.work.map(|(done, _)| done)].into_iter().flatten().min()
    }
}

impl VirtualDevice for Disk {
    fn sector_bytes(&self) -> u32 {
        self.sheet.sector_bytes
    }

    fn bytes(&self) -> u64 {
        self.sheet.bytes
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        self.advance(now);
        if let Err(failure) = request.check(self.bytes(), self.sector_bytes()) {
            self.answers.put(now, tag, Err(failure));
            return;
        }
        let mut at = self.electronics.serve(now, micros(self.sheet.request_us));
        match request.op {
            Op::Write => {
                self.report.host_written_bytes += u64::from(request.bytes);
                at = self.link.serve(at, transfer(u64::from(request.bytes), self.sheet.link_bytes_per_s));
            }
            Op::Read => self.report.host_read_bytes += u64::from(request.bytes),
            Op::Trim | Op::Flush => {}
        }
        self.arriving.put(at, (tag, request));
    }

    fn next_event(&mut self) -> Option<Nanos> {
        [self.next_own(), self.answers.next_at()].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.next_own().filter(|at| *at <= now) {
            if let Some((_, work)) = self.work.take_if(|(done, _)| *done <= at) {
                self.finish(at, work);
            }
            while let Some((_, (tag, request))) = self.arriving.take(at) {
                self.arrived(at, tag, request);
            }
            self.start(at);
        }
        self.now = self.now.max(now);
    }

    fn answer(&mut self) -> Option<Answer> {
        self.answers.take(self.now)
    }

    fn report(&self) -> Report {
        let (all, busy) = (self.now as f64 / 1e9, self.arm.min(self.now) as f64 / 1e9);
        Report {
            dies: Busy { nanos: self.arm, count: 1 },
            link: Busy { nanos: self.link.busy(), count: 1 },
            joules: all * self.sheet.idle_watts + busy * (self.sheet.active_watts - self.sheet.idle_watts),
            ..self.report.clone()
        }
    }
}

#[cfg(test)]
mod tests;
