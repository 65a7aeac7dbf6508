//! Arrays of devices: RAID 0 and RAID 1 here, RAID 5 in `raid5.rs`.

mod members;
mod raid5;
mod write_back;

use media::nand::micros;

use crate::agenda::Answers;
use crate::device::{Answer, Nanos, Op, Request, VirtualDevice};
use crate::report::Report;
use crate::snapshots::Schedule;
use crate::steps::Steps;
use members::pieces;

pub use members::{MemberAnswer, Members, Parents};
pub use raid5::Raid5;
pub use write_back::WriteBack;

/// Data striped over devices, or mirrored on all of them, as an operating system or a controller without memory does it.
///
/// RAID 0 joins the stripes of a request that follow each other on a member. RAID 1 reads from the member with the fewest requests under way,
/// in turn when they are equal, and writes to all of them.
pub struct Array {
    members: Members<u32>,
    parents: Parents,
    answers: Answers,
    now: Nanos,
    mirrored: bool,
    stripe: u64,
    /// What a request takes on top, any number at the same time.
    latency: Nanos,
    bytes: u64,
    sector_bytes: u32,
    turn: usize,
}

impl Array {
    /// Stripes of so many bytes, dealt out in turn.
    pub fn striped(devices: Vec<Box<dyn VirtualDevice>>, stripe_bytes: u64) -> Self {
        let count = devices.len() as u64;
        let mut array = Self::of(devices, stripe_bytes, false);
        array.bytes *= count;
        array
    }

    /// The same array, where the software that makes it takes so many microseconds of each request; any number at the same time.
    pub fn taking(mut self, request_us: f64) -> Self {
        self.latency = micros(request_us);
        self
    }

    /// The same on all.
    pub fn mirrored(devices: Vec<Box<dyn VirtualDevice>>) -> Self {
        Self::of(devices, 4096, true)
    }

    fn of(devices: Vec<Box<dyn VirtualDevice>>, stripe: u64, mirrored: bool) -> Self {
        let members = Members::new(devices);
        Array {
            bytes: members.smallest(stripe),
            sector_bytes: members.sector_bytes(),
            members,
            parents: Parents::default(),
            answers: Answers::default(),
            now: 0,
            mirrored,
            stripe,
            latency: 0,
            turn: 0,
        }
    }

    fn part(&mut self, now: Nanos, parent: u32, member: usize, request: Request) {
        self.parents.part(parent);
        self.members.submit(now, member, request, parent);
    }

    fn mirror(&mut self, now: Nanos, parent: u32, request: Request) {
        if request.op == Op::Read {
            let count = self.members.count();
            let order = (0..count).map(|step| (self.turn + step) % count);
            let member = order.min_by_key(|member| self.members.load(*member)).unwrap_or(0);
            self.turn = (member + 1) % count;
            self.part(now, parent, member, request);
        } else {
            for member in 0..self.members.count() {
                self.part(now, parent, member, request);
            }
        }
    }

    fn stripe(&mut self, now: Nanos, parent: u32, request: Request) {
        let count = self.members.count() as u64;
        if request.op == Op::Flush {
            for member in 0..self.members.count() {
                self.part(now, parent, member, request);
            }
            return;
        }
        let end = request.offset + u64::from(request.bytes);
        let (first, last) = (request.offset / self.stripe, (end - 1) / self.stripe);
        // Of each member the request touches one range without gaps: stripes in between lie on the others.
        for chunk in first..=last.min(first + count - 1) {
            let member = chunk % count;
            let last_here = last - (last - chunk) % count;
            let from = chunk / count * self.stripe + if chunk == first { request.offset % self.stripe } else { 0 };
            let to = last_here / count * self.stripe
                + if last_here == last { (end - 1) % self.stripe + 1 } else { self.stripe };
            for piece in pieces(request.op, from, to - from) {
                self.part(now, parent, member as usize, piece);
            }
        }
    }

    fn collect(&mut self) {
        while let Some(answer) = self.members.answer() {
            if let Some((tag, result)) = self.parents.done(answer.purpose, answer.result) {
                self.answers.put(answer.at + self.latency, tag, result);
            }
        }
    }
}

impl Steps for Array {
    fn next_step(&mut self) -> Nanos {
        self.members.next_event()
    }

    fn next_answer(&self) -> Nanos {
        self.answers.next_at().unwrap_or(Nanos::MAX)
    }

    fn step(&mut self, limit: Nanos) -> Nanos {
        let at = self.members.advance_to_answer(limit);
        self.collect();
        at
    }
}

impl VirtualDevice for Array {
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        if let Err(failure) = request.check(self.bytes, self.sector_bytes) {
            self.answers.put(now, tag, Err(failure));
            return;
        }
        let parent = self.parents.begin(tag);
        if self.mirrored {
            self.mirror(now, parent, request);
        } else {
            self.stripe(now, parent, request);
        }
        if let Some((tag, result)) = self.parents.done(parent, Ok(())) {
            self.answers.put(now, tag, result);
        }
        self.collect();
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.next_of_all()
    }

    fn advance(&mut self, now: Nanos) {
        self.run(now);
        self.members.advance(now);
        self.collect();
        self.now = self.now.max(now);
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        self.now = self.now.max(self.run_to_answer(limit));
        self.now
    }

    fn answer(&mut self) -> Option<Answer> {
        self.collect();
        self.answers.take(self.now)
    }

    fn hint(&self, offset: u64) {
        if !self.mirrored {
            let (chunk, count) = (offset / self.stripe, self.members.count() as u64);
            self.members.hint((chunk % count) as usize, chunk / count * self.stripe + offset % self.stripe);
        }
    }

    fn keep_snapshots(&mut self, now: Nanos, schedule: Schedule) -> bool {
        self.members.keep_snapshots(now, schedule)
    }

    fn report(&self) -> Report {
        self.members.report()
    }
}

#[cfg(test)]
mod tests;
