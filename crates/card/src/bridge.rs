//! A bridge in front of a device: the link to the host, what every request costs on it, and how many it hands on at once.

use std::collections::VecDeque;

use media::nand::{Server, micros};

use crate::agenda::{Agenda, Answers, transfer};
use crate::device::{Answer, Failure, Nanos, Op, Request, VirtualDevice};
use crate::report::{Busy, Report};
use crate::snapshots::Schedule;
use crate::steps::Steps;

/// A device behind a bridge.
pub struct Bridge {
    inner: Box<dyn VirtualDevice>,
    request_time: Nanos,
    latency: Nanos,
    queue_depth: usize,
    bytes_per_s: u64,
    front: Server,
    /// To the host, and from it; one and the same when the link carries one direction at a time.
    links: [Server; 2],
    duplex: bool,
    steps: Agenda<Step>,
    /// Requests that wait until the device has a place.
    waiting: VecDeque<(u32, Request)>,
    /// What is on the device: bytes that go to the host when it answers.
    under_way: usize,
    reads: std::collections::HashMap<u32, u32>,
    answers: Answers,
    now: Nanos,
}

/// A request comes one step further.
#[derive(Clone, Copy)]
enum Step {
    /// It is through the bridge's own work.
    Through(u32, Request),
    /// It and its data are at the device's side.
    Arrived(u32, Request),
    /// The device has answered; data goes to the host.
    Back(u32, u32, Result<(), Failure>),
}

impl Bridge {
    /// A bridge as its data sheet says in front of a device.
    pub fn new(inner: Box<dyn VirtualDevice>, sheet: &profile::Bridge) -> Self {
        Bridge {
            inner,
            request_time: micros(sheet.request_us),
            latency: micros(sheet.latency_us),
            queue_depth: sheet.queue_depth as usize,
            bytes_per_s: sheet.link_bytes_per_s,
            front: Server::default(),
            links: [Server::default(); 2],
            duplex: sheet.full_duplex,
            steps: Agenda::default(),
            waiting: VecDeque::new(),
            under_way: 0,
            reads: std::collections::HashMap::new(),
            answers: Answers::default(),
            now: 0,
        }
    }

    fn link(&mut self, to_host: bool, now: Nanos, bytes: u32) -> Nanos {
        let time = transfer(u64::from(bytes), self.bytes_per_s);
        let link = usize::from(self.duplex && !to_host);
        self.links[link].serve(now, time)
    }

    fn go_on(&mut self, at: Nanos, step: Step) {
        match step {
            Step::Through(tag, request) => {
                let there = if request.op == Op::Write { self.link(false, at, request.bytes) } else { at };
                // What it waits on top passes before the device sees it.
                self.steps.put(there + self.latency, Step::Arrived(tag, request));
            }
            Step::Arrived(tag, request) => {
                if self.under_way < self.queue_depth {
                    self.hand_on(at, tag, request);
                } else {
                    self.waiting.push_back((tag, request));
                }
            }
            Step::Back(tag, bytes, result) => {
                let done = if bytes > 0 { self.link(true, at, bytes) } else { at };
                self.answers.put(done, tag, result);
            }
        }
    }

    fn hand_on(&mut self, at: Nanos, tag: u32, request: Request) {
        self.under_way += 1;
        if request.op == Op::Read {
            self.reads.insert(tag, request.bytes);
        }
        self.inner.submit(at, tag, request);
    }

    fn collect(&mut self) {
        while let Some(answer) = self.inner.answer() {
            self.under_way -= 1;
            let bytes = self.reads.remove(&answer.tag).unwrap_or(0);
            self.steps.put(answer.at, Step::Back(answer.tag, bytes, answer.result));
            if let Some((tag, request)) = self.waiting.pop_front() {
                self.hand_on(answer.at, tag, request);
            }
        }
    }
}

impl Steps for Bridge {
    fn next_step(&mut self) -> Nanos {
        self.inner.next_event().unwrap_or(Nanos::MAX).min(self.steps.next_at().unwrap_or(Nanos::MAX))
    }

    fn next_answer(&self) -> Nanos {
        self.answers.next_at().unwrap_or(Nanos::MAX)
    }

