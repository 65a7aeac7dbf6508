//! A flash card as its host sees it: link, front end, power, health, and the lines in which requests wait for the layer on the flash.
//!
//! What stands behind it is a [`Back`]: the layer with bytes or without, on the wall's clock or in virtual time.
//!
//! **A write's way.** Link, then the front end (one request at a time), then the layer takes it: it is in the capacitor-backed buffer, and answered. Its page
//! goes to the data path, its channel and its die when it is full. When the buffer is full or the groomer behind, the write waits in order.
//! **A read's way.** The layer says where its sectors are; each page's part goes to its die, channel and the data path; when all are there, over the
//! link and out. What is not mapped, or still in the buffer, needs no flash.

mod health;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use ftl::{Admission, Ftl, Geometry, NO_SLOT, PageAddr};
use media::nand::{FrontEnd, Nand, micros};
use profile::{Card, Module as Sheet};

use crate::device::{Answer, Failure, Nanos, Op, Request};
use crate::governor::{Governor, Surroundings};
use crate::map_cache::MapCache;
use crate::report::Health;

/// Reads that the layer works on at once; more wait in order.
pub(crate) const READS: u32 = 4096;
/// Waiting writes for which something is fetched together.
const WRITES_TOGETHER: usize = 8;
/// Where so many wait, what they need is fetched from the line and not when they are announced, which would be too early to last.
const LONG_LINE: usize = 4 * WRITES_TOGETHER;
/// So long nobody asks anything of it before it is quiet and grooms ahead.
const QUIET: Nanos = 100_000_000;
/// Then it is looked so often whether there is more to groom.
const TIDY: Nanos = 1_000_000;

/// A write, trim or flush on its way to the layer.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The tag of its request.
    pub tag: u32,
    /// What to do.
    pub op: Op,
    /// The first sector that was not taken yet.
    pub lba: u64,
    /// Sectors that were not taken yet.
    pub sectors: u32,
    /// What a write belongs together with.
    pub placement: u8,
    /// The first and the last page of the map that a write changes.
    pages: (u32, u32),
    /// When it is through link and front end.
    through: Nanos,
}

/// A request that the layer worked on and that is done.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its tag.
    pub tag: u32,
    /// What goes to the host, where it is a read.
    pub read: Option<Fetched>,
    /// How it ended.
    pub result: Result<(), Failure>,
}

/// What a read fetched.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// Its bytes.
    pub bytes: u32,
    /// When the layer was asked for them.
    pub begin: Nanos,
}

/// The layer on its flash, as it stands behind a card's front end.
pub trait Back {
    /// The layer.
    fn ftl(&self) -> &Ftl;

    /// The flash.
    fn nand(&self) -> &Nand;

    /// The moment at which what is asked of the flash comes to it.
    fn now(&self) -> Nanos;

    /// Goes on to a moment up to which nothing happens by itself.
    fn set_now(&mut self, now: Nanos);

    /// When something happens next by itself.
    fn next_event(&mut self) -> Option<Nanos>;

    /// Lets the flash go on until there is something to tell the layer, at most up to `limit`; gives the moment when there is.
    fn run(&mut self, limit: Nanos) -> Option<Nanos>;

    /// Tells the layer the next thing that the flash finished, and carries out what it wants done then. False when there is none.
    fn tell(&mut self) -> bool;

    /// Takes a read. Where the drive keeps the map (`passes`), what needs no flash takes the data path all the same.
    fn read(&mut self, tag: u32, request: &Request, passes: bool) -> Admission;

    /// Reads a page of the drive's own map, of so many bytes, from where it lies.
    fn read_map(&mut self, page: u32, at: PageAddr, bytes: u32);

    /// The page of the map that came with what was told last.
    fn map_page(&mut self) -> Option<u32>;

    /// Takes as much of a change as it can.
    fn take(&mut self, change: &mut Change) -> Admission;

    /// The next request that is done and was not when it was taken.
    fn ended(&mut self) -> Option<Ended>;

    /// For quiet times, see [`Ftl::idle`].
    fn idle(&mut self) -> bool;

    /// By how much later than the flash the bytes of what was told last were there.
    fn lateness(&self) -> Nanos {
        0
    }
}

/// An answer on its way to the host.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// The answer, with the moment at which it goes out.
    pub answer: Answer,
    /// When it should have: earlier where bytes came late.
    pub due: Nanos,
}

