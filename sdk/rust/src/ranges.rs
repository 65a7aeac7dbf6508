//! Which sectors hold data.

use std::collections::VecDeque;
use std::ops::Range;

use crate::job::Request;
use crate::pending::Answer;
use crate::{Device, Error};

/// The ranges of sectors that hold data, in order: see [`Device::ranges`].
///
/// Each is as long as it can be. What is written or trimmed meanwhile may be seen or not.
pub struct Ranges {
    device: Device,
    next: u64,
    end: u64,
    found: VecDeque<Range<u64>>,
}

impl Ranges {
    pub(crate) fn new(device: Device, range: Range<u64>) -> Ranges {
        Ranges { device, next: range.start, end: range.end, found: VecDeque::new() }
    }

    /// Asks until at least one range is known to be complete, or nothing is left.
    fn look(&mut self) -> Result<(), Error> {
        while self.next < self.end && self.found.len() < 2 {
            let request = Request::Ranges { lba: self.next, end: self.end };
            let (found, next) = self.device.begin(request, Answer::ranges).wait()?;
            for range in found {
                // A service may say anything.
                let range = range.start.max(self.next)..range.end.min(self.end);
                if range.is_empty() {
                    continue;
                }
                match self.found.back_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => self.found.push_back(range),
                }
            }
            // A device that makes no progress has nothing more to tell.
            self.next = if next > self.next { next } else { self.end };
        }
        Ok(())
    }
}

impl Iterator for Ranges {
    type Item = Result<Range<u64>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.look() {
            self.next = self.end;
            self.found.clear();
            return Some(Err(error));
        }
        self.found.pop_front().map(Ok)
    }
}