    fn step(&mut self, limit: Nanos) -> Nanos {
        let at = self.inner.advance_to_answer(limit.min(self.steps.next_at().unwrap_or(Nanos::MAX)));
        self.collect();
        while let Some((at, step)) = self.steps.take(at) {
            self.go_on(at, step);
        }
        self.collect();
        at
    }
}

impl VirtualDevice for Bridge {
    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn placements(&self) -> u8 {
        self.inner.placements()
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        if let Err(failure) = request.check(self.bytes(), self.sector_bytes()) {
            self.answers.put(now, tag, Err(failure));
            return;
        }
        let at = self.front.serve(now, self.request_time);
        self.steps.put(at, Step::Through(tag, request));
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.next_of_all()
    }

    fn advance(&mut self, now: Nanos) {
        self.run(now);
        self.inner.advance(now);
        self.collect();
        while let Some((at, step)) = self.steps.take(now) {
            self.go_on(at, step);
        }
        self.now = self.now.max(now);
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        self.now = self.now.max(self.run_to_answer(limit));
        self.now
    }

    fn answer(&mut self) -> Option<Answer> {
        self.answers.take(self.now)
    }

    fn hint(&self, offset: u64) {
        self.inner.hint(offset);
    }

    fn keep_snapshots(&mut self, now: Nanos, schedule: Schedule) -> bool {
        self.inner.keep_snapshots(now, schedule)
    }

    fn extent(&self, offset: u64, bytes: u64) -> Option<(u64, bool)> {
        self.inner.extent(offset, bytes)
    }

    fn report(&self) -> Report {
        let links = self.links.iter().take(if self.duplex { 2 } else { 1 });
        let (nanos, count) = links.fold((0, 0), |(nanos, count), link| (nanos + link.busy(), count + 1));
        Report { link: Busy { nanos, count }, ..self.inner.report() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixed, bytes_per_s, mean, random, run};

    fn sheet(full_duplex: bool) -> profile::Bridge {
        profile::Bridge {
            link_bytes_per_s: 100_000_000,
            full_duplex,
            request_us: 10.0,
            latency_us: 20.0,
            queue_depth: 32,
            stripe_bytes: 65536,
        }
    }

    fn bridge(sheet: &profile::Bridge) -> Bridge {
        Bridge::new(Box::new(Fixed::new(50_000, 1 << 40)), sheet)
    }

    #[test]
    fn one_request_takes_the_sum_of_its_steps() {
        for op in [Op::Read, Op::Write] {
            let lived = run(&mut bridge(&sheet(false)), 1, random(op, 100, 4096, 1 << 30, 1));
            assert_eq!(mean(&lived), 10_000.0 + 20_000.0 + 50_000.0 + 40_960.0, "{op:?}");
        }
    }

    #[test]
    fn many_are_bound_by_the_link_or_the_cost_of_each() {
        let rate =
            |bytes| bytes_per_s(&run(&mut bridge(&sheet(true)), 64, random(Op::Read, 20_000, bytes, 1 << 30, 1)));
        assert!((rate(65_536) / 100e6 - 1.0).abs() < 0.01);
        assert!((rate(512) / 512.0 / 100_000.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn directions_share_a_link_unless_it_is_duplex() {
        let mut mixed = random(Op::Read, 10_000, 65_536, 1 << 30, 1);
        for request in mixed.iter_mut().step_by(2) {
            request.op = Op::Write;
        }
        let rate = |duplex| bytes_per_s(&run(&mut bridge(&sheet(duplex)), 64, mixed.clone()));
        assert!((rate(false) / 100e6 - 1.0).abs() < 0.01);
        assert!(rate(true) > 190e6);
    }

    #[test]
    fn no_more_than_its_queue_is_handed_on() {
        let mut sheet = sheet(true);
        (sheet.queue_depth, sheet.request_us, sheet.latency_us) = (4, 0.0, 0.0);
        let lived = run(&mut bridge(&sheet), 64, random(Op::Write, 10_000, 512, 1 << 30, 1));
        // Four at a time, 50 us each.
        assert!((bytes_per_s(&lived) / 512.0 / 80_000.0 - 1.0).abs() < 0.01);
    }
}
