//! Tencent's traces of cloud block storage.

use super::{LineFormat, Parsed};
use crate::input::fields::{Fields, seconds, sectors, unexpected};
use crate::record::{Op, Record};

/// See [`super::Format::Tencent`].
#[derive(Debug, Default)]
pub struct Tencent;

impl LineFormat for Tencent {
    const SHAPE: &'static str = "time in s, offset and size in sectors of 512 bytes, 0|1 (read, write), volume";
    const HEADER: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let mut fields = Fields::commas(line);
        let time = fields.text("the time")?;
        let time_ns = seconds(time)
            .ok_or_else(|| unexpected("the time", time, "seconds, below 2^64 nanoseconds (584 years) of them"))?;
        let offset = sectors("the offset", fields.number("the offset")?)?;
        let bytes = sectors("the size", fields.number("the size")?)?;
        let op = match fields.text("the type")? {
            b"0" => Op::Read,
            b"1" => Op::Write,
            other => return Err(unexpected("the type", other, "0 (read) or 1 (write)")),
        };
        let volume = fields.small("the volume")?;
        if fields.next().is_some() {
            return Err("more than 5 fields".into());
        }
        Ok(Parsed::Record(Record { time_ns, offset, bytes, response_ns: None, volume, op }))
    }
}
