//! What goes on beside requests, stripe by stripe: rebuilding a die, and scrubbing, which reads everything and checks it.
//!
//! Whoever drives the device says when the next step may begin ([`Core::background`]); the steps end like any other media command.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ftl::{LebId, LebState, Optimised, Slot, Stream};
use media::{Command, DieState, Done, PageAddr, Slice};

use super::Core;

/// Marks the ids of a job's commands; the lowest bits of a read's are the lane.
const JOB: u64 = 0x7d << 56;
/// Of the scrub's commands.
const SCRUB: u64 = JOB | 1 << 48;
const RESTORE: u64 = JOB | 1 << 32;
const SYNC: u64 = JOB | 2 << 32;
/// Of a scrub's read of one slot, whose number in its page stands above the lane.
const PIECE: u64 = 4 << 32;

/// Whether a command belongs to a job.
pub(crate) fn is_job(id: u64) -> bool {
    id >> 56 == JOB >> 56
}

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Write everything that a die should hold.
    Rebuild {
        /// Which.
        die: u32,
        /// What was opened from this number on was written there from the start.
        since: u64,
    },
    /// Read everything.
    Scrub,
}

/// A job's way through the LEBs.
struct Job {
    purpose: Purpose,
    leb: LebId,
    page: u32,
    /// The LEB may not be erased.
    pinned: bool,
    left: u32,
    /// What was read of the stripe: data lanes first, then parity.
    parts: Vec<Option<Slice>>,
    /// What was read slot by slot, of pages that could not be read as a whole.
    pieces: BTreeMap<Slot, Slice>,
    /// It ends once its step is done.
    ending: bool,
    /// Its last step failed, and is tried again.
    stuck: bool,
}

/// Sectors that are brought into order in one step, bytes.
const WINDOW: u64 = 1 << 20;
/// Passes over the device: what was too new to be moved, or on its way elsewhere, is moved by the second.
const PASSES: u32 = 2;

/// Bringing a device into order, from its first sector to its last.
struct Order {
    lba: u64,
    pass: u32,
    /// Sectors that this pass left where they were.
    left: u64,
    /// Bytes a second.
    rate: u64,
}

/// How it stands with what goes on beside requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// There is nothing to do.
    Nothing,
    /// A step is under way.
    GoesOn,
    /// A step is under way, and the next one is to begin so much later: what it does is bounded to a rate.
    Slowly(Duration),
    /// The last step failed, for want of room as a rule; the same one begins again. Better not at once.
    Stuck,
}

#[derive(Default)]
pub(crate) struct Jobs {
    rebuild: Option<Job>,
    scrub: Option<Job>,
    order: Option<Order>,
    /// Times that it came to its end since attach.
    pub optimised: u64,
    /// What scrubs found since attach: live sectors checked, and sectors or stripes that were wrong.
    pub scrubbed_sectors: u64,
    pub scrub_errors: u64,
    /// Scrubs that came to their end since attach.
    pub scrubs: u64,
}

impl Jobs {
    /// The die that is being rebuilt, and how much of the work is done.
    pub fn rebuilding(&self, lebs: u32) -> Option<(u32, f64)> {
        let job = self.rebuild.as_ref()?;
        let Purpose::Rebuild { die, .. } = job.purpose else { return None };
        Some((die, 100.0 * f64::from(job.leb) / f64::from(lebs)))
    }

    /// How much of a scrub is done.
    pub fn scrubbing(&self, lebs: u32) -> Option<f64> {
        let job = self.scrub.as_ref().filter(|job| !job.ending)?;
        Some(100.0 * f64::from(job.leb) / f64::from(lebs))
    }

    /// How much of bringing the device into order is done.
    pub fn optimising(&self, sectors: u64) -> Option<f64> {
        let order = self.order.as_ref()?;
        let done = f64::from(order.pass) * sectors as f64 + order.lba as f64;
        Some(100.0 * done / (f64::from(PASSES) * sectors as f64))
    }

    /// Whether a step is under way.
    pub fn is_busy(&self) -> bool {
        [&self.rebuild, &self.scrub].into_iter().flatten().any(|job| job.left > 0)
    }

    fn of(&mut self, scrub: bool) -> &mut Option<Job> {
        if scrub { &mut self.scrub } else { &mut self.rebuild }
    }
}

