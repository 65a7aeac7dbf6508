//! VMware's vscsiStats in binary: records of 32 bytes (version 1) or 40 (version 2), little-endian.

use super::{Aside, BATCH, Decode};
use crate::error::Place;
use crate::input::Buffer;
use crate::input::buffer::Broken;
use crate::input::fields::{nanos, sectors};
use crate::record::{Op, Record};

/// Bytes of a record of version 1.
pub const BYTES_1: usize = 32;
/// Bytes of a record of version 2.
pub const BYTES_2: usize = 40;

/// SCSI command: UNMAP.
pub const UNMAP: u16 = 0x42;
/// SCSI command: READ(10).
pub const READ_10: u16 = 0x28;
/// SCSI command: WRITE(10).
pub const WRITE_10: u16 = 0x2a;
/// SCSI command: SYNCHRONIZE CACHE(10).
pub const SYNCHRONIZE_CACHE_10: u16 = 0x35;

/// What stands in a record.
struct Raw {
    version: u16,
    command: u16,
    bytes: u32,
    lbn: u64,
    time_us: u64,
    response_us: Option<u64>,
}

#[inline]
fn field<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    // Both layouts are longer than the last field that is asked for.
    record.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

#[inline]
fn raw_1(record: &[u8; BYTES_1]) -> Raw {
    Raw {
        version: u16::from_le_bytes(field(record, 14)),
        command: u16::from_le_bytes(field(record, 12)),
        bytes: u32::from_le_bytes(field(record, 4)),
        lbn: u64::from_le_bytes(field(record, 16)),
        time_us: u64::from_le_bytes(field(record, 24)),
        response_us: None,
    }
}

#[inline]
fn raw_2(record: &[u8; BYTES_2]) -> Raw {
    Raw {
        version: u16::from_le_bytes(field(record, 2)),
        command: u16::from_le_bytes(field(record, 0)),
        bytes: u32::from_le_bytes(field(record, 8)),
        lbn: u64::from_le_bytes(field(record, 16)),
        time_us: u64::from_le_bytes(field(record, 24)),
        // 0 is what writers put who do not know it.
        response_us: Some(u64::from_le_bytes(field(record, 32))).filter(|time| *time > 0),
    }
}

/// How many of the records at the beginning of some bytes say that they are of a version; `None` where one does not, or there is none.
pub fn count(bytes: &[u8], version: u8) -> Option<usize> {
    let (size, at) = if version == 1 { (BYTES_1, 14) } else { (BYTES_2, 2) };
    let records = bytes.chunks_exact(size).take(64);
    let all = records.len();
    let right = records.filter(|record| record[at + 1] == version).count();
    (all > 0 && right == all).then_some(all)
}

/// What a command does; `None` for one that moves no data.
#[inline]
fn op_of(command: u16, bytes: u32) -> Option<Op> {
    match command {
        0x28 | 0x88 | 0x08 | 0xa8 => Some(Op::Read),
        // With their VERIFY forms.
        0x2a | 0x8a | 0x0a | 0xaa | 0x2e | 0x8e | 0xae => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        // Of an UNMAP, VMware records the length of the list of ranges and not the ranges. Our writer records the range, in sectors.
        UNMAP if bytes > 0 && bytes.is_multiple_of(512) => Some(Op::Trim),
        _ => None,
    }
}

/// Reads version `V`.
#[derive(Debug, Default)]
pub struct Binary<const V: u8> {
    aside: Aside,
}

impl<const V: u8> Binary<V> {
    #[inline]
    fn take(&mut self, raw: &Raw) -> Result<Option<Record>, String> {
        if raw.version >> 8 != u16::from(V) {
            return Err(format!("its version is {:#06x}; expected {:#06x}", raw.version, u16::from(V) << 8));
        }
        let Some(op) = op_of(raw.command, raw.bytes) else {
            self.aside.other_commands += 1;
            return Ok(None);
        };
        let flush = op == Op::Flush;
        let record = Record {
            time_ns: nanos("the time in µs", raw.time_us, 1000)?,
            offset: if flush { 0 } else { sectors("the LBN", raw.lbn)? },
            bytes: if flush { 0 } else { u64::from(raw.bytes) },
            response_ns: raw.response_us.map(|time| nanos("the response time in µs", time, 1000)).transpose()?,
            volume: 0,
            op,
        };
        if record.bytes == 0 && !flush {
            self.aside.empty += 1;
            return Ok(None);
        }
        record.check()?;
        Ok(Some(record))
    }
}

impl<const V: u8> Decode for Binary<V> {
    fn fill(&mut self, input: &mut Buffer, records: &mut Vec<Record>) -> Result<bool, Broken> {
        for _ in 0..BATCH {
            let (raw, place) = if V == 1 {
                let Some((record, place)) = input.record::<BYTES_1>()? else { return Ok(false) };
                (raw_1(record), place)
            } else {
                let Some((record, place)) = input.record::<BYTES_2>()? else { return Ok(false) };
                (raw_2(record), place)
            };
            let taken = self.take(&raw).map_err(|problem| Broken::Malformed(Place::Byte(place), problem))?;
            records.extend(taken);
        }
        Ok(true)
    }

    fn aside(&self) -> Aside {
        self.aside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_apart() {
        for (command, op) in [
            (READ_10, Some(Op::Read)),
            (0x88, Some(Op::Read)),
            (WRITE_10, Some(Op::Write)),
            (0x8e, Some(Op::Write)),
            (SYNCHRONIZE_CACHE_10, Some(Op::Flush)),
            (0x12, None),
        ] {
            assert_eq!(op_of(command, 4096), op, "{command:#x}");
        }
        assert_eq!(op_of(UNMAP, 4096), Some(Op::Trim));
        assert_eq!(op_of(UNMAP, 24), None, "a list of one range");
    }
}
