//! VMware's vscsiStats as text.

use std::io::{self, Write};

use super::{Encode, Left, in_sectors, word};
use crate::record::Record;

/// Writes VMware's text.
#[derive(Debug, Default)]
pub struct VscsiCsv {
    serial: u64,
    volume: Option<u32>,
}

impl Encode for VscsiCsv {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(b"#Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,Time Stamp (microseconds)\n")
    }

    fn record(&mut self, record: &Record, to: &mut dyn Write, left: &mut Left) -> io::Result<()> {
        let (first, count, moved) = in_sectors(record);
        left.widened += u64::from(moved);
        left.volumes_merged += u64::from(*self.volume.get_or_insert(record.volume) != record.volume);
        self.serial += 1;
        let command = word(record.op, "read", "write");
        writeln!(to, "{},{},1,{command},{first},{}", self.serial, count * 512, record.time_ns / 1000)
    }
}