impl Job {
    fn new(purpose: Purpose, leb: LebId) -> Job {
        let (parts, pieces) = (Vec::new(), BTreeMap::new());
        Job { purpose, leb, page: 0, pinned: false, left: 0, parts, pieces, ending: false, stuck: false }
    }
}

impl Core {
    /// Goes on rebuilding a die, if one is to be rebuilt. For after an attach.
    pub fn resume_jobs(&mut self) {
        let die = self.superblock.dies.iter().position(|state| *state == DieState::Rebuilding);
        if let Some(die) = die {
            self.begin_rebuild(die as u32);
        }
        if let Some(leb) = self.superblock.scrub_position.checked_sub(1) {
            self.begin_scrub(leb);
        }
    }

    /// Rebuilds what a die should hold; from now on it is written like the others.
    pub fn begin_rebuild(&mut self, die: u32) {
        // What is open lacks that die in its first part; what is opened from now on does not.
        self.ftl.close_open_lebs();
        self.carry_out(&[]);
        let since = self.ftl.next_seq();
        self.jobs.rebuild = Some(Job::new(Purpose::Rebuild { die, since }, 0));
    }

    /// Reads and checks everything, from a LEB on. One that is under way goes on.
    pub fn begin_scrub(&mut self, leb: LebId) {
        if self.jobs.scrub.is_none() && leb == 0 {
            // What was written until now is to be read, too.
            self.ftl.close_open_lebs();
            self.carry_out(&[]);
        }
        let leb = leb.min(self.ftl.lebs().len());
        self.jobs.scrub.get_or_insert_with(|| Job::new(Purpose::Scrub, leb)).ending = false;
    }

    /// Ends a scrub where it stands. A step under way is finished, and not followed by another.
    pub fn end_scrub(&mut self) {
        self.superblock.scrub_position = 0;
        if let Some(mut job) = self.jobs.scrub.take() {
            job.ending = true;
            self.jobs.scrub = self.goes_on(&mut job).then_some(job);
        }
    }

    /// Begins to bring the device into order at so many bytes a second, or goes on at that rate.
    pub fn begin_to_optimise(&mut self, rate: u64) {
        if self.jobs.order.is_none() {
            self.ftl.begin_to_optimise();
            self.carry_out(&[]);
        }
        self.jobs.order.get_or_insert(Order { lba: 0, pass: 0, left: 0, rate }).rate = rate.max(1);
    }

    /// Ends that where it stands: whoever begins again passes by what is in order.
    pub fn end_optimise(&mut self) {
        self.jobs.order = None;
    }

    /// Begins to bring the next window into order that is not.
    fn order_next(&mut self) -> Background {
        let (sectors, sector) = (self.ftl.map().sectors(), self.sector as u64);
        let window = (WINDOW / sector).min(sectors / 8).max(1);
        let Some(order) = &mut self.jobs.order else { return Background::Nothing };
        let pause = Duration::from_secs_f64((window * sector) as f64 / order.rate as f64);
        // Looking costs little; requests wait meanwhile all the same.
        for _ in 0..16 {
            if order.lba >= sectors {
                order.pass += 1;
                if order.pass == PASSES || order.left == 0 {
                    self.jobs.order = None;
                    self.jobs.optimised += 1;
                    return Background::GoesOn;
                }
                (order.lba, order.left) = (0, 0);
                self.ftl.begin_to_optimise();
                return Background::Slowly(pause);
            }
            match self.ftl.optimise(order.lba, window as u32) {
                Optimised::NotNow => return Background::Slowly(pause),
                Optimised::InOrder => order.lba += window,
                Optimised::Begun { left } => {
                    order.lba += window;
                    order.left += u64::from(left);
                    return Background::Slowly(pause);
                }
            }
        }
        Background::GoesOn
    }

    /// Begins the next step of what goes on beside requests.
    pub fn background(&mut self) -> Background {
        if self.jobs.rebuild.is_none() && self.jobs.scrub.is_none() {
            let state = self.order_next();
            self.carry_out(&[]);
            return state;
        }
        // A rebuild comes first.
        let scrub = self.jobs.rebuild.is_none();
        let Some(mut job) = self.jobs.of(scrub).take() else { return Background::Nothing };
        let state = if job.stuck { Background::Stuck } else { Background::GoesOn };
        let goes_on = job.left > 0 || self.step(&mut job);
        *self.jobs.of(scrub) = goes_on.then_some(job);
        self.carry_out(&[]);
        state
    }

