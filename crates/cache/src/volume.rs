//! A host's requests: what follows from each is in `read.rs` and `change.rs`, and what goes on by itself in `back.rs` and `marks.rs`.

use std::collections::{BTreeMap, VecDeque};

use array::{Answer, Command, What};
use device::{Completion, Io, IoError, Submitted};

use crate::back::Back;
use crate::busy::Busy;
use crate::change::{Change, Effect};
use crate::estimate::{Estimates, Estimator};
use crate::header::{Header, Mode};
use crate::layout::{BEHIND, CACHE, Layout, Range};
use crate::marks::Marks;
use crate::open::Opening;
use crate::read::Read;
use crate::sectors::Sectors;
use crate::status::{Condition, Failure, Status};

/// Requests under way at most, of the host and of the volume itself.
const DEPTH: usize = 512;

/// What a volume is opened with.
#[derive(Clone, Debug)]
pub struct Config {
    /// As it stands on the cache device.
    pub header: Header,
    /// Which of the cache device's headers that is.
    pub number: u64,
    /// The largest request that both members take, sectors; the cache device takes one more for the trims in a batch.
    pub max_request: u32,
    /// Sectors that the cache device has room for.
    pub room: u64,
    /// Sectors that may be dirty at most.
    pub dirty_limit: u64,
    /// The store behind is not what it was when the volume was stopped, or nobody can tell: what is cached of it does not count.
    pub changed: bool,
    /// The cache device finds out what a read gives when it takes it. Otherwise a read goes to it in three steps instead of one.
    pub looks_at_once: bool,
}

/// Where it is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Opening,
    Active,
    /// The store behind is back; what was under way without it comes to its end first.
    Returning,
    Stopping,
    Failed(Failure),
    Stopped,
}

/// What a member was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub job: u64,
    pub member: usize,
    /// Which step or piece of the job it is.
    pub at: usize,
}

/// What parts belong to.
#[derive(Debug)]
pub(crate) enum Job {
    Read(Read),
    Change(Change),
    Flush(Flush),
    /// A copy is written; its number among what is under way.
    Fill(u64, Range),
    Back,
    Release(u64),
    Marks,
    Open,
}

/// A flush of the host.
#[derive(Debug)]
pub(crate) struct Flush {
    tag: u64,
    /// Answers that are missing.
    left: u32,
    error: Option<IoError>,
    /// Changes of the store behind that it covers.
    covers: u64,
}

pub(crate) type Outcome = Result<Answer, IoError>;

/// A volume.
#[derive(Debug)]
pub struct Volume {
    pub(crate) header: Header,
    pub(crate) number: u64,
    pub(crate) max_request: u32,
    pub(crate) dirty_limit: u64,
    pub(crate) changed: bool,
    pub(crate) looks_at_once: bool,
    pub(crate) life: Life,
    /// Whether each member is there.
    pub(crate) present: [bool; 2],
    pub(crate) jobs: BTreeMap<u64, Job>,
    parts: BTreeMap<u64, Part>,
    next: u64,
    commands: VecDeque<Command>,
    pub(crate) done: VecDeque<Completion>,
    pub(crate) busy: Busy,
    /// Sectors that the cache device holds, and those of them that are not behind yet.
    pub(crate) held: Sectors,
    pub(crate) dirty: Sectors,
    pub(crate) back: Back,
    pub(crate) marks: Marks,
    pub(crate) opening: Opening,
    /// It is opened anew since the store behind is back.
    pub(crate) returned: bool,
    /// The store behind went with changes that no flush covered.
    lost_changes: bool,
    pub(crate) status: Status,
    pub(crate) estimator: Estimator,
}

impl Volume {
    /// Opens a volume: it takes requests when [`Volume::is_ready`] says so.
    pub fn open(config: Config) -> Volume {
        let Config { header, number, max_request, room, dirty_limit, changed, looks_at_once } = config;
        let status = Status {
            mode: header.mode,
            condition: Condition::Opening,
            failure: None,
            hit_sectors: 0,
            missed_sectors: 0,
            filled_sectors: 0,
            changed_sectors: 0,
            written_back_sectors: 0,
            dirty_sectors: 0,
            held_sectors: 0,
            dirty_limit,
            marked_regions: 0,
            dropped_regions: 0,
            failed_copies: 0,
        };
        let mut volume = Volume {
            marks: Marks::new(header.layout.regions()),
            number,
            estimator: Estimator::new(room, dirty_limit, header.sector_bytes),
            header,
            max_request,
            // The largest request must find room.
            dirty_limit: dirty_limit.max(4 * u64::from(max_request)),
            changed,
            looks_at_once,
            life: Life::Opening,
            present: [true; 2],
            jobs: BTreeMap::new(),
            parts: BTreeMap::new(),
            next: 0,
            commands: VecDeque::new(),
            done: VecDeque::new(),
            busy: Busy::default(),
            held: Sectors::default(),
            dirty: Sectors::default(),
            back: Back::default(),
            opening: Opening::default(),
            returned: false,
            lost_changes: false,
            status,
        };
        volume.open_step();
        volume
    }