/// Link and controller of a card.
pub struct Controller {
    geometry: Geometry,
    sectors: u64,
    pub(crate) front: FrontEnd,
    /// What a write over mapped sectors takes of the front end on top.
    overwrite: Nanos,
    /// Power and heat, where the data sheet knows of them.
    pub governor: Option<Governor>,
    /// Host sectors that were written before it began.
    written_before: u64,
    /// Nanoseconds by which each written byte is held back in reduced-write mode.
    reduced_hold: f64,
    health: Health,
    /// Blocks that went bad, as far as the health tells of them.
    bad_blocks: u64,
    map_in_drive: bool,
    /// Where the drive has memory for a part of its map.
    map: Option<MapCache>,
    /// Writes taken from the line.
    taken: usize,
    /// Reads that the layer works on.
    reads: u32,
    reads_waiting: VecDeque<(u32, Request)>,
    /// Writes on their way through link and front end, with the moment they reach the layer.
    arriving: VecDeque<Change>,
    /// Writes that the layer could not take yet.
    waiting: VecDeque<Change>,
    /// Answers in the order of time: of reads, and of the rest.
    answers: [VecDeque<Due>; 2],
    /// On the wall's clock, by how much earlier answers go out: to reads, and to the rest.
    lead: Option<[Nanos; 2]>,
    /// When the host asked something last.
    asked: Nanos,
    /// When it is looked next whether these are quiet times; never while there is nothing to be done in them.
    tidied: Nanos,
}

impl Controller {
    /// As the data sheet has it, before a layer that is ready.
    ///
    /// On the wall's clock answers go out earlier by a `lead`, for what the way to the client takes longer than that to a real card: to
    /// reads, and to the rest. It then grooms ahead only when somebody says that times are quiet, and hands writes to the layer as they
    /// come, since waking up for each one's moment costs more than a card takes for it.
    pub fn new(
        sheet: &Sheet,
        card: Option<(&Card, u32)>,
        surroundings: &Surroundings,
        ftl: &Ftl,
        lead: Option<[Nanos; 2]>,
    ) -> Controller {
        let geometry = ftl.config().geometry;
        Controller {
            geometry,
            sectors: ftl.config().sectors,
            front: FrontEnd::new(&sheet.controller, &sheet.nand),
            overwrite: micros(sheet.controller.overwrite_us),
            governor: card.map(|(card, modules)| Governor::new(card, modules, sheet.energy.idle_watts, surroundings)),
            written_before: ftl.stats().host_written_sectors,
            reduced_hold: health::reduced_hold(sheet, &geometry),
            health: Health::Healthy,
            bad_blocks: 0,
            map_in_drive: sheet.controller.map_in_drive,
            map: MapCache::new(sheet, &geometry, ftl.config().sectors),
            taken: 0,
            reads: 0,
            reads_waiting: VecDeque::new(),
            arriving: VecDeque::new(),
            waiting: VecDeque::new(),
            answers: [VecDeque::new(), VecDeque::new()],
            lead,
            asked: 0,
            tidied: Nanos::MAX,
        }
    }

    /// Whether it switched itself off.
    pub fn is_shut_down(&self) -> bool {
        self.governor.as_ref().is_some_and(Governor::is_shut_down)
    }

    fn refusal(&self, request: &Request) -> Option<Failure> {
        let sector = self.geometry.sector_bytes;
        if self.is_shut_down() {
            return Some(Failure::Shutdown);
        }
        if let Err(failure) = request.check(self.sectors * u64::from(sector), sector) {
            return Some(failure);
        }
        let changes = matches!(request.op, Op::Write | Op::Trim);
        (changes && self.health == Health::ReadOnly).then_some(Failure::ReadOnly)
    }

    /// Takes a request at the present moment. False where it is refused; it is answered all the same.
    pub fn submit(&mut self, back: &mut impl Back, tag: u32, request: Request) -> bool {
        let now = back.now();
        self.asked = now;
        if self.tidied == Nanos::MAX && self.lead.is_none() {
            self.tidied = now + QUIET;
        }
        if let Some(failure) = self.refusal(&request) {
            self.answer(back, usize::from(request.op != Op::Read), now, tag, Err(failure));
            return false;
        }
        match request.op {
            Op::Read => {
                if !self.reads_waiting.is_empty() || !self.read(back, tag, &request) {
                    self.reads_waiting.push_back((tag, request));
                }
            }
            Op::Write | Op::Trim => self.arrive(back, tag, request),
            Op::Flush => {
                let mut flush =
                    Change { tag, op: Op::Flush, lba: 0, sectors: 0, placement: 0, pages: (0, 0), through: now };
                if !self.take(back, &mut flush) {
                    self.waiting.push_back(flush);
                }
            }
        }
        true
    }

