//! MSR Cambridge's text.

use std::io::{self, Write};

use super::{Encode, Left, word};
use crate::record::Record;

/// Writes MSR Cambridge's text.
#[derive(Debug, Default)]
pub struct Msr;

impl Encode for Msr {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, record: &Record, to: &mut dyn Write, _: &mut Left) -> io::Result<()> {
        writeln!(
            to,
            "{},openvsl,{},{},{},{},{}",
            record.time_ns / 100,
            record.volume,
            word(record.op, "Read", "Write"),
            record.offset,
            record.bytes,
            record.response_ns.unwrap_or(0) / 100
        )
    }
}
