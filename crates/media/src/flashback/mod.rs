//! Flashback: parity across the dies of every stripe, so that a die may fail.
//!
//! A [`Flashback`] stands between the layer and a medium of several dies. The layer fills the data pages of a stripe and knows
//! nothing of parity; here the pages of an open stripe stay in memory until the stripe is complete and its parity is
//! programmed. A sync writes the parity of what is open to a [journal](journal), so that nothing durable is ever without.
//!
//! - A command that fails on one die, or a die that is missing, costs the device that die and nothing else: the die counts as
//!   *lost*, what lies on it is rebuilt when it is asked for. Whatever succeeded only because the die is lost is answered once
//!   its owner has the loss on record ([`Flashback::recorded`]), so that the die cannot come back with old content unnoticed.
//! - [`Command::Rebuild`] gives slots that could not be read or failed their check. Whether what it gives is right
//!   is told by the slots' own trailers ([`SlotCheck`]), which is also how it is known after a crash what parity covers.
//! - After a crash, [`Flashback::settle`] gives the stripes that were open their parity before anything new is written.
//!
//! Start reading with [`Flashback::program`], then `sync.rs` and `repair.rs`; the arithmetic is in `parity.rs`.

mod candidates;
mod dies;
mod journal;
mod numbers;
pub mod parity;
mod repair;
mod settle;
mod stripe;
mod sync;

use std::collections::VecDeque;
use std::ops::Range;

use ftl::{Geometry, Slot};
use slab::Slab;

use self::dies::Dies;
use self::journal::Journal;
use self::parity::Which;
use self::repair::Repair;
use self::stripe::{Lane, Stripe};
use self::sync::SyncRun;
use crate::{Backing, Command, Done, Drilled, Media, MediaError, Page, PageAddr, Slice};

pub use self::dies::DieState;

/// Tells right sectors from wrong ones.
pub trait SlotCheck {
    /// The sequence number of a slot that holds what was written to this number; `None` when it does not.
    fn seq(&self, slot: &[u8], number: Slot) -> Option<u64>;

    /// Where in a slot its number stands, as a little-endian `u32`: what looks wrong there need not be checked further.
    fn number_at(&self) -> Range<usize>;
}

/// The shape of the medium below a [`Flashback`] of this shape: the journal's blocks come on top.
pub const fn media_geometry(geometry: &Geometry) -> Geometry {
    Geometry { blocks: geometry.blocks + journal::blocks(geometry), ..*geometry }
}

/// The shape that the layer sees on such a medium.
pub const fn layer_geometry(media: &Geometry) -> Geometry {
    Geometry { blocks: media.blocks - journal::blocks(media), ..*media }
}

/// Marks the ids of commands of our own.
const OWN: u64 = 0x7e << 56;

/// A command of our own.
enum Own {
    /// A stripe's finished parity, or what fills it up where it ends early.
    Final { block: u32, page: u32, die: u32 },
    /// Parity of an open stripe.
    Journal { die: u32 },
    /// A sync of the medium.
    Sync,
    /// A part of a repair.
    Part { repair: usize, part: u32 },
    /// A page of a die that is being rebuilt, under its owner's id.
    Restore { id: u64, die: u32 },
}

/// Commands for all dies at once whose failure is another matter than that of the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Whoever records a loss waits for this very answer.
    Label,
    /// A hole that cannot be punched costs space, and no redundancy.
    Erase,
}

/// A data program under way.
struct Program {
    id: u64,
    at: PageAddr,
    bytes: Range<u32>,
    page: Page,
    /// The medium was asked; otherwise the die was out of service.
    tried: bool,
}

/// An answer that waits for the record of a loss.
struct Held {
    done: Done,
    /// The program that it answers, if it does.
    program: Option<(PageAddr, Range<u32>)>,
}

