//! What is counted of a phase.

use card::{Nanos, Op, Report};

use super::Options;
use super::flights::Flight;
use super::sizes::SizeClasses;
use crate::results::{DeviceUse, OPS, Ops, Row, index};
use crate::stats::{Cell, Samples};
use crate::workload::Load;

/// Rows of a phase without loads at most.
const IDLE_ROWS: Nanos = 10_000;

/// What is counted of a phase: requests answered after its ramp and before its end.
pub struct Window {
    /// When counting begins: a request answered later counts.
    pub from: Nanos,
    /// When it ends: a request answered by then counts.
    pub until: Nanos,
    /// It has begun: the devices' counters were read.
    pub open: bool,
    /// It has ended.
    pub closed: bool,
    interval: Nanos,
    /// When the current interval began and ends.
    row_from: Nanos,
    row_until: Nanos,
    /// Which samples a request belongs to.
    classes: SizeClasses,
    /// Of each load, reads, writes and trims, by size where sizes are told apart, of the current interval.
    current: Vec<Samples>,
    /// The same of all intervals before.
    total: Vec<Samples>,
    /// Room to add up in.
    all: Samples,
    /// Devices' counters at the beginning, and when the current interval began.
    before: Report,
    row_before: Report,
    /// Requests outstanding, added up over time.
    area: u128,
    /// Requests that were answered by the device, and for how long it had them.
    device_time: u128,
    device_count: u64,
    /// Requests at the devices added up over time, when counting began.
    device_area: u128,
    /// Intervals that are over.
    pub rows: Vec<Row>,
}

/// What a window comes to.
pub struct Counted {
    /// Samples of reads, writes and trims of each load.
    pub loads: Vec<Vec<Samples>>,
    /// The same by size, of all loads together, where sizes are told apart.
    pub cells: Vec<Cell>,
    /// How long it was.
    pub nanos: Nanos,
    /// What the devices did.
    pub device_use: DeviceUse,
    /// Requests outstanding on average.
    pub outstanding: f64,
    /// Mean time at the device, nanoseconds.
    pub device_latency_ns: f64,
    /// Its intervals.
    pub rows: Vec<Row>,
}

impl Window {
    /// Of these loads, from one moment to another, in intervals.
    pub fn new(loads: &[Load], from: Nanos, until: Nanos, options: &Options) -> Window {
        // Data grow old while nothing is asked for months: nobody needs a row for each second of that.
        let least = if loads.is_empty() { until.saturating_sub(from) / IDLE_ROWS } else { 0 };
        let interval = options.interval.max(least).max(1);
        let classes = SizeClasses::new(loads, options.cells);
        let samples = || (0..classes.count()).map(|_| Samples::new()).collect::<Vec<_>>();
        Window {
            from,
            until,
            open: false,
            closed: false,
            interval,
            row_from: from,
            row_until: from.saturating_add(interval),
            current: samples(),
            total: samples(),
            classes,
            all: Samples::new(),
            before: Report::default(),
            row_before: Report::default(),
            area: 0,
            device_time: 0,
            device_count: 0,
            device_area: 0,
            rows: Vec::new(),
        }
    }

    /// When something is to be done here next.
    #[inline]
    pub fn next(&self) -> Nanos {
        if self.closed {
            Nanos::MAX
        } else if self.open {
            self.row_until.min(self.until)
        } else {
            self.from
        }
    }

    /// Counting begins.
    pub fn begin(&mut self, report: Report, device_area: u128) {
        self.open = true;
        // A phase that ended within its ramp begins where it ends.
        self.row_from = self.from;
        self.row_before = report.clone();
        self.before = report;
        self.device_area = device_area;
    }

    /// A thread has seen the answer.
    #[inline]
    pub fn record(&mut self, load: usize, op: Op, flight: &Flight, now: Nanos) {
        let from = flight.from.max(self.from);
        self.area += u128::from(now.min(self.until).saturating_sub(from));
        if now > self.from && now <= self.until && self.open {
            let class = self.classes.of(load, index(op), flight.request.bytes);
            self.current[class].record(now - flight.from, flight.request.bytes);
        }
    }

    /// The device has answered.
    #[inline]
    pub fn record_device(&mut self, submitted: Nanos, now: Nanos) {
        if self.open && !self.closed {
            self.device_time += u128::from(now - submitted);
            self.device_count += 1;
        }
    }

    /// An interval is over.
    pub fn roll(&mut self, now: Nanos, report: Report) {
        let nanos = now - self.row_from;
        if nanos > 0 {
            let seconds = nanos as f64 / 1e9;
            let mut merged: Vec<Samples> = Vec::new();
            // With one load of one size, its samples are those of all.
            let ops = if self.current.len() == OPS.len() {
                &self.current
            } else {
                merged.resize_with(OPS.len(), Samples::new);
                for (at, samples) in self.current.iter().enumerate() {
                    merged[self.classes.op(at)].add(samples);
                }
                &merged
            };
            self.rows.push(Row {
                end_seconds: (now - self.from) as f64 / 1e9,
                seconds,
                ops: Ops::new(ops, seconds, &mut self.all),
                cells: self.classes.cells(&self.current),
                device_use: DeviceUse::between(&self.row_before, &report, seconds),
            });
        }
        for (total, current) in self.total.iter_mut().zip(&mut self.current) {
            total.add(current);
            current.clear();
        }
        self.row_before = report;
        self.row_from = now;
        self.row_until = now.saturating_add(self.interval);
    }

    /// Counting ends: the last interval, and what the devices did.
    pub fn end(&mut self, now: Nanos, report: Report) {
        self.until = now;
        self.roll(now, report);
        self.closed = true;
    }

    /// Requests at the devices on average, from the sum over time that is given for the end.
    pub fn outstanding_at_device(&self, device_area: u128) -> f64 {
        (device_area - self.device_area) as f64 / (self.until - self.from).max(1) as f64
    }

    /// What it comes to.
    pub fn counted(self) -> Counted {
        let nanos = self.until - self.from;
        Counted {
            loads: self.classes.loads(&self.total),
            cells: self.classes.cells(&self.total),
            nanos,
            device_use: DeviceUse::between(&self.before, &self.row_before, nanos as f64 / 1e9),
            outstanding: self.area as f64 / nanos.max(1) as f64,
            device_latency_ns: self.device_time as f64 / self.device_count.max(1) as f64,
            rows: self.rows,
        }
    }
}
