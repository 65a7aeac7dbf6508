//! The requests of a simulation, and what their answers must be.

use device::{BatchOp, Completion, Io, IoError, Submitted, batch_slots};

use crate::model::{Model, OpId, Part};
use crate::payload;
use crate::run::{CALL, Failure, Simulation};

/// A request under way.
pub(crate) enum Asked {
    /// Each sector's version, and those that it was given since: where something could not be read ahead, it is read once more.
    Read {
        lba: u64,
        expected: Vec<(OpId, bool)>,
        since: Vec<(u64, OpId)>,
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
    fn pick(&mut self) -> usize {
        let total: u64 = self.plan.mix.iter().sum();
        let mut at = self.random.below(total);
        self.plan
            .mix
            .iter()
            .position(|weight| {
                let here = at < *weight;
                at = at.saturating_sub(*weight);
                here
            })
            .expect("below the total")
    }

    pub(crate) fn range(&mut self) -> (u64, u64) {
        let count = match self.random.one_in(3) {
            true => 1 + self.random.below(u64::from(self.plan.largest)),
            false => 1,
        };
        let count = count.min(self.plan.span);
        (self.random.below(self.plan.span - count + 1), count)
    }

    /// Where a read goes on: two in three behind the last one, as a client that reads in order does.
    fn in_order(&mut self, lba: u64, count: u64) -> (u64, u64) {
        let goes_on = !self.random.one_in(3) && self.read_up_to + count <= self.plan.span;
        let lba = if goes_on { self.read_up_to } else { lba };
        self.read_up_to = lba + count;
        (lba, count)
    }

    pub(crate) fn request(&mut self) -> Result<(), Failure> {
        let Some(free) = self.asked.iter().position(Option::is_none) else { return self.poll() };
        let sector = self.plan.geometry.sector_bytes as usize;
        let fua = self.plan.fua_once_in > 0 && self.random.one_in(self.plan.fua_once_in);
        let (lba, count) = self.range();
        let tag = free as u64;
        if self.plan.batch_once_in > 0 && self.random.one_in(self.plan.batch_once_in) {
            return self.batch(tag, fua);
        }
        if self.plan.snapshot_once_in > 0 && self.random.one_in(self.plan.snapshot_once_in) {
            return self.snapshot_request(tag);
        }
        if self.plan.resize_once_in > 0 && self.random.one_in(self.plan.resize_once_in) {
            return self.resize_request(tag);
        }
        // Of the device, or of a clone of it.
        let (view, base) = self.target();
        match self.pick() {
            0 => {
                let (lba, count) = if view.is_some() { (lba, count) } else { self.in_order(lba, count) };
                let expected = (lba..lba + count).map(|lba| self.model.current(base + lba));
                let expected = expected.map(|op| (op, Model::is_zero(op))).collect();
                let buf = vec![0xee; count as usize * sector];
                let submitted = match view {
                    None => self.device().submit(tag, Io::Read { lba, buf }),
                    Some(id) => self.device().submit(tag, Io::ReadSnapshot { id, lba, buf }),
                };
                self.submitted(tag, Asked::Read { lba, expected, since: Vec::new() }, owned(submitted))
            }
            1 => {
                let op = self.model.next_op();
                let mut data = vec![0; count as usize * sector];
                for (lba, sector) in (lba..).zip(data.chunks_exact_mut(sector)) {
                    payload::fill(sector, lba, op, false);
                }
                let placement = self.placement();
                let io = Io::Write { lba, data: &data, fua };
                let submitted = owned(self.device().submit_placed(view, placement, tag, io));
                self.change(tag, Part { lba: base + lba, count, zeros: false }, fua, submitted)
            }
            2 => {
                // Now and then everything at once.
                let (lba, count) = if self.random.one_in(30) { (0, self.limit()) } else { (lba, count) };
                let submitted = owned(self.device().submit_in(view, tag, Io::Trim { lba, count, fua }));
                self.change(tag, Part { lba: base + lba, count, zeros: true }, fua, submitted)
            }
            3 => {
                let covers = self.model.flush_covers();
                let submitted = owned(self.device().submit(tag, Io::Flush));
                self.submitted(tag, Asked::Flush { covers }, submitted)
            }
            4 => {
                self.device().idle();
                let placement = self.placement();
                if placement > 0 {
                    self.device().renew_placement(placement);
                }
                if self.random.one_in(4) {
                    let on = !self.random.one_in(4);
                    self.device().scrub(on).expect("a device attached for writing");
                }
                if self.random.one_in(4) {
                    let rate = (!self.random.one_in(4)).then_some(1 << 20);
                    self.device().optimise(rate).expect("a device attached for writing");
                }
                Ok(())
            }
            _ => {
                let allocate = self.random.one_in(2);
                let io = Io::WriteZeroes { lba, count, fua, allocate };
                let submitted = owned(self.device().submit_in(view, tag, io));
                self.change(tag, Part { lba: base + lba, count, zeros: true }, fua, submitted)
            }
        }
    }

    /// What a write belongs together with: one more than may be told apart, where the policy goes by that.
    fn placement(&mut self) -> u8 {
        let goes_by_it = self.plan.format.policy.goes_by_placements();
        if goes_by_it { self.random.below(7) as u8 } else { 0 }
    }

    /// Writes and trims at once, scattered, as many as a batch takes.
    fn batch(&mut self, tag: u64, fua: bool) -> Result<(), Failure> {
        let sector = self.plan.geometry.sector_bytes;
        let mut parts: Vec<Part> = Vec::new();
        let mut ops: Vec<BatchOp> = Vec::new();
        for _ in 0..1 + self.random.below(8) {
            let (lba, count) = self.range();
            let count = if self.random.one_in(3) { count } else { 1 };
            let part = Part { lba, count, zeros: self.random.one_in(3) };
            let op = match part.zeros {
                true => BatchOp::Trim { lba, count },
                false => BatchOp::Write { lba, count: count as u32 },
            };
            ops.push(op);
            let apart = parts.iter().all(|other| lba + count <= other.lba || other.lba + other.count <= lba);
            if apart && batch_slots(&ops, sector) <= u64::from(self.plan.largest) {
                parts.push(part);
            } else {
                ops.pop();
            }
        }
        if ops.is_empty() {
            return self.poll();
        }
        let op = self.model.next_op();
        let mut data = Vec::new();
        for part in parts.iter().filter(|part| !part.zeros) {
            for lba in part.lba..part.lba + part.count {
                let at = data.len();
                data.resize(at + sector as usize, 0);
                payload::fill(&mut data[at..], lba, op, false);
            }
        }
        let (view, base) = self.target();
        parts.iter_mut().for_each(|part| part.lba += base);
        let placement = self.placement();
        let io = Io::Batch { ops: &ops, data: &data, fua };
        let submitted = owned(self.device().submit_placed(view, placement, tag, io));
        self.report.batches += u64::from(!matches!(submitted, Outcome::Busy));
        self.changes(tag, &parts, true, fua, submitted)
    }

    pub(crate) fn change(&mut self, tag: u64, part: Part, fua: bool, submitted: Outcome) -> Result<(), Failure> {
        self.changes(tag, &[part], !part.zeros, fua, submitted)
    }

    fn changes(
        &mut self,
        tag: u64,
        parts: &[Part],
        atomic: bool,
        fua: bool,
        submitted: Outcome,
    ) -> Result<(), Failure> {
        if matches!(submitted, Outcome::Busy | Outcome::Done(Err(_))) {
            return self.submitted(tag, Asked::Change { op: 0, fua }, submitted);
        }
        let op = self.model.took_all(parts, atomic);
        if self.may_be_unreadable {
            for asked in self.asked.iter_mut().flatten() {
                let Asked::Read { lba, expected, since } = asked else { continue };
                let read = *lba..*lba + expected.len() as u64;
                let changed = parts.iter().flat_map(|part| part.lba..part.lba + part.count);
                since.extend(changed.filter(|lba| read.contains(lba)).map(|lba| (lba, self.model.current(lba))));
            }
        }
        self.submitted(tag, Asked::Change { op, fua }, submitted)
    }

    pub(crate) fn submitted(&mut self, tag: u64, asked: Asked, submitted: Outcome) -> Result<(), Failure> {
        match submitted {
            Outcome::Busy => self.poll(),
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

    pub(crate) fn poll(&mut self) -> Result<(), Failure> {
        match self.device().poll() {
            Some(completion) => self.answer(completion),
            None => Ok(()),
        }
    }

    pub(crate) fn answer(&mut self, completion: Completion) -> Result<(), Failure> {
        if completion.tag == CALL {
            // A call given up when the power failed.
            return Ok(());
        }
        let asked = self.asked[completion.tag as usize].take().expect("an answer to something that was asked");
        self.report.requests += 1;
        self.note(completion.tag, completion.result.is_ok());
        if self.store.is_off() {
            return Ok(());
        }
        match (asked, completion.result) {
            (Asked::Read { lba, expected, since }, Ok(buf)) => {
                let buf = buf.expect("a read gives its buffer");
                let sectors = buf.chunks_exact(self.plan.geometry.sector_bytes as usize);
                for ((lba, (op, zero)), sector) in (lba..).zip(expected).zip(sectors) {
                    let is =
                        |(of, op): &(u64, OpId)| *of == lba && payload::holds(sector, lba, *op, Model::is_zero(*op));
                    if !payload::holds(sector, lba, op, zero) && !since.iter().any(is) {
                        return Err(Failure::Wrong(format!("read of sector {lba} does not give version {op}")));
                    }
                }
            }
            (Asked::Change { op, fua }, Ok(_)) => self.model.answered(op, fua),
            (Asked::Flush { covers }, Ok(_)) => self.model.flushed(&covers),
            (Asked::Change { .. } | Asked::Flush { .. }, Err(IoError::NoSpace)) if self.may_lack_space => {}
            (Asked::Change { .. }, Err(IoError::Full)) if self.may_be_full() => self.report.full += 1,
            // It was deleted while it was being read.
            (Asked::Read { .. }, Err(IoError::NoSnapshot)) => {}
            (Asked::Read { .. }, Err(IoError::Media)) if self.may_be_unreadable => self.report.unreadable += 1,
            (Asked::Change { .. } | Asked::Flush { .. }, Err(IoError::Media)) if self.plan.errors => {
                // Whoever runs it may have enough of that.
                if self.random.one_in(6) {
                    self.store.switch_off();
                }
            }
            (_, Err(error)) => return Err(Failure::Wrong(format!("a request failed: {error}"))),
        }
        Ok(())
    }

    fn note(&mut self, tag: u64, ok: bool) {
        for byte in [tag as u8, u8::from(ok), self.store.commands() as u8] {
            self.report.hash = (self.report.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// How a request ended: a read's buffer, nothing, or why not.
pub(crate) type Answer = Result<Option<Vec<u8>>, IoError>;

/// A [`Submitted`] without the borrowed request.
pub(crate) enum Outcome {
    Done(Answer),
    Pending,
    Busy,
}

pub(crate) fn owned(submitted: Submitted<'_>) -> Outcome {
    match submitted {
        Submitted::Done(result) => Outcome::Done(result),
        Submitted::Pending => Outcome::Pending,
        Submitted::Busy(_) => Outcome::Busy,
    }
}
