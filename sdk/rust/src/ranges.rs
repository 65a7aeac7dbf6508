//! Which sectors hold data, and which have changed.

use std::collections::VecDeque;
use std::ops::Range;

use crate::job::Request;
use crate::pending::{Answer, Found};
use crate::{Device, Error};

/// The ranges of sectors that hold data, in order: see [`Device::ranges`].
///
/// Each is as long as it can be. What is written or trimmed meanwhile may be seen or not.
pub struct Ranges(Changes);

/// The ranges of sectors that differ from a snapshot, in order, and whether they hold data: see [`Device::changes`].
///
/// Each is as long as it can be. What is written or trimmed meanwhile may be seen or not.
pub struct Changes {
    device: Device,
    since: Option<u64>,
    next: u64,
    end: u64,
    found: VecDeque<Found>,
}

impl Ranges {
    pub(crate) fn new(device: Device, range: Range<u64>) -> Ranges {
        Ranges(Changes::new(device, None, range))
    }
}

impl Changes {
    pub(crate) fn new(device: Device, since: Option<u64>, range: Range<u64>) -> Changes {
        Changes { device, since, next: range.start, end: range.end, found: VecDeque::new() }
    }

    /// Asks until at least one range is known to be complete, or nothing is left.
    fn look(&mut self) -> Result<(), Error> {
        while self.next < self.end && self.found.len() < 2 {
            let request = Request::Ranges { lba: self.next, end: self.end, since: self.since };
            let (found, next) = self.device.begin(request, Answer::ranges).wait()?;
            for (range, holds) in found {
                // A service may say anything.
                let range = range.start.max(self.next)..range.end.min(self.end);
                if range.is_empty() {
                    continue;
                }
                match self.found.back_mut() {
                    Some((last, known)) if last.end == range.start && *known == holds => last.end = range.end,
                    _ => self.found.push_back((range, holds)),
                }
            }
            // A device that makes no progress has nothing more to tell.
            self.next = if next > self.next { next } else { self.end };
        }
        Ok(())
    }
}

impl Iterator for Changes {
    type Item = Result<(Range<u64>, bool), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.look() {
            self.next = self.end;
            self.found.clear();
            return Some(Err(error));
        }
        self.found.pop_front().map(Ok)
    }
}

impl Iterator for Ranges {
    type Item = Result<Range<u64>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|found| found.map(|(range, _)| range))
    }
}
