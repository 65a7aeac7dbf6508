//! The NAND model: when a chip would be done.
//!
//! It keeps one timeline for each die and each channel and one for the data path between the channels and the host, and
//! nothing of what is stored: whoever uses it keeps the bytes, or none. Time is whatever its user says it is.
//!
//! **How operations are scheduled.** A die does one operation at a time. Host reads go ahead of everything that waits for the die; what it
//! is doing they interrupt only where the sheet lets them (`suspend.rs`); after [`READS_IN_A_ROW`] of them somebody else is let in. On the data path host reads and the rest are served in
//! turn (`path.rs`). So a read waits for at most one operation of its die and one transfer of others, and the groomer is
//! never starved. A register is handed to the channel as soon as its cells are read, and the die goes on meanwhile (cache read).

mod front;
mod lost;
mod paced;
mod path;
mod planes;
mod retry;
mod server;
mod slc;
mod suspend;
mod timing;
mod wear;
mod wheel;

use std::collections::VecDeque;

use ftl::ReadFor;
use profile::{Controller, Energy, Nand as Sheet};
use random::SplitMix64;

use crate::{Geometry, PageAddr};
use lost::Gather;
use path::{Line, Path};
use retry::Retry;
use slc::Slc;
use suspend::Running;
use wheel::Wheel;

pub use front::FrontEnd;
pub use paced::{Paced, inner_geometry};
pub use retry::DAY;
pub use server::Server;
pub use timing::{Rate, Timing, micros};
pub use wear::{FAILED_WHEN_RATED, SHAPE, Wear};

/// A moment or a span, nanoseconds.
pub type Nanos = u64;

/// Ids of host reads that need no cells, with their tag in the lower half; those of commands have less in their highest byte.
pub const PASSES: u64 = 0xff << 56;
/// Ids of reads of a drive's own map, with the number of its page in the lower half.
pub const MAP_READS: u64 = 0xfe << 56;
/// The byte of an id that says so.
pub const ID_KIND: u64 = 0xff << 56;

/// Host reads that a die does in a row while something else waits for it.
pub const READS_IN_A_ROW: u32 = 8;

/// Whom a read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The host: goes first. `first` for the one part of a request that pays for the request itself.
    Host {
        /// This part pays the cost of the request.
        first: bool,
    },
    /// The groomer.
    Groom,
}

