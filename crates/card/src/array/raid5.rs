//! RAID 5: stripes dealt out in turn, one of each row holding parity, which moves from row to row.
//!
//! A write of a whole row needs no reads. A smaller one reads what it needs to know the new parity: either the old data and the old
//! parity (read-modify-write), or the rest of the row (reconstruct), whichever is fewer bytes; then it writes data and parity. One
//! such write at a time may be at work on a row, the others wait.

use std::collections::{HashMap, VecDeque};

use media::nand::{Server, micros};

use super::members::{Members, Parents, pieces};
use crate::agenda::{Agenda, Answers};
use crate::device::{Answer, Nanos, Op, Request, VirtualDevice};
use crate::report::{Busy, Report};
use crate::steps::Steps;

/// What a member's request is for.
#[derive(Clone, Copy)]
enum Purpose {
    /// Part of a host's request.
    Host(u32),
    /// Part of a row's write.
    Row(u32),
}

/// Striped devices with rotating parity.
pub struct Raid5 {
    members: Members<Purpose>,
    parents: Parents,
    answers: Answers,
    now: Nanos,
    controller: Server,
    request_time: Nanos,
    arriving: Agenda<(u32, Request)>,
    stripe: u64,
    bytes: u64,
    sector_bytes: u32,
    writes: Vec<RowWrite>,
    unused: Vec<u32>,
    /// Rows at work, and the writes that wait for them.
    rows: HashMap<u64, VecDeque<u32>>,
    host: Report,
}

/// A write of part of a row, or of all of it.
#[derive(Clone, Copy)]
struct RowWrite {
    parent: u32,
    row: u64,
    /// Data of the row that is written, in bytes from the row's start.
    from: u64,
    to: u64,
    pending: u32,
    reading: bool,
}

impl Raid5 {
    /// An array over devices. `request_us` is what every request takes in the controller, one after the other.
    pub fn new(devices: Vec<Box<dyn VirtualDevice>>, stripe_bytes: u64, request_us: f64) -> Self {
        let members = Members::new(devices);
        let data = (members.count() as u64).saturating_sub(1).max(1);
        Raid5 {
            bytes: members.smallest(stripe_bytes) * data,
            sector_bytes: members.sector_bytes(),
            members,
            parents: Parents::default(),
            answers: Answers::default(),
            now: 0,
            controller: Server::default(),
            request_time: micros(request_us),
            arriving: Agenda::default(),
            stripe: stripe_bytes,
            writes: Vec::new(),
            unused: Vec::new(),
            rows: HashMap::new(),
            host: Report::default(),
        }
    }

    /// Stripes of data in a row.
    fn data(&self) -> u64 {
        self.members.count() as u64 - 1
    }

    /// Bytes of data in a row.
    fn row_bytes(&self) -> u64 {
        self.data() * self.stripe
    }

    fn parity_member(&self, row: u64) -> u64 {
        let count = self.members.count() as u64;
        count - 1 - row % count
    }

    /// Where a data stripe of a row is: data begins behind the parity and goes round (left-symmetric).
    fn data_member(&self, row: u64, stripe: u64) -> u64 {
        (self.parity_member(row) + 1 + stripe) % self.members.count() as u64
    }

    fn arrived(&mut self, now: Nanos, tag: u32, request: Request) {
        let parent = self.parents.begin(tag);
        match request.op {
            Op::Flush => {
                for member in 0..self.members.count() {
                    self.parents.part(parent);
                    self.members.submit(now, member, request, Purpose::Host(parent));
                }
            }
            // Members that gave up a range could no longer answer for its parity.
            Op::Trim => {}
            Op::Read => self.read(now, parent, request),
            Op::Write => self.write(now, parent, request),
        }
        if let Some((tag, result)) = self.parents.done(parent, Ok(())) {
            self.answers.put(now, tag, result);
        }
    }

    fn read(&mut self, now: Nanos, parent: u32, request: Request) {
        let end = request.offset + u64::from(request.bytes);
        let mut at = request.offset;
        while at < end {
            let (row, within) = (at / self.row_bytes(), at % self.row_bytes());
            let take = (self.stripe - within % self.stripe).min(end - at);
            let member = self.data_member(row, within / self.stripe);
            let offset = row * self.stripe + within % self.stripe;
            for piece in pieces(Op::Read, offset, take) {
                self.parents.part(parent);
                self.members.submit(now, member as usize, piece, Purpose::Host(parent));
            }
            at += take;
        }
    }

    fn write(&mut self, now: Nanos, parent: u32, request: Request) {
        let end = request.offset + u64::from(request.bytes);
        let mut at = request.offset;
        while at < end {
            let (row, from) = (at / self.row_bytes(), at % self.row_bytes());
            let take = (self.row_bytes() - from).min(end - at);
            self.parents.part(parent);
            let write = RowWrite { parent, row, from, to: from + take, pending: 0, reading: false };
            let id = match self.unused.pop() {
                Some(id) => {
                    self.writes[id as usize] = write;
                    id
                }
                None => {
                    self.writes.push(write);
                    (self.writes.len() - 1) as u32
                }
            };
            match self.rows.get_mut(&row) {
                Some(waiting) => waiting.push_back(id),
                None => {
                    self.rows.insert(row, VecDeque::new());
                    self.begin_row(now, id);
                }
            }
            at += take;
        }
    }

