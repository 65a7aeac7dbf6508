//! Requests that are under way.

use card::{Nanos, Op, Request};

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Whose it is.
    pub thread: u32,
    /// What it asks for.
    pub request: Request,
    /// Where its latency begins.
    pub from: Nanos,
    /// When the device got it.
    pub at_device: Nanos,
    /// Whose turn it is to act.
    pub stage: Stage,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nowhere: the place is free.
    Free,
    /// In the host.
    Host,
    /// At the device.
    Device,
}

/// Fixed places for requests; the number of a place is the request's tag.
#[derive(Debug)]
pub struct Flights {
    places: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    /// Places for so many.
    pub fn new(places: usize) -> Flights {
        let empty =
            Flight { thread: 0, request: Request::new(Op::Flush, 0, 0), from: 0, at_device: 0, stage: Stage::Free };
        Flights { places: vec![empty; places], free: (0..places as u32).rev().collect() }
    }

    /// A place for a request. There is one as long as threads keep to their depths.
    #[inline]
    pub fn take(&mut self, thread: u32, request: Request, from: Nanos) -> Option<u32> {
        let tag = self.free.pop()?;
        self.places[tag as usize] = Flight { thread, request, from, at_device: 0, stage: Stage::Host };
        Some(tag)
    }

    /// A request.
    #[inline]
    pub fn get(&mut self, tag: u32) -> &mut Flight {
        &mut self.places[tag as usize]
    }

    /// The request of a tag that a device named, if it is there.
    #[inline]
    pub fn at_device(&mut self, tag: u32) -> Option<&mut Flight> {
        self.places.get_mut(tag as usize).filter(|flight| flight.stage == Stage::Device)
    }

    /// Gives a place back.
    #[inline]
    pub fn release(&mut self, tag: u32) -> Flight {
        let flight = self.places[tag as usize];
        self.places[tag as usize].stage = Stage::Free;
        self.free.push(tag);
        flight
    }

    /// How many are under way.
    pub fn count(&self) -> u64 {
        (self.places.len() - self.free.len()) as u64
    }

    /// One that is under way.
    pub fn first(&self) -> Option<&Flight> {
        self.places.iter().filter(|flight| flight.stage != Stage::Free).min_by_key(|flight| flight.from)
    }
}