impl Class {
    /// Whom a read of the layer is for.
    #[inline]
    pub fn of(purpose: &ReadFor) -> Class {
        match *purpose {
            ReadFor::Request { begins, .. } => Class::Host { first: begins },
            ReadFor::Groom | ReadFor::Relocate | ReadFor::Optimise => Class::Groom,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HostRead {
        first: bool,
    },
    /// A host read that needs no cells, or none any more.
    Pass {
        first: bool,
    },
    GroomRead,
    /// A read of another page of a stripe, for one whose die is lost; its id is the number of the gather.
    Part {
        host: bool,
    },
    /// A program whose die is lost.
    Absorb,
    Program,
    Parity,
    Erase,
    /// Moves a page of the cache of single-level cells to dense ones.
    Fold,
    /// It is looked whether times are quiet; no die is at work.
    Watch,
    /// What was suspended has another event instead.
    Stale,
}

impl Kind {
    /// Of a read of cells.
    const fn of(class: Class) -> Kind {
        match class {
            Class::Host { first } => Kind::HostRead { first },
            Class::Groom => Kind::GroomRead,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    id: u64,
    kind: Kind,
    die: u32,
    block: u32,
    page: u32,
    bytes: u32,
    /// Which plane a host read is on, as a bit; 0 where that does not matter.
    plane: u32,
    /// Next in the same line of its die.
    next: u32,
    /// Its set-up on the data path; 0 where it has none.
    set_up: Nanos,
    /// What its next event is.
    stage: Stage,
}

impl Operation {
    /// One that the model begins by itself, or that needs no die.
    const fn of_its_own(kind: Kind, at: PageAddr) -> Operation {
        let PageAddr { die, block, page } = at;
        Operation { id: 0, kind, die, block, page, bytes: 0, plane: 0, next: NONE, set_up: 0, stage: Stage::Waiting }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits, for its die or for the path.
    Waiting,
    /// The cells are at work.
    Cells,
    /// Its data is on the way to the host's side.
    Transfer,
}

const NONE: u32 = u32::MAX;

/// A line of operations that wait for a die.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    first: u32,
    last: u32,
}

#[derive(Clone, Debug)]
struct Die {
    busy: bool,
    /// Host reads done since something else was.
    in_a_row: u32,
    /// Host reads, and the rest.
    lines: [Waiting; 2],
    channel: u32,
    /// Planes on which host reads are under way, where they are independent of each other: a bit for each.
    reading: u32,
    /// What its cells are at, as far as it can be suspended.
    running: Running,
}

/// Counts of what was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Reads of a page, on however many planes.
    pub reads: u64,
    /// Programs of a page on all planes.
    pub programs: u64,
    /// Erases of a block on all planes.
    pub erases: u64,
    /// Bytes moved over the channels.
    pub bytes: u64,
    /// Bytes programmed, parity included.
    pub programmed_bytes: u64,
    /// Bytes of parity programmed.
    pub parity_bytes: u64,
    /// Bytes read whose die is lost.
    pub made_up_bytes: u64,
    /// Time that dies were busy, added up.
    pub die_busy: Nanos,
    /// Programs and erases that were suspended for a host read.
    pub suspended: u64,
    /// Pages that were folded from the cache of single-level cells.
    pub folds: u64,
    /// Times that a page was read again, because its data are old.
    pub retries: u64,
}

/// What [`Nand::new`] needs.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Dies, blocks and pages as the layer sees them.
    pub geometry: Geometry,
    /// Dies of a chip: they share the chip's channel.
    pub dies_per_chip: u32,
    /// Spare blocks of each die.
    pub spares: u32,
    /// Erases take so much less than the sheet says, where blocks are that much smaller than the sheet says.
    pub erase_divisor: u32,
    /// Pages of each die that the cache of single-level cells holds at most, where the sheet has one.
    pub slc_pages: u32,
}

impl Shape {
    /// Into how many parity groups the pages of a stripe fall: with parity, one for each die of a chip.
    fn parity_groups(&self) -> u32 {
        if self.geometry.parity == 0 { 1 } else { self.dies_per_chip.max(1) }
    }
}

/// The chips of one module in time.
pub struct Nand {
    geometry: Geometry,
    /// Into which the pages of a stripe fall, each with parity of its own.
    groups: u32,
    chips: u32,
    timing: Timing,
    planes: u32,
    independent: bool,
    dies: Vec<Die>,
    channels: Vec<Nanos>,
    path: Path,
    operations: Vec<Operation>,
    unused: Vec<u32>,
    events: Wheel,
    random: SplitMix64,
    done: VecDeque<Done>,
    /// Erases under way by LEB: dies that are not done.
    erasing: Vec<(u32, u64, u32)>,
    /// Dies that answer nothing, in the order in which they were lost.
    lost: Vec<u32>,
    /// The chips that were left each time one was given up.
    narrow: Vec<Vec<u32>>,
    /// Of each block: which of these it is laid out over, counted from 1; 0 for all chips. Empty where none was given up.
    layouts: Vec<u8>,
    /// Reads of what stood on them.
    gathers: Vec<Gather>,
    slc: Option<Slc>,
    retry: Option<Retry>,
    /// Operations that nobody waits for.
    aside: usize,
    counts: Counts,
    energy: Energy,
    wear: Wear,
}

/// An operation that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The id that it was given.
    pub id: u64,
    /// Whether it succeeded; an erase fails when a block is worn out and no spare one is left.
    pub ok: bool,
}

impl Nand {
    /// Chips as the sheet has them.
    pub fn new(shape: &Shape, sheet: &Sheet, controller: &Controller, energy: &Energy, seed: u64) -> Nand {
        let mut timing = Timing::new(sheet, controller);
        timing.erase /= Nanos::from(shape.erase_divisor.max(1));
        let empty = Waiting { first: NONE, last: NONE };
        let channels = sheet.channels.max(1);
        let chips = (shape.geometry.dies / shape.dies_per_chip.max(1)).max(1);
        let die = |die| Die {
            busy: false,
            in_a_row: 0,
            lines: [empty; 2],
            channel: die % chips % channels,
            reading: 0,
            running: Running::default(),
        };
        let Geometry { dies, blocks, .. } = shape.geometry;
        Nand {
            geometry: shape.geometry,
            groups: shape.parity_groups(),
            chips,
            timing,
            planes: sheet.planes,
            independent: sheet.independent_plane_reads,
            dies: (0..dies).map(die).collect(),
            channels: vec![0; channels as usize],
            path: Path::default(),
            operations: Vec::new(),
            unused: Vec::new(),
            events: Wheel::new(),
            random: SplitMix64::new(seed),
            done: VecDeque::new(),
            erasing: Vec::new(),
            lost: Vec::new(),
            narrow: Vec::new(),
            layouts: Vec::new(),
            gathers: Vec::new(),
            slc: sheet.slc_cache.as_ref().map(|sheet| Slc::new(sheet, shape)),
            retry: sheet.retry.as_ref().map(|sheet| Retry::new(sheet, blocks)),
            aside: 0,
            counts: Counts::default(),
            energy: energy.clone(),
            wear: Wear::new(seed, sheet.endurance_cycles, dies, blocks, shape.spares),
        }
    }

