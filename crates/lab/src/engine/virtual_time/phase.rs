//! One phase: the event loop over host and devices.

use std::borrow::Cow;

use card::{Nanos, Op, Report, Request, VirtualDevice};

use super::Options;
use super::events::{Event, Events};
use super::flights::{Flights, Stage};
use super::lane::Lane;
use super::threads::{Thread, seed_of};
use super::window::{Counted, Window};
use crate::engine::{Position, Progress, RunError};
use crate::generate::{Feed, Plan, Sequence, Shape, Share};
use crate::host::Costs;
use crate::results::Ended;
use crate::workload::{Invalid, Load, Phase, Workload};

/// Rounds of the loop between two looks at whoever watches.
const ROUNDS_BETWEEN_LOOKS: u32 = 1 << 14;
/// Requests at one moment after which time is taken to stand still.
const MOST_AT_ONE_MOMENT: u64 = 5_000_000;
/// How long any answer is waited for before the outstanding requests count as lost.
const PATIENCE: Nanos = 3_600_000_000_000;

/// A phase under way.
pub struct PhaseRun<'a> {
    workload: &'a Workload,
    at: usize,
    lanes: Vec<Lane<'a>>,
    costs: Costs,
    /// For each load in turn, one for each device.
    plans: Vec<Plan>,
    sequences: Vec<Sequence>,
    /// What may still be asked of each device, bytes.
    budgets: Vec<u64>,
    /// The same, at the beginning.
    budget: Option<u64>,
    threads: Vec<Thread>,
    flights: Flights,
    events: Events,
    window: Window,
    now: Nanos,
    /// No new requests are made.
    stopping: bool,
    /// When a thread last saw an answer.
    answered_at: Nanos,
    submitted: u64,
    /// The same, at the end of the moment before.
    submitted_before: u64,
    /// Only time ends the phase.
    timed: bool,
    completed: u64,
    not_started: u64,
    outstanding_at_device: f64,
    failure: Option<String>,
}

/// What a phase comes to.
pub struct Outcome {
    /// When counting began.
    pub from: Nanos,
    /// Requests submitted.
    pub submitted: u64,
    /// Requests answered.
    pub completed: u64,
    /// Arrivals that could not be made in time.
    pub not_started: u64,
    /// Requests at the devices on average.
    pub outstanding_at_device: f64,
    /// What was counted.
    pub counted: Counted,
}

/// Every load of a phase, made ready for every device.
pub fn plans(phase: &Phase, shapes: &[Shape]) -> Result<Vec<Plan>, Invalid> {
    let mut plans = Vec::with_capacity(phase.loads.len() * shapes.len());
    for (at, load) in phase.loads.iter().enumerate() {
        let invalid = |problem| Invalid { place: place(phase, at), problem };
        if phase.stop.capacities.is_some() && load.trace.is_none() && (load.threads as usize) < shapes.len() {
            return Err(invalid(format!(
                "{} threads cannot cover {} devices, and stop.capacities is about all of them; give at least {}",
                load.threads,
                shapes.len(),
                shapes.len()
            )));
        }
        for (device, shape) in (0..).zip(shapes) {
            let share = Share { device, devices: shapes.len() as u32 };
            plans.push(Plan::dealt(load, *shape, share).map_err(invalid)?);
        }
    }
    Ok(plans)
}

/// A load as its threads do it: a trace has one thread for each device, which share its depth.
fn dealt(load: &Load, devices: u32) -> Cow<'_, Load> {
    if load.trace.is_none() || devices < 2 {
        return Cow::Borrowed(load);
    }
    Cow::Owned(Load { threads: devices, depth: Some(load.depth().div_ceil(devices)), ..load.clone() })
}

/// What errors call a load.
fn place(phase: &Phase, load: usize) -> String {
    format!("phase '{}', {}", phase.name, phase.loads[load].called(load))
}

