//! The members of an array, and which of their requests are under way for what.

use crate::device::{Failure, Nanos, Op, Request, VirtualDevice};
use crate::report::Report;
use crate::snapshots::Schedule;

/// Devices, and a purpose `P` for each request under way on them.
pub struct Members<P> {
    devices: Vec<Box<dyn VirtualDevice>>,
    purposes: Vec<Option<P>>,
    unused: Vec<u32>,
    under_way: Vec<u32>,
    looks: Vec<Look>,
}

/// What is known of a member since it was last asked.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// When it does something next by itself, `Nanos::MAX` for never; unknown since it was told something.
    next: Option<Nanos>,
    /// It may have answers.
    answers: bool,
}

impl Look {
    /// Of a member that was told something.
    const TOLD: Look = Look { next: None, answers: true };
}

/// A member's answer.
pub struct MemberAnswer<P> {
    /// When it answered.
    pub at: Nanos,
    /// What its request was for.
    pub purpose: P,
    /// How it ended.
    pub result: Result<(), Failure>,
}

impl<P> Members<P> {
    /// These, with nothing under way.
    pub fn new(devices: Vec<Box<dyn VirtualDevice>>) -> Self {
        let (under_way, looks) = (vec![0; devices.len()], vec![Look::TOLD; devices.len()]);
        Members { devices, purposes: Vec::new(), unused: Vec::new(), under_way, looks }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.devices.len()
    }

    /// The largest sector of any of them.
    pub fn sector_bytes(&self) -> u32 {
        self.devices.iter().map(|device| device.sector_bytes()).max().unwrap_or(512)
    }

    /// What the smallest of them holds, in whole stripes.
    pub fn smallest(&self, stripe: u64) -> u64 {
        let bytes = self.devices.iter().map(|device| device.bytes()).min().unwrap_or(0);
        bytes / stripe * stripe
    }

    /// Requests under way on one.
    pub fn load(&self, member: usize) -> u32 {
        self.under_way[member]
    }

    /// Gives one of them a request.
    pub fn submit(&mut self, now: Nanos, member: usize, request: Request, purpose: P) {
        let tag = self.unused.pop().unwrap_or_else(|| {
            self.purposes.push(None);
            (self.purposes.len() - 1) as u32
        });
        self.purposes[tag as usize] = Some(purpose);
        self.under_way[member] += 1;
        self.devices[member].submit(now, tag, request);
        self.looks[member] = Look::TOLD;
    }

    /// When each of them does something next by itself, `Nanos::MAX` for never.
    fn next(&mut self) -> impl Iterator<Item = (usize, Nanos)> {
        let known = self
            .looks
            .iter_mut()
            .zip(&mut self.devices)
            .map(|(look, device)| *look.next.get_or_insert_with(|| device.next_event().unwrap_or(Nanos::MAX)));
        known.enumerate()
    }

    /// When one of them does something next by itself; `Nanos::MAX` when none will.
    pub fn next_event(&mut self) -> Nanos {
        self.next().map(|(_, at)| at).min().unwrap_or(Nanos::MAX)
    }

    /// Lets everything happen up to and including `now`.
    pub fn advance(&mut self, now: Nanos) {
        for (device, look) in self.devices.iter_mut().zip(&mut self.looks) {
            device.advance(now);
            *look = Look::TOLD;
        }
    }

    /// Lets everything happen up to the next answer of the one that does something first, or to the next event of another, at most up to
    /// `limit`; gives the moment it came to. Members with nothing to do by then are left where they are: a request or
    /// [`Members::advance`] takes them along.
    pub fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        let (mut first, mut earliest, mut second) = (0, Nanos::MAX, Nanos::MAX);
        for (member, at) in self.next() {
            if at < earliest {
                (first, earliest, second) = (member, at, earliest);
            } else {
                second = second.min(at);
            }
        }
        if earliest > limit {
            return limit;
        }
        let at = self.devices[first].advance_to_answer(limit.min(second));
        self.looks[first] = Look::TOLD;
        if second <= at {
            for (device, look) in self.devices.iter_mut().zip(&mut self.looks) {
                if look.next.is_some_and(|next| next <= at) {
                    device.advance(at);
                    *look = Look::TOLD;
                }
            }
        }
        at
    }

    /// One of them.
    pub fn device(&self, member: usize) -> &dyn VirtualDevice {
        &*self.devices[member]
    }

    /// The next answer of any member.
    pub fn answer(&mut self) -> Option<MemberAnswer<P>> {
        for (member, (device, look)) in self.devices.iter_mut().zip(&mut self.looks).enumerate() {
            if !look.answers {
                continue;
            }
            let Some(answer) = device.answer() else {
                look.answers = false;
                continue;
            };
            // One that waits to be taken is an event.
            look.next = None;
            // Members answer each tag once, so its purpose is there.
            let Some(purpose) = self.purposes.get_mut(answer.tag as usize).and_then(Option::take) else { continue };
            self.unused.push(answer.tag);
            self.under_way[member] -= 1;
            return Some(MemberAnswer { at: answer.at, purpose, result: answer.result });
        }
        None
    }

    /// Says that a request to one of them comes soon.
    pub fn hint(&self, member: usize, offset: u64) {
        self.devices[member].hint(offset);
    }

    /// Has all of them make snapshots. Returns whether they can.
    pub fn keep_snapshots(&mut self, now: Nanos, schedule: Schedule) -> bool {
        self.looks.fill(Look::TOLD);
        self.devices.iter_mut().all(|device| device.keep_snapshots(now, schedule))
    }

    /// What all of them did together.
    pub fn report(&self) -> Report {
        Report::combined(self.devices.iter().map(|device| device.report()))
    }
}

/// Requests of the host that are under way: how many parts of each are not answered.
#[derive(Debug, Default)]
pub struct Parents {
    held: Vec<Parent>,
    unused: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Parent {
    tag: u32,
    parts: u32,
    result: Result<(), Failure>,
}

impl Parents {
    /// A request with one part that is about to be split; [`Parents::done`] takes that part back.
    pub fn begin(&mut self, tag: u32) -> u32 {
        let parent = Parent { tag, parts: 1, result: Ok(()) };
        match self.unused.pop() {
            Some(at) => {
                self.held[at as usize] = parent;
                at
            }
            None => {
                self.held.push(parent);
                (self.held.len() - 1) as u32
            }
        }
    }

    /// One part more.
    pub fn part(&mut self, parent: u32) {
        self.held[parent as usize].parts += 1;
    }

    /// One part is done. Gives the request's tag and result when it was the last.
    pub fn done(&mut self, parent: u32, result: Result<(), Failure>) -> Option<(u32, Result<(), Failure>)> {
        let held = &mut self.held[parent as usize];
        held.parts -= 1;
        if held.result.is_ok() {
            held.result = result;
        }
        if held.parts > 0 {
            return None;
        }
        let answer = (held.tag, held.result);
        self.unused.push(parent);
        Some(answer)
    }
}

/// The largest request that a member is given; larger parts are cut, as operating systems do.
const LARGEST: u64 = 1 << 20;

/// Cuts a range of a member into requests.
pub fn pieces(op: Op, offset: u64, bytes: u64) -> impl Iterator<Item = Request> {
    (0..bytes.div_ceil(LARGEST)).map(move |at| {
        let from = at * LARGEST;
        Request::new(op, offset + from, (bytes - from).min(LARGEST) as u32)
    })
}
