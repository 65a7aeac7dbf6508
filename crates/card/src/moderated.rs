//! A device whose answers reach the host by interrupts that are held back: interrupt moderation.
//!
//! An interrupt is raised when as many answers wait as the driver asked for, when the first of them has waited long enough, or when nothing
//! is under way any more, whichever comes first. A host with few requests outstanding therefore gets them all
//! back at once, and the device stands idle until it has sent the next ones.

use std::collections::VecDeque;

use media::nand::micros;
use profile::Interrupts;

use crate::device::{Answer, Nanos, Request, VirtualDevice};
use crate::report::Report;
use crate::snapshots::Schedule;

/// A device whose interrupts are held back.
pub struct Moderated {
    inner: Box<dyn VirtualDevice>,
    /// Answers that raise an interrupt.
    most: usize,
    /// How long the first one waits for company.
    wait: Nanos,
    /// Requests that the device has not answered.
    under_way: usize,
    /// Answers that wait for an interrupt.
    held: VecDeque<Answer>,
    /// Answers that the host was told of.
    told: VecDeque<Answer>,
    now: Nanos,
}

impl Moderated {
    /// Holds the interrupts of a device back as its driver asks for.
    pub fn new(inner: Box<dyn VirtualDevice>, interrupts: &Interrupts) -> Moderated {
        Moderated {
            inner,
            most: interrupts.answers as usize,
            wait: micros(interrupts.wait_us),
            under_way: 0,
            held: VecDeque::new(),
            told: VecDeque::new(),
            now: 0,
        }
    }

    /// The latest moment of the next interrupt, as far as it is known.
    fn patience(&self) -> Nanos {
        self.held.front().map_or(Nanos::MAX, |first| first.at.saturating_add(self.wait))
    }

    /// Takes the device's answers up to `now`, the moment it has come to, and raises the interrupt that is due.
    fn collect(&mut self, now: Nanos) {
        while let Some(answer) = self.inner.answer() {
            self.under_way -= 1;
            self.held.push_back(answer);
            if self.held.len() >= self.most {
                self.interrupt(now);
            }
        }
        if self.under_way == 0 || self.patience() <= now {
            self.interrupt(now);
        }
    }

    fn interrupt(&mut self, now: Nanos) {
        self.told.extend(self.held.drain(..).map(|answer| Answer { at: now, ..answer }));
    }
}

impl VirtualDevice for Moderated {
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
        self.advance(now);
        self.under_way += 1;
        self.inner.submit(now, tag, request);
        self.collect(now);
    }

    fn next_event(&mut self) -> Option<Nanos> {
        if !self.told.is_empty() {
            return Some(self.now);
        }
        let next = self.inner.next_event().unwrap_or(Nanos::MAX).min(self.patience());
        (next < Nanos::MAX).then_some(next)
    }

    fn advance(&mut self, now: Nanos) {
        while self.now < now {
            self.now = self.inner.advance_to_answer(now.min(self.patience()));
            self.collect(self.now);
        }
        self.inner.advance(now);
        self.collect(now);
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        while self.told.is_empty() && self.now < limit {
            self.now = self.inner.advance_to_answer(limit.min(self.patience()));
            self.collect(self.now);
        }
        self.now
    }

    fn answer(&mut self) -> Option<Answer> {
        self.told.pop_front()
    }

    fn hint(&self, offset: u64) {
        self.inner.hint(offset);
    }

    fn keep_snapshots(&mut self, now: Nanos, schedule: Schedule) -> bool {
        self.inner.keep_snapshots(now, schedule)
    }

    fn kill_chip(&mut self, chip: u32, at: Nanos) -> Result<(), String> {
        self.inner.kill_chip(chip, at)
    }

    fn extent(&self, offset: u64, bytes: u64) -> Option<(u64, bool)> {
        self.inner.extent(offset, bytes)
    }

    fn report(&self) -> Report {
        self.inner.report()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::testing::{Fixed, mean, random, run};

    /// A device of 100 us whose interrupt waits for 4 answers or 500 us.
    fn moderated() -> Moderated {
        Moderated::new(Box::new(Fixed::new(100_000, 1 << 30)), &Interrupts { answers: 4, wait_us: 500.0 })
    }

    fn read(device: &mut Moderated, now: Nanos, tag: u32) {
        device.submit(now, tag, Request::new(Op::Read, 0, 4096));
    }

    fn told(device: &mut Moderated) -> Vec<(u32, Nanos)> {
        std::iter::from_fn(|| device.answer()).map(|answer| (answer.tag, answer.at)).collect()
    }

    #[test]
    fn a_request_alone_is_answered_at_once() {
        let lived = run(&mut moderated(), 1, random(Op::Read, 50, 4096, 1 << 20, 1));
        assert_eq!(mean(&lived), 100_000.0);
    }

    #[test]
    fn answers_wait_until_nothing_is_under_way_or_there_are_enough() {
        let mut device = moderated();
        (0..3).for_each(|tag| read(&mut device, u64::from(tag) * 10_000, tag));
        device.advance(119_999);
        assert_eq!(told(&mut device), [], "the last one is under way");
        device.advance(120_000);
        assert_eq!(told(&mut device), [(0, 120_000), (1, 120_000), (2, 120_000)]);
        (0..6).for_each(|tag| read(&mut device, 200_000 + u64::from(tag) * 10_000, tag));
        assert_eq!(device.advance_to_answer(Nanos::MAX), 330_000);
        assert_eq!(told(&mut device).len(), 4, "four are enough");
        assert_eq!(device.advance_to_answer(Nanos::MAX), 350_000);
        assert_eq!(told(&mut device), [(4, 350_000), (5, 350_000)]);
    }

    #[test]
    fn the_first_answer_waits_only_so_long() {
        let mut device =
            Moderated::new(Box::new(Fixed::new(400_000, 1 << 30)), &Interrupts { answers: 4, wait_us: 300.0 });
        read(&mut device, 0, 0);
        read(&mut device, 399_000, 1);
        assert_eq!(device.next_event(), Some(400_000));
        device.advance(699_999);
        assert_eq!(told(&mut device), []);
        assert_eq!(device.next_event(), Some(700_000));
        device.advance(700_000);
        assert_eq!(told(&mut device), [(0, 700_000)]);
        assert_eq!(device.advance_to_answer(Nanos::MAX), 799_000);
        assert_eq!(told(&mut device), [(1, 799_000)]);
    }
}
