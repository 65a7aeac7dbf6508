//! VMware's vscsiStats as text, as IOBlazer plays it back.

use super::{LineFormat, Parsed, op_of};
use crate::input::fields::{Fields, nanos, sectors};
use crate::record::{Op, Record};

/// See [`super::Format::VscsiCsv`].
#[derive(Debug, Default)]
pub struct VscsiCsv;

impl LineFormat for VscsiCsv {
    const SHAPE: &'static str = "serial number, bytes, SG entries, read|write, LBN of 512 bytes, time in µs";
    const HEADER: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let mut fields = Fields::commas(line);
        fields.number("the serial number")?;
        let bytes = fields.number("the number of bytes")?;
        fields.number("the number of SG entries")?;
        let op = op_of(fields.text("the command")?)?;
        let lbn = fields.number("the LBN")?;
        let time = fields.number("the time")?;
        if fields.next().is_some() {
            return Err("more than 6 fields".into());
        }
        let flush = op == Op::Flush;
        Ok(Parsed::Record(Record {
            time_ns: nanos("the time in µs", time, 1000)?,
            offset: if flush { 0 } else { sectors("the LBN", lbn)? },
            bytes: if flush { 0 } else { bytes },
            response_ns: None,
            volume: 0,
            op,
        }))
    }
}
