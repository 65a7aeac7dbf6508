//! Replies on their way out: headers in one buffer, payloads as they are, sent together.

use std::collections::VecDeque;
use std::io::IoSlice;

use super::proto::{BASE_ALLOCATION_ID, Errno, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, allocation, chunk};
use crate::pool::Pool;

/// Payloads up to this many bytes are copied behind their header: cheaper than one more segment.
const COPY_BYTES: usize = 512;

/// So many bytes of headers that are sent are forgotten at once: a client that never has quite all of its answers would
/// otherwise keep every header since it came.
const FORGOTTEN_BYTES: usize = 64 << 10;

/// Segments handed to one system call.
pub const SEGMENTS: usize = 128;

#[derive(Debug)]
enum Segment {
    /// The next so many bytes of `Output::small`.
    Small(usize),
    Payload(Vec<u8>),
}

impl Segment {
    fn len(&self) -> usize {
        match self {
            Segment::Small(len) => *len,
            Segment::Payload(bytes) => bytes.len(),
        }
    }
}

/// Bytes to send, in order.
#[derive(Debug, Default)]
pub struct Output {
    small: Vec<u8>,
    /// Bytes of `small` that are sent.
    small_sent: usize,
    segments: VecDeque<Segment>,
    /// Bytes of the first segment, a payload, that are sent.
    front_sent: usize,
    bytes: usize,
}

/// A reply's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Structured replies were negotiated.
    pub structured: bool,
    /// The request's cookie.
    pub cookie: u64,
}

impl Output {
    /// Bytes not sent yet.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Bytes not sent yet, and those that are sent of a payload whose buffer is still there.
    #[inline]
    pub fn held(&self) -> usize {
        self.bytes + self.front_sent
    }