    /// Looks a read up in the map and has it fetched. False where the layer works on as many as it can.
    fn read(&mut self, back: &mut impl Back, tag: u32, request: &Request) -> bool {
        let sector = self.geometry.sector_bytes;
        if let Some(map) = &self.map {
            let pages = map.pages(request.offset / u64::from(sector), u64::from(request.bytes / sector));
            self.look_up(back, pages, tag, request)
        } else {
            self.fetch(back, tag, request)
        }
    }

    /// Has a read fetched once the pages of the map that it needs still have come, one after another.
    fn look_up(&mut self, back: &mut impl Back, pages: RangeInclusive<u32>, tag: u32, request: &Request) -> bool {
        let last = *pages.end();
        let Some(page) = self.map_is_away(back, pages) else { return self.fetch(back, tag, request) };
        if let Some(map) = &mut self.map {
            map.wait(page..=last, tag, *request);
        }
        true
    }

    /// The layer fetches what a read asks for, unless it works on as many as it can.
    #[inline]
    fn fetch(&mut self, back: &mut impl Back, tag: u32, request: &Request) -> bool {
        if self.reads == READS {
            return false;
        }
        let read = Fetched { bytes: request.bytes, begin: back.now() };
        match back.read(tag, request, self.map_in_drive) {
            Admission::Busy => return false,
            Admission::Pending => self.reads += 1,
            Admission::Done => self.leave(back, tag, read, Ok(())),
            Admission::Refused(_) => self.leave(back, tag, read, Err(Failure::Media)),
        }
        true
    }

    /// Pages of the map that were read from flash so far.
    pub(crate) fn map_reads(&self) -> u64 {
        self.map.as_ref().map_or(0, MapCache::reads)
    }

    /// Has the first of these pages of the map read that is not in memory; gives its number.
    #[inline]
    fn map_is_away(&mut self, back: &mut impl Back, pages: RangeInclusive<u32>) -> Option<u32> {
        let map = self.map.as_mut()?;
        let page = map.missing(pages)?;
        if map.ask(page) {
            back.read_map(page, map.place(page, &self.geometry), map.page_bytes());
        }
        Some(page)
    }

    /// The pages of the map that a write to these sectors changes: from now on what of them is in memory stays, and the rest comes.
    fn keep_of_map(&mut self, back: &mut impl Back, lba: u64, sectors: u32) -> (u32, u32) {
        let Some(map) = &mut self.map else { return (0, 0) };
        let (first, last) = map.pages(lba, sectors.into()).into_inner();
        map.keep(first..=last);
        for page in first..=last {
            self.map_is_away(back, page..=page);
        }
        (first, last)
    }

    /// Goes on with the reads that waited for a page of the map.
    #[inline]
    fn take_map_page(&mut self, back: &mut impl Back) {
        let (Some(map), Some(page)) = (&mut self.map, back.map_page()) else { return };
        for (pages, tag, request) in map.came(page) {
            if !self.look_up(back, pages, tag, &request) {
                self.reads_waiting.push_back((tag, request));
            }
        }
    }

    /// All of a read is there: over the link and out.
    #[inline]
    fn leave(&mut self, back: &impl Back, tag: u32, read: Fetched, result: Result<(), Failure>) {
        let at = self.front.leave(read.begin, back.now(), read.bytes);
        self.answer(back, 0, at, tag, result);
    }

    /// Answers what the layer is done with. A read that ended makes room for one that waited; those that are done at once leave theirs to
    /// the next.
    #[inline]
    pub fn collect(&mut self, back: &mut impl Back) {
        while let Some(Ended { tag, read, result }) = back.ended() {
            if let Some(read) = read {
                self.reads -= 1;
                self.leave(back, tag, read, result);
            } else {
                let at = self.front.taken(back.now());
                self.answer(back, 1, at, tag, result);
            }
            while let Some((tag, request)) = self.reads_waiting.front().copied()
                && self.read(back, tag, &request)
            {
                self.reads_waiting.pop_front();
            }
        }
    }