/// A medium with parity.
pub struct Flashback {
    inner: Drilled,
    geometry: Geometry,
    check: Box<dyn SlotCheck>,
    dies: Dies,
    stripes: Vec<Stripe>,
    programs: Vec<Program>,
    /// Commands for all dies at once whose failure is another matter.
    special: Vec<(u64, Special)>,
    own: Slab<Own>,
    repairs: Slab<Repair>,
    journal: Journal,
    sync: Option<SyncRun>,
    syncs_waiting: Vec<u64>,
    /// Why parity could not be programmed: the next sync must fail.
    failure: Option<MediaError>,
    /// What the medium finished on the spot.
    early: VecDeque<Done>,
    done: VecDeque<Done>,
    /// Done, once the loss that it depends on is on record.
    held: Vec<Held>,
    /// Programs that their stripes have, but for which no loss could be put on record: their owner believes that they failed.
    unrecorded: Vec<(PageAddr, Range<u32>)>,
    /// The last attempt to put a loss on record failed.
    record_failed: bool,
    /// What the journal held at attach, page by page as [`journal::pages`] counts them; empty when nothing there counts.
    found: Vec<Option<Slice>>,
}

impl Flashback {
    /// Parity over a medium of [`media_geometry`], whose dies stand like this.
    ///
    /// # Panics
    /// The medium has another shape, or the geometry has no parity or more than two.
    pub fn new(inner: Drilled, geometry: Geometry, check: Box<dyn SlotCheck>, states: Vec<DieState>) -> Flashback {
        assert_eq!(*inner.geometry(), media_geometry(&geometry), "the medium has room for the journal");
        assert!((1..=2).contains(&geometry.parity) && geometry.data_dies() <= parity::LANES_MAX);
        assert_eq!(states.len(), geometry.dies as usize);
        let mut flashback = Flashback {
            inner,
            geometry,
            check,
            dies: Dies::new(states, geometry.parity),
            stripes: Vec::new(),
            programs: Vec::new(),
            special: Vec::new(),
            own: Slab::new(),
            repairs: Slab::new(),
            journal: Journal::new(),
            sync: None,
            syncs_waiting: Vec::new(),
            failure: None,
            early: VecDeque::new(),
            done: VecDeque::new(),
            held: Vec::new(),
            unrecorded: Vec::new(),
            record_failed: false,
            found: Vec::new(),
        };
        for die in 0..geometry.dies {
            if !flashback.dies.writes(die) {
                flashback.inner.leave_out(die);
            }
        }
        flashback
    }

    /// What parity stands in front of.
    pub(crate) fn below(&self) -> &Drilled {
        &self.inner
    }

    pub(crate) fn below_mut(&mut self) -> &mut Drilled {
        &mut self.inner
    }

    /// How the dies stand, in order.
    pub fn dies(&self) -> &[DieState] {
        self.dies.states()
    }

    /// Whether the dies stand as was last said to be on record.
    pub fn is_recorded(&self) -> bool {
        self.dies.is_recorded()
    }

    /// Whether a loss is to be put on record now.
    pub fn wants_record(&self) -> bool {
        !self.dies.is_recorded() && (!self.record_failed || !self.held.is_empty())
    }

    /// The loss could not be put on record: what waited for it fails.
    pub fn record_failed(&mut self) {
        self.record_failed = true;
        for Held { done, program } in self.held.drain(..) {
            self.done.push_back(Done { id: done.id, result: Err(MediaError::Lost) });
            self.unrecorded.extend(program);
        }
    }

    /// The device's superblock says that the dies stand like this: what waited for it is answered.
    pub fn recorded(&mut self, states: &[DieState]) {
        self.dies.recorded(states);
        self.record_failed = false;
        if self.dies.is_recorded() {
            self.done.extend(self.held.drain(..).map(|held| held.done));
        }
    }

    /// Lets go of the backing file of a lost die, so that it can be opened to take its own place.
    pub fn let_go_of_lost(&mut self, die: u32) {
        if !self.dies.writes(die) {
            self.inner.let_go(die);
        }
    }

    /// Gives a lost die up for another: it is written from now on, and read once [`Flashback::rebuilt`] says so.
    ///
    /// # Errors
    /// The medium cannot take another die.
    pub fn replace(&mut self, die: u32, backing: Backing) -> Result<(), MediaError> {
        self.inner.replace(die, backing)?;
        self.replaced(die);
        Ok(())
    }

    /// The medium itself has another die in the place of a lost one.
    pub fn replaced(&mut self, die: u32) {
        self.inner.take_back(die);
        self.dies.set(die, DieState::Rebuilding);
    }

