//! One request of a trace, whatever format it came in.

use serde::{Deserialize, Serialize};

/// What a request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Says that a range is no longer needed.
    Trim,
    /// Makes what was answered before durable.
    Flush,
}

impl Op {
    /// All of them, in the order in which results list them.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

    /// Reads or writes: it carries data.
    pub fn has_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When it was made, nanoseconds by the trace's own clock: some count from its beginning, others from 1970 or 1601.
    pub time_ns: u64,
    /// First byte. 0 for a flush.
    pub offset: u64,
    /// How many bytes. 0 for a flush, never for others.
    pub bytes: u64,
    /// How long until it was answered, nanoseconds, where the trace says.
    pub response_ns: Option<u64>,
    /// Which volume, disk or device, as a number: the trace's own, or for files the order in which they appear.
    pub volume: u32,
    /// What it does.
    pub op: Op,
}

/// Largest read or write that is taken for one, bytes.
pub const LARGEST_REQUEST: u64 = 1 << 30;
/// What no request may reach beyond, bytes: 8 EiB, the largest file there can be.
pub const LARGEST_OFFSET: u64 = 1 << 63;

impl Record {
    /// The byte after its last.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// Checks what holds for every format.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(&self) -> Result<(), String> {
        if self.op == Op::Flush {
            return Ok(());
        }
        if self.bytes == 0 {
            return Err("a length of 0; expected 1 byte or more".into());
        }
        if self.op.has_data() && self.bytes > LARGEST_REQUEST {
            return Err(format!("a request of {} bytes; expected at most {LARGEST_REQUEST} (1 GiB)", self.bytes));
        }
        match self.offset.checked_add(self.bytes) {
            Some(end) if end <= LARGEST_OFFSET => Ok(()),
            _ => Err(format!(
                "{} bytes at offset {}; expected a request that ends below 2^63 (8 EiB)",
                self.bytes, self.offset
            )),
        }
    }
}