    /// Its shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The chip that a die is on. Dies are numbered across the chips first, so that the pages of a stripe begin on as many channels as
    /// there are.
    pub fn chip_of(&self, die: u32) -> u32 {
        die % self.chips
    }

    /// Chips, those of parity included.
    pub fn chips(&self) -> u32 {
        self.chips
    }

    /// Reads `bytes` of a page, whose die is not out of reach.
    #[inline]
    pub fn read(&mut self, now: Nanos, id: u64, at: PageAddr, bytes: u32, class: Class) {
        if !self.lost.is_empty() {
            return self.read_around(now, id, at, bytes, class);
        }
        self.begin(now, id, Kind::of(class), at, bytes);
    }

    /// A host read of `bytes` that needs no cells: it takes the data path as others do, and nothing else.
    pub fn pass(&mut self, now: Nanos, id: u64, bytes: u32) {
        self.over_the_path(now, Line::Reads, Kind::Pass { first: true }, id, bytes);
    }

    /// Reads `bytes` of a drive's own map, which lie there.
    pub fn read_map(&mut self, now: Nanos, page: u32, at: PageAddr, bytes: u32) {
        self.read(now, MAP_READS | u64::from(page), at, bytes, Class::Host { first: false });
    }

    /// Programs `bytes` of a page. The last data page of a stripe takes the stripe's parity with it: the controller makes it of what
    /// passed through, so it takes its channels and dies, and nothing of the data path. The page's die is not out of reach.
    #[inline]
    pub fn program(&mut self, now: Nanos, id: u64, at: PageAddr, bytes: u32) {
        if !self.lost.is_empty() {
            return self.program_around(now, id, at, bytes);
        }
        self.begin(now, id, Kind::Program, at, bytes);
        let (dies, data) = (self.geometry.dies, self.geometry.data_dies());
        if data == dies || at.die != self.geometry.die_of(at.page, data - 1) {
            return;
        }
        for lane in data..dies {
            let die = self.geometry.die_of(at.page, lane);
            self.begin(now, 0, Kind::Parity, PageAddr { die, ..at }, bytes);
            self.counts.parity_bytes += u64::from(bytes);
        }
    }

    /// Erases a block on every die that answers: at least one.
    pub fn erase(&mut self, now: Nanos, id: u64, block: u32) {
        if let Some(layout) = self.layouts.get_mut(block as usize) {
            *layout = self.narrow.len() as u8;
        }
        self.erasing.push((block, id, (self.dies.len() - self.lost.len()) as u32));
        for die in 0..self.dies.len() as u32 {
            if self.lost.contains(&die) {
                continue;
            }
            self.begin(now, id, Kind::Erase, PageAddr { die, block, page: 0 }, 0);
        }
    }