    /// Whether a job has more to do; one that was to end after its step ends here.
    fn goes_on(&mut self, job: &mut Job) -> bool {
        let over = job.ending && job.left == 0;
        if over {
            self.leave_leb(job);
        }
        !over
    }

    /// Ends every job where it stands, once its step is done: an attach goes on with them.
    pub fn leave_jobs(&mut self) {
        self.jobs.order = None;
        for scrub in [false, true] {
            if let Some(mut job) = self.jobs.of(scrub).take() {
                self.leave_leb(&mut job);
            }
        }
    }

    /// Whether everything that goes on beside requests waits for [`Core::background`].
    pub fn has_jobs(&self) -> bool {
        self.jobs.rebuild.is_some() || self.jobs.scrub.is_some() || self.jobs.order.is_some()
    }

    /// Begins the next stripe. False at the end.
    fn step(&mut self, job: &mut Job) -> bool {
        if let Purpose::Rebuild { die, .. } = job.purpose
            && self.media.flashback().is_some_and(|flashback| flashback.dies()[die as usize] == DieState::Lost)
        {
            // It failed again. The superblock may still be on its way to say that it failed before.
            self.leave_leb(job);
            return false;
        }
        while job.leb < self.ftl.lebs().len() {
            if !job.pinned {
                let entry = &self.ftl.lebs()[job.leb];
                let closed = matches!(entry.state, LebState::Closed | LebState::Emptied);
                let on_its_way =
                    entry.buffered > 0 || self.media.flashback().is_some_and(|flashback| flashback.is_open(job.leb));
                if closed && on_its_way {
                    // The next call finds it on media.
                    return true;
                }
                let whole =
                    matches!(job.purpose, Purpose::Rebuild { since, .. } if self.ftl.lebs()[job.leb].opened >= since);
                if whole || !self.ftl.pin(job.leb) {
                    job.leb += 1;
                    continue;
                }
                (job.pinned, job.page) = (true, 0);
            }
            while job.page < self.ftl.config().geometry.pages_per_block {
                if self.is_needed(job) {
                    self.read_stripe(job);
                    return true;
                }
                job.page += 1;
            }
            self.leave_leb(job);
            job.leb += 1;
            self.note_scrub(job);
        }
        self.leave_leb(job);
        match job.purpose {
            Purpose::Rebuild { .. } => {
                // What was restored must be durable before it is believed.
                job.left = 1;
                self.media_submit(SYNC, Command::Sync);
                true
            }
            Purpose::Scrub => {
                self.superblock.scrub_position = 0;
                self.jobs.scrubs += 1;
                false
            }
        }
    }

    fn note_scrub(&mut self, job: &Job) {
        if job.purpose == Purpose::Scrub {
            self.superblock.scrub_position = job.leb + 1;
        }
    }

    fn leave_leb(&mut self, job: &mut Job) {
        if std::mem::take(&mut job.pinned) {
            self.ftl.unpin(job.leb);
        }
    }

    /// Whether anything in the job's stripe counts: live sectors, or a log that recovery may want. A rebuild takes whatever was written:
    /// what is not live any more may still be under way to a client, and is what a power cut brings back as long as its
    /// successor is not durable.
    fn is_needed(&self, job: &Job) -> bool {
        let (leb, page) = (job.leb, job.page);
        if job.purpose != Purpose::Scrub {
            return true;
        }
        let entry = &self.ftl.lebs()[leb];
        if entry.stream == Stream::Checkpoint || entry.closed > self.superblock.anchor.begin {
            return true;
        }
        let geometry = self.ftl.config().geometry;
        let slots = geometry.data_dies() * geometry.slots_per_page;
        let first = geometry.lane_slot(leb, page, 0);
        (first..first + slots).any(|slot| self.ftl.lebs().is_live(slot))
    }

