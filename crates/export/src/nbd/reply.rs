//! Replies as the NBD specification draws them.

use super::proto::{Errno, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk};
use crate::output::Output;

/// A reply's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Structured replies were negotiated.
    pub structured: bool,
    /// The request's cookie.
    pub cookie: u64,
}

impl Form {
    fn simple(self, output: &mut Output, error: u32) {
        let mut header = [0; 16];
        header[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        header[4..8].copy_from_slice(&error.to_be_bytes());
        header[8..].copy_from_slice(&self.cookie.to_be_bytes());
        output.small(&header);
    }

    fn chunk(self, output: &mut Output, kind: u16, len: u32) {
        self.part(output, chunk::DONE, kind, len);
    }

    fn part(self, output: &mut Output, flags: u16, kind: u16, len: u32) {
        let mut header = [0; 20];
        header[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        header[4..6].copy_from_slice(&flags.to_be_bytes());
        header[6..8].copy_from_slice(&kind.to_be_bytes());
        header[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        header[16..].copy_from_slice(&len.to_be_bytes());
        output.small(&header);
    }

    /// Success without data.
    #[inline]
    pub fn success(self, output: &mut Output) {
        // A simple reply is allowed for anything but reads and descriptions, and is the shorter one.
        self.simple(output, 0);
    }

    /// A read's success; its `len` bytes of payload follow through [`Output::payload`].
    #[inline]
    pub fn read_header(self, output: &mut Output, offset: u64, len: u32) {
        if !self.structured {
            self.simple(output, 0);
        } else if len == 0 {
            self.chunk(output, chunk::NONE, 0);
        } else {
            self.chunk(output, chunk::OFFSET_DATA, len + 8);
            output.small(&offset.to_be_bytes());
        }
    }

    /// A failure.
    pub fn error(self, output: &mut Output, error: Errno) {
        if self.structured {
            self.chunk(output, chunk::ERROR, 6);
            output.small(&(error as u32).to_be_bytes());
            output.small(&0u16.to_be_bytes());
        } else {
            self.simple(output, error as u32);
        }
    }

    /// A description: for each context, in the order of their numbers, runs of bytes with their flags.
    pub fn block_status(self, output: &mut Output, contexts: &[Vec<(u32, u32)>]) {
        for (number, extents) in (1u32..).zip(contexts) {
            let flags = if number as usize == contexts.len() { chunk::DONE } else { 0 };
            self.part(output, flags, chunk::BLOCK_STATUS, 4 + 8 * extents.len() as u32);
            output.small(&number.to_be_bytes());
            for (len, flags) in extents {
                output.small(&len.to_be_bytes());
                output.small(&flags.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::drain;
    use crate::pool::Pool;

    const SIMPLE: Form = Form { structured: false, cookie: 0x0102_0304_0506_0708 };
    const STRUCTURED: Form = Form { structured: true, ..SIMPLE };

    #[test]
    fn simple_replies_as_the_specification_draws_them() {
        let mut output = Output::default();
        SIMPLE.success(&mut output);
        SIMPLE.error(&mut output, Errno::NoSpc);
        let expected = [
            0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 1, 2, 3,
            4, 5, 6, 7, 8,
        ];
        assert_eq!(drain(output, usize::MAX), expected);
    }

    #[test]
    fn structured_replies_as_the_specification_draws_them() {
        let mut output = Output::default();
        STRUCTURED.read_header(&mut output, 0x1000, 3);
        output.payload(vec![9, 9, 9], &mut Pool::default());
        STRUCTURED.error(&mut output, Errno::Io);
        STRUCTURED.block_status(&mut output, &[vec![(4096, 0), (512, 3)], vec![(4608, 1)]]);
        let mut expected = vec![0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 11];
        expected.extend([0, 0, 0, 0, 0, 0, 0x10, 0, 9, 9, 9]);
        expected.extend([0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 6]);
        expected.extend([0, 0, 0, 5, 0, 0]);
        expected.extend([0x66, 0x8e, 0x33, 0xef, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 20]);
        expected.extend([0, 0, 0, 1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3]);
        expected.extend([0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 12]);
        expected.extend([0, 0, 0, 2, 0, 0, 0x12, 0, 0, 0, 0, 1]);
        assert_eq!(drain(output, usize::MAX), expected);
    }
}