    /// When the next thing happens.
    #[inline]
    pub fn next_event(&mut self) -> Option<Nanos> {
        let next = self.path.next_start().min(self.events.next());
        (next < Nanos::MAX).then_some(next)
    }

    /// Lets the next thing happen; gives the moment.
    #[inline]
    pub fn step(&mut self) -> Option<Nanos> {
        let start = self.path.next_start();
        if start < Nanos::MAX && start <= self.events.next() {
            let next = self.path.next()?;
            self.transfer(start, next);
            return Some(start);
        }
        let (now, which) = self.events.take()?;
        let operation = self.operations[which as usize];
        match (operation.stage, operation.kind) {
            (Stage::Cells, Kind::Part { .. }) => {
                let time = self.timing.channel_read.of(operation.bytes);
                let end = self.take_channel(now, operation.die, time);
                self.counts.bytes += u64::from(operation.bytes);
                self.operations[which as usize].stage = Stage::Transfer;
                self.events.set(end, which);
                self.die_is_free(now, operation.die);
            }
            (Stage::Transfer, Kind::Part { .. }) => self.gathered(now, which),
            (Stage::Cells, Kind::HostRead { .. } | Kind::GroomRead) => {
                let line = if operation.kind == Kind::GroomRead { Line::Rest } else { Line::Reads };
                self.ask_for_path(now, line, which);
                if !self.reads_on(now, operation.die, operation.plane) {
                    self.die_is_free(now, operation.die);
                }
            }
            (Stage::Cells, Kind::Stale) => self.put_aside(which),
            (Stage::Cells, Kind::Watch) => self.watched(now, which),
            (Stage::Cells, Kind::Fold) => {
                self.put_aside(which);
                self.die_is_free(now, operation.die);
                self.fold_if_quiet(now, operation.die);
            }
            (Stage::Cells, _) => {
                self.finish(which);
                self.die_is_free(now, operation.die);
            }
            (Stage::Transfer, _) => self.finish(which),
            (Stage::Waiting, _) => unreachable!("who waits has no event"),
        }
        Some(now)
    }

    /// Lets things happen until an operation ends, at most up to `limit`; gives the moment when one did.
    #[inline]
    pub fn run(&mut self, limit: Nanos) -> Option<Nanos> {
        // Never is not a moment that comes.
        let limit = limit.min(Nanos::MAX - 1);
        while self.path.next_start().min(self.events.next()) <= limit {
            let now = self.step();
            if !self.done.is_empty() {
                return now;
            }
        }
        None
    }

    /// The next operation that ended.
    #[inline]
    pub fn done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn begin(&mut self, now: Nanos, id: u64, kind: Kind, at: PageAddr, bytes: u32) {
        let PageAddr { die, block, page } = at;
        let plane = self.plane_for(kind);
        let set_up = self.set_up(now, kind);
        let operation =
            Operation { id, kind, die, block, page, bytes, plane, next: NONE, set_up, stage: Stage::Waiting };
        let which = self.put(operation);
        if let Some(slc) = &mut self.slc {
            slc.asked(now);
        }
        if !self.dies[die as usize].busy {
            self.start(now, which);
            return;
        }
        let reads = matches!(kind, Kind::HostRead { .. } | Kind::Part { host: true });
        if self.can_read_beside(die, plane) {
            let entry = &mut self.dies[die as usize];
            entry.in_a_row += 1;
            // The one beside may still wait for what is being suspended.
            let from = now.max(entry.running.from());
            self.start(from, which);
            return;
        }
        if reads && let Some(from) = self.suspend(now, die) {
            self.start(from, which);
            return;
        }
        let line = &mut self.dies[die as usize].lines[usize::from(!reads)];
        match line.last {
            NONE => line.first = which,
            last => self.operations[last as usize].next = which,
        }
        line.last = which;
    }

