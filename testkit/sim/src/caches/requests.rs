//! The requests of hosts, and what their answers must be.

use device::{Completion, Io, IoError};

use super::run::{Owed, Simulation};
use crate::arrays::SECTOR;
use crate::model::{Model, OpId, Part};
use crate::payload;
use crate::requests::{Outcome, owned};
use crate::run::Failure;
use crate::traffic;

/// A request under way.
pub(super) enum Asked {
    /// For each sector the version that was answered last by then: a read gives that one, or one that came later.
    Read {
        lba: u64,
        answered: Vec<OpId>,
    },
    Change {
        op: OpId,
        part: Part,
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

    pub fn request(&mut self) -> Result<(), Failure> {
        let Some(free) = self.asked.iter().position(Option::is_none) else { return Ok(()) };
        let tag = free as u64;
        let fua = self.plan.fua_once_in > 0 && self.random.one_in(self.plan.fua_once_in);
        let largest = u64::from(self.plan.max_request);
        match traffic::pick(&mut self.random, &self.plan.mix) {
            0 => {
                let (lba, count) = self.range(2 * largest);
                let answered = self.answered[lba as usize..(lba + count) as usize].to_vec();
                let submitted = self.submit(tag, Io::Read { lba, buf: vec![0xee; count as usize * SECTOR] });
                self.submitted(tag, Asked::Read { lba, answered }, submitted)
            }
            1 => {
                let (lba, count) = self.range(largest);
                let op = self.model.next_op();
                let mut data = vec![0; count as usize * SECTOR];
                for (lba, sector) in (lba..).zip(data.chunks_exact_mut(SECTOR)) {
                    payload::fill(sector, lba, op, false);
                }
                let submitted = self.submit(tag, Io::Write { lba, data: &data, fua });
                self.change(tag, Part { lba, count, zeros: false }, true, fua, submitted)
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
                self.change(tag, Part { lba, count, zeros: true }, false, fua, submitted)
            }
            3 => {
                let covers = self.model.flush_covers();
                let submitted = self.submit(tag, Io::Flush);
                self.submitted(tag, Asked::Flush { covers }, submitted)
            }
            4 => {
                self.volume.iter_mut().for_each(cache::Volume::tick);
                Ok(())
            }
            _ => {
                self.volume.iter_mut().for_each(cache::Volume::write_back);
                Ok(())
            }
        }
    }

    fn submit(&mut self, tag: u64, io: Io<'_>) -> Outcome {
        match &mut self.volume {
            Some(volume) => owned(volume.submit(tag, io)),
            None => Outcome::Busy,
        }
    }

    fn change(&mut self, tag: u64, part: Part, atomic: bool, fua: bool, submitted: Outcome) -> Result<(), Failure> {
        let op = match submitted {
            Outcome::Busy | Outcome::Done(Err(_)) => 0,
            _ => {
                let op = self.model.took_all(&[part], atomic);
                let given = &mut self.given[part.lba as usize..(part.lba + part.count) as usize];
                given.iter_mut().for_each(|given| given.push(op | u64::from(part.zeros)));
                op
            }
        };
        self.submitted(tag, Asked::Change { op, part, fua }, submitted)
    }

    fn submitted(&mut self, tag: u64, asked: Asked, submitted: Outcome) -> Result<(), Failure> {
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
        match (asked, completion.result) {
            (Asked::Read { lba, answered }, Ok(buf)) => {
                let buf = buf.expect("a read gives its buffer");
                for ((lba, op), sector) in (lba..).zip(answered).zip(buf.chunks_exact(SECTOR)) {
                    let holds = |op: OpId| payload::holds(sector, lba, op, Model::is_zero(op));
                    // One that was overtaken meanwhile may be given, too.
                    let given = &self.given[lba as usize];
                    if !given.iter().filter(|given| **given >= op).any(|op| holds(*op)) {
                        let found = given.iter().rev().find(|op| holds(**op));
                        let status = self.volume.as_ref().map(cache::Volume::status);
                        return Err(Failure::Wrong(format!(
                            "read of sector {lba} gives neither version {op} nor a later one, but {found:?}; {status:?}"
                        )));
                    }
                }
            }
            (Asked::Change { op, part, fua }, Ok(_)) => {
                self.model.answered(op, fua);
                for answered in &mut self.answered[part.lba as usize..(part.lba + part.count) as usize] {
                    *answered = (*answered).max(op | u64::from(part.zeros));
                }
            }
            (Asked::Flush { .. }, Ok(_)) if self.owed == Owed::Must => {
                return Err(Failure::Wrong("what was answered is lost, and no flush said so".into()));
            }
            (Asked::Flush { covers }, Ok(_)) => self.model.flushed(&covers),
            (Asked::Flush { .. }, Err(IoError::Media)) if self.owed != Owed::No => self.owed = Owed::No,
            // One of its members is gone.
            (_, Err(IoError::Media | IoError::NoSpace)) if self.lost => {}
            (_, Err(error)) => {
                let status = self.volume.as_ref().map(cache::Volume::status);
                return Err(Failure::Wrong(format!("a request failed: {error}; {status:?}")));
            }
        }
        Ok(())
    }
}
