//! fio's iologs, versions 2 and 3. The first line says which.

use std::collections::HashMap;

use super::{LineFormat, Parsed};
use crate::input::fields::{Fields, nanos, unexpected};
use crate::record::{Op, Record};

/// First lines, without the end.
pub const HEADERS: [&[u8]; 2] = [b"fio version 2 iolog", b"fio version 3 iolog"];

/// Most files of one iolog: more than any machine has disks, few enough to be held in memory.
const MOST_FILES: usize = 65_536;

/// See [`super::Format::Fio2`] and [`super::Format::Fio3`].
#[derive(Debug, Default)]
pub struct Iolog {
    /// From the first line.
    version: u8,
    /// Of version 2: the waits up to now, which is all it says about time.
    waited_ns: u64,
    files: HashMap<Box<[u8]>, u32>,
    /// The file that was named last, which mostly is the one that is named next.
    last: (Box<[u8]>, u32),
}

impl Iolog {
    #[inline]
    fn file(&mut self, name: &[u8]) -> Result<u32, String> {
        if *self.last.0 == *name && !self.files.is_empty() {
            return Ok(self.last.1);
        }
        let count = self.files.len();
        let number = match self.files.get(name) {
            Some(number) => *number,
            None if count >= MOST_FILES => return Err(format!("more than {MOST_FILES} files")),
            None => {
                self.files.insert(name.into(), count as u32);
                count as u32
            }
        };
        self.last = (name.into(), number);
        Ok(number)
    }
}

impl LineFormat for Iolog {
    const SHAPE: &'static str =
        "version 2: file, action, offset, length; version 3: time in µs, file, action, offset, length";
    const HEADER: bool = false;

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String> {
        if self.version == 0 {
            let header = HEADERS.iter().position(|header| line.trim_ascii() == *header);
            self.version = match header {
                Some(at) => at as u8 + 2,
                None => {
                    return Err(unexpected("the first line", line, "'fio version 2 iolog' or 'fio version 3 iolog'"));
                }
            };
            return Ok(Parsed::Nothing);
        }
        let mut fields = Fields::words(line);
        let time_ns = match self.version {
            2 => self.waited_ns,
            _ => nanos("the time in µs", fields.number("the time")?, 1000)?,
        };
        let file = fields.text("the file")?;
        let action = fields.text("the action")?;
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"syncfs" => Op::Flush,
            b"add" | b"open" | b"close" | b"unlink" => {
                self.file(file)?;
                return Ok(Parsed::Nothing);
            }
            b"wait" if self.version == 2 => {
                let wait = nanos("the wait in µs", fields.number("the wait")?, 1000)?;
                self.waited_ns = self
                    .waited_ns
                    .checked_add(wait)
                    .ok_or("all waits together are more than 2^64 nanoseconds (584 years)")?;
                return Ok(Parsed::Nothing);
            }
            b"sync_file_range" | b"wait" => return Ok(Parsed::Other),
            other => {
                let expected = "read, write, trim, sync, datasync, add, open or close, or in version 2 wait";
                return Err(unexpected("the action", other, expected));
            }
        };
        let volume = self.file(file)?;
        let (offset, bytes) = match op {
            // fio writes an offset and a length for a sync too; they mean nothing.
            Op::Flush => (0, 0),
            _ => (fields.number("the offset")?, fields.number("the length")?),
        };
        Ok(Parsed::Record(Record { time_ns, offset, bytes, response_ns: None, volume, op }))
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = self.files.iter().collect();
        names.sort_by_key(|(_, number)| **number);
        names.into_iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_add_up() {
        let mut iolog = Iolog::default();
        let mut times = Vec::new();
        for line in
            ["fio version 2 iolog", "/a add", "/a read 0 4096", "/a wait 150 0", "/a wait 50", "/b trim 512 512"]
        {
            if let Parsed::Record(record) = iolog.parse(line.as_bytes()).expect(line) {
                times.push((record.time_ns, record.volume, record.op));
            }
        }
        assert_eq!(times, [(0, 0, Op::Read), (200_000, 1, Op::Trim)]);
        assert_eq!(iolog.files(), ["/a", "/b"]);
    }

    #[test]
    fn waits_for_ever_are_refused() {
        let mut iolog = Iolog::default();
        iolog.parse(HEADERS[0]).expect("a header");
        iolog.parse(b"/a wait 18446744073709551 0").expect("584 years");
        let message = iolog.parse(b"/a wait 18446744073709551 0").expect_err("twice");
        assert!(message.contains("584 years"), "{message}");
    }
}
