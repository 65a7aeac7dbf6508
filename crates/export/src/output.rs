//! Answers on their way out, in every protocol: headers in one buffer, payloads as they are, sent together.

use std::collections::VecDeque;
use std::io::IoSlice;

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

    /// Adds a copy of a few bytes, a header most likely.
    #[inline]
    pub fn small(&mut self, bytes: &[u8]) {
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
pub(crate) mod tests {
    use super::*;

    /// Sends everything, `step` bytes at a time.
    pub fn drain(mut output: Output, step: usize) -> Vec<u8> {
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
    fn a_client_that_never_has_all_of_its_answers_costs_no_more_for_that() {
        let (mut output, mut pool) = (Output::default(), Pool::default());
        output.small(&[7; 16]);
        for _ in 0..1_000_000 {
            output.small(&[7; 16]);
            output.advance(16, &mut pool);
        }
        assert_eq!(output.len(), 16);
        assert!(output.memory() < 4 * FORGOTTEN_BYTES, "{}", output.memory());
        assert_eq!(drain(output, 5), [7; 16]);
    }

    #[test]
    fn however_it_is_cut_the_bytes_come_out_in_order() {
        let build = || {
            let mut output = Output::default();
            let mut pool = Pool::default();
            for round in 0..50u32 {
                output.small(&[round as u8 + 1; 28]);
                output.payload(vec![round as u8; 700], &mut pool);
                output.small(&[round as u8 + 2; 16]);
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
