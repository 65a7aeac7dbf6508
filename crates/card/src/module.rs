//! One flash module in virtual time: the translation layer, unchanged, on the NAND model, behind the card's front end.
//!
//! No payload exists here, see [`Addressed`].
//!
//! **A write's way.** Link, then the front end (one request at a time), then the layer takes it: it is in the capacitor-backed buffer, and answered. Its page
//! goes to the data path, its channel and its die when it is full. When the buffer is full or the groomer behind, the write waits in order.
//! **A read's way.** The layer says where its sectors are; each page's part goes to its die, channel and the data path; when all are there, over the
//! link and out. What is not mapped, or still in the buffer, needs no flash.

mod carry_out;
mod health;

use std::collections::VecDeque;

use ftl::{Addressed, Admission, Config, Ftl, Pacing, Policy, Recovery, Tag};
use media::nand::{FrontEnd, Nand};
use profile::{Card, Module as Sheet};

use crate::device::{Answer, Failure, Nanos, Op, Request, VirtualDevice};
use crate::governor::{Governor, Surroundings};
use crate::layout::{Layout, LayoutError, buffer_pages, layout};
use crate::leds::{Activity, Leds};
use crate::report::{Busy, EraseCounts, Health, Report};

use carry_out::Chips;
pub use health::{hold, reduced_hold};

/// Larger writes are taken in pieces of this size, as an operating system's block layer would.
const PIECE_BYTES: u32 = 128 * 1024;
/// Reads that the layer works on at once; more wait in order.
const READS: u32 = 4096;
/// Slots appended between checkpoints: 2 GiB of 4 KiB sectors. With capacitors a checkpoint only shortens the next attach.
const CHECKPOINT_INTERVAL: u64 = 1 << 19;
/// Waiting writes for which something is fetched together.
const WRITES_TOGETHER: usize = 8;
/// Where so many wait, what they need is fetched from the line and not when they are announced, which would be too early to last.
const LONG_LINE: usize = 4 * WRITES_TOGETHER;
/// So long nobody asks anything of it before it is quiet and grooms ahead.
const QUIET: Nanos = 100_000_000;
/// Then it is looked so often whether there is more to groom.
const TIDY: Nanos = 1_000_000;

/// What a module is made with.
#[derive(Clone, Debug)]
pub struct ModuleConfig<'a> {
    /// The data sheet.
    pub module: &'a Sheet,
    /// The card that it sits on, with how many others of its kind, if power and heat matter.
    pub card: Option<(&'a Card, u32)>,
    /// Capacity of the format at full size, bytes.
    pub capacity_bytes: u64,
    /// Sector size of the format, bytes.
    pub sector_bytes: u32,
    /// How many times smaller than the sheet says, about.
    pub scale: u32,
    /// What surrounds the card.
    pub surroundings: Surroundings,
    /// The groomer's policy; as the data sheet says where `None`.
    pub policy: Option<Policy>,
    /// How the groomer and host writes share the module; as the data sheet says where `None`.
    pub pacing: Option<Pacing>,
    /// Whether it grooms ahead of need in quiet times.
    pub grooms_ahead: bool,
    /// Seed of everything that varies.
    pub seed: u64,
}

/// Ids of reads that need no flash; the layer's own ids have less in their highest byte.
const PASS: u64 = 0xff << 56;

/// A write or trim that waits to be taken.
#[derive(Clone, Copy)]
struct Waiting {
    tag: u32,
    op: Op,
    lba: u64,
    sectors: u32,
}

/// A read that the layer works on.
#[derive(Clone, Copy, Default)]
struct Reading {
    tag: u32,
    bytes: u32,
}