    /// Whether everything is sent.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    fn small(&mut self, bytes: &[u8]) {
        self.small.extend_from_slice(bytes);
        self.bytes += bytes.len();
        match self.segments.back_mut() {
            Some(Segment::Small(len)) => *len += bytes.len(),
            _ => self.segments.push_back(Segment::Small(bytes.len())),
        }
    }

    /// Adds bytes as they are, taking the buffer along.
    pub fn payload(&mut self, bytes: Vec<u8>, pool: &mut Pool) {
        if bytes.len() <= COPY_BYTES {
            self.small(&bytes);
            pool.put(bytes);
        } else {
            self.bytes += bytes.len();
            self.segments.push_back(Segment::Payload(bytes));
        }
    }

    fn simple(&mut self, error: u32, cookie: u64) {
        let mut header = [0; 16];
        header[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        header[4..8].copy_from_slice(&error.to_be_bytes());
        header[8..].copy_from_slice(&cookie.to_be_bytes());
        self.small(&header);
    }

    fn chunk(&mut self, kind: u16, cookie: u64, len: u32) {
        let mut header = [0; 20];
        header[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        header[4..6].copy_from_slice(&chunk::DONE.to_be_bytes());
        header[6..8].copy_from_slice(&kind.to_be_bytes());
        header[8..16].copy_from_slice(&cookie.to_be_bytes());
        header[16..].copy_from_slice(&len.to_be_bytes());
        self.small(&header);
    }

    /// Success without data.
    #[inline]
    pub fn success(&mut self, form: Form) {
        // A simple reply is allowed for anything but reads and descriptions, and is the shorter one.
        self.simple(0, form.cookie);
    }

    /// A read's success; its `len` bytes of payload follow through [`Output::payload`].
    #[inline]
    pub fn read_header(&mut self, form: Form, offset: u64, len: u32) {
        if !form.structured {
            self.simple(0, form.cookie);
        } else if len == 0 {
            self.chunk(chunk::NONE, form.cookie, 0);
        } else {
            self.chunk(chunk::OFFSET_DATA, form.cookie, len + 8);
            self.small(&offset.to_be_bytes());
        }
    }

    /// A failure.
    pub fn error(&mut self, form: Form, error: Errno) {
        if form.structured {
            self.chunk(chunk::ERROR, form.cookie, 6);
            self.small(&(error as u32).to_be_bytes());
            self.small(&0u16.to_be_bytes());
        } else {
            self.simple(error as u32, form.cookie);
        }
    }

    /// A description: runs of bytes, each mapped or not.
    pub fn block_status(&mut self, form: Form, extents: &[(u32, bool)]) {
        self.chunk(chunk::BLOCK_STATUS, form.cookie, 4 + 8 * extents.len() as u32);
        self.small(&BASE_ALLOCATION_ID.to_be_bytes());
        for (len, mapped) in extents {
            let flags = if *mapped { 0 } else { allocation::HOLE | allocation::ZERO };
            self.small(&len.to_be_bytes());
            self.small(&flags.to_be_bytes());
        }
    }

    /// The next bytes to send: fills `slices` and says how many of them.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SEGMENTS]) -> usize {
        let mut small = &self.small[self.small_sent..];
        let mut skip = self.front_sent;
        let mut count = 0;
        for (slot, segment) in slices.iter_mut().zip(&self.segments) {
            *slot = match segment {
                Segment::Small(len) => {
                    let (now, rest) = small.split_at(*len);
                    small = rest;
                    IoSlice::new(now)
                }
                Segment::Payload(bytes) => IoSlice::new(&bytes[skip..]),
            };
            skip = 0;
            count += 1;
        }
        count
    }

    /// Forgets `sent` bytes from the front; buffers go back to the pool.
    pub fn advance(&mut self, mut sent: usize, pool: &mut Pool) {
        self.bytes -= sent;
        while sent > 0
            && let Some(front) = self.segments.front_mut()
        {
            let left = front.len() - self.front_sent;
            let now = left.min(sent);
            sent -= now;
            match front {
                Segment::Small(len) => {
                    self.small_sent += now;
                    *len -= now;
                }
                Segment::Payload(_) => self.front_sent += now,
            }
            if now == left {
                self.front_sent = 0;
                if let Some(Segment::Payload(bytes)) = self.segments.pop_front() {
                    pool.put(bytes);
                }
            }
        }
        if self.segments.is_empty() {
            self.small.clear();
            self.small_sent = 0;
        } else if self.small_sent >= FORGOTTEN_BYTES && 2 * self.small_sent >= self.small.len() {
            self.small.drain(..self.small_sent);
            self.small_sent = 0;
        }
    }

    /// Memory that it takes, bytes.
    pub fn memory(&self) -> usize {
        self.held() - (self.small.len() - self.small_sent)
            + self.small.capacity()
            + self.segments.capacity() * size_of::<Segment>()
    }

    /// Gives back what it keeps for answers to come, if there are none now.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            *self = Output::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMPLE: Form = Form { structured: false, cookie: 0x0102_0304_0506_0708 };
    const STRUCTURED: Form = Form { structured: true, ..SIMPLE };

    /// Sends everything, `step` bytes at a time.
    fn drain(mut output: Output, step: usize) -> Vec<u8> {
        let mut pool = Pool::default();
        let mut sent = Vec::new();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SEGMENTS];
            let count = output.slices(&mut slices);
            let bytes: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).take(step).collect();
            assert!(!bytes.is_empty());
            sent.extend_from_slice(&bytes);
            output.advance(bytes.len(), &mut pool);
        }
        sent
    }

    #[test]
    fn simple_replies_as_the_specification_draws_them() {
        let mut output = Output::default();
        output.success(SIMPLE);
        output.error(SIMPLE, Errno::NoSpc);
        let expected = [
            0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 1, 2, 3,
            4, 5, 6, 7, 8,
        ];
        assert_eq!(drain(output, usize::MAX), expected);
    }

    #[test]
    fn structured_replies_as_the_specification_draws_them() {
        let mut output = Output::default();
        output.read_header(STRUCTURED, 0x1000, 3);
        output.payload(vec![9, 9, 9], &mut Pool::default());
        output.error(STRUCTURED, Errno::Io);
        output.block_status(STRUCTURED, &[(4096, true), (512, false)]);
        let mut expected = vec![0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 11];
        expected.extend([0, 0, 0, 0, 0, 0, 0x10, 0, 9, 9, 9]);
        expected.extend([0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 6]);
        expected.extend([0, 0, 0, 5, 0, 0]);
        expected.extend([0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 20]);
        expected.extend([0, 0, 0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3]);
        assert_eq!(drain(output, usize::MAX), expected);
    }

    #[test]
    fn a_client_that_never_has_all_of_its_answers_costs_no_more_for_that() {
        let (mut output, mut pool) = (Output::default(), Pool::default());
        output.success(SIMPLE);
        for _ in 0..1_000_000 {
            output.success(SIMPLE);
            output.advance(16, &mut pool);
        }
        assert_eq!(output.len(), 16);
        assert!(output.memory() < 4 * FORGOTTEN_BYTES, "{}", output.memory());
        assert_eq!(drain(output, 5), [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn however_it_is_cut_the_bytes_come_out_in_order() {
        let build = || {
            let mut output = Output::default();
            let mut pool = Pool::default();
            for round in 0..50u32 {
                output.read_header(STRUCTURED, u64::from(round), 700);
                output.payload(vec![round as u8; 700], &mut pool);
                output.read_header(SIMPLE, 0, 5);
                output.payload(vec![round as u8; 5], &mut pool);
            }
            output
        };
        let whole = drain(build(), usize::MAX);
        assert_eq!(whole.len(), 50 * (28 + 700 + 16 + 5));
        for step in [1, 7, 699, 5000] {
            assert_eq!(drain(build(), step), whole, "step {step}");
        }
    }
}