    /// The one part of a host's read that pays for the request has it set up.
    #[inline]
    fn set_up(&mut self, now: Nanos, kind: Kind) -> Nanos {
        match kind {
            Kind::HostRead { first: true } | Kind::Pass { first: true } => self.path.ask(now, self.timing.read_request),
            _ => 0,
        }
    }

    /// A place for an operation.
    #[inline]
    fn put(&mut self, operation: Operation) -> u32 {
        match self.unused.pop() {
            Some(which) => {
                self.operations[which as usize] = operation;
                which
            }
            None => {
                self.operations.push(operation);
                self.operations.len() as u32 - 1
            }
        }
    }

    fn varied(&mut self, time: Nanos) -> Nanos {
        if self.timing.variation == 0 {
            return time;
        }
        let spread = (time * self.timing.variation) >> 16;
        time - spread + self.random.below(2 * spread + 1)
    }

    /// The die begins an operation.
    fn start(&mut self, now: Nanos, which: u32) {
        let Operation { kind, die, block, page, .. } = self.operations[which as usize];
        self.dies[die as usize].busy = true;
        match kind {
            Kind::HostRead { .. } | Kind::GroomRead | Kind::Part { .. } => {
                self.counts.reads += 1;
                let cached = self.slc.as_ref().and_then(|slc| slc.read_of(die, block, page));
                let mut time = self.varied(cached.unwrap_or(self.timing.read));
                if cached.is_none() {
                    time += self.retries(now, block);
                }
                self.dies[die as usize].reading |= self.operations[which as usize].plane;
                self.cells(now, which, time);
            }
            Kind::Erase => {
                self.counts.erases += 1;
                if let Some(slc) = &mut self.slc {
                    slc.erased(die, block);
                }
                let time = self.varied(self.timing.erase);
                self.cells(now, which, time);
                self.let_reads_pass(now, die);
            }
            Kind::Parity => self.load(now, which, now),
            // Its data comes first; the die is kept for it.
            Kind::Program => self.ask_for_path(now, Line::Rest, which),
            Kind::Pass { .. } | Kind::Absorb | Kind::Watch => unreachable!("it needs no die"),
            Kind::Fold | Kind::Stale => unreachable!("it does not wait for its die"),
        }
    }

    /// The cells work for `time` from `from` on.
    fn cells(&mut self, from: Nanos, which: u32, time: Nanos) {
        let operation = &mut self.operations[which as usize];
        operation.stage = Stage::Cells;
        self.counts.die_busy += time;
        if self.timing.suspend.is_some() {
            self.dies[operation.die as usize].running.at(which, from, from + time);
        }
        self.events.set(from + time, which);
    }

    fn ask_for_path(&mut self, now: Nanos, line: Line, which: u32) {
        self.operations[which as usize].stage = Stage::Waiting;
        if self.path.is_free(now) {
            self.transfer(now, which);
        } else {
            self.path.queue(line, which);
        }
    }

    /// Moves an operation's data over the path and its channel at the same time; it ends with the slower of the two.
    fn transfer(&mut self, now: Nanos, which: u32) {
        let Operation { kind, die, bytes, set_up, .. } = self.operations[which as usize];
        let timing = &self.timing;
        let path_time = match kind {
            Kind::HostRead { .. } | Kind::Pass { .. } | Kind::GroomRead => timing.path_read.of(bytes),
            Kind::Program | Kind::Absorb => timing.path_write.of(bytes),
            Kind::Parity | Kind::Part { .. } | Kind::Erase | Kind::Fold | Kind::Watch | Kind::Stale => {
                unreachable!("none of them uses the data path")
            }
        };
        let path_end = self.path.take(now, set_up, path_time);
        if kind == Kind::Program {
            return self.load(now, which, path_end);
        }
        if matches!(kind, Kind::Pass { .. } | Kind::Absorb) {
            self.operations[which as usize].stage = Stage::Transfer;
            return self.events.set(path_end, which);
        }
        let time = self.timing.channel_read.of(bytes);
        let end = path_end.max(self.take_channel(now, die, time));
        self.counts.bytes += u64::from(bytes);
        self.operations[which as usize].stage = Stage::Transfer;
        self.events.set(end, which);
    }