    /// The row is free: read what the parity needs, if anything.
    fn begin_row(&mut self, now: Nanos, id: u32) {
        let RowWrite { row, from, to, .. } = self.writes[id as usize];
        let written = to - from;
        let (low, high) = self.columns(from, to);
        let modify = written + (high - low);
        let reconstruct = self.data() * (high - low) - written;
        if reconstruct <= modify {
            // Data that stays, in the columns whose parity changes.
            for stripe in 0..self.data() {
                let (start, end) = (stripe * self.stripe + low, stripe * self.stripe + high);
                let (new_from, new_to) = (from.clamp(start, end), to.clamp(start, end));
                if new_from == new_to {
                    self.row_part(now, id, Op::Read, start, end);
                } else {
                    self.row_part(now, id, Op::Read, start, new_from);
                    self.row_part(now, id, Op::Read, new_to, end);
                }
            }
        } else {
            self.row_part(now, id, Op::Read, from, to);
            self.parity_part(now, id, Op::Read, row, low, high);
        }
        if self.writes[id as usize].pending == 0 {
            self.write_row(now, id);
        } else {
            self.writes[id as usize].reading = true;
        }
    }

    /// The range within a stripe whose parity a write changes.
    fn columns(&self, from: u64, to: u64) -> (u64, u64) {
        if from / self.stripe == (to - 1) / self.stripe {
            (from % self.stripe, (to - 1) % self.stripe + 1)
        } else {
            (0, self.stripe)
        }
    }

    fn write_row(&mut self, now: Nanos, id: u32) {
        let RowWrite { row, from, to, .. } = self.writes[id as usize];
        self.writes[id as usize].reading = false;
        let (low, high) = self.columns(from, to);
        self.row_part(now, id, Op::Write, from, to);
        self.parity_part(now, id, Op::Write, row, low, high);
        self.host.parity_bytes += high - low;
    }

    /// Requests for a range of a row's data, one or more for each member it touches.
    fn row_part(&mut self, now: Nanos, id: u32, op: Op, from: u64, to: u64) {
        let row = self.writes[id as usize].row;
        let mut at = from;
        while at < to {
            let take = (self.stripe - at % self.stripe).min(to - at);
            let member = self.data_member(row, at / self.stripe);
            self.member_part(now, id, op, member, row * self.stripe + at % self.stripe, take);
            at += take;
        }
    }

    fn parity_part(&mut self, now: Nanos, id: u32, op: Op, row: u64, low: u64, high: u64) {
        self.member_part(now, id, op, self.parity_member(row), row * self.stripe + low, high - low);
    }

    fn member_part(&mut self, now: Nanos, id: u32, op: Op, member: u64, offset: u64, bytes: u64) {
        for piece in pieces(op, offset, bytes) {
            self.writes[id as usize].pending += 1;
            self.members.submit(now, member as usize, piece, Purpose::Row(id));
        }
    }

    fn collect(&mut self) {
        while let Some(answer) = self.members.answer() {
            match answer.purpose {
                Purpose::Host(parent) => {
                    if let Some((tag, result)) = self.parents.done(parent, answer.result) {
                        self.answers.put(answer.at, tag, result);
                    }
                }
                Purpose::Row(id) => {
                    let write = &mut self.writes[id as usize];
                    write.pending -= 1;
                    let (parent, row, reading, last) = (write.parent, write.row, write.reading, write.pending == 0);
                    if let Err(failure) = answer.result {
                        // The last part takes the request's own place, so this one is added for the failure.
                        self.parents.part(parent);
                        self.parents.done(parent, Err(failure));
                    }
                    if !last {
                        continue;
                    }
                    if reading {
                        self.write_row(answer.at, id);
                        continue;
                    }
                    self.unused.push(id);
                    if let Some((tag, result)) = self.parents.done(parent, Ok(())) {
                        self.answers.put(answer.at, tag, result);
                    }
                    match self.rows.get_mut(&row).and_then(VecDeque::pop_front) {
                        Some(next) => self.begin_row(answer.at, next),
                        None => {
                            self.rows.remove(&row);
                        }
                    }
                }
            }
        }
    }
}

impl Steps for Raid5 {
    fn next_step(&mut self) -> Nanos {
        self.members.next_event().min(self.arriving.next_at().unwrap_or(Nanos::MAX))
    }

    fn next_answer(&self) -> Nanos {
        self.answers.next_at().unwrap_or(Nanos::MAX)
    }

    fn step(&mut self, limit: Nanos) -> Nanos {
        let at = self.members.advance_to_answer(limit.min(self.arriving.next_at().unwrap_or(Nanos::MAX)));
        self.collect();
        while let Some((at, (tag, request))) = self.arriving.take(at) {
            self.arrived(at, tag, request);
        }
        self.collect();
        at
    }
}

impl VirtualDevice for Raid5 {
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
        match request.op {
            Op::Read => self.host.host_read_bytes += u64::from(request.bytes),
            Op::Write => self.host.host_written_bytes += u64::from(request.bytes),
            Op::Trim | Op::Flush => {}
        }
        let at = self.controller.serve(now, self.request_time);
        self.arriving.put(at, (tag, request));
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.next_of_all()
    }

    fn advance(&mut self, now: Nanos) {
        self.run(now);
        self.now = self.now.max(now);
        self.members.advance(now);
        self.collect();
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        self.now = self.now.max(self.run_to_answer(limit));
        self.now
    }

    fn answer(&mut self) -> Option<Answer> {
        self.answers.take(self.now)
    }

    fn report(&self) -> Report {
        let members = self.members.report();
        Report {
            host_read_bytes: self.host.host_read_bytes,
            host_written_bytes: self.host.host_written_bytes,
            parity_bytes: members.parity_bytes + self.host.parity_bytes,
            data_path: Busy { nanos: self.controller.busy(), count: 1 },
            ..members
        }
    }
}
