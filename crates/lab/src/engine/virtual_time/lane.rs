//! One device with the driver in front of it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use card::{Answer, Nanos, Report, VirtualDevice};
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::flights::{Flights, Stage};
use crate::host::Costs;

/// One device with the driver in front of it: the lock, the queue, and the answers on their way back.
pub struct Lane<'a> {
    /// The device.
    pub device: &'a mut dyn VirtualDevice,
    /// The moment that the device has come to. It may be ahead of the others' when it has an answer then.
    at: Nanos,
    /// The device was told something since it last had no answer.
    told: bool,
    /// When the lock is free.
    lock_free: Nanos,
    /// Requests that hold or wait for the lock, with the moment at which each lets go of it.
    locked: VecDeque<(Nanos, u32)>,
    /// Requests that wait because the device has its fill.
    queue: VecDeque<u32>,
    /// Answers on their way to their threads, the next first: one that is quick overtakes others.
    answers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// How long each takes.
    wakes: Xoshiro256PlusPlus,
    /// Requests at the device.
    at_device: u32,
    /// The same, added up over time, and until when.
    area: u128,
    area_until: Nanos,
}

impl<'a> Lane<'a> {
    /// A device, with nothing under way. `places`: how many requests there can be. `seed` is of what varies in the host.
    pub fn new(device: &'a mut dyn VirtualDevice, now: Nanos, places: usize, seed: u64) -> Lane<'a> {
        Lane {
            device,
            at: now,
            told: true,
            lock_free: 0,
            locked: VecDeque::with_capacity(places),
            queue: VecDeque::with_capacity(places),
            answers: BinaryHeap::with_capacity(places),
            wakes: Xoshiro256PlusPlus::seed_from_u64(seed),
            at_device: 0,
            area: 0,
            area_until: now,
        }
    }

    /// When the driver does something next.
    #[inline]
    pub fn next(&self) -> Nanos {
        let locked = self.locked.front().map_or(Nanos::MAX, |(at, _)| *at);
        let answers = self.answers.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at);
        locked.min(answers)
    }

    /// Lets the device come from `now` to its next answer, at most to `limit`; gives the moment. A device that is ahead of `now` already
    /// stays there: nobody asks it anything before that moment, since everything that the host does earlier was a limit to it.
    #[inline]
    pub fn advance(&mut self, now: Nanos, limit: Nanos) -> Nanos {
        if self.at <= now {
            // Without a request it answers nothing, and must not run ahead: the next one may come at any moment.
            if self.at_device == 0 {
                return limit;
            }
            // A cache that went on by itself while nobody asked has events left from then, which are done now.
            self.at = self.device.advance_to_answer(limit).max(now);
            self.told = true;
        }
        self.at
    }

    /// What the device did up to `now`.
    pub fn report(&mut self, now: Nanos) -> Report {
        if self.at < now {
            self.device.advance(now);
            self.at = now;
            self.told = true;
        }
        self.device.report()
    }

    /// The next answer of the device, where it has not come further than `now`.
    #[inline]
    pub fn answer(&mut self, now: Nanos) -> Option<Answer> {
        if self.at > now || !self.told {
            return None;
        }
        let answer = self.device.answer();
        self.told = answer.is_some();
        answer
    }

    /// A request comes to the lock.
    #[inline]
    pub fn lock(&mut self, now: Nanos, tag: u32, costs: &Costs, flights: &mut Flights) {
        if costs.serial == 0 {
            self.enqueue(now, tag, costs, flights);
            return;
        }
        self.lock_free = self.lock_free.max(now) + costs.serial;
        self.locked.push_back((self.lock_free, tag));
    }

    /// Requests that let go of the lock by `now` go on.
    #[inline]
    pub fn unlock(&mut self, now: Nanos, costs: &Costs, flights: &mut Flights) {
        while let Some((at, tag)) = self.locked.front().copied()
            && at <= now
        {
            self.locked.pop_front();
            self.enqueue(now, tag, costs, flights);
        }
    }

    #[inline]
    fn enqueue(&mut self, now: Nanos, tag: u32, costs: &Costs, flights: &mut Flights) {
        if self.at_device < costs.limit && self.queue.is_empty() {
            self.submit(now, tag, flights);
        } else {
            self.queue.push_back(tag);
        }
    }

    #[inline]
    fn submit(&mut self, now: Nanos, tag: u32, flights: &mut Flights) {
        let flight = flights.get(tag);
        flight.stage = Stage::Device;
        flight.at_device = now;
        self.count(now);
        self.at_device += 1;
        debug_assert!(self.at <= now, "a device is asked nothing in its past");
        self.device.submit(now, tag, flight.request);
        self.told = true;
    }

    /// The device answered a request: the next one takes its place there, and the answer is under way.
    #[inline]
    pub fn answered(&mut self, now: Nanos, tag: u32, costs: &Costs, flights: &mut Flights) {
        self.count(now);
        self.at_device -= 1;
        if self.at_device < costs.limit
            && let Some(next) = self.queue.pop_front()
        {
            self.submit(now, next, flights);
        }
        let varied: f64 = Exp1.sample(&mut self.wakes);
        self.answers.push(Reverse((now + costs.wake(varied), tag)));
    }

    /// An answer that has come to its thread.
    #[inline]
    pub fn arrived(&mut self, now: Nanos) -> Option<u32> {
        self.answers.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.answers.pop().map(|Reverse((_, tag))| tag)
    }

    /// Requests at the device, added up over time: requests times nanoseconds.
    pub fn area(&mut self, now: Nanos) -> u128 {
        self.count(now);
        self.area
    }

    #[inline]
    fn count(&mut self, now: Nanos) {
        self.area += u128::from(self.at_device) * u128::from(now - self.area_until);
        self.area_until = now;
    }
}
