//! The requests of hosts while a device is moved, and what their answers must be.

use std::collections::BTreeSet;

use device::{BatchOp, Completion, Io, IoError};
use random::SplitMix64;

use super::run::Simulation;
use crate::arrays::SECTOR;
use crate::model::{OpId, Part};
use crate::payload;
use crate::requests::{Outcome, owned};
use crate::run::Failure;
use crate::seen::Seen;
use crate::traffic;

/// What hosts ask.
pub(super) struct Mix {
    /// Weights of read, write, trim, flush, batch.
    weights: [u64; 5],
    fua_once_in: u64,
    /// The largest request, sectors.
    pub largest: u64,
    /// Traffic goes to this many sectors from `first` on.
    first: u64,
    span: u64,
}

impl Mix {
    pub fn new(random: &mut SplitMix64, sectors: u64, largest: u64) -> Mix {
        let span = if random.one_in(3) { sectors } else { (1 + random.below(sectors)).clamp(8, 200).min(sectors) };
        let mut weights = [0; 5];
        weights.iter_mut().for_each(|weight| *weight = if random.one_in(4) { 0 } else { 1 + random.below(20) });
        weights[1] += 4 + random.below(60);
        let fua_once_in = if random.one_in(2) { 0 } else { 1 + random.below(20) };
        Mix { weights, fua_once_in, largest, first: random.below(sectors - span + 1), span }
    }
}

/// A request under way.
pub(super) enum Asked {
    /// With the sectors of which nobody knew what they hold.
    Read {
        seen: Seen,
        unknown: BTreeSet<u64>,
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
        traffic::range(&mut self.random, (self.mix.first, self.mix.span), most)
    }

    pub fn request(&mut self) -> Result<(), Failure> {
        let Some(free) = self.asked.iter().position(Option::is_none) else { return Ok(()) };
        let tag = free as u64;
        let fua = self.mix.fua_once_in > 0 && self.random.one_in(self.mix.fua_once_in);
        let largest = self.mix.largest;
        match traffic::pick(&mut self.random, &self.mix.weights) {
            0 => {
                let (lba, count) = self.range(2 * largest);
                let seen = Seen::new(&self.model, lba, count);
                let unknown = self.doubtful.range(lba..lba + count).copied().collect();
                let buf = vec![0xee; count as usize * SECTOR];
                let submitted = self.submit(tag, Io::Read { lba, buf });
                self.submitted(tag, Asked::Read { seen, unknown }, submitted)
            }
            1 => {
                let (lba, count) = self.range(largest);
                let data = self.data(lba..lba + count);
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
            _ => self.batch(tag, fua),
        }
    }

    /// What the next change writes.
    fn data(&self, sectors: impl Iterator<Item = u64>) -> Vec<u8> {
        let (op, mut data) = (self.model.next_op(), Vec::new());
        for lba in sectors {
            let at = data.len();
            data.resize(at + SECTOR, 0);
            payload::fill(&mut data[at..], lba, op, false);
        }
        data
    }

    fn batch(&mut self, tag: u64, fua: bool) -> Result<(), Failure> {
        let mut parts: Vec<Part> = Vec::new();
        let mut left = self.mix.largest;
        for _ in 0..1 + self.random.below(4) {
            if left < 2 {
                break;
            }
            let (lba, count) = self.range((left - 1).min(4));
            if parts.iter().all(|other| lba + count <= other.lba || other.lba + other.count <= lba) {
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
        let written = parts.iter().filter(|part| !part.zeros).flat_map(|part| part.lba..part.lba + part.count);
        let data = self.data(written);
        let submitted = self.submit(tag, Io::Batch { ops: &ops, data: &data, fua });
        self.report.batches += u64::from(!matches!(submitted, Outcome::Busy));
        self.change(tag, &parts, true, fua, submitted)
    }

    fn submit(&mut self, tag: u64, io: Io<'_>) -> Outcome {
        match &mut self.mover {
            Some(mover) => owned(mover.submit(tag, io)),
            None => Outcome::Busy,
        }
    }

    fn change(&mut self, tag: u64, parts: &[Part], atomic: bool, fua: bool, submitted: Outcome) -> Result<(), Failure> {
        let op = match submitted {
            Outcome::Busy | Outcome::Done(Err(_)) => 0,
            _ => {
                let is_changed = |lba: &u64| parts.iter().any(|part| (part.lba..part.lba + part.count).contains(lba));
                // A read under way may still show what stood there before.
                if !self.asked.iter().flatten().any(|asked| matches!(asked, Asked::Read { .. })) {
                    self.doubtful.retain(|lba| !is_changed(lba));
                }
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
            (Asked::Read { seen, unknown }, Ok(buf)) => {
                let buf = buf.expect("a read gives its buffer");
                let is_known = |lba: &u64| !unknown.contains(lba) && !self.doubtful.contains(lba);
                // What was asked while the read was under way may be seen: it may have been read once more.
                if let Some((lba, versions)) = seen.wrong(&buf, true).find(|(lba, _)| is_known(lba)) {
                    let status = self.mover.as_ref().map(array::Mover::status);
                    return Err(Failure::Wrong(format!(
                        "read of sector {lba} gives none of the versions {versions:?}; {status:?}"
                    )));
                }
            }
            (Asked::Change { op, fua }, Ok(_)) => self.model.answered(op, fua),
            // The simulation had it refused.
            (Asked::Change { .. }, Err(IoError::Media)) if self.report.faults > 0 => {}
            (Asked::Flush { covers }, Ok(_)) => self.model.flushed(&covers),
            (_, Err(error)) => return Err(Failure::Wrong(format!("a request failed: {error}"))),
        }
        Ok(())
    }
}
