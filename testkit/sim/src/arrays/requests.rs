//! The requests of hosts, and what their answers must be.

use array::Level;
use device::{BatchOp, Completion, Io, IoError};

use super::plan::SECTOR;
use super::run::Simulation;
use crate::model::{Model, OpId, Part};
use crate::payload;
use crate::requests::{Outcome, owned};
use crate::run::Failure;
use crate::seen::Seen;
use crate::traffic;

/// A request under way.
pub(super) enum Asked {
    /// How many reads had been tried again by then, since one that is may see what came later. How many members had been lost: where one
    /// copy cannot read something and the other one goes before it answers, nobody has it.
    Read {
        seen: Seen,
        retried: u64,
        losses: u64,
    },
    /// Of a snapshot; what it must show, or nothing where that may be one of several versions. How many members had been lost by then, and
    /// how many copies that have it were there.
    Snapshot {
        lba: u64,
        expected: Vec<OpId>,
        losses: u64,
        copies: usize,
    },
    Change {
        op: OpId,
        fua: bool,
    },
    Flush {
        covers: Vec<OpId>,
    },
}

impl Simulation {
    fn range(&mut self, most: u64) -> (u64, u64) {
        traffic::range(&mut self.random, (self.plan.first, self.plan.span), most)
    }

    /// Whether what the array says to be a hole is one.
    fn check_holes(&mut self) -> Result<(), Failure> {
        let Some(array) = &self.array else { return Ok(()) };
        let mut lba = 0;
        while lba < array.sectors() {
            let extent = array.extent(lba, array.sectors() - lba);
            let run = lba..lba + extent.count;
            lba = run.end;
            if extent.mapped {
                continue;
            }
            self.report.holes += extent.count;
            if let Some(sector) = run.clone().find(|lba| !Model::is_zero(self.model.current(*lba))) {
                let op = self.model.current(sector);
                return Err(Failure::Wrong(format!(
                    "sectors {run:?} are told to be a hole, but {sector} holds version {op}"
                )));
            }
        }
        Ok(())
    }

    pub fn request(&mut self) -> Result<(), Failure> {
        if self.report.requests.is_multiple_of(8) {
            self.check_holes()?;
        }
        let Some(free) = self.asked.iter().position(Option::is_none) else { return Ok(()) };
        let tag = free as u64;
        let fua = self.plan.fua_once_in > 0 && self.random.one_in(self.plan.fua_once_in);
        let largest = u64::from(self.plan.shape.largest);
        let Some(array) = &mut self.array else { return Ok(()) };
        let (retried, losses) = (array.status().retried_reads, self.report.losses);
        match traffic::pick(&mut self.random, &self.plan.mix) {
            0 => {
                let (lba, count) = self.range(2 * largest);
                let seen = Seen::new(&self.model, lba, count);
                let buf = vec![0xee; count as usize * SECTOR];
                let submitted = self.submit(tag, Io::Read { lba, buf });
                self.submitted(tag, Asked::Read { seen, retried, losses }, submitted)
            }
            1 => {
                let (lba, count) = self.range(largest);
                let op = self.model.next_op();
                let mut data = vec![0; count as usize * SECTOR];
                for (lba, sector) in (lba..).zip(data.chunks_exact_mut(SECTOR)) {
                    payload::fill(sector, lba, op, false);
                }
                let submitted = self.submit(tag, Io::Write { lba, data: &data, fua });
                self.change(tag, &[Part { lba, count, zeros: false }], true, fua, submitted)
            }
            2 => {
                let (lba, count) = match self.random.one_in(10) {
                    true => (0, self.model.len()),
                    false => self.range(3 * largest),
                };
                let allocate = count <= largest && self.random.one_in(3);
                let submitted = match self.random.one_in(2) {
                    true => self.submit(tag, Io::Trim { lba, count, fua }),
                    false => self.submit(tag, Io::WriteZeroes { lba, count, fua, allocate }),
                };
                self.change(tag, &[Part { lba, count, zeros: true }], false, fua, submitted)
            }
            3 => {
                let covers = self.model.flush_covers();
                let submitted = self.submit(tag, Io::Flush);
                self.submitted(tag, Asked::Flush { covers }, submitted)
            }
            4 => {
                if let Some(array) = &mut self.array {
                    array.tick();
                }
                Ok(())
            }
            _ => self.batch(tag, fua),
        }
    }