    /// A die is out of service from now on, as if it had failed. False when too many are.
    pub fn lose(&mut self, die: u32) -> bool {
        let was_written = self.dies.writes(die);
        if !self.dies.lose(die) {
            tracing::error!(die, "a die failed, and no more may be lost");
            return false;
        }
        if was_written {
            tracing::error!(die, "a die failed: the device goes on without it");
            self.inner.leave_out(die);
        }
        true
    }

    /// A die holds everything that it should.
    pub fn rebuilt(&mut self, die: u32) {
        if self.dies.states()[die as usize] == DieState::Rebuilding {
            self.dies.set(die, DieState::Good);
        }
    }

    /// Whether a block has stripes whose parity is not on media yet.
    pub fn is_open(&self, block: u32) -> bool {
        self.stripes.iter().any(|stripe| stripe.block == block)
    }

    /// Programs a page of a die that is being rebuilt, under an id of its owner's.
    pub fn restore(&mut self, id: u64, at: PageAddr, page: Page) {
        if !self.dies.writes(at.die) {
            self.done.push_back(Done { id, result: Err(MediaError::Lost) });
            return;
        }
        let bytes = 0..self.geometry.page_bytes();
        self.submit_own(Own::Restore { id, die: at.die }, Command::Program { at, bytes, page });
    }

    /// Nothing more is appended to a block: the stripe that stands open is filled up and gets its parity.
    pub fn finish(&mut self, block: u32) {
        let bytes = self.geometry.page_bytes();
        let Some(index) = self.stripes.iter().position(|stripe| stripe.block == block && !stripe.closing) else {
            return;
        };
        let page = self.stripes[index].page;
        let filled = self.stripes[index].lanes.len();
        for lane in filled.saturating_sub(1)..self.geometry.data_dies() as usize {
            if lane == filled {
                // The rest is zeros.
                let blank = self.inner.page();
                // SAFETY: the buffer was just handed out, nobody else knows it.
                unsafe { blank.bytes_mut(0..bytes as usize) }.fill(0);
                self.stripes[index].lanes.resize_with(self.geometry.data_dies() as usize, || Lane {
                    page: blank.clone(),
                    submitted: 0,
                    flying: Vec::new(),
                });
            }
            let at = PageAddr { die: self.geometry.die_of(page, lane as u32), block, page };
            let lane = &mut self.stripes[index].lanes[lane];
            let rest = std::mem::replace(&mut lane.submitted, bytes)..bytes;
            let buffer = lane.page.clone();
            // SAFETY: nothing more is appended, so nobody writes behind what was submitted.
            unsafe { buffer.bytes_mut(rest.start as usize..rest.end as usize) }.fill(0);
            if !rest.is_empty() && self.dies.writes(at.die) {
                self.stripes[index].finals += 1;
                let own = Own::Final { block, page, die: at.die };
                self.submit_own(own, Command::Program { at, bytes: rest, page: buffer });
            }
        }
        self.close(index);
    }

    /// Which of the open stripes this is.
    fn stripe_at(&self, block: u32, page: u32) -> Option<usize> {
        self.stripes.iter().position(|stripe| (stripe.block, stripe.page) == (block, page))
    }

    fn submit_inner(&mut self, id: u64, command: Command) {
        let done = self.inner.submit(id, command);
        self.early.extend(done);
    }

    fn submit_own(&mut self, own: Own, command: Command) -> usize {
        let key = self.own.insert(own);
        self.submit_inner(OWN | key as u64, command);
        key
    }

    /// Answers a command that succeeded because a die is lost, or in spite of it.
    fn answer_in_spite(&mut self, done: Done, program: Option<(PageAddr, Range<u32>)>) {
        match self.dies.is_recorded() {
            true => self.done.push_back(done),
            false => self.held.push(Held { done, program }),
        }
    }

