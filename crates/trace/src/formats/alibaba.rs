//! Alibaba's traces of cloud block storage.

use super::{LineFormat, Parsed, op_of};
use crate::input::fields::{Fields, nanos};
use crate::record::Record;

/// See [`super::Format::Alibaba`].
#[derive(Debug, Default)]
pub struct Alibaba;

impl LineFormat for Alibaba {
    const SHAPE: &'static str = "device, R|W, offset in bytes, length in bytes, time in µs";
    const HEADER: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let mut fields = Fields::commas(line);
        let volume = fields.small("the device")?;
        let op = op_of(fields.text("the operation")?)?;
        let offset = fields.number("the offset")?;
        let bytes = fields.number("the length")?;
        let time = fields.number("the time")?;
        if fields.next().is_some() {
            return Err("more than 5 fields".into());
        }
        let time_ns = nanos("the time in µs", time, 1000)?;
        Ok(Parsed::Record(Record { time_ns, offset, bytes, response_ns: None, volume, op }))
    }
}