/// A flash module in virtual time.
pub struct Module {
    flash: Addressed<Chips>,
    /// Writes taken from the line.
    taken: usize,
    reading: Vec<Reading>,
    free_tags: Vec<Tag>,
    reads_waiting: VecDeque<(u32, Request)>,
    /// Writes on their way through link and front end, with the moment they reach the layer.
    arriving: VecDeque<(Nanos, Waiting)>,
    /// Writes that the layer could not take yet.
    waiting: VecDeque<Waiting>,
    answers: [VecDeque<Answer>; 2],
    front: FrontEnd,
    /// Nanoseconds by which each written byte is held back in reduced-write mode.
    reduced_hold: f64,
    governor: Option<Governor>,
    idle_watts: f64,
    health: Health,
    /// Blocks that went bad, as far as the health tells of them.
    bad_blocks: u64,
    layout: Layout,
    rated_cycles: u32,
    map_in_drive: bool,
    activity: Activity,
    /// When the host asked something last.
    asked: Nanos,
    /// When it is looked next whether these are quiet times; never while there is nothing to be done in them.
    tidied: Nanos,
}

impl Module {
    /// A module, formatted and empty.
    ///
    /// # Errors
    /// The format does not fit the module.
    pub fn new(config: &ModuleConfig) -> Result<Module, LayoutError> {
        let sheet = config.module;
        let layout = layout(sheet, config.capacity_bytes, config.sector_bytes, config.scale)?;
        let geometry = layout.geometry;
        let max_request = PIECE_BYTES / config.sector_bytes;
        let mut layer = Config {
            geometry,
            sectors: layout.sectors,
            max_request,
            buffers: buffer_pages(sheet, &geometry),
            requests: READS + 1,
            checkpoint_interval: CHECKPOINT_INTERVAL * 4096 / u64::from(config.sector_bytes),
            erase_before_program: true,
            power_protected: true,
            policy: config.policy.unwrap_or(layout.policy),
        };
        layer.buffers = layer.buffers.max(layer.min_buffers());
        let mut ftl = Recovery::new(layer, ftl::Anchor::default())
            .and_then(|recovery| recovery.finish(1))
            .expect("nothing stands on new flash that could be damaged");
        ftl.set_pacing(config.pacing.unwrap_or(Pacing::Rounds(sheet.controller.groom_round_bytes)));
        ftl.groom_ahead(config.grooms_ahead);
        let nand = Nand::new(&layout.shape, &sheet.nand, &sheet.controller, &sheet.energy, config.seed);
        let governor = config
            .card
            .map(|(card, modules)| Governor::new(card, modules, sheet.energy.idle_watts, &config.surroundings));
        Ok(Module {
            flash: Addressed::new(ftl, Chips { nand, now: 0 }),
            taken: 0,
            reading: vec![Reading::default(); READS as usize + 1],
            free_tags: (1..=READS).rev().collect(),
            reads_waiting: VecDeque::new(),
            arriving: VecDeque::new(),
            waiting: VecDeque::new(),
            answers: [VecDeque::new(), VecDeque::new()],
            front: FrontEnd::new(&sheet.controller),
            reduced_hold: reduced_hold(sheet, &geometry),
            governor,
            idle_watts: sheet.energy.idle_watts,
            health: Health::Healthy,
            bad_blocks: 0,
            layout,
            rated_cycles: sheet.nand.endurance_cycles,
            map_in_drive: sheet.controller.map_in_drive,
            activity: Activity::default(),
            asked: 0,
            tidied: Nanos::MAX,
        })
    }

    /// How the module is laid out.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The layer.
    pub fn ftl(&self) -> &Ftl {
        &self.flash.ftl
    }

    /// Power and heat, where the module sits on a card.
    pub fn governor(&self) -> Option<&Governor> {
        self.governor.as_ref()
    }

    /// What its lights say now.
    pub fn leds(&self) -> Leds {
        self.activity.leds(self.flash.medium.now, self.governor.as_ref().is_some_and(Governor::is_shut_down))
    }

    /// Lights all of them, or lets them be.
    pub fn beacon(&mut self, on: bool) {
        self.activity.beacon = on;
    }

    /// Heap memory of the module's books, bytes.
    pub fn memory(&self) -> usize {
        self.flash.memory()
    }

