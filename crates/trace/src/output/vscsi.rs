//! VMware's vscsiStats in binary, version 2.

use std::io::{self, Write};

use super::{Encode, Left, in_sectors};
use crate::formats::vscsi::{BYTES_2, READ_10, SYNCHRONIZE_CACHE_10, UNMAP, WRITE_10};
use crate::record::{Op, Record};

/// Version 2 in its upper byte.
const VERSION: u16 = 2 << 8;

/// Writes VMware's binary records.
#[derive(Debug, Default)]
pub struct Vscsi {
    serial: u32,
    volume: Option<u32>,
}

impl Encode for Vscsi {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, record: &Record, to: &mut dyn Write, left: &mut Left) -> io::Result<()> {
        let (first, count, moved) = in_sectors(record);
        let Ok(bytes) = u32::try_from(count * 512) else {
            left.records += 1;
            return Ok(());
        };
        left.widened += u64::from(moved);
        left.volumes_merged += u64::from(*self.volume.get_or_insert(record.volume) != record.volume);
        self.serial = self.serial.wrapping_add(1);
        let command = match record.op {
            Op::Read => READ_10,
            Op::Write => WRITE_10,
            Op::Trim => UNMAP,
            Op::Flush => SYNCHRONIZE_CACHE_10,
        };
        let mut bytes_2 = [0; BYTES_2];
        bytes_2[0..2].copy_from_slice(&command.to_le_bytes());
        bytes_2[2..4].copy_from_slice(&VERSION.to_le_bytes());
        bytes_2[4..8].copy_from_slice(&self.serial.to_le_bytes());
        bytes_2[8..12].copy_from_slice(&bytes.to_le_bytes());
        bytes_2[12..16].copy_from_slice(&1u32.to_le_bytes());
        bytes_2[16..24].copy_from_slice(&first.to_le_bytes());
        bytes_2[24..32].copy_from_slice(&(record.time_ns / 1000).to_le_bytes());
        bytes_2[32..40].copy_from_slice(&(record.response_ns.unwrap_or(0) / 1000).to_le_bytes());
        to.write_all(&bytes_2)
    }
}
