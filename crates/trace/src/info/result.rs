//! What [`super::Characteriser`] says, in the shape in which `--json` prints it. `docs/traces.md` describes it field by field.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Aligned, HotSpots, Row, Sequential, Size, Spread, Window};
use crate::reader::Reader;

/// What a trace amounts to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// What was read.
    pub source: Source,
    /// Requests.
    pub records: u64,
    /// The first request's time, nanoseconds by the trace's own clock.
    pub first_ns: u64,
    /// From the first request to the last.
    pub duration_seconds: f64,
    /// Requests that stand behind one that is later.
    pub out_of_order: u64,
    /// By operation.
    pub requests: Ops,
    /// By volume, with its number.
    pub volumes: BTreeMap<u32, Volume>,
    /// Requests of volumes beyond the first 4096, which are not listed.
    pub records_of_other_volumes: u64,
    /// By size, from the smallest.
    pub sizes: Vec<Size>,
    /// Requests whose size is not listed, because there are more than 1024.
    pub requests_of_other_sizes: u64,
    /// What requests are multiples of.
    pub alignment: Vec<Aligned>,
    /// Different blocks that were read or written.
    pub footprint: Footprint,
    /// How unevenly accesses are spread over them.
    pub hot_spots: HotSpots,
    /// Blocks that are written again.
    pub overwrites: Overwrites,
    /// Requests that follow on others.
    pub sequential: Vec<Sequential>,
    /// Time from one request to the next; `null` with fewer than two.
    pub interarrival_seconds: Option<Spread>,
    /// Requests in windows of time.
    pub bursts: Vec<Window>,
    /// Over time.
    pub timeline: Timeline,
    /// Over the address space; several volumes lie on top of each other.
    pub addresses: Addresses,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Source {
    /// The file.
    pub path: String,
    /// Its format.
    pub format: String,
    /// How it is compressed; `null`: it is not.
    pub compression: Option<&'static str>,
    /// Commands that move no data and were left out.
    pub other_commands: u64,
    /// Reads, writes and trims of nothing that were left out.
    pub empty: u64,
    /// Requests without the completion that others have.
    pub unanswered: u64,
    /// The last line has no end, so its last number may be cut off.
    pub last_line_unended: bool,
    /// Records of other volumes than the one that was asked for.
    pub other_volumes: u64,
}

impl Source {
    /// What a reader has read up to now.
    pub fn of(reader: &Reader) -> Source {
        let aside = reader.aside();
        Source {
            path: reader.path().display().to_string(),
            format: reader.format().name().into(),
            compression: reader.compression().name(),
            other_commands: aside.other_commands,
            empty: aside.empty,
            unanswered: aside.unanswered,
            last_line_unended: aside.last_line_unended,
            other_volumes: reader.other_volumes(),
        }
    }
}

/// By operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ops {
    /// Reads.
    pub read: Count,
    /// Writes.
    pub write: Count,
    /// Trims.
    pub trim: Count,
    /// Flushes.
    pub flush: Count,
}

/// Requests of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Count {
    /// How many.
    pub requests: u64,
    /// Their share of all.
    pub percent: f64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of one on average.
    pub mean_bytes: f64,
    /// How many a second; `null` when the trace has no duration.
    pub per_second: Option<f64>,
    /// Bytes a second.
    pub bytes_per_second: Option<f64>,
    /// How long until they were answered; `null` where the trace does not say.
    pub response_seconds: Option<Spread>,
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// What it is called: a number, major,minor or a file.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// The end of its last request by address.
    pub span_bytes: u64,
}

/// A number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// How many.
    pub blocks: u64,
    /// In bytes.
    pub bytes: u64,
}

/// Different blocks that were read or written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// 1: counted exactly. More: one in so many blocks was followed, and these figures, hot spots and overwrites come from them.
    pub sampled_one_in: u64,
    /// Read or written.
    pub touched: Blocks,
    /// Read.
    pub read: Blocks,
    /// Written.
    pub written: Blocks,
    /// Both.
    pub read_and_written: Blocks,
    /// Blocks of all reads and writes, each time counted.
    pub accesses: u64,
    /// The end of the last request by address, added up over volumes.
    pub span_bytes: u64,
}

/// Blocks that are written again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overwrites {
    /// Blocks of all writes, each time counted.
    pub written_blocks: u64,
    /// Share of them that had been written before; `null` without writes.
    pub overwritten_percent: Option<f64>,
    /// Time from a write of a block to the next.
    pub interval_seconds: Option<Spread>,
    /// Bytes that the whole trace wrote in between.
    pub interval_written_bytes: Option<Spread>,
}

/// Over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of an interval: a millisecond, doubled until 512 cover the trace.
    pub interval_seconds: f64,
    /// Standard error of `working_set_blocks`.
    pub working_set_error_percent: f64,
    /// The intervals.
    pub rows: Vec<Row>,
}

/// Over the address space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// Bytes of a part: a MiB, doubled until 512 reach the last request.
    pub part_bytes: u64,
    /// Parts in which requests begin.
    pub parts: Vec<Part>,
}

/// A part of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its first byte.
    pub offset: u64,
    /// Reads that begin in it.
    pub reads: u64,
    /// Writes that begin in it.
    pub writes: u64,
}
