//! Recording the traffic of a device while it is used.
//!
//! Whoever serves the device hands each request over as it is answered ([`Recorder::record`]): that puts it into a bounded queue and never
//! waits. A thread of the recorder writes it out. When that cannot keep up, requests are left out of the trace, counted, and the count
//! is told by [`Recorder::status`] and [`Recorder::stop`].

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use serde::Serialize;

use crate::error::TraceError;
use crate::output::{Left, OutputFormat, Writer};
use crate::record::Record;

/// Requests that wait to be written at most: some tenths of a second of a fast device, in 3 MiB.
const QUEUE: usize = 65_536;

/// Records the requests of one device into a file.
#[derive(Debug)]
pub struct Recorder {
    queue: Option<SyncSender<Record>>,
    thread: Option<JoinHandle<Result<Left, TraceError>>>,
    counts: Arc<Counts>,
    path: PathBuf,
    format: OutputFormat,
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
}

/// How a recording stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: String,
    /// Requests written to it.
    pub written: u64,
    /// Requests left out, because the file was slower than the device.
    pub dropped: u64,
}

impl Recorder {
    /// Into a new file. A request's time is counted from `epoch_ns` of the clock of whoever hands them over, and `device` is what formats
    /// with names call the device.
    ///
    /// # Errors
    /// The file cannot be made, or there is no thread to be had.
    pub fn start(path: &Path, format: OutputFormat, epoch_ns: u64, device: &str) -> Result<Recorder, TraceError> {
        let device = device.to_owned();
        let writer = Writer::create(path, format, move |_| device.clone())?.from_epoch(epoch_ns);
        Recorder::onto(writer, path, format, QUEUE)
    }

    fn onto(writer: Writer, path: &Path, format: OutputFormat, queue: usize) -> Result<Recorder, TraceError> {
        let (queue, records) = sync_channel(queue);
        let counts = Arc::new(Counts::default());
        let (shared, for_path) = (counts.clone(), path.to_owned());
        let thread = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || write_all(writer.kept(), &records, &shared))
            .map_err(|error| TraceError::File { path: for_path, error })?;
        Ok(Recorder { queue: Some(queue), thread: Some(thread), counts, path: path.into(), format })
    }

    /// One more request. Never waits: with a full queue it is left out and counted.
    #[inline]
    pub fn record(&self, record: Record) {
        let Some(queue) = &self.queue else { return };
        // Without a thread, because its file failed, nothing is written any more, and `stop` says why.
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = queue.try_send(record) {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        Status {
            path: self.path.clone(),
            format: self.format.name().into(),
            written: self.counts.written.load(Relaxed),
            dropped: self.counts.dropped.load(Relaxed),
        }
    }

    /// Ends it: waits until everything in the queue is in the file.
    ///
    /// # Errors
    /// The file took no more; what it took before is in it.
    pub fn stop(mut self) -> Result<Status, TraceError> {
        drop(self.queue.take());
        let result = self.thread.take().map(JoinHandle::join);
        let mut status = self.status();
        match result {
            Some(Ok(Ok(left))) => {
                status.written -= left.records.min(status.written);
                status.dropped += left.records;
                Ok(status)
            }
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) | None => Err(TraceError::Unusable {
                path: self.path.clone(),
                problem: "the thread that writes it ended early".into(),
            }),
        }
    }
}

impl Drop for Recorder {
    /// What is in the queue is still written.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // Nobody is left to be told of an error.
            let _ = thread.join();
        }
    }
}

/// Requests are handed over as they are answered, and a trace is in the order in which they were made: so many wait here for one that was
/// made before them.
const SORTED: usize = 4096;

fn write_all(mut writer: Writer, records: &Receiver<Record>, counts: &Counts) -> Result<Left, TraceError> {
    let mut waiting = BinaryHeap::with_capacity(SORTED + 1);
    for (number, record) in records.iter().enumerate() {
        waiting.push(Made { time_ns: record.time_ns, number, record });
        if waiting.len() > SORTED
            && let Some(first) = waiting.pop()
        {
            writer.write(&first.record)?;
            counts.written.fetch_add(1, Relaxed);
        }
    }
    while let Some(next) = waiting.pop() {
        writer.write(&next.record)?;
        counts.written.fetch_add(1, Relaxed);
    }
    writer.finish()
}

