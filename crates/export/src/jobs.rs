//! Requests that the device has and has not answered yet, by their tag.

use std::sync::mpsc::SyncSender;
use std::time::Instant;

use device::{Device, IoError};
use slab::Slab;

use crate::nbd::request::{Command, Header};
use crate::observe::Observer;
use crate::pool::Pool;
use crate::reading::Reading;
use crate::recording::Recording;
use crate::slow::{Slow, Way};

/// What every connection of a device thread shares.
pub struct Core {
    /// The device.
    pub device: Device,
    /// What is under way; a request's tag is its key.
    pub jobs: Slab<Slot>,
    /// Reads that the device has.
    pub reading: Reading,
    /// Read buffers.
    pub pool: Pool,
    /// What clients ask is recorded.
    pub recording: Option<Recording>,
    /// What is counted of requests.
    pub observer: Observer,
    /// Those that waited long.
    pub slow: Slow,
}

/// What a tag stands for.
pub enum Slot {
    /// A client's request, whole, or the sum of its pieces.
    Job(Job),
    /// A piece of a client's request.
    Part {
        /// Key of the request.
        job: usize,
        /// Which piece.
        index: usize,
    },
    /// A flush that a handle asked for.
    Flush(SyncSender<Result<(), IoError>>),
}

/// A client's request.
pub struct Job {
    /// Key of the connection.
    pub connection: usize,
    /// As it came.
    pub header: Header,
    /// What is to be done.
    pub command: Command,
    /// When the device took it, if it was recorded then.
    pub began: Option<Instant>,
    /// When it came how far.
    pub way: Way,
    /// Bytes of read buffers it holds.
    pub held: usize,
    /// Pieces with the device.
    pub parts: usize,
    /// More pieces will come.
    pub issuing: bool,
    /// Nobody waits for the answer any more.
    pub abandoned: bool,
    /// The first failure.
    pub error: Option<IoError>,
    /// What was read, in order.
    pub pieces: Vec<Vec<u8>>,
}

/// When the device took a request, if it was recorded then; and how it came there.
pub type Times = (Option<Instant>, Way);

impl Core {
    /// The time, if there is a recording that needs it.
    #[inline]
    pub fn recorded_now(&self) -> Option<Instant> {
        self.recording.is_some().then(Instant::now)
    }

    /// A request is answered, `done` or not; it is counted, and recorded if there is a recording that was there when the device
    /// took it.
    #[inline]
    pub fn answered(&mut self, peer: &str, (began, way): Times, header: &Header, command: Command, done: bool) {
        self.observer.answered(command, way.arrived, done.then_some(header.len));
        self.slow.answered(peer, way, self.observer.arrival(), header, command);
        if let (Some(recording), Some(began)) = (&self.recording, began) {
            recording.answered(began, header, command);
        }
    }

    /// A request that is under way.
    pub fn job(&mut self, key: usize) -> Option<&mut Job> {
        match self.jobs.get_mut(key) {
            Some(Slot::Job(job)) => Some(job),
            _ => None,
        }
    }
}

impl Job {
    /// A request of which the device has nothing yet.
    pub fn new(connection: usize, header: Header, command: Command, held: usize, (began, way): Times) -> Job {
        Job {
            connection,
            header,
            command,
            began,
            way,
            held,
            parts: 0,
            issuing: true,
            abandoned: false,
            error: None,
            pieces: Vec::new(),
        }
    }

    /// One more piece goes to the device; its index.
    pub fn add_part(&mut self) -> usize {
        self.parts += 1;
        self.pieces.push(Vec::new());
        self.pieces.len() - 1
    }

    /// The device did not take the newest piece.
    pub fn drop_part(&mut self) {
        self.parts -= 1;
        self.pieces.pop();
    }

    /// A piece is done.
    pub fn part_done(&mut self, index: usize, result: Result<Option<Vec<u8>>, IoError>) {
        self.parts -= 1;
        match result {
            Ok(Some(bytes)) => match self.pieces.get_mut(index) {
                Some(piece) => *piece = bytes,
                None => self.pieces.push(bytes),
            },
            Ok(None) => {}
            Err(error) => self.error = self.error.or(Some(error)),
        }
    }
}