    /// Checks the layer's books. For tests: it looks at every sector.
    ///
    /// # Errors
    /// What does not hold.
    pub fn verify(&self) -> Result<(), String> {
        self.flash.verify()
    }

    fn refusal(&self, request: &Request) -> Option<Failure> {
        if self.governor.as_ref().is_some_and(Governor::is_shut_down) {
            return Some(Failure::Shutdown);
        }
        if let Err(failure) = request.check(self.bytes(), self.sector_bytes()) {
            return Some(failure);
        }
        let changes = matches!(request.op, Op::Write | Op::Trim);
        (changes && self.health == Health::ReadOnly).then_some(Failure::ReadOnly)
    }

    fn refuse(&mut self, tag: u32, op: Op, failure: Failure) {
        let line = usize::from(op != Op::Read);
        // Within a line answers are in the order of time.
        let at = self.answers[line].back().map_or(self.flash.medium.now, |last| last.at.max(self.flash.medium.now));
        self.answers[line].push_back(Answer { tag, at, result: Err(failure) });
    }

    fn read(&mut self, tag: u32, request: Request) {
        let Some(layer_tag) = self.free_tags.pop() else {
            self.reads_waiting.push_back((tag, request));
            return;
        };
        let sector = self.layout.geometry.sector_bytes;
        self.reading[layer_tag as usize] = Reading { tag, bytes: request.bytes };
        let lba = request.offset / u64::from(sector);
        let admission = self.flash.ftl.submit(layer_tag, ftl::Request::Read { lba, count: request.bytes / sector });
        if admission == Admission::Done {
            if self.map_in_drive {
                self.flash.medium.nand.pass(self.flash.medium.now, PASS | u64::from(layer_tag), request.bytes);
            } else {
                self.read_done(layer_tag, Ok(()));
            }
        }
        self.carry_out();
    }

    /// All of a read is there: over the link and out.
    fn read_done(&mut self, layer_tag: Tag, result: Result<(), ftl::Error>) {
        let Reading { tag, bytes } = self.reading[layer_tag as usize];
        self.free_tags.push(layer_tag);
        let at = self.front.leave(self.flash.medium.now, bytes);
        self.answers[0].push_back(Answer { tag, at, result: result.map_err(|_| Failure::Media) });
    }

    /// A write or trim comes over the link and through the front end.
    fn arrive(&mut self, tag: u32, request: Request) {
        let sector = self.layout.geometry.sector_bytes;
        let bytes = if request.op == Op::Write { request.bytes } else { 0 };
        let at = self.front.arrive(self.flash.medium.now, bytes, (self.hold() * f64::from(bytes)) as Nanos);
        let lba = request.offset / u64::from(sector);
        if self.waiting.len() < LONG_LINE {
            self.flash.ftl.hint_write(lba);
        }
        self.arriving.push_back((at, Waiting { tag, op: request.op, lba, sectors: request.bytes / sector }));
    }

    /// The layer takes as much of a write as it can. Returns whether it took all.
    fn take(&mut self, write: &mut Waiting) -> bool {
        if self.health == Health::ReadOnly {
            self.refuse(write.tag, write.op, Failure::ReadOnly);
            return true;
        }
        let most = self.flash.ftl.config().max_request;
        while write.sectors > 0 {
            let (count, request) = match write.op {
                Op::Trim => {
                    let count = u64::from(write.sectors);
                    (write.sectors, ftl::Request::Trim { lba: write.lba, count, fua: false })
                }
                _ => {
                    let count = write.sectors.min(most);
                    (count, ftl::Request::Write { lba: write.lba, count, fua: false })
                }
            };
            let admission = self.flash.ftl.submit(0, request);
            self.carry_out();
            match admission {
                Admission::Busy => return false,
                Admission::Refused(_) => {
                    self.refuse(write.tag, write.op, Failure::Media);
                    return true;
                }
                Admission::Done | Admission::Pending => {
                    debug_assert_eq!(admission, Admission::Done, "nothing waits for durability behind capacitors");
                }
            }
            write.lba += u64::from(count);
            write.sectors -= count;
        }
        let at = self.front.taken(self.flash.medium.now);
        self.answers[1].push_back(Answer { tag: write.tag, at, result: Ok(()) });
        true
    }