    fn batch(&mut self, tag: u64, fua: bool) -> Result<(), Failure> {
        let mut parts: Vec<Part> = Vec::new();
        let mut left = u64::from(self.plan.shape.largest);
        for _ in 0..1 + self.random.below(4) {
            if left < 2 {
                break;
            }
            let (lba, count) = self.range((left - 1).min(4));
            let apart = parts.iter().all(|other| lba + count <= other.lba || other.lba + other.count <= lba);
            if apart {
                left -= count.min(left);
                parts.push(Part { lba, count, zeros: self.random.one_in(3) });
            }
        }
        let ops = parts.iter().map(|part| match part.zeros {
            true => BatchOp::Trim { lba: part.lba, count: part.count },
            false => BatchOp::Write { lba: part.lba, count: part.count as u32 },
        });
        let ops: Vec<BatchOp> = ops.collect();
        if ops.is_empty() {
            return Ok(());
        }
        let op = self.model.next_op();
        let mut data = Vec::new();
        for lba in parts.iter().filter(|part| !part.zeros).flat_map(|part| part.lba..part.lba + part.count) {
            let at = data.len();
            data.resize(at + SECTOR, 0);
            payload::fill(&mut data[at..], lba, op, false);
        }
        let submitted = self.submit(tag, Io::Batch { ops: &ops, data: &data, fua });
        self.report.batches += u64::from(!matches!(submitted, Outcome::Busy));
        self.change(tag, &parts, true, fua, submitted)
    }

    fn submit(&mut self, tag: u64, io: Io<'_>) -> Outcome {
        match &mut self.array {
            Some(array) => owned(array.submit(tag, io)),
            None => Outcome::Busy,
        }
    }

    fn change(&mut self, tag: u64, parts: &[Part], atomic: bool, fua: bool, submitted: Outcome) -> Result<(), Failure> {
        let op = match submitted {
            Outcome::Busy | Outcome::Done(Err(_)) => 0,
            _ => {
                let op = self.model.took_all(parts, atomic);
                for asked in self.asked.iter_mut().flatten() {
                    if let Asked::Read { seen, .. } = asked {
                        seen.changed(&self.model, parts);
                    }
                }
                op
            }
        };
        self.submitted(tag, Asked::Change { op, fua }, submitted)
    }

    pub fn submitted(&mut self, tag: u64, asked: Asked, submitted: Outcome) -> Result<(), Failure> {
        match submitted {
            Outcome::Busy => Ok(()),
            Outcome::Pending => {
                self.asked[tag as usize] = Some(asked);
                Ok(())
            }
            Outcome::Done(result) => {
                self.asked[tag as usize] = Some(asked);
                self.answer(Completion { tag, result })
            }
        }
    }

    pub fn answer(&mut self, completion: Completion) -> Result<(), Failure> {
        let Some(asked) = self.asked[completion.tag as usize].take() else {
            return Err(Failure::Wrong("an answer to nothing that was asked".into()));
        };
        self.report.requests += 1;
        self.note(completion.tag ^ u64::from(completion.result.is_ok()));
        let failed = self.array.as_ref().is_some_and(|array| array.status().failure.is_some());
        match (asked, completion.result) {
            (Asked::Read { seen, retried, .. }, Ok(buf)) => {
                let buf = buf.expect("a read gives its buffer");
                let again = self.array.as_ref().is_some_and(|array| array.status().retried_reads != retried);
                if let Some((lba, versions)) = seen.wrong(&buf, again).next() {
                    let status = self.array.as_ref().map(array::Array::status);
                    return Err(Failure::Wrong(format!(
                        "read of sector {lba} gives none of the versions {versions:?}; {status:?}"
                    )));
                }
            }
            (Asked::Snapshot { lba, expected, .. }, Ok(buf)) => {
                let buf = buf.expect("a read gives its buffer");
                for ((lba, op), sector) in (lba..).zip(expected).zip(buf.chunks_exact(SECTOR)) {
                    if !payload::holds(sector, lba, op, Model::is_zero(op)) {
                        return Err(Failure::Wrong(format!("a snapshot does not show version {op} of sector {lba}")));
                    }
                }
            }
            (Asked::Change { op, fua }, Ok(_)) => self.model.answered(op, fua),
            (Asked::Flush { covers }, Ok(_)) => self.model.flushed(&covers),
            // An array that needs all of its members and lost one.
            (_, Err(IoError::Media)) if failed && self.plan.shape.level != Level::Raid1 => {}
            // What snapshots hold leaves no room. Where members said so, some may have done their part: only the next assembly can tell.
            (Asked::Change { op, .. }, Err(IoError::Full)) if self.snapshots.once_in > 0 => {
                self.report.full += 1;
                if op > 0 {
                    self.nodes[0].store.switch_off();
                }
            }
            // The only copy that had the snapshot went, was replaced, or failed to read it.
            (Asked::Snapshot { losses, copies, .. }, Err(IoError::Media | IoError::NoSnapshot))
                if self.plan.shape.level == Level::Raid1
                    && (losses != self.report.losses || copies < 2 || self.plan.error_once_in > 0) => {}
            (Asked::Read { retried, losses, .. }, Err(IoError::Media))
                if losses != self.report.losses
                    && self.array.as_ref().is_some_and(|array| array.status().retried_reads != retried) => {}
            (_, Err(error)) => {
                let status = self.array.as_ref().map(array::Array::status);
                return Err(Failure::Wrong(format!("a request failed: {error}; {status:?}")));
            }
        }
        Ok(())
    }
}