/// A request among others, the earliest the greatest.
struct Made {
    time_ns: u64,
    number: usize,
    record: Record,
}

impl Ord for Made {
    fn cmp(&self, other: &Made) -> Ordering {
        (other.time_ns, other.number).cmp(&(self.time_ns, self.number))
    }
}

impl PartialOrd for Made {
    fn partial_cmp(&self, other: &Made) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Made {
    fn eq(&self, other: &Made) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Made {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{Reader, Wanted};
    use crate::record::Op;

    fn request(at: u64) -> Record {
        let op = Op::ALL[(at % 3) as usize];
        Record {
            time_ns: 5_000_000 + at * 1000,
            offset: at * 4096,
            bytes: 4096,
            response_ns: Some(7000),
            volume: 0,
            op,
        }
    }

    #[test]
    fn what_is_recorded_is_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        for format in OutputFormat::ALL {
            let path = directory.path().join(format.name());
            let recorder = Recorder::start(&path, format, 5_000_000, "fct0").expect("a new file");
            (0..10_000).for_each(|at| recorder.record(request(at)));
            let status = recorder.stop().expect("written");
            assert_eq!((status.written, status.dropped), (10_000, 0), "{format}");
            let records: Vec<Record> = Reader::open(&path, &Wanted::default())
                .expect("a trace")
                .map(|record| record.expect("sound"))
                .collect();
            assert_eq!(records.len(), 10_000, "{format}");
            for (at, record) in records.iter().enumerate() {
                let expected = request(at as u64);
                assert_eq!((record.time_ns, record.offset, record.bytes), (at as u64 * 1000, expected.offset, 4096));
                assert_eq!(record.op, expected.op);
            }
        }
    }

    #[test]
    fn requests_stand_in_the_order_in_which_they_were_made() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.csv");
        let recorder = Recorder::start(&path, OutputFormat::Msr, 0, "d").expect("a new file");
        // Answered in disorder, up to a thousand apart.
        (0..20_000u64).for_each(|at| recorder.record(request(at / 1000 * 1000 + (at * 7919) % 1000)));
        recorder.stop().expect("written");
        let times: Vec<u64> = Reader::open(&path, &Wanted::default())
            .expect("a trace")
            .map(|record| record.expect("sound").time_ns)
            .collect();
        assert!(times.len() == 20_000 && times.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_file_that_is_there_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("precious");
        std::fs::write(&path, "data").expect("written");
        let message = Recorder::start(&path, OutputFormat::Fio3, 0, "d").expect_err("it exists").to_string();
        assert!(message.contains("precious") && message.contains("exists"), "{message}");
        assert_eq!(std::fs::read(&path).expect("there"), b"data");
    }

    #[test]
    fn a_file_slower_than_the_device_costs_requests_and_no_time() {
        // A pipe that nobody reads yet: the writer hangs in it as soon as it is full.
        let (mut reader, pipe) = std::io::pipe().expect("a pipe");
        let pipe = std::fs::File::from(std::os::fd::OwnedFd::from(pipe));
        let path = Path::new("pipe");
        let writer = Writer::onto(pipe, path, OutputFormat::Vscsi2, |_| String::new()).expect("a writer");
        let recorder = Recorder::onto(writer, path, OutputFormat::Vscsi2, 4).expect("a thread");
        (0..100_000).for_each(|at| recorder.record(request(at)));
        assert!(recorder.status().dropped > 50_000, "the writer hangs after some 400 KB: {:?}", recorder.status());
        let read = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut bytes).map(|_| bytes)
        });
        let status = recorder.stop().expect("written");
        assert_eq!(status.written + status.dropped, 100_000);
        let bytes = read.join().expect("no panic").expect("bytes");
        let read = Reader::new(std::io::Cursor::new(bytes), path, &Wanted::default()).expect("a trace").count() as u64;
        assert_eq!(read, status.written);
    }
}