    fn read_stripe(&mut self, job: &mut Job) {
        let geometry = self.ftl.config().geometry;
        job.parts = (0..geometry.dies).map(|_| None).collect();
        let base = if job.purpose == Purpose::Scrub { SCRUB } else { JOB };
        // An emulated card's parity holds nothing.
        let lanes = if self.superblock.dies.is_empty() { geometry.data_dies() } else { geometry.dies };
        // What is done on the spot must find the job in its place.
        let reads: Vec<(u64, PageAddr)> = (0..lanes)
            .map(|lane| (lane, geometry.die_of(job.page, lane)))
            .filter(|(_, die)| self.serves(*die))
            .map(|(lane, die)| (base | u64::from(lane), PageAddr { die, block: job.leb, page: job.page }))
            .collect();
        job.left = reads.len() as u32;
        for (id, at) in reads {
            self.in_flight += 1;
            let command = Command::Read { at, bytes: 0..geometry.page_bytes() };
            if let Some(done) = self.media.submit(id, command) {
                self.jobs_early.push(done);
            }
        }
    }

    /// Reads what is live in pages that could not be read as a whole slot by slot: a medium fails a read for a single bad sector in it.
    fn read_pieces(&mut self, job: &mut Job) {
        if job.purpose != Purpose::Scrub {
            return;
        }
        let geometry = self.ftl.config().geometry;
        let slot_bytes = geometry.slot_bytes();
        let mut reads = Vec::new();
        for lane in (0..geometry.data_dies()).filter(|lane| job.parts[*lane as usize].is_none()) {
            let at = PageAddr { die: geometry.die_of(job.page, lane), block: job.leb, page: job.page };
            let first = geometry.lane_slot(job.leb, job.page, lane);
            let live = |slot: &u32| self.serves(at.die) && self.ftl.lebs().is_live(first + slot);
            for slot in (0..geometry.slots_per_page).filter(live) {
                reads.push((SCRUB | PIECE | u64::from(slot) << 16 | u64::from(lane), at, slot * slot_bytes));
            }
        }
        job.left = reads.len() as u32;
        for (id, at, from) in reads {
            self.in_flight += 1;
            if let Some(done) = self.media.submit(id, Command::Read { at, bytes: from..from + slot_bytes }) {
                self.jobs_early.push(done);
            }
        }
    }

    /// A job's command is done.
    pub fn job_done(&mut self, done: Done) {
        let scrub = done.id & SCRUB == SCRUB;
        let Some(mut job) = self.jobs.of(scrub).take() else { return };
        job.left -= 1;
        let goes_on = match done.id {
            SYNC => self.rebuilt(&job, done),
            RESTORE => {
                // A full store may get room again; a die that failed ends the job with the next step.
                let was_stuck = std::mem::replace(&mut job.stuck, done.result.is_err());
                match done.result {
                    Ok(_) => job.page += 1,
                    Err(_) if was_stuck => {}
                    Err(error) => {
                        tracing::error!(leb = job.leb, page = job.page, %error, "a page could not be restored: trying again");
                    }
                }
                true
            }
            id => {
                let (lane, read) = ((id & 0xffff) as u32, done.result.ok().flatten());
                if id & PIECE == 0 {
                    job.parts[lane as usize] = read;
                    if job.left == 0 {
                        self.read_pieces(&mut job);
                    }
                } else if let Some(piece) = read {
                    let slot = self.ftl.config().geometry.lane_slot(job.leb, job.page, lane) + (id as u32 >> 16);
                    job.pieces.insert(slot, piece);
                }
                if job.left == 0 {
                    self.stripe_read(&mut job);
                    job.pieces.clear();
                }
                true
            }
        };
        let goes_on = goes_on && self.goes_on(&mut job);
        *self.jobs.of(scrub) = goes_on.then_some(job);
    }

    fn rebuilt(&mut self, job: &Job, done: Done) -> bool {
        let Purpose::Rebuild { die, .. } = job.purpose else { return false };
        match (done.result, self.media.flashback()) {
            (Ok(_), Some(flashback)) => flashback.rebuilt(die),
            (Err(error), _) => tracing::error!(die, %error, "what was restored could not be made durable"),
            (Ok(_), None) => {}
        }
        false
    }

