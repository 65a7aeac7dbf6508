//! Recording what clients ask of a device, as they are answered.

use std::time::{Duration, Instant};

use device::BatchOp;
use trace::recorder::{Recorder, Status};
use trace::{Op, Record, TraceError};

use crate::request::{Command, Request};

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

    /// A request that the device took at `taken` is answered. A batch is recorded as what it consists of, all at the same time.
    pub(crate) fn answered(&self, taken: Instant, request: &Request, ops: &[BatchOp], sector_bytes: u32) {
        let bytes = u64::from(sector_bytes);
        for op in ops {
            let sectors = op.sectors();
            let command = match op {
                BatchOp::Write { .. } => Command::Write { fua: false, placement: 0 },
                BatchOp::Trim { .. } => Command::Trim { fua: false },
            };
            let (offset, len) = (sectors.start * bytes, (sectors.end - sectors.start) * bytes);
            self.one_answered(taken, &Request { command, offset, len, ..*request });
        }
        self.one_answered(taken, request);
    }

    fn one_answered(&self, taken: Instant, request: &Request) {
        // One that another recording was there for is not this one's.
        let Some(at) = taken.checked_duration_since(self.began) else { return };
        let op = match request.command {
            Command::Read => Op::Read,
            Command::Write { .. } | Command::Append { .. } => Op::Write,
            // Formats of traces have no zeroes. Those that may give the space back are trims, the others are written.
            Command::WriteZeroes { allocate: true, .. } => Op::Write,
            Command::Trim { .. } | Command::WriteZeroes { .. } => Op::Trim,
            Command::Flush => Op::Flush,
            // What of a zone is not a reset moves nothing.
            Command::Zone(device::ZoneAction::Reset) => Op::Trim,
            Command::Zone(_) | Command::Batch { .. } => return,
        };
        let (offset, bytes) = if op == Op::Flush { (0, 0) } else { (request.offset, request.len) };
        if bytes == 0 && op != Op::Flush {
            return;
        }
        // A response of 0 would mean that it is not known.
        let response_ns = Some(nanoseconds(taken.elapsed()).max(1000));
        self.recorder.record(Record { time_ns: nanoseconds(at), offset, bytes, response_ns, volume: 0, op });
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use trace::{OutputFormat, Reader, Wanted};

    use super::*;

    #[test]
    fn a_request_taken_before_it_began_is_not_recorded() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.csv");
        let read = |offset| Request { command: Command::Read, offset, len: 4096, cookie: 0, view: None };
        let earlier = Instant::now();
        let recorder = Recorder::start(&path, OutputFormat::Msr, 0, "d").expect("a new file");
        let recording = Recording::new(recorder);
        recording.answered(earlier, &read(0), &[], 4096);
        recording.answered(Instant::now(), &read(4096), &[], 4096);
        let batch = Request { command: Command::Batch { fua: false }, ..read(0) };
        let ops = [BatchOp::Write { lba: 9, count: 1 }, BatchOp::Trim { lba: 5, count: 2 }];
        recording.answered(Instant::now(), &batch, &ops, 4096);
        recording.stop().expect("written");
        let records = Reader::open(&path, &Wanted::default()).expect("a trace");
        let offsets: Vec<u64> = records.map(|record| record.expect("sound").offset).collect();
        assert_eq!(offsets, [4096, 9 * 4096, 5 * 4096], "a batch as what it consists of");
    }
}
