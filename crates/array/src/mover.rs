//! Moves what a device holds to another one of the same size while hosts use it: a mirror that ends with the old half let go.
//!
//! **The old device, the source, counts until the driver hands over.** It answers every read and every flush, so a crash before that
//! costs nothing but the copying. What lies before a mark, [`Mover::status`] shows it, is on the new device, the target, too: changes of
//! that go to both. Changes beyond the mark go to the source alone, since copying brings them along.
//!
//! **Copying goes piece by piece.** Nothing changes a piece from before it is read until the target has it, so no older state
//! overtakes a newer one. Where the source refuses a change that the target may have carried out, copying begins again there.
//!
//! **Handing over.** [`Mover::settle`] holds requests back, waits for those under way, and makes both devices durable. From
//! [`Condition::Settled`](MoveCondition::Settled) on they hold the same, and the driver may let either of them serve.
//!
//! **What it asks of its driver.** The requests of one device reach that device in the order in which they were given out.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use device::{BatchOp, Completion, Extent, Io, IoError, Submitted, check_batch};

use crate::command::{Answer, Command, Outcome, What};

/// The device that is left, as [`Command::member`].
pub const SOURCE: usize = 0;
/// The device that takes its place.
pub const TARGET: usize = 1;

/// Requests under way at most.
const DEPTH: usize = 512;
/// Bytes that are copied in one piece at most.
const PIECE_MAX: u32 = 1 << 20;

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveCondition {
    /// The target gets what it lacks.
    Copying,
    /// Both hold the same, and every change goes to both.
    InSync,
    /// Requests are held back while what is under way comes to its end.
    Settling,
    /// Both hold the same durably, and nothing is under way.
    Settled,
    /// It came to nothing: the source goes on alone.
    Failed(MoveFailure),
}

/// Why a move came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveFailure {
    /// The source cannot give something.
    #[error("sector {lba} of the device cannot be read: {error}")]
    Read {
        /// Where.
        lba: u64,
        /// Why not.
        error: IoError,
    },
    /// The source cannot make what it holds durable.
    #[error("the device cannot be made durable: {0}")]
    Source(IoError),
    /// The target refused something.
    #[error("the new device failed: {0}")]
    Target(IoError),
    /// The target was detached, or its thread ended.
    #[error("the new device is gone")]
    Gone,
}

/// Every figure of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveStatus {
    /// How far it is.
    pub condition: MoveCondition,
    /// Everything before this sector is on the target.
    pub at: u64,
    /// Sectors of the device.
    pub sectors: u64,
    /// Sectors copied.
    pub copied: u64,
    /// Sectors that hold nothing, and were not copied.
    pub unmapped: u64,
}

impl MoveStatus {
    /// How much is done, per cent.
    pub fn percent(&self) -> u32 {
        (u128::from(self.at) * 100 / u128::from(self.sectors.max(1))) as u32
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Copying,
    /// Waits until nothing is under way.
    Draining,
    /// Makes both devices durable; so many answers are to come.
    Flushing {
        left: u32,
    },
    Settled,
    Failed(MoveFailure),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Waits until no change of the piece is under way.
    Drain,
    Map,
    Read,
    Write,
}

/// A piece that is being copied: nothing changes it meanwhile.
#[derive(Clone, Debug)]
struct Copying {
    sectors: Range<u64>,
    step: Step,
}

#[derive(Debug)]
struct Change {
    tag: u64,
    sectors: Vec<Range<u64>>,
    left: u32,
    /// It goes to the target, too.
    both: bool,
    /// What the source said.
    result: Result<(), IoError>,
}

#[derive(Debug)]
enum Job {
    /// A read or a flush, which the source answers alone.
    Plain {
        tag: u64,
    },
    Change(Change),
    Copy,
    Settle,
}

/// A move under way.
#[derive(Debug)]
pub struct Mover {
    sectors: u64,
    sector_bytes: u32,
    /// The largest request, sectors.
    largest: u64,
    stage: Stage,
    at: u64,
    piece: Option<Copying>,
    /// Copying begins again here once the piece under way is done.
    again: Option<u64>,
    jobs: BTreeMap<u64, Job>,
    /// What devices were asked, by tag: for which job, and which device.
    parts: BTreeMap<u64, (u64, usize)>,
    next: u64,
    commands: VecDeque<Command>,
    done: VecDeque<Completion>,
    copied: u64,
    unmapped: u64,
}

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Mover {
    /// A move between devices of so many sectors each; `largest` is the largest request that both take, bytes.
    pub fn new(sectors: u64, sector_bytes: u32, largest: u32) -> Mover {
        Mover {
            sectors,
            sector_bytes,
            largest: u64::from(largest / sector_bytes).max(1),
            stage: Stage::Copying,
            at: 0,
            piece: None,
            again: None,
            jobs: BTreeMap::new(),
            parts: BTreeMap::new(),
            next: 0,
            commands: VecDeque::new(),
            done: VecDeque::new(),
            copied: 0,
            unmapped: 0,
        }
    }

    /// How it stands.
    pub fn status(&self) -> MoveStatus {
        let condition = match self.stage {
            Stage::Copying if self.is_copied() => MoveCondition::InSync,
            Stage::Copying => MoveCondition::Copying,
            Stage::Draining | Stage::Flushing { .. } => MoveCondition::Settling,
            Stage::Settled => MoveCondition::Settled,
            Stage::Failed(why) => MoveCondition::Failed(why),
        };
        let Mover { at, sectors, copied, unmapped, .. } = *self;
        MoveStatus { condition, at, sectors, copied, unmapped }
    }

    fn is_copied(&self) -> bool {
        self.at == self.sectors && self.piece.is_none()
    }

    /// Whether nothing is under way and no answer waits for [`Mover::poll`]: also nothing that a move which came to nothing had asked of the
    /// source.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.parts.is_empty() && self.done.is_empty()
    }

