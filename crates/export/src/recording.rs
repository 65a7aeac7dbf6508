//! Recording what clients ask of a device, as they are answered.

use std::time::Instant;

use trace::recorder::{Recorder, Status};
use trace::{Op, Record, TraceError};

use crate::nbd::request::{Command, Header};

/// A recording under way: the recorder, and the clock by which it tells times.
#[derive(Debug)]
pub struct Recording {
    recorder: Recorder,
    began: Instant,
}

impl Recording {
    /// With a recorder whose times begin at 0 now.
    pub fn new(recorder: Recorder) -> Recording {
        Recording { recorder, began: Instant::now() }
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        self.recorder.status()
    }

    /// Ends it; waits for its file, so not for a device's thread.
    ///
    /// # Errors
    /// The file took no more.
    pub fn stop(self) -> Result<Status, TraceError> {
        self.recorder.stop()
    }

    /// The time, nanoseconds since it began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A request that the device took at `began` is answered.
    pub(crate) fn answered(&self, began: u64, header: &Header, command: Command) {
        let op = match command {
            Command::Read => Op::Read,
            Command::Write { .. } => Op::Write,
            // Formats of traces have no zeroes. Those that may give the space back are trims, the others are written.
            Command::WriteZeroes { allocate: true, .. } => Op::Write,
            Command::Trim { .. } | Command::WriteZeroes { .. } => Op::Trim,
            Command::Flush => Op::Flush,
            Command::Cache | Command::BlockStatus { .. } => return,
        };
        let (offset, bytes) = if op == Op::Flush { (0, 0) } else { (header.offset, u64::from(header.len)) };
        if bytes == 0 && op != Op::Flush {
            return;
        }
        // A response of 0 would mean that it is not known.
        let response_ns = Some(self.now().saturating_sub(began).max(1000));
        self.recorder.record(Record { time_ns: began, offset, bytes, response_ns, volume: 0, op });
    }
}