    /// All pages of a stripe were read.
    fn stripe_read(&mut self, job: &mut Job) {
        let geometry = self.ftl.config().geometry;
        let parts = std::mem::take(&mut job.parts);
        match job.purpose {
            Purpose::Rebuild { die, .. } => {
                let at = PageAddr { die, block: job.leb, page: job.page };
                let lebs = self.ftl.lebs();
                let opened = lebs[job.leb].opened;
                let Some(flashback) = self.media.flashback() else { return };
                match flashback.solve_page(at, &parts, opened, |slot| lebs.is_live(slot)) {
                    Some(page) => {
                        job.left = 1;
                        self.in_flight += 1;
                        flashback.restore(RESTORE, at, page);
                    }
                    None => {
                        tracing::error!(?at, "a page cannot be rebuilt: too much of its stripe is missing");
                        job.page += 1;
                    }
                }
            }
            Purpose::Scrub => {
                let mut wrong = false;
                let mut hopeless = BTreeSet::new();
                for lane in 0..geometry.data_dies() {
                    let at = PageAddr { die: geometry.die_of(job.page, lane), block: job.leb, page: job.page };
                    wrong |= self.check_lane(at, lane, (&parts, &job.pieces), &mut hopeless);
                }
                self.healing.note_slots(&self.ftl, &hopeless);
                // What the block held in an earlier life is of no account.
                let counts = !wrong && self.is_written(job.leb, job.page, &parts);
                let flashback = self.media.flashback();
                if counts && flashback.is_some_and(|flashback| !flashback.parity_holds(&parts)) {
                    tracing::warn!(leb = job.leb, page = job.page, "a stripe's parity is not that of its data");
                    self.jobs.scrub_errors += 1;
                    wrong = true;
                }
                if wrong && geometry.parity > 0 {
                    self.ftl.evacuate(job.leb);
                }
                job.page += 1;
            }
        }
    }

    /// Whether anything in a stripe was written since its LEB was opened.
    fn is_written(&self, leb: LebId, page: u32, parts: &[Option<Slice>]) -> bool {
        let geometry = self.ftl.config().geometry;
        let opened = self.ftl.lebs()[leb].opened;
        let slots = geometry.slots_per_page;
        (0..geometry.data_dies()).zip(parts).any(|(lane, part)| {
            let first = geometry.lane_slot(leb, page, lane);
            let pages = part.iter().flat_map(|part| part.bytes().chunks_exact(self.checker.slot_bytes()));
            (first..first + slots)
                .zip(pages)
                .any(|(slot, bytes)| self.checker.check(bytes, slot).is_some_and(|header| header.seq >= opened))
        })
    }

    /// Checks what is live in a data page. Returns whether something is wrong; slots that cannot be had go to `hopeless`.
    fn check_lane(
        &mut self,
        at: PageAddr,
        lane: u32,
        (parts, pieces): (&[Option<Slice>], &BTreeMap<Slot, Slice>),
        hopeless: &mut BTreeSet<Slot>,
    ) -> bool {
        let geometry = self.ftl.config().geometry;
        let first = geometry.lane_slot(at.block, at.page, lane);
        if !self.serves(at.die) {
            return false;
        }
        let live: Vec<Slot> =
            (first..first + geometry.slots_per_page).filter(|slot| self.ftl.lebs().is_live(*slot)).collect();
        let opened = self.ftl.lebs()[at.block].opened;
        let slot_bytes = self.checker.slot_bytes();
        let mut wrong = false;
        for slot in live {
            self.jobs.scrubbed_sectors += 1;
            let i = slot - first;
            let start = i as usize * slot_bytes;
            let bytes = match &parts[lane as usize] {
                Some(part) => Some(&part.bytes()[start..start + slot_bytes]),
                None => pieces.get(&slot).map(Slice::bytes),
            };
            let header = bytes.and_then(|bytes| self.checker.check(bytes, slot));
            let right = header.is_some_and(|header| {
                header.kind.is_sector() && header.seq >= opened && self.ftl.holds(header.lba, slot)
            });
            if right {
                // It may have failed before, and have been put right below.
                header.iter().for_each(|header| self.healing.forget(header.lba..header.lba + 1));
                continue;
            }
            wrong = true;
            self.jobs.scrub_errors += 1;
            let solvable = self.media.flashback().is_some_and(|flashback| flashback.can_solve(at, i, opened, parts));
            tracing::warn!(slot, solvable, "a sector failed its check in a scrub");
            if !solvable {
                hopeless.insert(slot);
            }
        }
        wrong
    }
}
