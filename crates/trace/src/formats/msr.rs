//! MSR Cambridge's traces, and others of SNIA's IOTTA repository in the same shape.

use super::{LineFormat, Parsed, op_of};
use crate::input::fields::{Fields, nanos};
use crate::record::{Op, Record};

/// See [`super::Format::Msr`].
#[derive(Debug, Default)]
pub struct Msr;

impl LineFormat for Msr {
    const SHAPE: &'static str = "time in units of 100 ns, host, disk number, Read|Write, offset in bytes, bytes, response time in units of 100 ns";
    const HEADER: bool = true;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let mut fields = Fields::commas(line);
        let time = fields.number("the time")?;
        fields.text("the host")?;
        let volume = fields.small("the disk number")?;
        let op = op_of(fields.text("the type")?)?;
        let offset = fields.number("the offset")?;
        let bytes = fields.number("the size")?;
        let response = fields.number("the response time")?;
        if fields.next().is_some() {
            return Err("more than 7 fields".into());
        }
        let flush = op == Op::Flush;
        Ok(Parsed::Record(Record {
            time_ns: nanos("the time in units of 100 ns", time, 100)?,
            offset: if flush { 0 } else { offset },
            bytes: if flush { 0 } else { bytes },
            // 0 is what writers put who do not know it.
            response_ns: Some(nanos("the response time in units of 100 ns", response, 100)?).filter(|ns| *ns > 0),
            volume,
            op,
        }))
    }
}
