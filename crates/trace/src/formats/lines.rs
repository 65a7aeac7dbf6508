//! Formats with one record a line.

use super::{Aside, BATCH, Decode};
use crate::error::Place;
use crate::input::Buffer;
use crate::input::buffer::Broken;
use crate::record::{Op, Record};

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A request.
    Record(Record),
    /// Something that belongs there and is no request.
    Nothing,
    /// A command that moves no data.
    Other,
}

/// A format with one record a line.
pub trait LineFormat: Default + Send {
    /// What a line looks like, for whoever sees one that does not.
    const SHAPE: &'static str;
    /// A first line that begins with a letter is a header.
    const HEADER: bool;

    /// What a line holds.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, String>;

    /// Names of volumes, where they are files.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Reads a format with one record a line.
#[derive(Debug, Default)]
pub struct Lines<F> {
    format: F,
    aside: Aside,
}

impl<F: LineFormat> Lines<F> {
    /// How many of some lines hold requests, and how many nothing that could be one.
    pub fn judge<'a>(lines: impl Iterator<Item = &'a [u8]>) -> (usize, usize) {
        let mut format = F::default();
        let (mut records, mut broken) = (0, 0);
        for (at, line) in lines.enumerate() {
            if blank(line) || at == 0 && F::HEADER && is_header(line) {
                continue;
            }
            match format.parse(line) {
                Ok(Parsed::Record(record)) if record.check().is_ok() => records += 1,
                Ok(Parsed::Nothing | Parsed::Other) => {}
                _ => broken += 1,
            }
        }
        (records, broken)
    }
}

/// Nothing, or a comment.
#[inline]
fn blank(line: &[u8]) -> bool {
    match line.first() {
        None | Some(b'#') => true,
        Some(byte) => byte.is_ascii_whitespace() && line.trim_ascii().is_empty(),
    }
}

fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'"')
}

impl<F: LineFormat> Decode for Lines<F> {
    fn fill(&mut self, input: &mut Buffer, records: &mut Vec<Record>) -> Result<bool, Broken> {
        for _ in 0..BATCH {
            let Some(line) = input.line()? else { return Ok(false) };
            if blank(line.bytes) || line.number == 1 && F::HEADER && is_header(line.bytes) {
                continue;
            }
            let parsed = self.format.parse(line.bytes).and_then(|parsed| match parsed {
                Parsed::Record(record) if record.bytes == 0 && record.op != Op::Flush => {
                    self.aside.empty += 1;
                    Ok(None)
                }
                Parsed::Record(record) => record.check().map(|()| Some(record)),
                Parsed::Nothing => Ok(None),
                Parsed::Other => {
                    self.aside.other_commands += 1;
                    Ok(None)
                }
            });
            match parsed {
                Ok(Some(record)) => {
                    self.aside.last_line_unended |= !line.complete;
                    records.push(record);
                }
                Ok(None) => {}
                Err(problem) if line.complete => {
                    let problem = format!("{problem}; a line is: {}", F::SHAPE);
                    return Err(Broken::Malformed(Place::Line(line.number), problem));
                }
                Err(problem) => {
                    let problem = format!("the file ends within this line, so its last record is cut off: {problem}");
                    return Err(Broken::Malformed(Place::Line(line.number), problem));
                }
            }
        }
        Ok(true)
    }

    fn aside(&self) -> Aside {
        self.aside
    }

    fn files(&self) -> Vec<String> {
        self.format.files()
    }
}
