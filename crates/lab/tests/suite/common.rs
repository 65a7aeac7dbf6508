//! A device for which theory is known, and ways to run workloads on it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use card::{Answer, Failure, Nanos, Op, Report, Request, VirtualDevice};
use lab::engine::RunError;
use lab::engine::virtual_time::{self, Options};
use lab::results::Results;
use lab::workload::{Workload, from_toml};

/// Servers that each take a fixed time for a request, one queue before them, and a time that every request waits on top.
#[derive(Clone, Debug)]
pub struct Servers {
    pub bytes: u64,
    pub sector: u32,
    pub service: Nanos,
    pub wait: Nanos,
    /// When each server is free.
    pub free: Vec<Nanos>,
    /// Planted fault: the request of this number is never answered.
    pub lose: Option<u64>,
    /// Planted fault: the request of this number is answered twice.
    pub repeat: Option<u64>,
    /// Requests from this number on fail.
    pub fail_from: Option<u64>,
    pub log: Vec<(Nanos, Request)>,
    pub keep_log: bool,
    /// Requests, for who gives the device away.
    pub shared_log: Option<Rc<RefCell<Vec<Request>>>>,
    count: u64,
    pending: BinaryHeap<Reverse<(Nanos, u64, u32, bool)>>,
    now: Nanos,
    report: Report,
}

impl Servers {
    pub fn new(servers: usize, service: Nanos, wait: Nanos) -> Servers {
        Servers {
            bytes: 1 << 30,
            sector: 512,
            service,
            wait,
            free: vec![0; servers],
            lose: None,
            repeat: None,
            fail_from: None,
            log: Vec::new(),
            keep_log: false,
            shared_log: None,
            count: 0,
            pending: BinaryHeap::new(),
            now: 0,
            report: Report::default(),
        }
    }

    pub fn boxed(self) -> Vec<Box<dyn VirtualDevice>> {
        vec![Box::new(self)]
    }
}

impl VirtualDevice for Servers {
    fn sector_bytes(&self) -> u32 {
        self.sector
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        assert!(now >= self.now, "time went backwards");
        assert!(request.offset + u64::from(request.bytes) <= self.bytes, "{request:?} lies outside");
        assert!(request.offset.is_multiple_of(u64::from(self.sector)), "{request:?} is not on a sector");
        self.now = now;
        if let Some(log) = &self.shared_log {
            log.borrow_mut().push(request);
        }
        if self.keep_log {
            self.log.push((now, request));
        }
        let free = self.free.iter_mut().min().expect("a server");
        *free = now.max(*free) + self.service;
        let at = *free + self.wait;
        self.count += 1;
        match request.op {
            Op::Read => self.report.host_read_bytes += u64::from(request.bytes),
            Op::Write => self.report.host_written_bytes += u64::from(request.bytes),
            Op::Trim | Op::Flush => {}
        }
        if self.lose == Some(self.count) {
            return;
        }
        let fails = self.fail_from.is_some_and(|from| self.count >= from);
        self.pending.push(Reverse((at, self.count, tag, fails)));
        if self.repeat == Some(self.count) {
            self.pending.push(Reverse((at, self.count, tag, fails)));
        }
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.pending.peek().map(|Reverse((at, ..))| *at)
    }

    fn advance(&mut self, now: Nanos) {
        assert!(now >= self.now, "time went backwards");
        self.now = now;
    }

    fn answer(&mut self) -> Option<Answer> {
        let Reverse((at, _, tag, fails)) = self.pending.peek().copied()?;
        if at > self.now {
            return None;
        }
        self.pending.pop();
        Some(Answer { tag, at, result: if fails { Err(Failure::ReadOnly) } else { Ok(()) } })
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}

/// A workload of one phase with one load.
pub fn workload(stop: &str, load: &str) -> Workload {
    let text = format!("name = \"w\"\n[[phase]]\nname = \"measure\"\nstop = {{ {stop} }}\n[[phase.load]]\n{load}\n");
    from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn try_run(workload: &Workload, device: Servers, driver: profile::Driver) -> Result<Results, RunError> {
    let options = Options { driver, ..Options::default() };
    virtual_time::run(workload, &mut device.boxed(), &options, &mut ()).map(|(results, _)| results)
}

pub fn run(workload: &Workload, device: Servers, driver: profile::Driver) -> Results {
    try_run(workload, device, driver).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
pub fn close(what: &str, got: f64, expected: f64, tolerance: f64) {
    assert!((got / expected - 1.0).abs() <= tolerance, "{what}: {got}, expected {expected}");
}