    fn take_waiting(&mut self) {
        let most = self.flash.ftl.config().max_request;
        let first = self.waiting.front().map_or(0, |write| write.sectors.min(most));
        // As long as the flash works at something, a better moment comes.
        if self.flash.medium.nand.under_way() > 0 && self.health < Health::ReadOnly && !self.flash.ftl.takes(first) {
            return;
        }
        while let Some(mut write) = self.waiting.pop_front() {
            if !self.take(&mut write) {
                self.waiting.push_front(write);
                return;
            }
            self.taken += 1;
            if self.taken.is_multiple_of(WRITES_TOGETHER) && self.waiting.len() >= LONG_LINE {
                self.fetch_for_line();
            }
        }
    }

    /// Fetches what writes need that come soon: first their places in the map, then what is known of the slots that they leave.
    fn fetch_for_line(&self) {
        for write in self.waiting.range(2 * WRITES_TOGETHER..3 * WRITES_TOGETHER) {
            self.flash.ftl.hint(write.lba);
        }
        for write in self.waiting.range(WRITES_TOGETHER..2 * WRITES_TOGETHER) {
            self.flash.ftl.hint_write(write.lba);
        }
    }

    /// The next thing that the layer hears of happens, if it does by `limit`.
    #[inline]
    fn step(&mut self, limit: Nanos) -> bool {
        let arrival = self.arriving.front().map_or(Nanos::MAX, |(at, _)| *at);
        if let Some(at) = self.flash.medium.nand.run(limit.min(arrival).min(self.tidied)) {
            self.flash.medium.now = at;
            while let Some(done) = self.flash.medium.nand.done() {
                self.flash_done(done.id, done.ok);
            }
            if !self.waiting.is_empty() {
                self.take_waiting();
            }
            return true;
        }
        if self.tidied <= limit && self.tidied < arrival {
            self.flash.medium.now = self.flash.medium.now.max(self.tidied);
            self.tidy();
            return true;
        }
        if arrival > limit {
            return false;
        }
        self.flash.medium.now = arrival;
        let (_, mut write) = self.arriving.pop_front().expect("just seen");
        if !self.waiting.is_empty() || !self.take(&mut write) {
            self.waiting.push_back(write);
        }
        true
    }

    /// In quiet times the layer grooms ahead.
    fn tidy(&mut self) {
        let busy = !self.arriving.is_empty() || !self.waiting.is_empty() || self.free_tags.len() < READS as usize;
        let quiet_from = if busy { self.flash.medium.now } else { self.asked } + QUIET;
        if quiet_from > self.flash.medium.now {
            self.tidied = quiet_from;
            return;
        }
        let more = self.flash.ftl.idle();
        self.tidied = if more { self.flash.medium.now + TIDY } else { Nanos::MAX };
        self.carry_out();
    }

    /// When the next answer that is known of is due.
    #[inline]
    fn next_answer(&self) -> Nanos {
        let due = |line: &VecDeque<Answer>| line.front().map_or(Nanos::MAX, |answer| answer.at);
        due(&self.answers[0]).min(due(&self.answers[1]))
    }

    /// Everything up to `now` has happened.
    #[inline]
    fn arrive_at(&mut self, now: Nanos) {
        self.flash.medium.now = self.flash.medium.now.max(now);
        self.govern(self.flash.medium.now);
    }
}

impl VirtualDevice for Module {
    fn sector_bytes(&self) -> u32 {
        self.layout.geometry.sector_bytes
    }

