//! A closed loop for the tests of this crate.

use std::collections::BTreeMap;

use crate::device::{Nanos, Op, Request, VirtualDevice};

/// One request's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lived {
    pub request: Request,
    pub submitted: Nanos,
    pub answered: Nanos,
}

impl Lived {
    pub fn nanos(&self) -> Nanos {
        self.answered - self.submitted
    }
}

/// Keeps `outstanding` requests under way until there are no more; checks that each is answered once and well.
pub fn run(
    device: &mut dyn VirtualDevice,
    outstanding: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Lived> {
    let mut requests = requests.into_iter();
    let mut under_way: BTreeMap<u32, (Request, Nanos)> = BTreeMap::new();
    let mut lived = Vec::new();
    let (mut now, mut tag) = (0, 0);
    loop {
        while under_way.len() < outstanding {
            let Some(request) = requests.next() else { break };
            device.submit(now, tag, request);
            under_way.insert(tag, (request, now));
            tag += 1;
        }
        while let Some(answer) = device.answer() {
            assert!(answer.at <= now, "an answer from the future");
            let (request, submitted) = under_way.remove(&answer.tag).expect("answered once");
            assert_eq!(answer.result, Ok(()), "{request:?}");
            assert!(answer.at >= submitted);
            lived.push(Lived { request, submitted, answered: answer.at });
        }
        if under_way.len() < outstanding && requests.size_hint().0 > 0 {
            continue;
        }
        if under_way.is_empty() {
            return lived;
        }
        let next = device.next_event().expect("something is under way");
        assert!(next >= now, "time goes forward");
        now = next;
        device.advance(now);
    }
}

/// `count` requests of one kind at random places of the first `span` bytes.
pub fn random(op: Op, count: usize, bytes: u32, span: u64, seed: u64) -> Vec<Request> {
    let mut random = random::SplitMix64::new(seed);
    let places = span / u64::from(bytes);
    (0..count).map(|_| Request::new(op, random.below(places) * u64::from(bytes), bytes)).collect()
}

/// `count` requests of one kind, one behind the other.
pub fn sequential(op: Op, count: usize, bytes: u32, from: u64) -> Vec<Request> {
    (0..count).map(|at| Request::new(op, from + at as u64 * u64::from(bytes), bytes)).collect()
}

/// Bytes a second over a whole run.
pub fn bytes_per_s(lived: &[Lived]) -> f64 {
    let bytes: f64 = lived.iter().map(|it| f64::from(it.request.bytes)).sum();
    let end = lived.iter().map(|it| it.answered).max().unwrap_or(1);
    bytes * 1e9 / end as f64
}

/// Mean latency, nanoseconds.
pub fn mean(lived: &[Lived]) -> f64 {
    lived.iter().map(|it| it.nanos() as f64).sum::<f64>() / lived.len() as f64
}

/// A device that takes a fixed time for each request, any number at once, and keeps a log of what it was asked.
pub struct Fixed {
    pub nanos: Nanos,
    pub size: u64,
    pub log: std::rc::Rc<std::cell::RefCell<Vec<(Nanos, Request)>>>,
    /// Requests of this kind fail.
    pub fails: Option<Op>,
    now: Nanos,
    answers: crate::agenda::Answers,
}

impl Fixed {
    pub fn new(nanos: Nanos, size: u64) -> Self {
        Fixed { nanos, size, log: Default::default(), fails: None, now: 0, answers: Default::default() }
    }
}

impl VirtualDevice for Fixed {
    fn sector_bytes(&self) -> u32 {
        512
    }

    fn bytes(&self) -> u64 {
        self.size
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        self.log.borrow_mut().push((now, request));
        let fails = self.fails == Some(request.op);
        let result = if fails { Err(crate::device::Failure::Media) } else { request.check(self.size, 512) };
        self.answers.put(now + self.nanos, tag, result);
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.answers.next_at()
    }

    fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    fn answer(&mut self) -> Option<crate::device::Answer> {
        self.answers.take(self.now)
    }

    fn report(&self) -> crate::report::Report {
        let bytes =
            |op| self.log.borrow().iter().filter(|(_, it)| it.op == op).map(|(_, it)| u64::from(it.bytes)).sum();
        crate::report::Report {
            host_read_bytes: bytes(Op::Read),
            host_written_bytes: bytes(Op::Write),
            ..crate::report::Report::default()
        }
    }
}
