//! fio's iolog, version 3.

use std::collections::HashSet;
use std::io::{self, Write};

use super::{Encode, Left};
use crate::record::{Op, Record};

/// Writes fio's iolog, version 3. A file is added and opened before its first request and closed at the end, as fio asks.
pub struct Fio {
    name: Box<dyn Fn(u32) -> String + Send>,
    open: HashSet<u32>,
    /// The volume of the last record, and what it is called.
    last: Option<(u32, String)>,
    time_us: u64,
}

impl Fio {
    /// With names for volumes.
    pub fn new(name: Box<dyn Fn(u32) -> String + Send>) -> Fio {
        Fio { name, open: HashSet::new(), last: None, time_us: 0 }
    }

    /// fio takes white space for the end of a name, and no more than 256 bytes of it.
    fn name(&self, volume: u32) -> String {
        let name: String = (self.name)(volume).chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        match name.len() {
            1..=255 => name,
            _ => format!("volume{volume}"),
        }
    }
}

impl Encode for Fio {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(b"fio version 3 iolog\n")
    }

    fn record(&mut self, record: &Record, to: &mut dyn Write, _: &mut Left) -> io::Result<()> {
        // fio takes a step back in time for none at all.
        self.time_us = self.time_us.max(record.time_ns / 1000);
        if self.last.as_ref().is_none_or(|(volume, _)| *volume != record.volume) {
            self.last = Some((record.volume, self.name(record.volume)));
        }
        let name = self.last.as_ref().map_or("", |(_, name)| name.as_str());
        if self.open.insert(record.volume) {
            write!(to, "{0} {name} add\n{0} {name} open\n", self.time_us)?;
        }
        let action = match record.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "sync",
        };
        writeln!(to, "{} {name} {action} {} {}", self.time_us, record.offset, record.bytes)
    }

    fn end(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let mut open: Vec<u32> = self.open.iter().copied().collect();
        open.sort_unstable();
        open.into_iter().try_for_each(|volume| writeln!(to, "{} {} close", self.time_us, self.name(volume)))
    }
}
