//! How a device that is made of others comes from one moment to the next.

use crate::device::Nanos;

/// A device whose events lie in the devices that it is made of, and in what it does itself.
pub trait Steps {
    /// When something happens next by itself, answers to the host aside; `Nanos::MAX` when nothing will.
    fn next_step(&mut self) -> Nanos;

    /// When the next answer that is known of goes to the host; `Nanos::MAX` without one.
    fn next_answer(&self) -> Nanos;

    /// Lets happen what does by the next moment that matters here, at most up to `limit`; gives the moment it came to.
    fn step(&mut self, limit: Nanos) -> Nanos;

    /// When something happens next, as [`crate::VirtualDevice::next_event`] tells it.
    fn next_of_all(&mut self) -> Option<Nanos> {
        let next = self.next_step().min(self.next_answer());
        (next < Nanos::MAX).then_some(next)
    }

    /// Lets everything happen up to and including `now`.
    fn run(&mut self, now: Nanos) {
        while self.next_step() <= now {
            self.step(now);
        }
    }

    /// Lets everything happen up to the moment of the next answer, at most up to `limit`; gives the moment it came to.
    fn run_to_answer(&mut self, limit: Nanos) -> Nanos {
        loop {
            let until = limit.min(self.next_answer());
            if self.next_step() > until {
                return until;
            }
            let at = self.step(until);
            if self.next_answer() <= at {
                return at;
            }
        }
    }
}
