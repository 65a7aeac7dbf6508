//! Requests that come from a recorded trace.

use std::path::PathBuf;
use std::sync::Arc;

use card::Nanos;
use trace::playback::{self, Map, Pace, Playback, Survey};
use trace::{TraceError, Wanted};

use super::{Item, Shape};
use crate::workload::Trace;

/// Pieces in which a trace is dealt out to several devices, bytes.
const PIECE: u64 = 64 << 10;

/// Which of several devices that share a trace. It is dealt out by address, in pieces of 64 KiB that go to the devices in turn, as stripes do;
/// a request goes where it begins. Flushes go to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of the device, from 0.
    pub device: u32,
    /// How many there are.
    pub devices: u32,
}

impl Share {
    /// One device, which plays all of it.
    pub const ALL: Share = Share { device: 0, devices: 1 };

    /// What a device of so many bytes takes part with.
    fn room(self, bytes: u64) -> u64 {
        if self.devices == 1 { bytes } else { bytes - bytes % PIECE }
    }

    /// A request as it is for this device, of which `room` bytes are used. `None`: it is for another one.
    fn own(self, item: playback::Item, room: u64) -> Option<playback::Item> {
        if self.devices == 1 || item.op == trace::Op::Flush {
            return Some(item);
        }
        let (piece, devices) = (item.offset / PIECE, u64::from(self.devices));
        if piece % devices != u64::from(self.device) {
            return None;
        }
        let bytes = u64::from(item.bytes).min(room);
        let offset = (piece / devices * PIECE + item.offset % PIECE).min(room - bytes);
        Some(playback::Item { offset, bytes: bytes as u32, ..item })
    }
}

/// A trace made ready for one device.
#[derive(Clone, Debug)]
pub struct TracePlan {
    file: PathBuf,
    wanted: Wanted,
    survey: Arc<Survey>,
    map: Map,
    pace: Pace,
    shape: Shape,
    share: Share,
}

impl TracePlan {
    /// Reads the trace once, to learn how far it reaches.
    ///
    /// # Errors
    /// It makes no sense, or does not fit the devices by its rule.
    pub fn new(trace: &Trace, shape: Shape, share: Share) -> Result<TracePlan, String> {
        let wanted = trace.wanted()?;
        let survey = Survey::of(&trace.file, &wanted, trace.map).map_err(|error| error.to_string())?;
        let plan = TracePlan {
            file: trace.file.clone(),
            wanted,
            survey: Arc::new(survey),
            map: trace.map,
            pace: trace.pace,
            shape,
            share,
        };
        // What does not fit is said now, and what lies too far off in time too.
        plan.open().map_err(|error| error.to_string())?;
        Ok(plan)
    }

    fn open(&self) -> Result<Playback, TraceError> {
        let bytes = self.share.room(self.shape.bytes).saturating_mul(u64::from(self.share.devices));
        Playback::new(&self.file, &self.wanted, &self.survey, self.map, self.pace, bytes, self.shape.sector_bytes)
    }

    /// Every request that is made of it, in order, as far as no error ends it.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn requests(&self) -> Result<Playback, String> {
        self.open().map_err(|error| error.to_string())
    }

    /// Its requests, from the first, due from `now` on.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn feed(&self, now: Nanos) -> Result<Feed, String> {
        let playback = self.open().map_err(|error| error.to_string())?;
        let mut feed = Feed {
            playback,
            share: self.share,
            room: self.share.room(self.shape.bytes),
            open_loop: self.pace.is_open(),
            begin: now,
            next: None,
            error: None,
            given: 0,
            all: self.survey.records / u64::from(self.share.devices.max(1)),
        };
        feed.advance();
        Ok(feed)
    }
}

/// The requests of a trace, one after the other.
#[derive(Debug)]
pub struct Feed {
    playback: Playback,
    share: Share,
    room: u64,
    open_loop: bool,
    begin: Nanos,
    next: Option<playback::Item>,
    error: Option<TraceError>,
    given: u64,
    all: u64,
}

impl Feed {
    fn advance(&mut self) {
        self.next = None;
        while self.next.is_none() {
            match self.playback.next() {
                Some(Ok(item)) => self.next = self.share.own(item, self.room),
                Some(Err(error)) => {
                    self.error = Some(error);
                    return;
                }
                None => return,
            }
        }
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
