//! A window on the bytes of a trace: as large as it is, whatever the trace.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use crate::error::Place;

/// Bytes of the window.
const WINDOW: usize = 256 << 10;
/// Longest line that is taken for one, bytes. Those with digests of every sector are the longest of all formats.
pub const LONGEST_LINE: usize = 64 << 10;

/// Why there is no next line or record.
#[derive(Debug)]
pub enum Broken {
    /// The file cannot be read on, or its compressed form is damaged.
    Io(std::io::Error),
    /// What is there cannot be one.
    Malformed(Place, String),
}

/// The bytes of a trace.
pub struct Buffer {
    input: Box<dyn Read + Send>,
    window: Box<[u8]>,
    /// What of the window is not used up.
    begin: usize,
    end: usize,
    over: bool,
    /// Bytes used up before the window's first.
    before: u64,
    lines: u64,
}

impl Buffer {
    /// On what is read.
    pub fn new(input: Box<dyn Read + Send>) -> Buffer {
        let window = vec![0; WINDOW].into_boxed_slice();
        Buffer { input, window, begin: 0, end: 0, over: false, before: 0, lines: 0 }
    }

    /// Brings more bytes in behind those that are there, moved to the front.
    fn more(&mut self) -> Result<(), Broken> {
        self.window.copy_within(self.begin..self.end, 0);
        self.before += self.begin as u64;
        self.end -= self.begin;
        self.begin = 0;
        while !self.over && self.end < self.window.len() {
            match self.input.read(&mut self.window[self.end..]) {
                Ok(0) => self.over = true,
                Ok(count) => {
                    self.end += count;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Broken::Io(error)),
            }
        }
        Ok(())
    }

    /// What the trace begins with, as far as the window holds it; nothing is used up. For the time before the first line or record.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn beginning(&mut self) -> Result<&[u8], Broken> {
        while !self.over && self.end < self.window.len() {
            self.more()?;
        }
        Ok(&self.window[self.begin..self.end])
    }

    /// Where the next line begins in the window, without its end. `None`: there are no more.
    #[inline]
    fn find_line(&mut self) -> Result<Option<Range<usize>>, Broken> {
        let mut searched = 0;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.window[self.begin + searched..self.end]) {
                let start = self.begin;
                self.begin += searched + found + 1;
                return Ok(Some(start..start + searched + found));
            }
            searched = self.end - self.begin;
            if searched > LONGEST_LINE {
                let problem = format!("more than {LONGEST_LINE} bytes without an end; expected a line of text");
                return Err(Broken::Malformed(Place::Line(self.lines + 1), problem));
            }
            if self.over {
                let rest = self.begin..self.end;
                self.begin = self.end;
                return Ok((!rest.is_empty()).then_some(rest));
            }
            self.more()?;
        }
    }

    /// The next line, without its end, and whether it had one. `None`: there are no more.
    ///
    /// # Errors
    /// It cannot be read, or is too long to be a line.
    #[inline]
    pub fn line(&mut self) -> Result<Option<Line<'_>>, Broken> {
        let Some(mut range) = self.find_line()? else { return Ok(None) };
        self.lines += 1;
        let complete = range.end < self.begin;
        if !range.is_empty() && self.window[range.end - 1] == b'\r' {
            range.end -= 1;
        }
        Ok(Some(Line { bytes: &self.window[range], number: self.lines, complete }))
    }

    /// The next `N` bytes, and where they stand. `None`: there are none left.
    ///
    /// # Errors
    /// It cannot be read, or fewer are left.
    #[inline]
    pub fn record<const N: usize>(&mut self) -> Result<Option<(&[u8; N], u64)>, Broken> {
        while self.end - self.begin < N {
            if self.over {
                let place = self.before + self.begin as u64;
                return match self.end - self.begin {
                    0 => Ok(None),
                    left => {
                        self.begin = self.end;
                        let problem =
                            format!("the last record is cut off after {left} bytes; expected {N} in a record");
                        Err(Broken::Malformed(Place::Byte(place), problem))
                    }
                };
            }
            self.more()?;
        }
        let place = self.before + self.begin as u64;
        let (record, _) = self.window[self.begin..self.end].split_first_chunk::<N>().ok_or_else(|| {
            // As many were just seen to be there.
            Broken::Malformed(Place::Byte(place), format!("expected {N} bytes"))
        })?;
        self.begin += N;
        Ok(Some((record, place)))
    }
}

/// A line of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its bytes, without its end.
    pub bytes: &'a [u8],
    /// Its number; the first is 1.
    pub number: u64,
    /// It has an end: the last one of a file that was cut off has none.
    pub complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Drops(Vec<u8>, usize);

    impl Read for Drops {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let count = to.len().min(self.1).min(self.0.len());
            to[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    fn buffer(bytes: &[u8], at_once: usize) -> Buffer {
        Buffer::new(Box::new(Drops(bytes.to_vec(), at_once)))
    }

    #[test]
    fn lines_come_whatever_the_pieces() {
        for at_once in [1, 2, 3, 1000] {
            let mut buffer = buffer(b"one\r\n\ntwo\nthree", at_once);
            let mut lines = Vec::new();
            while let Some(line) = buffer.line().expect("text") {
                lines.push((String::from_utf8_lossy(line.bytes).into_owned(), line.number, line.complete));
            }
            let expected = [("one", 1, true), ("", 2, true), ("two", 3, true), ("three", 4, false)];
            assert_eq!(lines, expected.map(|(text, number, complete)| (text.to_owned(), number, complete)));
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_memory() {
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                to.fill(b'x');
                Ok(to.len())
            }
        }
        match Buffer::new(Box::new(Endless)).line() {
            Err(Broken::Malformed(Place::Line(1), problem)) => assert!(problem.contains("65536 bytes"), "{problem}"),
            other => panic!("{other:?}"),
        };
    }

    #[test]
    fn records_come_whole_and_a_cut_one_is_said() {
        let mut buffer = buffer(&[7; 10], 3);
        assert_eq!(buffer.beginning().expect("bytes").len(), 10);
        assert_eq!(buffer.record::<4>().expect("whole"), Some((&[7; 4], 0)));
        assert_eq!(buffer.record::<4>().expect("whole"), Some((&[7; 4], 4)));
        match buffer.record::<4>() {
            Err(Broken::Malformed(Place::Byte(8), problem)) => {
                assert!(problem.contains("cut off after 2 bytes; expected 4"), "{problem}");
            }
            other => panic!("{other:?}"),
        }
        assert!(buffer.record::<4>().expect("the end").is_none());
    }
}