    /// Takes a die's channel for `time`; gives the end.
    fn take_channel(&mut self, now: Nanos, die: u32, time: Nanos) -> Nanos {
        let channel = &mut self.channels[self.dies[die as usize].channel as usize];
        *channel = now.max(*channel) + time;
        *channel
    }

    /// Loads the die's register over its channel and programs it; the data is there at `path_end`.
    fn load(&mut self, now: Nanos, which: u32, path_end: Nanos) {
        let Operation { die, block, page, bytes, .. } = self.operations[which as usize];
        let time = self.timing.channel_write.of(bytes);
        let end = path_end.max(self.take_channel(now, die, time));
        self.counts.bytes += u64::from(bytes);
        self.counts.programs += 1;
        self.counts.programmed_bytes += u64::from(bytes);
        self.counts.die_busy += end - now;
        if let Some(retry) = &mut self.retry {
            retry.programmed(now, block);
        }
        let time = match self.slc {
            Some(_) => self.program_by_the_cache(now, die, block, page),
            None => self.timing.program_of(page),
        };
        let time = self.varied(time);
        self.cells(end, which, time);
        self.let_reads_pass(now, die);
    }

    fn die_is_free(&mut self, now: Nanos, die: u32) {
        let entry = &mut self.dies[die as usize];
        entry.busy = false;
        let line = usize::from(entry.lines[0].first == NONE || !self.reads_first(die));
        if line == 1 && self.resume(now, die) {
            return;
        }
        self.start_waiting(now, die, line);
        if self.independent && line == 0 {
            self.read_beside(now, die);
        }
    }

    /// A die that is free begins with the first in a line, if there is one.
    fn start_waiting(&mut self, now: Nanos, die: u32, line: usize) {
        let entry = &mut self.dies[die as usize];
        let which = entry.lines[line].first;
        if which == NONE {
            entry.in_a_row = 0;
            return;
        }
        entry.in_a_row = if line == 0 { entry.in_a_row + 1 } else { 0 };
        let next = self.operations[which as usize].next;
        entry.lines[line].first = next;
        if next == NONE {
            entry.lines[line].last = NONE;
        }
        self.start(now, which);
    }

    fn finish(&mut self, which: u32) {
        let Operation { id, kind, block: erased, .. } = self.operations[which as usize];
        self.unused.push(which);
        match kind {
            Kind::Erase => {}
            // Nobody asked for it.
            Kind::Parity => return,
            _ => return self.done.push_back(Done { id, ok: true }),
        }
        let at = self.erasing.iter().position(|(block, ..)| *block == erased).expect("an erase under way");
        self.erasing[at].2 -= 1;
        if self.erasing[at].2 == 0 {
            let (block, id, _) = self.erasing.swap_remove(at);
            let ok = self.wear.erase(block);
            if let Some(retry) = &mut self.retry {
                retry.erased(block);
            }
            self.done.push_back(Done { id, ok });
        }
    }

    /// What was done so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Time that the data path was taken.
    pub fn path_busy(&self) -> Nanos {
        self.path.busy
    }

    /// Its wear, to be changed: for fault drills.
    pub fn wear_mut(&mut self) -> &mut Wear {
        &mut self.wear
    }

    /// The wear of the blocks.
    pub fn wear(&self) -> &Wear {
        &self.wear
    }

    /// Energy of everything done so far, without what is taken all the time: joules.
    pub fn joules(&self) -> f64 {
        let planes = f64::from(self.planes);
        // A read is of one plane, programs and erases are of all.
        let cells = self.counts.reads as f64 * self.energy.read_uj
            + self.counts.programs as f64 * planes * self.energy.program_uj
            + self.counts.erases as f64 * planes * self.energy.erase_uj;
        cells * 1e-6 + self.counts.bytes as f64 * self.energy.transfer_nj_per_byte * 1e-9
    }

    /// Operations that are not done.
    pub fn under_way(&self) -> usize {
        self.operations.len() - self.unused.len() - self.aside
    }
}

#[cfg(test)]
mod tests;