    fn program(&mut self, id: u64, at: PageAddr, bytes: Range<u32>, page: Page) {
        // What was found in the journal is about to be overwritten.
        self.found = Vec::new();
        let lane = self.geometry.lane_of(at.page, at.die) as usize;
        debug_assert!(lane < self.geometry.data_dies() as usize, "parity is not the layer's business");
        let known = self.unrecorded.iter().position(|program| *program == (at, bytes.clone()));
        let known = known.map(|index| self.unrecorded.swap_remove(index)).is_some();
        let program = Program { id, at, bytes: bytes.clone(), page: page.clone(), tried: self.dies.writes(at.die) };
        if known && self.stripe_at(at.block, at.page).is_none() {
            // Its stripe is complete and has its parity; what lacks is the answer.
            return self.begin(program);
        }
        let index = self.stripe_at(at.block, at.page).unwrap_or_else(|| {
            self.stripes.push(Stripe::new(at.block, at.page, self.geometry.slots_per_page));
            self.stripes.len() - 1
        });
        let stripe = &mut self.stripes[index];
        if lane == stripe.lanes.len() {
            stripe.lanes.push(Lane { page, submitted: 0, flying: Vec::new() });
        }
        let entry = &mut stripe.lanes[lane];
        // One that failed is tried again.
        if !entry.flying.contains(&bytes) {
            entry.flying.push(bytes.clone());
        }
        entry.submitted = entry.submitted.max(bytes.end);
        let complete = lane + 1 == self.geometry.data_dies() as usize
            && entry.submitted == self.geometry.page_bytes()
            && !stripe.closing;
        self.begin(program);
        if complete {
            self.close(index);
        }
    }

    /// Asks the medium for a program, unless its die is out of service.
    fn begin(&mut self, program: Program) {
        let (id, at, bytes, page) = (program.id, program.at, program.bytes.clone(), program.page.clone());
        let tried = program.tried;
        self.programs.push(program);
        match tried {
            true => self.submit_inner(id, Command::Program { at, bytes, page }),
            false => self.early.push_back(Done { id, result: Err(MediaError::Lost) }),
        }
    }

    /// Programs the parity of a complete stripe.
    fn close(&mut self, index: usize) {
        let Geometry { parity, .. } = self.geometry;
        let bytes = 0..self.geometry.page_bytes();
        let stripe = &mut self.stripes[index];
        stripe.closing = true;
        let (block, page, lanes) = (stripe.block, stripe.page, stripe.lanes.len());
        for number in 0..parity {
            let die = self.geometry.parity_die(page, number);
            if !self.dies.writes(die) {
                continue;
            }
            let buffer = self.inner.page();
            self.stripes[index].parity(Which::nth(number), lanes, bytes.clone(), &buffer);
            self.stripes[index].finals += 1;
            let command = Command::Program { at: PageAddr { die, block, page }, bytes: bytes.clone(), page: buffer };
            self.submit_own(Own::Final { block, page, die }, command);
        }
        self.drop_if_done(block, page);
    }

    /// Forgets a stripe once all of it is programmed.
    fn drop_if_done(&mut self, block: u32, page: u32) {
        let all_done = |stripe: &Stripe| {
            stripe.closing && stripe.finals == 0 && stripe.lanes.iter().all(|lane| lane.flying.is_empty())
        };
        if let Some(index) = self.stripe_at(block, page).filter(|index| all_done(&self.stripes[*index])) {
            let stripe = self.stripes.swap_remove(index);
            if let Some(seat) = stripe.seat {
                self.journal.retire(seat);
            }
        }
    }

    /// Takes the dies that a command failed on out of service. The result is success when the others carry it.
    fn without(&mut self, result: Result<(), MediaError>, die: Option<u32>) -> Result<(), MediaError> {
        let Err(error) = result else { return Ok(()) };
        let failed = match (&error, die) {
            (MediaError::NoSpace, _) => return Err(error),
            (MediaError::Dies { dies, .. }, _) => dies.clone(),
            (_, Some(die)) => vec![die],
            (_, None) => return Err(error),
        };
        // More than may fail, together: to go on without some of them would help nobody.
        if !self.dies.may_lose(&failed) {
            tracing::error!(dies = ?failed, "dies failed, and so many may not be lost");
            return Err(error);
        }
        let lost = failed.into_iter().all(|die| self.lose(die));
        debug_assert!(lost);
        Ok(())
    }

