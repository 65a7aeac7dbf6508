//! Requests that come from a recorded trace.

use std::path::PathBuf;
use std::sync::Arc;

use card::Nanos;
use trace::playback::{self, Map, Pace, Playback, Survey};
use trace::{TraceError, Wanted};

use super::{Item, Shape};
use crate::workload::Trace;

/// A trace made ready for one device.
#[derive(Clone, Debug)]
pub struct TracePlan {
    file: PathBuf,
    wanted: Wanted,
    survey: Arc<Survey>,
    map: Map,
    pace: Pace,
    shape: Shape,
}

impl TracePlan {
    /// Reads the trace once, to learn how far it reaches.
    ///
    /// # Errors
    /// It makes no sense, or does not fit the device by its rule.
    pub fn new(trace: &Trace, shape: Shape) -> Result<TracePlan, String> {
        let wanted = trace.wanted()?;
        let survey = Survey::of(&trace.file, &wanted, trace.map).map_err(|error| error.to_string())?;
        let plan = TracePlan {
            file: trace.file.clone(),
            wanted,
            survey: Arc::new(survey),
            map: trace.map,
            pace: trace.pace,
            shape,
        };
        // What does not fit is said now, and what lies too far off in time too.
        plan.open().map_err(|error| error.to_string())?;
        Ok(plan)
    }

    fn open(&self) -> Result<Playback, TraceError> {
        let Shape { bytes, sector_bytes } = self.shape;
        Playback::new(&self.file, &self.wanted, &self.survey, self.map, self.pace, bytes, sector_bytes)
    }

    /// Its requests, from the first, due from `now` on.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn feed(&self, now: Nanos) -> Result<Feed, String> {
        let playback = self.open().map_err(|error| error.to_string())?;
        let mut feed = Feed {
            playback,
            open_loop: self.pace.is_open(),
            begin: now,
            next: None,
            error: None,
            given: 0,
            all: self.survey.records,
        };
        feed.advance();
        Ok(feed)
    }
}

/// The requests of a trace, one after the other.
#[derive(Debug)]
pub struct Feed {
    playback: Playback,
    open_loop: bool,
    begin: Nanos,
    next: Option<playback::Item>,
    error: Option<TraceError>,
    given: u64,
    all: u64,
}

impl Feed {
    fn advance(&mut self) {
        self.next = match self.playback.next() {
            Some(Ok(item)) => Some(item),
            Some(Err(error)) => {
                self.error = Some(error);
                None
            }
            None => None,
        };
    }

    /// When the next request is due. `None`: as soon as there is room, or there is no more.
    #[inline]
    pub fn due(&self) -> Option<Nanos> {
        let item = self.next.as_ref().filter(|_| self.open_loop)?;
        Some(self.begin.saturating_add(item.due_ns))
    }

    /// The next request. `budget` is what may still be asked for, bytes. `hint` hears of the one behind it. `None`: nothing more, ever.
    pub fn take(&mut self, budget: &mut u64, mut hint: impl FnMut(u64)) -> Option<Item> {
        if *budget == 0 {
            return None;
        }
        let item = self.next?;
        self.given += 1;
        self.advance();
        if let Some(next) = &self.next {
            hint(next.offset);
        }
        let op = match item.op {
            trace::Op::Read => card::Op::Read,
            trace::Op::Write => card::Op::Write,
            trace::Op::Trim => card::Op::Trim,
            trace::Op::Flush => card::Op::Flush,
        };
        *budget = budget.saturating_sub(u64::from(item.bytes));
        Some(Item { op, offset: item.offset, bytes: item.bytes })
    }

    /// Requests that were due by a moment and never made.
    pub fn missed(&mut self, until: Nanos) -> u64 {
        let mut missed = 0;
        while self.due().is_some_and(|due| due <= until) {
            missed += 1;
            self.advance();
        }
        missed
    }

    /// Why the trace ended before its end.
    pub fn take_error(&mut self) -> Option<TraceError> {
        self.error.take()
    }

    /// How much of it was asked for, 0 to 1.
    pub fn done(&self) -> f64 {
        (self.given as f64 / self.all.max(1) as f64).min(1.0)
    }
}
