//! Florida International University's traces.

use super::{LineFormat, Parsed, device_number, op_of};
use crate::input::fields::{Fields, sectors};
use crate::record::Record;

/// See [`super::Format::Fiu`].
#[derive(Debug, Default)]
pub struct Fiu;

impl LineFormat for Fiu {
    const SHAPE: &'static str =
        "time in ns, pid, process, LBA and size in sectors of 512 bytes, W|R, major, minor, digests";
    const HEADER: bool = false;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String> {
        let mut fields = Fields::words(line);
        let time_ns = fields.number("the time")?;
        fields.number("the pid")?;
        fields.text("the process")?;
        let offset = sectors("the LBA", fields.number("the LBA")?)?;
        let bytes = sectors("the size", fields.number("the size")?)?;
        let op = op_of(fields.text("the operation")?)?;
        let (major, minor) = (fields.number("the major number")?, fields.number("the minor number")?);
        // What follows are digests of the content, which nobody here needs.
        let volume = device_number(major, minor)?;
        Ok(Parsed::Record(Record { time_ns, offset, bytes, response_ns: None, volume, op }))
    }
}