    /// Takes a request under a tag of the caller's choice, as a device does.
    pub fn submit<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        if !matches!(self.stage, Stage::Copying | Stage::Failed(_)) || self.jobs.len() >= DEPTH {
            return Submitted::Busy(io);
        }
        let what = match io {
            Io::Read { lba, buf } => What::Read { lba, buf },
            Io::ReadSnapshot { .. } => return Submitted::Done(Err(IoError::NoSnapshot)),
            Io::Flush => What::Flush,
            io => {
                return match self.check(&io) {
                    Ok(()) => self.change(tag, io),
                    Err(error) => Submitted::Done(Err(error)),
                };
            }
        };
        let job = self.job(Job::Plain { tag });
        self.send(job, SOURCE, what);
        Submitted::Pending
    }

    /// Whether both devices would take a change.
    fn check(&self, io: &Io) -> Result<(), IoError> {
        let data = match io {
            Io::Write { data, .. } => data.len(),
            Io::WriteZeroes { count, allocate: true, .. } if *count > self.largest => return Err(IoError::TooLarge),
            Io::Batch { ops, data, .. } => {
                let largest = (self.largest as u32) * self.sector_bytes;
                return Ok(check_batch((self.sectors, self.sector_bytes, largest), ops, data.len())?);
            }
            _ => 0,
        };
        if !data.is_multiple_of(self.sector_bytes as usize)
            || self.ranges(io).iter().any(|range| range.end > self.sectors)
        {
            return Err(IoError::OutOfRange);
        }
        if (data / self.sector_bytes as usize) as u64 > self.largest {
            return Err(IoError::TooLarge);
        }
        Ok(())
    }

    fn change<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        let ranges = self.ranges(&io);
        if let Some(piece) = &self.piece
            && ranges.iter().any(|range| meet(range, &piece.sectors))
        {
            return Submitted::Busy(io);
        }
        let is_behind = |range: &Range<u64>| !range.is_empty() && range.start < self.at;
        let both = self.stage == Stage::Copying && ranges.iter().any(is_behind);
        let left = 1 + u32::from(both);
        let job = self.job(Job::Change(Change { tag, sectors: ranges, left, both, result: Ok(()) }));
        let of = |fua: bool| [fua, false].into_iter().take(left as usize).enumerate();
        match io {
            Io::Write { lba, data, fua } => self.write(job, lba, data.into(), of(fua)),
            Io::WriteZeroes { lba, count, fua, allocate: true } => {
                let data = vec![0; count as usize * self.sector_bytes as usize];
                self.write(job, lba, data.into(), of(fua));
            }
            Io::Trim { lba, count, fua } | Io::WriteZeroes { lba, count, fua, .. } => {
                for (member, fua) in of(fua) {
                    self.send(job, member, What::Zeroes { lba, count, fua });
                }
            }
            Io::Batch { ops, data, fua } => {
                let (ops, data): (Arc<[BatchOp]>, Arc<[u8]>) = (ops.into(), data.into());
                for (member, fua) in of(fua) {
                    self.send(job, member, What::Batch { ops: Arc::clone(&ops), data: Arc::clone(&data), fua });
                }
            }
            Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush => {}
        }
        Submitted::Pending
    }

    fn write(&mut self, job: u64, lba: u64, data: Arc<[u8]>, to: impl Iterator<Item = (usize, bool)>) {
        for (member, fua) in to {
            self.send(job, member, What::Write { lba, data: Arc::clone(&data), part: 0..data.len(), fua });
        }
    }

    /// What a change touches.
    fn ranges(&self, io: &Io) -> Vec<Range<u64>> {
        let range = |lba: u64, count: u64| std::iter::once(lba..lba.saturating_add(count)).collect();
        match io {
            Io::Write { lba, data, .. } => range(*lba, (data.len() / self.sector_bytes as usize) as u64),
            Io::Trim { lba, count, .. } | Io::WriteZeroes { lba, count, .. } => range(*lba, *count),
            Io::Batch { ops, .. } => ops.iter().map(BatchOp::sectors).collect(),
            Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush => Vec::new(),
        }
    }

    fn job(&mut self, job: Job) -> u64 {
        self.next += 1;
        self.jobs.insert(self.next, job);
        self.next
    }

    fn send(&mut self, job: u64, member: usize, what: What) {
        self.next += 1;
        self.parts.insert(self.next, (job, member));
        self.commands.push_back(Command { member, tag: self.next, what });
    }

    /// What a device is asked next.
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// The next answer to a request.
    pub fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    /// A device has answered.
    pub fn finish(&mut self, tag: u64, outcome: Result<Answer, IoError>) {
        // What a target that failed was asked is of no account.
        if let Some((job, member)) = self.parts.remove(&tag) {
            self.part_done(job, member, outcome);
        }
        self.go_on();
    }

    /// The target is gone: it answers nothing any more.
    pub fn lost(&mut self) {
        self.fail(MoveFailure::Gone);
        self.go_on();
    }

    fn part_done(&mut self, job: u64, member: usize, outcome: Outcome) {
        match self.jobs.get_mut(&job) {
            None => {}
            Some(Job::Plain { tag }) => {
                let tag = *tag;
                self.jobs.remove(&job);
                let result = outcome.map(|answer| if let Answer::Done(buf) = answer { buf } else { None });
                self.done.push_back(Completion { tag, result });
            }
            Some(Job::Change(change)) => {
                change.left -= 1;
                let left = change.left;
                match outcome {
                    Ok(_) => {}
                    Err(error) if member == SOURCE => change.result = Err(error),
                    Err(error) => self.fail(MoveFailure::Target(error)),
                }
                if left == 0 {
                    self.change_done(job);
                }
            }
            Some(Job::Copy) => {
                self.jobs.remove(&job);
                self.step_done(outcome);
            }
            Some(Job::Settle) => {
                let error = outcome.err();
                let Stage::Flushing { left } = self.stage else { return };
                match error {
                    Some(error) if member == SOURCE => self.fail(MoveFailure::Source(error)),
                    Some(error) => self.fail(MoveFailure::Target(error)),
                    None if left > 1 => self.stage = Stage::Flushing { left: left - 1 },
                    None => self.stage = Stage::Settled,
                }
                if !matches!(self.stage, Stage::Flushing { .. }) {
                    self.jobs.remove(&job);
                }
            }
        }
    }

    fn change_done(&mut self, job: u64) {
        let Some(Job::Change(Change { tag, sectors, both, result, .. })) = self.jobs.remove(&job) else { return };
        if both && result.is_err() {
            // The target may have carried it out. What the source holds counts.
            let from = sectors.iter().map(|range| range.start).min().unwrap_or(0);
            self.begin_again(from);
        }
        self.done.push_back(Completion { tag, result: result.map(|()| None) });
    }

    fn begin_again(&mut self, from: u64) {
        match &self.piece {
            None => self.at = self.at.min(from),
            Some(_) => self.again = Some(self.again.map_or(from, |again| again.min(from))),
        }
    }

    /// The source goes on alone.
    fn fail(&mut self, why: MoveFailure) {
        if matches!(self.stage, Stage::Failed(_)) {
            return;
        }
        self.stage = Stage::Failed(why);
        self.piece = None;
        self.jobs.retain(|_, job| !matches!(job, Job::Copy | Job::Settle));
        self.commands.retain(|command| command.member == SOURCE);
        let of_target = self.parts.iter().filter(|(_, (_, member))| *member == TARGET);
        let of_target: Vec<(u64, u64)> = of_target.map(|(tag, (job, _))| (*tag, *job)).collect();
        for (tag, job) in of_target {
            self.parts.remove(&tag);
            if let Some(Job::Change(change)) = self.jobs.get_mut(&job) {
                change.left -= 1;
                if change.left == 0 {
                    self.change_done(job);
                }
            }
        }
    }

    /// Whether a piece may be copied now.
    pub fn has_background(&self) -> bool {
        self.stage == Stage::Copying && self.piece.is_none() && self.at < self.sectors
    }

    /// Begins to copy the next piece.
    pub fn background(&mut self) {
        if self.has_background() {
            let most = self.largest.min(u64::from(PIECE_MAX / self.sector_bytes));
            let sectors = self.at..self.sectors.min(self.at + most);
            self.piece = Some(Copying { sectors, step: Step::Drain });
            self.go_on();
        }
    }

    /// Holds requests back, and brings what is under way to its end. Nothing happens while the target lacks something.
    pub fn settle(&mut self) {
        if self.stage == Stage::Copying && self.is_copied() {
            self.stage = Stage::Draining;
            self.go_on();
        }
    }

    /// Takes requests again: there is no handing over.
    pub fn release(&mut self) {
        if !matches!(self.stage, Stage::Failed(_)) {
            self.stage = Stage::Copying;
            self.jobs.retain(|_, job| !matches!(job, Job::Settle));
        }
    }

    fn changes(&self) -> impl Iterator<Item = &Range<u64>> {
        let sectors = |job| if let &Job::Change(Change { ref sectors, .. }) = job { &sectors[..] } else { &[] };
        self.jobs.values().flat_map(sectors)
    }

    fn go_on(&mut self) {
        if let Some(Copying { sectors, step: Step::Drain }) = &self.piece
            && !self.changes().any(|change| meet(change, sectors))
        {
            let lba = sectors.start;
            self.ask(Step::Map, SOURCE, What::Extent { lba, max: self.sectors - lba });
        }
        if self.stage == Stage::Draining && self.jobs.is_empty() {
            if !self.is_copied() {
                // The source refused something meanwhile.
                self.stage = Stage::Copying;
                return;
            }
            self.stage = Stage::Flushing { left: 2 };
            let job = self.job(Job::Settle);
            self.send(job, SOURCE, What::Flush);
            self.send(job, TARGET, What::Flush);
        }
    }

    fn ask(&mut self, step: Step, member: usize, what: What) {
        if let Some(piece) = &mut self.piece {
            piece.step = step;
            let job = self.job(Job::Copy);
            self.send(job, member, what);
        }
    }

    /// A step of copying is done.
    fn step_done(&mut self, outcome: Outcome) {
        let Some(Copying { sectors: Range { start: lba, end }, step }) = self.piece.clone() else { return };
        match (step, outcome) {
            (Step::Map, Ok(Answer::Extent(Extent { count, mapped }))) => {
                let run = lba + count.clamp(1, self.sectors - lba);
                let end = if mapped { end.min(run) } else { self.hole_end(lba, run) };
                if let Some(piece) = &mut self.piece {
                    piece.sectors.end = end;
                }
                let count = end - lba;
                if mapped {
                    self.copied += count;
                    let buf = vec![0; count as usize * self.sector_bytes as usize];
                    self.ask(Step::Read, SOURCE, What::Read { lba, buf });
                } else {
                    self.unmapped += count;
                    self.ask(Step::Write, TARGET, What::Zeroes { lba, count, fua: false });
                }
            }
            (Step::Read, Ok(Answer::Done(Some(buf)))) => {
                let data: Arc<[u8]> = buf.into();
                let part = 0..data.len();
                self.ask(Step::Write, TARGET, What::Write { lba, data, part, fua: false });
            }
            (Step::Write, Ok(_)) => {
                self.piece = None;
                self.at = self.again.take().map_or(end, |again| again.min(end));
            }
            (Step::Write, Err(error)) => self.fail(MoveFailure::Target(error)),
            (_, Err(error)) => self.fail(MoveFailure::Read { lba, error }),
            (_, Ok(_)) => self.fail(MoveFailure::Read { lba, error: IoError::Media }),
        }
    }

    /// How far a hole of the source may be taken for one: up to the first change under way, which may fill it.
    fn hole_end(&self, from: u64, end: u64) -> u64 {
        let before = self.changes().filter(|change| !change.is_empty() && change.end > from);
        before.map(|change| change.start).fold(end, u64::min).max(from + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both devices answer what they are asked; the source holds data in the first of 64 sectors.
    fn answer(mover: &mut Mover) -> Vec<(usize, String)> {
        let mut asked = Vec::new();
        while let Some(Command { member, tag, what }) = mover.next_command() {
            asked.push((member, format!("{what:?}").split([' ', '{']).next().unwrap_or_default().to_owned()));
            let answer = match what {
                What::Read { buf, .. } => Answer::Done(Some(buf)),
                What::Extent { lba: 0, .. } => Answer::Extent(Extent { count: 1, mapped: true }),
                What::Extent { max, .. } => Answer::Extent(Extent { count: max, mapped: false }),
                _ => Answer::Done(None),
            };
            mover.finish(tag, Ok(answer));
        }
        asked
    }

    fn write(mover: &mut Mover, lba: u64) -> bool {
        matches!(mover.submit(lba, Io::Write { lba, data: &[1; 512], fua: false }), Submitted::Pending)
    }

    #[test]
    fn what_is_mapped_is_copied_and_the_rest_is_not() {
        let mut mover = Mover::new(64, 512, 4096);
        mover.background();
        assert!(!write(&mut mover, 3), "a change of the piece waits");
        assert!(write(&mut mover, 40));
        let asked: Vec<(usize, String)> = answer(&mut mover);
        let words: Vec<(usize, &str)> = asked.iter().map(|(member, what)| (*member, &what[..])).collect();
        assert_eq!(words, [(0, "Extent"), (0, "Write"), (0, "Read"), (1, "Write")]);
        assert_eq!((mover.status().at, mover.status().copied), (1, 1));
        mover.background();
        answer(&mut mover);
        assert_eq!(mover.status().condition, MoveCondition::InSync);
        assert_eq!((mover.status().unmapped, mover.status().percent()), (63, 100));
        assert!(write(&mut mover, 3));
        assert_eq!(answer(&mut mover).iter().map(|(member, _)| *member).collect::<Vec<_>>(), [0, 1]);
        mover.settle();
        assert!(!write(&mut mover, 3), "requests wait for the handing over");
        assert_eq!(answer(&mut mover).len(), 2);
        assert_eq!(mover.status().condition, MoveCondition::Settled);
        mover.release();
        assert!(write(&mut mover, 3));
    }

    #[test]
    fn a_target_that_goes_leaves_the_source_as_it_was() {
        let mut mover = Mover::new(64, 512, 4096);
        mover.background();
        answer(&mut mover);
        assert!(write(&mut mover, 0));
        let source = mover.next_command().expect("the source is asked");
        mover.lost();
        assert!(mover.next_command().is_none(), "the target is asked nothing");
        mover.finish(source.tag, Ok(Answer::Done(None)));
        assert!(!mover.is_idle(), "an answer waits");
        assert!(mover.poll().is_some_and(|done| done.result.is_ok()));
        assert_eq!(mover.status().condition, MoveCondition::Failed(MoveFailure::Gone));
        assert!(write(&mut mover, 0) && !mover.is_idle());
        assert_eq!(answer(&mut mover).len(), 1);
    }

    #[test]
    fn what_a_move_had_asked_of_the_source_is_waited_for_when_the_target_goes() {
        let mut mover = Mover::new(64, 512, 4096);
        mover.background();
        let asked = mover.next_command().expect("what is mapped is asked");
        mover.lost();
        assert!(!mover.is_idle());
        mover.finish(asked.tag, Ok(Answer::Extent(Extent { count: 64, mapped: false })));
        assert!(mover.is_idle());
    }
}