    /// As it stands on the cache device.
    pub fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn layout(&self) -> Layout {
        self.header.layout
    }

    /// Its sectors.
    pub fn sectors(&self) -> u64 {
        self.header.layout.sectors
    }

    /// The largest request, bytes.
    pub fn max_request_bytes(&self) -> u32 {
        self.max_request * self.header.sector_bytes
    }

    /// Bytes of so many sectors.
    pub(crate) fn bytes(&self, sectors: u64) -> usize {
        sectors as usize * self.header.sector_bytes as usize
    }

    /// Whether it takes requests.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn is_ready(&self) -> Result<bool, Failure> {
        match self.life {
            Life::Opening => Ok(false),
            Life::Failed(failure) => Err(failure),
            Life::Active | Life::Returning | Life::Stopping | Life::Stopped => Ok(true),
        }
    }

    /// Takes a request under a tag of the caller's choice, as a device does.
    pub fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        match self.life {
            Life::Opening | Life::Returning | Life::Stopping => return Submitted::Busy(io),
            Life::Failed(_) | Life::Stopped => return Submitted::Done(Err(IoError::Media)),
            Life::Active => {}
        }
        match self.check(&io) {
            Ok(true) => {}
            Ok(false) => {
                let buf = if let Io::Read { buf, .. } = io { Some(buf) } else { None };
                return Submitted::Done(Ok(buf));
            }
            Err(error) => return Submitted::Done(Err(error)),
        }
        if self.jobs.len() >= DEPTH {
            return Submitted::Busy(io);
        }
        let (sectors, effect) = match io {
            Io::Read { lba, buf } => {
                self.read(tag, lba, buf);
                return Submitted::Pending;
            }
            Io::Flush => {
                self.flush(tag);
                return Submitted::Pending;
            }
            Io::Write { lba, data, fua } => {
                let sectors = lba..lba + self.count(data.len());
                if self.can_never_hold(&sectors) {
                    return Submitted::Done(Err(IoError::NoSpace));
                }
                if self.must_wait(&sectors, true) {
                    return Submitted::Busy(io);
                }
                (sectors, Effect::Write { data: data.into(), fua })
            }
            Io::Trim { lba, count, fua } | Io::WriteZeroes { lba, count, fua, allocate: false } => {
                let sectors = lba..lba + count;
                if self.must_wait(&sectors, false) {
                    return Submitted::Busy(io);
                }
                (sectors, Effect::Zeroes { fua })
            }
            Io::WriteZeroes { lba, count, fua, allocate: true } => {
                let sectors = lba..lba + count;
                if self.can_never_hold(&sectors) {
                    return Submitted::Done(Err(IoError::NoSpace));
                }
                if self.must_wait(&sectors, true) {
                    return Submitted::Busy(io);
                }
                (sectors, Effect::Write { data: vec![0; self.bytes(count)].into(), fua })
            }
            Io::ReadSnapshot { .. } | Io::Batch { .. } => unreachable!("refused by the check"),
        };
        self.change(tag, sectors, effect);
        Submitted::Pending
    }

    fn count(&self, bytes: usize) -> u64 {
        bytes as u64 / u64::from(self.header.sector_bytes)
    }

    /// Whether a request is to be carried out; `false` where there is nothing to do.
    fn check(&self, io: &Io) -> Result<bool, IoError> {
        let whole = |bytes: usize| match (bytes as u64).is_multiple_of(u64::from(self.header.sector_bytes)) {
            true => Ok(self.count(bytes)),
            false => Err(IoError::OutOfRange),
        };
        let (lba, count, sized) = match io {
            Io::Flush => return Ok(true),
            Io::ReadSnapshot { .. } => return Err(IoError::NoSnapshot),
            // The store behind may not know batches.
            Io::Batch { .. } => return Err(IoError::Scattered),
            Io::Read { lba, buf } => (*lba, whole(buf.len())?, false),
            Io::Write { lba, data, .. } => (*lba, whole(data.len())?, true),
            Io::Trim { lba, count, .. } => (*lba, *count, false),
            Io::WriteZeroes { lba, count, allocate, .. } => (*lba, *count, *allocate),
        };
        if lba.checked_add(count).is_none_or(|end| end > self.sectors()) {
            return Err(IoError::OutOfRange);
        }
        if sized && count > u64::from(self.max_request) {
            return Err(IoError::TooLarge);
        }
        Ok(count > 0)
    }

    fn flush(&mut self, tag: u64) {
        if std::mem::take(&mut self.lost_changes) {
            return self.answer(tag, Err(IoError::Media));
        }
        // With write-back the store behind has nothing that a flush must cover but trims.
        let cache = self.header.mode == Mode::Back;
        let behind = !cache || self.back.behind_is_volatile();
        let left = u32::from(behind) + u32::from(cache);
        let job = self.job(Job::Flush(Flush { tag, left, error: None, covers: self.back.direct }));
        if behind {
            self.ask(job, 0, BEHIND, What::Flush);
        }
        if cache {
            self.ask(job, 0, CACHE, What::Flush);
        }
    }

    fn flush_part(&mut self, job: u64, outcome: &Outcome) {
        let Some(Job::Flush(flush)) = self.jobs.get_mut(&job) else { return };
        if let Err(failed) = outcome {
            flush.error = Some(*failed);
        }
        flush.left -= 1;
        if flush.left == 0
            && let Some(Job::Flush(Flush { tag, error, covers, .. })) = self.jobs.remove(&job)
        {
            if error.is_none() {
                self.back.direct_flushed = self.back.direct_flushed.max(covers);
            }
            self.answer(tag, error.map_or(Ok(None), Err));
        }
    }

    pub(crate) fn answer(&mut self, tag: u64, result: Result<Option<Vec<u8>>, IoError>) {
        self.done.push_back(Completion { tag, result });
    }

    /// Begins a job.
    pub(crate) fn job(&mut self, job: Job) -> u64 {
        self.next += 1;
        self.jobs.insert(self.next, job);
        self.next
    }

    /// Asks a member for a part of a job. One that is gone refuses.
    pub(crate) fn ask(&mut self, job: u64, at: usize, member: usize, what: What) {
        self.next += 1;
        self.parts.insert(self.next, Part { job, member, at });
        self.commands.push_back(Command { member, tag: self.next, what });
    }

    /// The next request to a member.
    pub fn next_command(&mut self) -> Option<Command> {
        while let Some(command) = self.commands.pop_front() {
            if self.present[command.member] {
                return Some(command);
            }
            self.finish(command.tag, Err(IoError::Media));
        }
        None
    }

    /// The next answer to the host.
    pub fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    /// Whether nothing is under way and no answer waits.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.done.is_empty() && self.commands.is_empty()
    }

    /// A member has answered.
    pub fn finish(&mut self, tag: u64, outcome: Result<Answer, IoError>) {
        let Some(Part { job, member, at }) = self.parts.remove(&tag) else { return };
        match self.jobs.get(&job) {
            None => {}
            Some(Job::Read(_)) => self.read_part(job, member, at, outcome),
            Some(Job::Change(_)) => self.change_part(job, member, &outcome),
            Some(Job::Flush(_)) => self.flush_part(job, &outcome),
            Some(Job::Fill(..)) => self.fill_done(job, &outcome),
            Some(Job::Back) => self.back_part(job, member, at, outcome),
            Some(Job::Release(_)) => self.release_part(job, &outcome),
            Some(Job::Marks) => self.marks_part(job, &outcome),
            Some(Job::Open) => self.open_part(job, member, &outcome),
        }
        self.go_on();
    }

    /// What goes on by itself.
    pub(crate) fn go_on(&mut self) {
        match self.life {
            Life::Active | Life::Stopping => {
                self.marks_go_on();
                self.back_go_on();
                if self.life == Life::Stopping {
                    self.stop_step();
                }
            }
            Life::Returning => {
                self.marks_go_on();
                self.back_go_on();
                if self.jobs.is_empty() {
                    self.open_anew();
                }
            }
            Life::Opening => self.drain_step(),
            Life::Failed(_) | Life::Stopped => {}
        }
    }

    /// A member is gone: it answers nothing any more.
    pub fn lost(&mut self, member: usize) {
        if member == BEHIND && self.life == Life::Returning {
            self.life = Life::Active;
        }
        if !std::mem::replace(&mut self.present[member], false) {
            return;
        }
        let asked: Vec<u64> =
            self.parts.iter().filter(|(_, part)| part.member == member).map(|(tag, _)| *tag).collect();
        if member == CACHE {
            // What it holds is needed, and what it has copied can be kept true no longer.
            self.fail(Failure::Cache);
        }
        self.commands.retain(|command| command.member != member);
        for tag in asked {
            self.finish(tag, Err(IoError::Media));
        }
    }

    /// The store behind is back after [`Volume::lost`]. What it was asked for just before it went may have been lost, so the volume is
    /// opened anew while its host waits; and where that may be something which was answered, the host's next flush fails, once.
    /// Whether it was waited for.
    pub fn behind_returns(&mut self) -> bool {
        let waits = self.life == Life::Active && !self.present[BEHIND];
        if waits {
            self.life = Life::Returning;
            self.go_on();
        }
        waits
    }

    fn open_anew(&mut self) {
        self.lost_changes |= self.back.behind_is_volatile();
        self.marks = Marks::new(self.layout().regions());
        (self.held, self.dirty, self.back) = Default::default();
        self.present[BEHIND] = true;
        (self.life, self.opening, self.changed, self.returned) = (Life::Opening, Opening::default(), false, true);
        self.open_step();
    }

    /// Serves nobody any more: what the host waits for fails.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if matches!(self.life, Life::Failed(_) | Life::Stopped) {
            return;
        }
        self.life = Life::Failed(failure);
        self.parts.clear();
        self.commands.clear();
        for job in std::mem::take(&mut self.jobs).into_values() {
            match job {
                Job::Read(Read { tag, .. }) | Job::Change(Change { tag, .. }) | Job::Flush(Flush { tag, .. }) => {
                    self.answer(tag, Err(IoError::Media));
                }
                Job::Fill(..) | Job::Back | Job::Release(_) | Job::Marks | Job::Open => {}
            }
        }
    }

    /// Now and then, some seconds apart: marks of regions that are quiet are taken back, and what is dirty is written behind.
    pub fn tick(&mut self) {
        if self.life == Life::Active && self.present[BEHIND] {
            self.marks.tick();
            self.back.tick(self.dirty.count() > 0);
            self.go_on();
        }
    }

    /// Begins to stop: no request of the host may be under way. What is dirty stays held. Everything is durable and the store behind is
    /// left alone when [`Volume::is_settled`] says so; then [`Volume::say_goodbye`] ends it.
    pub fn stop(&mut self) {
        if self.life == Life::Active {
            self.life = Life::Stopping;
            self.go_on();
        }
    }

    /// Whether it has stopped, or failed.
    pub fn is_stopped(&self) -> bool {
        matches!(self.life, Life::Stopped | Life::Failed(_))
    }

    /// Writes everything behind as soon as may be; it is there when [`Volume::status`] says that nothing is dirty.
    pub fn write_back(&mut self) {
        self.back.hurry();
        self.go_on();
    }

    /// Sectors that may be dirty at most, from now on. What is too much goes behind before more is taken.
    pub fn set_dirty_limit(&mut self, sectors: u64) {
        self.status.dirty_limit = sectors;
        self.dirty_limit = sectors.max(4 * u64::from(self.max_request));
        self.go_on();
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        let (condition, failure) = match self.life {
            Life::Opening => (Condition::Opening, None),
            Life::Failed(failure) => (Condition::Failed, Some(failure)),
            Life::Stopped => (Condition::Stopped, None),
            Life::Returning => (Condition::Alone, None),
            Life::Active | Life::Stopping if !self.present[BEHIND] => (Condition::Alone, None),
            Life::Active | Life::Stopping => (Condition::Healthy, None),
        };
        Status {
            condition,
            failure,
            dirty_sectors: self.dirty.count() + self.going_behind(),
            held_sectors: self.held.count(),
            marked_regions: self.marks.count(),
            ..self.status
        }
    }

    /// What it would do with a larger or smaller cache device that no other volume shares.
    pub fn estimates(&self) -> Estimates {
        self.estimator.estimates(self.status.own())
    }

    /// How far the sectors from `lba` on, `max` at most, are known to hold data: what stands behind is not known.
    pub fn extent(&self, _lba: u64, max: u64) -> device::Extent {
        device::Extent { count: max, mapped: true }
    }
}