    /// A write or trim comes over the link and through the front end.
    fn arrive(&mut self, back: &mut impl Back, tag: u32, request: Request) {
        let sector = self.geometry.sector_bytes;
        let bytes = if request.op == Op::Write { request.bytes } else { 0 };
        let mut hold = (self.hold() * f64::from(bytes)) as Nanos;
        let lba = request.offset / u64::from(sector);
        if self.overwrite > 0 && bytes > 0 && back.ftl().map().get(lba) != NO_SLOT {
            hold += self.overwrite;
        }
        let through = self.front.arrive(back.now(), bytes, hold);
        if self.waiting.len() < LONG_LINE {
            back.ftl().hint_write(lba);
        }
        let pages = if bytes > 0 { self.keep_of_map(back, lba, bytes / sector) } else { (0, 0) };
        let (op, sectors, placement) = (request.op, request.bytes / sector, request.placement);
        let mut change = Change { tag, op, lba, sectors, placement, pages, through };
        if self.lead.is_none() {
            self.arriving.push_back(change);
        } else if !self.waiting.is_empty() || !self.take(back, &mut change) {
            self.waiting.push_back(change);
        }
    }

    /// The layer takes as much of a change as it can. Returns whether it took all.
    fn take(&mut self, back: &mut impl Back, change: &mut Change) -> bool {
        let over = self.hand_over(back, change);
        if over
            && change.op == Op::Write
            && let Some(map) = &mut self.map
        {
            map.let_go(change.pages.0..=change.pages.1);
        }
        over
    }

    /// Hands as much of a change to the layer as it takes, once what it needs of the map is there. Returns whether that was all.
    fn hand_over(&mut self, back: &mut impl Back, change: &mut Change) -> bool {
        let now = back.now();
        if self.health == Health::ReadOnly && change.op != Op::Flush {
            self.answer(back, 1, now, change.tag, Err(Failure::ReadOnly));
            return true;
        }
        if change.op == Op::Write && self.map_is_away(back, change.pages.0..=change.pages.1).is_some() {
            return false;
        }
        match back.take(change) {
            Admission::Busy => return false,
            // It is answered when it is durable.
            Admission::Pending => {}
            Admission::Refused(error) => {
                let failure = if error == ftl::Error::Full { Failure::Full } else { Failure::Media };
                self.answer(back, 1, now, change.tag, Err(failure));
            }
            Admission::Done => {
                let at = self.front.taken(now.max(change.through));
                self.answer(back, 1, at, change.tag, Ok(()));
            }
        }
        true
    }

    /// Offers what waits to the layer.
    pub fn offer(&mut self, back: &mut impl Back) {
        let most = back.ftl().config().max_request;
        let Some(first) = self.waiting.front().map(|write| write.sectors.min(most)) else { return };
        // As long as the flash works at something, a better moment comes.
        if back.nand().under_way() > 0 && self.health < Health::ReadOnly && !back.ftl().takes(first) {
            return;
        }
        while let Some(mut write) = self.waiting.pop_front() {
            if !self.take(back, &mut write) {
                self.waiting.push_front(write);
                return;
            }
            self.taken += 1;
            if self.taken.is_multiple_of(WRITES_TOGETHER) && self.waiting.len() >= LONG_LINE {
                self.fetch_for_line(back.ftl());
            }
        }
    }

    /// Fetches what writes need that come soon: first their places in the map, then what is known of the slots that they leave.
    fn fetch_for_line(&self, ftl: &Ftl) {
        for write in self.waiting.range(2 * WRITES_TOGETHER..3 * WRITES_TOGETHER) {
            ftl.hint(write.lba);
        }
        for write in self.waiting.range(WRITES_TOGETHER..2 * WRITES_TOGETHER) {
            ftl.hint_write(write.lba);
        }
    }

    /// Whether so many writes wait that what they need is fetched from the line.
    pub(crate) fn has_long_line(&self) -> bool {
        self.waiting.len() >= LONG_LINE
    }