impl<'a> PhaseRun<'a> {
    /// Phase number `at`, beginning `now`, with its loads made ready for the devices by [`plans`].
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        workload: &'a Workload,
        at: usize,
        devices: &'a mut [Box<dyn VirtualDevice>],
        shapes: &[Shape],
        plans: Vec<Plan>,
        costs: Costs,
        options: &Options,
        now: Nanos,
    ) -> Result<PhaseRun<'a>, Invalid> {
        let phase = &workload.phases[at];
        // A trace is dealt out to all devices, and so is its depth.
        let devices_count = shapes.len() as u32;
        let loads: Vec<Cow<'_, Load>> = phase.loads.iter().map(|load| dealt(load, devices_count)).collect();
        let used = loads.iter().map(|load| load.threads).max().unwrap_or(0).clamp(1, devices_count);
        let capacity: u64 = shapes.iter().map(|shape| shape.bytes).sum();
        let whole = phase.stop.capacities.map(|times| (capacity as f64 * times) as u64);
        let budget = [whole, phase.stop.bytes.map(|bytes| bytes.0)].into_iter().flatten().min();
        let budgets = (0..shapes.len() as u64)
            .map(|device| match budget {
                None => u64::MAX,
                Some(_) if whole == budget => {
                    (shapes[device as usize].bytes as f64 * phase.stop.capacities.unwrap_or(1.0)) as u64
                }
                Some(bytes) => bytes / u64::from(used) + u64::from(device < bytes % u64::from(used)),
            })
            .collect();
        let mut threads = Vec::new();
        for (load_at, load) in loads.iter().enumerate() {
            for number in 0..load.threads {
                let device = number % devices_count;
                let plan = &plans[load_at * shapes.len() + device as usize];
                let left = load.thread_bytes.map_or(u64::MAX, |extent| extent.of(shapes[device as usize].bytes));
                let seed = seed_of(workload.seed, at, load_at, number);
                let mut thread = Thread::new(load, load_at, number, device, devices_count, plan, left, seed, now);
                if let Some(trace) = &plan.trace {
                    let invalid = |problem| Invalid { place: place(phase, load_at), problem };
                    thread.feed = Some(trace.feed(now).map_err(invalid)?);
                }
                threads.push(thread);
            }
        }
        let places: usize = threads.iter().map(|thread| thread.depth as usize).sum();
        let from = now.saturating_add(phase.ramp.nanos());
        let until = phase.stop.duration.map_or(Nanos::MAX, |duration| from.saturating_add(duration.nanos()));
        Ok(PhaseRun {
            workload,
            at,
            lanes: (0..)
                .zip(devices)
                .map(|(lane, device)| Lane::new(device.as_mut(), now, places, !seed_of(workload.seed, at, lane, 0)))
                .collect(),
            costs,
            sequences: vec![Sequence::default(); plans.len()],
            plans,
            budgets,
            budget,
            threads,
            flights: Flights::new(places),
            events: Events::default(),
            window: Window::new(&phase.loads, from, until, options),
            now,
            stopping: false,
            answered_at: now,
            submitted: 0,
            submitted_before: 0,
            timed: phase.stop.duration.is_some() && budget.is_none(),
            completed: 0,
            not_started: 0,
            outstanding_at_device: 0.0,
            failure: None,
        })
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// What it comes to.
    pub fn outcome(self) -> Outcome {
        Outcome {
            from: self.window.from,
            submitted: self.submitted,
            completed: self.completed,
            not_started: self.not_started,
            outstanding_at_device: self.outstanding_at_device,
            counted: self.window.counted(),
        }
    }

    /// Runs it to its end. Gives how the whole run ended, if this is the end of it.
    pub fn run(&mut self, progress: &mut dyn Progress) -> Result<Option<Ended>, RunError> {
        let mut interrupted = false;
        let mut rounds = 0u32;
        self.watch();
        for thread in 0..self.threads.len() {
            self.issue(thread as u32);
        }
        self.settle()?;
        while !self.over() {
            rounds += 1;
            if rounds == ROUNDS_BETWEEN_LOOKS {
                rounds = 0;
                if !interrupted && progress.at(&self.position()).is_break() {
                    interrupted = true;
                    self.stop();
                }
            }
            let mut next = self.events.next();
            for lane in &self.lanes {
                next = next.min(lane.next());
            }
            next = next.min(self.window.next());
            // A device may have events of its own for ever, and never answer.
            let patience = self.answered_at.saturating_add(PATIENCE);
            if self.flights.count() > 0 {
                if self.now >= patience {
                    return Err(self.lost());
                }
                next = next.min(patience);
            }
            for lane in &mut self.lanes {
                next = next.min(lane.advance(self.now, next));
            }
            if next > self.now {
                self.submitted_before = self.submitted;
            }
            self.now = next;
            for lane in &mut self.lanes {
                lane.unlock(next, &self.costs, &mut self.flights);
            }
            self.settle()?;
            while let Some(event) = self.events.due(next) {
                match event {
                    Event::Lock(tag) => self.lock(tag),
                    Event::Seen(tag) => self.seen(tag),
                    Event::Arrival(thread) => {
                        self.threads[thread as usize].armed = false;
                        self.issue(thread);
                    }
                }
            }
            self.settle()?;
            if self.window.next() <= next {
                self.watch();
            }
        }
        self.stop();
        if interrupted {
            return Ok(Some(Ended::Interrupted));
        }
        Ok(self.failure.take().map(Ended::Failed))
    }

    /// Nothing is under way, and nothing more will be asked.
    #[inline]
    fn over(&self) -> bool {
        self.flights.count() == 0
            && (self.stopping || (!self.threads.is_empty() && self.threads.iter().all(|thread| thread.done)))
    }

    /// Counting begins, goes on to its next interval, or ends.
    fn watch(&mut self) {
        if !self.window.open && self.now >= self.window.from {
            let area = self.device_area();
            let report = self.report();
            self.window.begin(report, area);
        }
        if self.window.open && !self.window.closed {
            if self.now >= self.window.until {
                self.stop();
            } else if self.now >= self.window.next() {
                let report = self.report();
                self.window.roll(self.now, report);
            }
        }
    }

    /// No more requests; counting ends.
    fn stop(&mut self) {
        self.stopping = true;
        if !self.window.closed {
            let area = self.device_area();
            let report = self.report();
            if !self.window.open {
                // It ended within its ramp: what is counted is nothing, at this moment.
                self.window.from = self.now;
                self.window.begin(report.clone(), area);
            }
            self.window.end(self.now.max(self.window.from), report);
            self.outstanding_at_device = self.window.outstanding_at_device(area);
            for thread in &mut self.threads {
                if let Some(gate) = &mut thread.gate {
                    while !thread.done && gate.due() <= self.window.until {
                        self.not_started += 1;
                        gate.step();
                    }
                }
                if let Some(feed) = &mut thread.feed
                    && !thread.done
                {
                    self.not_started += feed.missed(self.window.until);
                }
            }
        }
    }

    /// What all devices did up to now.
    fn report(&mut self) -> Report {
        Report::combined(self.lanes.iter_mut().map(|lane| lane.report(self.now)))
    }

    fn device_area(&mut self) -> u128 {
        self.lanes.iter_mut().map(|lane| lane.area(self.now)).sum()
    }

    fn position(&self) -> Position<'_> {
        let phase = &self.workload.phases[self.at];
        let begin = self.window.from.saturating_sub(phase.ramp.nanos());
        let by_time = match self.window.until {
            Nanos::MAX => 0.0,
            until => (self.now - begin) as f64 / (until - begin).max(1) as f64,
        };
        let by_bytes = self.budget.map_or(0.0, |budget| {
            let left: u64 = self.budgets.iter().fold(0, |sum, left| sum.saturating_add(*left));
            1.0 - left as f64 / budget.max(1) as f64
        });
        let by_trace =
            self.threads.iter().filter_map(|thread| thread.feed.as_ref()).map(Feed::done).fold(0.0, f64::max);
        Position {
            phase: self.at,
            phases: self.workload.phases.len(),
            name: &phase.name,
            done: by_time.max(by_bytes).max(by_trace).clamp(0.0, 1.0),
            now: self.now,
        }
    }

    /// A thread makes as many requests as it may.
    #[inline]
    fn issue(&mut self, number: u32) {
        loop {
            let thread = &mut self.threads[number as usize];
            if self.stopping || thread.done || thread.outstanding >= thread.depth {
                return;
            }
            let from = match thread.due() {
                None => self.now,
                Some(due) if due > self.now => {
                    if !thread.armed {
                        thread.armed = true;
                        self.events.push(due, Event::Arrival(number));
                    }
                    return;
                }
                Some(due) => {
                    if let Some(gate) = &mut thread.gate {
                        gate.step();
                    }
                    due
                }
            };
            let device = thread.device as usize;
            let plan = thread.load as usize * self.lanes.len() + device;
            let lane = &self.lanes[device];
            let budget = &mut self.budgets[device];
            let hint = |offset| lane.device.hint(offset);
            let next = match &mut thread.feed {
                None => thread.source.next(&self.plans[plan], &mut self.sequences[plan], budget, hint),
                Some(feed) => feed.take(budget, hint),
            };
            let Some(item) = next else {
                thread.done = true;
                if let Some(error) = thread.feed.as_mut().and_then(Feed::take_error)
                    && self.failure.is_none()
                {
                    self.failure = Some(error.to_string());
                }
                return;
            };
            let placement = match &mut thread.placer {
                Some(placer) if item.op == Op::Write => placer.of_next_write(),
                _ => 0,
            };
            let request = Request::new(item.op, item.offset, item.bytes).placed(placement);
            let Some(tag) = self.flights.take(number, request, from) else {
                return;
            };
            thread.outstanding += 1;
            self.submitted += 1;
            let ready = self.now.max(thread.cpu_free) + self.costs.submit;
            thread.cpu_free = ready;
            if ready <= self.now {
                self.lock(tag);
            } else {
                self.events.push(ready, Event::Lock(tag));
            }
        }
    }

    /// A request comes to the driver's lock.
    #[inline]
    fn lock(&mut self, tag: u32) {
        let device = self.threads[self.flights.get(tag).thread as usize].device as usize;
        self.lanes[device].lock(self.now, tag, &self.costs, &mut self.flights);
    }

    /// Takes answers until there are no more at this moment.
    #[inline]
    fn settle(&mut self) -> Result<(), RunError> {
        for at in 0..self.lanes.len() {
            loop {
                let mut quiet = true;
                let at_once = self.submitted - self.submitted_before;
                if self.timed && at_once > MOST_AT_ONE_MOMENT {
                    return Err(RunError::TimeStandsStill(at_once));
                }
                while let Some(answer) = self.lanes[at].answer(self.now) {
                    quiet = false;
                    let Some(flight) = self.flights.at_device(answer.tag) else {
                        return Err(RunError::Unasked { tag: answer.tag });
                    };
                    flight.stage = Stage::Host;
                    self.window.record_device(flight.at_device, self.now);
                    if let Err(failure) = answer.result
                        && self.failure.is_none()
                    {
                        let Request { op, offset, bytes, .. } = flight.request;
                        let at = crate::results::clock(self.now);
                        self.failure =
                            Some(format!("{op:?} of {bytes} B at offset {offset}, {at} into the run: {failure}"));
                    }
                    self.lanes[at].answered(self.now, answer.tag, &self.costs, &mut self.flights);
                }
                if self.failure.is_some() && !self.stopping {
                    self.stop();
                }
                while let Some(tag) = self.lanes[at].arrived(self.now) {
                    quiet = false;
                    self.arrived(tag);
                }
                if quiet {
                    break;
                }
            }
        }
        Ok(())
    }

    /// An answer has come to its thread, which sees it when its processor has the time.
    #[inline]
    fn arrived(&mut self, tag: u32) {
        let thread = &mut self.threads[self.flights.get(tag).thread as usize];
        let seen = self.now.max(thread.cpu_free) + self.costs.complete;
        thread.cpu_free = seen;
        if seen <= self.now {
            self.seen(tag);
        } else {
            self.events.push(seen, Event::Seen(tag));
        }
    }

    /// A thread has seen the answer, and asks for more.
    #[inline]
    fn seen(&mut self, tag: u32) {
        let flight = self.flights.release(tag);
        let thread = &mut self.threads[flight.thread as usize];
        thread.outstanding -= 1;
        self.completed += 1;
        self.answered_at = self.now;
        // Flushes have no size and are neither reads nor writes: only traces have them, and they count in no figure.
        if flight.request.op != Op::Flush {
            self.window.record(thread.load as usize, flight.request.op, &flight, self.now);
        }
        self.issue(flight.thread);
    }

    fn lost(&self) -> RunError {
        let first = self.flights.first().map_or_else(String::new, |flight| {
            let Request { op, offset, bytes, .. } = flight.request;
            format!("{op:?} of {bytes} B at offset {offset}")
        });
        RunError::Lost { count: self.flights.count(), submitted: self.submitted, first }
    }
}