    /// The medium finished something.
    fn finished(&mut self, done: Done) {
        if done.id >> 56 == OWN >> 56 {
            return self.finished_own((done.id & !OWN) as usize, done.result);
        }
        let program = self.programs.iter().position(|program| program.id == done.id);
        let Some(program) = program.map(|index| self.programs.swap_remove(index)) else {
            return self.finished_other(done);
        };
        if !program.tried && self.dies.writes(program.at.die) {
            // Another die has its place since, and must not be lost for it.
            return self.begin(Program { tried: true, ..program });
        }
        let failed = done.result.is_err();
        let result = self.without(done.result.map(|_| ()), Some(program.at.die));
        if result.is_ok() {
            let PageAddr { block, page, die } = program.at;
            let lane = self.geometry.lane_of(page, die) as usize;
            let stripe = self.stripe_at(block, page);
            if let Some(lane) = stripe.and_then(|index| self.stripes[index].lanes.get_mut(lane)) {
                lane.flying.retain(|flying| *flying != program.bytes);
            }
            self.drop_if_done(block, page);
        }
        let done = Done { id: done.id, result: result.map(|()| None) };
        match failed {
            true => self.answer_in_spite(done, Some((program.at, program.bytes))),
            false => self.done.push_back(done),
        }
    }

    /// Something of the layer's that is no program: a read, or a command on every die.
    fn finished_other(&mut self, done: Done) {
        let special = self.special.iter().position(|(id, _)| *id == done.id).map(|at| self.special.swap_remove(at).1);
        match done.result {
            Err(error @ MediaError::Dies { .. }) if special != Some(Special::Erase) => {
                let done = Done { id: done.id, result: self.without(Err(error), None).map(|()| None) };
                match special {
                    Some(Special::Label) => self.done.push_back(done),
                    _ => self.answer_in_spite(done, None),
                }
            }
            result => self.done.push_back(Done { id: done.id, result }),
        }
    }

    fn finished_own(&mut self, key: usize, result: Result<Option<Slice>, MediaError>) {
        match self.own.try_remove(key) {
            Some(Own::Final { block, page, die }) => {
                let result = self.without(result.map(|_| ()), Some(die));
                self.note_own(key, result);
                if let Some(index) = self.stripe_at(block, page) {
                    self.stripes[index].finals -= 1;
                }
                self.drop_if_done(block, page);
                self.advance_sync();
            }
            Some(Own::Journal { die }) => {
                let result = self.without(result.map(|_| ()), Some(die));
                self.note_own(key, result);
                self.advance_sync();
            }
            Some(Own::Sync) => self.synced(result.map(|_| ())),
            Some(Own::Part { repair, part }) => self.part_read(repair, part, result.ok().flatten()),
            Some(Own::Restore { id, die }) => {
                let result = match result {
                    Ok(_) => Ok(None),
                    failed => self.without(failed.map(|_| ()), Some(die)).and(Err(MediaError::Lost)),
                };
                self.done.push_back(Done { id, result });
            }
            None => debug_assert!(false, "an id that was never given"),
        }
    }
}

impl Media for Flashback {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn page(&mut self) -> Page {
        self.inner.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        match command {
            Command::Program { at, bytes, page } => self.program(id, at, bytes, page),
            Command::Read { at, .. } if !self.dies.reads(at.die) => {
                return Some(Done { id, result: Err(MediaError::Lost) });
            }
            Command::Read { .. } => return self.inner.submit(id, command),
            Command::Rebuild { at, bytes, min_seq } => self.repair(id, at, bytes, min_seq),
            Command::Sync => self.begin_sync(id),
            Command::WriteLabel { .. } => {
                self.special.push((id, Special::Label));
                self.submit_inner(id, command);
            }
            Command::Erase { .. } => {
                self.special.push((id, Special::Erase));
                self.submit_inner(id, command);
            }
            Command::Allocate { .. } | Command::Fill { .. } => self.submit_inner(id, command),
        }
        None
    }

    fn poll(&mut self) -> Option<Done> {
        loop {
            if let Some(done) = self.done.pop_front() {
                return Some(done);
            }
            let done = self.early.pop_front().or_else(|| self.inner.poll())?;
            self.finished(done);
        }
    }

    fn wait(&mut self) {
        if self.done.is_empty() && self.early.is_empty() {
            self.inner.wait();
        }
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        self.inner.read_label(die, copy)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.inner.free_bytes()
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        Some(&mut *self.inner)
    }

    fn leave_out(&mut self, die: u32) {
        self.lose(die);
    }
}