    /// Whether changes wait that the layer had no room for.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Has an answer go out at `at`, less the lead.
    #[inline]
    fn answer(&mut self, back: &impl Back, line: usize, at: Nanos, tag: u32, result: Result<(), Failure>) {
        let lead = self.lead.map_or(0, |lead| lead[line]);
        // Within a line answers are in the order of time.
        let earliest = self.answers[line].back().map_or(back.now(), |last| last.answer.at.max(back.now()));
        let answer = Answer { tag, at: at.saturating_sub(lead).max(earliest), result };
        self.answers[line].push_back(Due { answer, due: at.saturating_sub(lead + back.lateness()) });
    }

    /// The next thing that the layer hears of happens, if it does by `limit`.
    #[inline]
    fn step(&mut self, back: &mut impl Back, limit: Nanos) -> bool {
        let arrival = self.arriving.front().map_or(Nanos::MAX, |change| change.through);
        if back.run(limit.min(arrival).min(self.tidied)).is_some() {
            while back.tell() {
                let bad_blocks = back.nand().wear().bad_blocks();
                if bad_blocks != self.bad_blocks {
                    self.bad_blocks = bad_blocks;
                    self.update_health(back.nand());
                }
                self.take_map_page(back);
                self.collect(back);
            }
            self.offer(back);
            return true;
        }
        if self.tidied <= limit && self.tidied < arrival {
            back.set_now(self.tidied.max(back.now()));
            self.tidy(back);
            return true;
        }
        if arrival > limit {
            return false;
        }
        let Some(mut change) = self.arriving.pop_front() else { return false };
        back.set_now(arrival);
        if !self.waiting.is_empty() || !self.take(back, &mut change) {
            self.waiting.push_back(change);
        }
        true
    }

    /// In quiet times the layer grooms ahead.
    fn tidy(&mut self, back: &mut impl Back) {
        let now = back.now();
        let looks_up = self.map.as_ref().is_some_and(MapCache::is_waited_for);
        let busy = !self.arriving.is_empty() || !self.waiting.is_empty() || self.reads > 0 || looks_up;
        let quiet_from = if busy { now } else { self.asked } + QUIET;
        self.tidied = match () {
            () if quiet_from > now => quiet_from,
            () if back.idle() => now + TIDY,
            () => Nanos::MAX,
        };
    }

    /// Everything up to `now` has happened.
    #[inline]
    fn arrive_at(&mut self, back: &mut impl Back, now: Nanos) {
        let now = now.max(back.now());
        back.set_now(now);
        self.govern(back, now);
    }

    /// Lets everything happen up to and including `now`, each thing at its own moment.
    #[inline]
    pub fn advance(&mut self, back: &mut impl Back, now: Nanos) {
        while self.step(back, now) {}
        self.arrive_at(back, now);
    }

    /// Lets everything happen up to the moment of the next answer, at most up to `limit`; gives the moment it came to.
    pub(crate) fn advance_to_answer(&mut self, back: &mut impl Back, limit: Nanos) -> Nanos {
        loop {
            let until = limit.min(self.next_answer());
            if !self.step(back, until) {
                self.arrive_at(back, until);
                return until.max(back.now());
            }
        }
    }

    /// When something happens next by itself, answers aside.
    #[inline]
    pub fn next_event(&self, back: &mut impl Back) -> Option<Nanos> {
        let arrival = self.arriving.front().map_or(Nanos::MAX, |change| change.through);
        let next = arrival.min(back.next_event().unwrap_or(Nanos::MAX));
        (next < Nanos::MAX).then_some(next)
    }

    /// The line of the answer that goes out next.
    #[inline]
    pub fn next_line(&self) -> usize {
        match (self.due(0, 0), self.due(1, 0)) {
            (Some(read), Some(other)) => usize::from(other.answer.at < read.answer.at),
            (Some(_), None) => 0,
            (None, _) => 1,
        }
    }

    /// When the next answer that is known of goes out.
    #[inline]
    pub(crate) fn next_answer(&self) -> Nanos {
        self.due(self.next_line(), 0).map_or(Nanos::MAX, |due| due.answer.at)
    }

    /// An answer in one of the two lines: of reads, and of the rest.
    #[inline]
    pub fn due(&self, line: usize, index: usize) -> Option<&Due> {
        self.answers[line].get(index)
    }

    /// Takes the first answer of a line, if it goes out by `now`.
    #[inline]
    pub fn take_answer(&mut self, line: usize, now: Nanos) -> Option<Due> {
        self.answers[line].pop_front_if(|due| due.answer.at <= now)
    }
}