    fn bytes(&self) -> u64 {
        self.layout.sectors * u64::from(self.layout.geometry.sector_bytes)
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        self.advance(now);
        self.asked = now;
        if self.tidied == Nanos::MAX {
            self.tidied = now + QUIET;
        }
        if let Some(failure) = self.refusal(&request) {
            return self.refuse(tag, request.op, failure);
        }
        match request.op {
            Op::Read => {
                self.activity.read = Some(now);
                self.read(tag, request);
            }
            Op::Write | Op::Trim => {
                self.activity.write = Some(now);
                self.arrive(tag, request);
            }
            // What was answered is behind capacitors.
            Op::Flush => {
                let last = self.answers[1].back().map_or(0, |last| last.at);
                let at = last.max(self.front.taken(self.flash.medium.now));
                self.answers[1].push_back(Answer { tag, at, result: Ok(()) });
            }
        }
    }

    #[inline]
    fn next_event(&mut self) -> Option<Nanos> {
        let arrival = self.arriving.front().map_or(Nanos::MAX, |(at, _)| *at);
        let flash = self.flash.medium.nand.next_event().unwrap_or(Nanos::MAX);
        let next = self.next_answer().min(arrival).min(flash);
        (next < Nanos::MAX).then_some(next.max(self.flash.medium.now))
    }

    #[inline]
    fn advance(&mut self, now: Nanos) {
        while self.step(now) {}
        self.arrive_at(now);
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        while self.step(limit.min(self.next_answer())) {}
        let now = limit.min(self.next_answer());
        self.arrive_at(now);
        now.max(self.flash.medium.now)
    }

    #[inline]
    fn answer(&mut self) -> Option<Answer> {
        let line = match (self.answers[0].front(), self.answers[1].front()) {
            (Some(read), Some(write)) => usize::from(write.at < read.at),
            (Some(_), None) => 0,
            (None, _) => 1,
        };
        self.answers[line].pop_front_if(|answer| answer.at <= self.flash.medium.now)
    }

    #[inline]
    fn hint(&self, offset: u64) {
        if self.waiting.len() >= LONG_LINE {
            return;
        }
        self.flash.ftl.hint(offset / u64::from(self.layout.geometry.sector_bytes));
    }

    fn report(&self) -> Report {
        let sector = u64::from(self.layout.geometry.sector_bytes);
        let (stats, counts, wear) =
            (self.flash.ftl.stats(), self.flash.medium.nand.counts(), self.flash.medium.nand.wear());
        let erases = wear.erases().iter().map(|erases| f64::from(*erases));
        let lebs = wear.erases().len().max(1) as f64;
        let mean = erases.clone().sum::<f64>() / lebs;
        let deviation = (erases.map(|erases| (erases - mean).powi(2)).sum::<f64>() / lebs).sqrt();
        let raw = self.layout.geometry.blocks as u64
            * u64::from(self.layout.geometry.pages_per_block)
            * u64::from(self.layout.geometry.dies)
            * u64::from(self.layout.geometry.slots_per_page)
            * sector;
        Report {
            host_read_bytes: stats.host_read_sectors * sector,
            host_written_bytes: stats.host_written_sectors * sector,
            groomed_bytes: stats.groomed_sectors * sector,
            parity_bytes: counts.parity_bytes,
            padding_bytes: stats.padding_slots * sector,
            metadata_bytes: stats.metadata_slots * sector,
            erases: counts.erases,
            erase_counts: Some(EraseCounts {
                min: wear.erases().iter().copied().min().unwrap_or(0),
                max: wear.erases().iter().copied().max().unwrap_or(0),
                mean,
                deviation,
            }),
            dies: Busy { nanos: counts.die_busy, count: self.layout.geometry.dies },
            data_path: Busy { nanos: self.flash.medium.nand.path_busy(), count: 1 },
            link: Busy { nanos: self.front.link_busy(), count: 1 },
            joules: self.flash.medium.nand.joules() + self.idle_watts * self.flash.medium.now as f64 * 1e-9,
            celsius: self.governor.as_ref().map(Governor::celsius),
            reserve_percent: Some(wear.reserve_percent()),
            health: Some(self.health),
            rated_cycles: Some(self.rated_cycles),
            raw_bytes: raw,
        }
    }
}
