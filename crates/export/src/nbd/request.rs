//! Requests of the transmission phase: their header, and what is wrong with them.

use super::proto::{Errno, MAX_PAYLOAD, REQUEST_BYTES, REQUEST_MAGIC, command, command_flag as flag};
use crate::request::Command;

/// A request's header as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Command flags.
    pub flags: u16,
    /// Request type.
    pub kind: u16,
    /// Comes back in the reply.
    pub cookie: u64,
    /// Bytes from the start of the export.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// The bytes are no request: nothing behind them can be understood either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request magic {0:#010x}, expected {REQUEST_MAGIC:#010x}")]
pub struct BadMagic(pub u32);

/// What requests of a connection are measured against.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of the export, bytes.
    pub bytes: u64,
    /// Sector size, bytes; a power of two.
    pub sector_bytes: u32,
    /// Largest request of the device, bytes.
    pub max_request_bytes: u32,
    /// Writes are refused.
    pub read_only: bool,
    /// Structured replies were negotiated.
    pub structured: bool,
    /// Metadata contexts were negotiated.
    pub has_contexts: bool,
    /// The snapshot or clone that it shows; otherwise the device as it is.
    pub view: Option<device::SnapshotId>,
}

/// A request that may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The device's part of it. Reads are always answered in one chunk, so DF makes no difference.
    Command(Command),
    /// Prefetch: nothing to do.
    Cache,
    /// Describe.
    BlockStatus {
        /// One extent only.
        one: bool,
    },
}

fn be_u16(bytes: &[u8; REQUEST_BYTES], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be_u32(bytes: &[u8; REQUEST_BYTES], at: usize) -> u32 {
    u32::from(be_u16(bytes, at)) << 16 | u32::from(be_u16(bytes, at + 2))
}

fn be_u64(bytes: &[u8; REQUEST_BYTES], at: usize) -> u64 {
    u64::from(be_u32(bytes, at)) << 32 | u64::from(be_u32(bytes, at + 4))
}

impl Header {
    /// Takes a header apart.
    ///
    /// # Errors
    /// It does not begin with the request magic.
    #[inline]
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Result<Header, BadMagic> {
        let magic = be_u32(bytes, 0);
        if magic != REQUEST_MAGIC {
            return Err(BadMagic(magic));
        }
        Ok(Header {
            flags: be_u16(bytes, 4),
            kind: be_u16(bytes, 6),
            cookie: be_u64(bytes, 8),
            offset: be_u64(bytes, 16),
            len: be_u32(bytes, 24),
        })
    }

    /// Bytes that follow the header, whatever becomes of the request.
    #[inline]
    pub fn payload(&self) -> u32 {
        if self.kind == command::WRITE { self.len } else { 0 }
    }

    /// What is to be done, or the error to answer.
    ///
    /// # Errors
    /// As the specification names them: see [`Errno`].
    #[inline]
    pub fn check(&self, limits: &Limits) -> Result<Asked, Errno> {
        let fua = self.flags & flag::FUA != 0;
        let (asked, allowed) = match self.kind {
            command::READ if limits.structured => (Asked::Command(Command::Read), flag::DF),
            command::READ => (Asked::Command(Command::Read), 0),
            command::WRITE => (Asked::Command(Command::Write { fua, placement: 0 }), 0),
            command::FLUSH => (Asked::Command(Command::Flush), 0),
            command::TRIM => (Asked::Command(Command::Trim { fua }), 0),
            command::CACHE => (Asked::Cache, 0),
            command::WRITE_ZEROES => (
                Asked::Command(Command::WriteZeroes { fua, allocate: self.flags & flag::NO_HOLE != 0 }),
                flag::NO_HOLE | flag::FAST_ZERO,
            ),
            command::BLOCK_STATUS if limits.has_contexts => {
                (Asked::BlockStatus { one: self.flags & flag::REQ_ONE != 0 }, flag::REQ_ONE)
            }
            _ => return Err(Errno::Inval),
        };
        if self.flags & !(allowed | flag::FUA) != 0 {
            return Err(Errno::Inval);
        }
        if asked == Asked::Command(Command::Flush) {
            return if self.offset == 0 && self.len == 0 { Ok(asked) } else { Err(Errno::Inval) };
        }
        let changes = matches!(asked, Asked::Command(command) if command.changes());
        if changes && limits.read_only {
            return Err(Errno::Perm);
        }
        if matches!(asked, Asked::Command(Command::Read | Command::Write { .. })) && self.len > MAX_PAYLOAD {
            return Err(Errno::Inval);
        }
        let mask = u64::from(limits.sector_bytes) - 1;
        if (self.offset | u64::from(self.len)) & mask != 0 {
            return Err(Errno::Inval);
        }
        if self.offset.checked_add(u64::from(self.len)).is_none_or(|end| end > limits.bytes) {
            let grows = matches!(asked, Asked::Command(Command::Write { .. } | Command::WriteZeroes { .. }));
            return Err(if grows { Errno::NoSpc } else { Errno::Inval });
        }
        match asked {
            // An extent has at least one byte, so a description of nothing does not exist.
            Asked::BlockStatus { .. } if self.len == 0 => Err(Errno::Inval),
            // Unmapping is always fast; zeros that take space are written, which is not.
            Asked::Command(Command::WriteZeroes { allocate: true, .. }) if self.flags & flag::FAST_ZERO != 0 => {
                Err(Errno::NotSup)
            }
            _ => Ok(asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        bytes: 1 << 20,
        sector_bytes: 512,
        max_request_bytes: 1 << 20,
        read_only: false,
        structured: true,
        has_contexts: true,
        view: None,
    };

    fn header(kind: u16, flags: u16, offset: u64, len: u32) -> Header {
        Header { flags, kind, cookie: 7, offset, len }
    }

    fn check(kind: u16, flags: u16, offset: u64, len: u32) -> Result<Asked, Errno> {
        header(kind, flags, offset, len).check(&LIMITS)
    }

    #[test]
    fn a_header_is_big_endian_and_in_the_order_of_the_specification() {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
        for (at, byte) in bytes[4..].iter_mut().enumerate() {
            *byte = at as u8 + 1;
        }
        let expected = Header {
            flags: 0x0102,
            kind: 0x0304,
            cookie: 0x0506_0708_090a_0b0c,
            offset: 0x0d0e_0f10_1112_1314,
            len: 0x1516_1718,
        };
        assert_eq!(Header::decode(&bytes), Ok(expected));
        bytes[3] = 0x14;
        assert_eq!(Header::decode(&bytes), Err(BadMagic(0x2560_9514)));
    }

    #[test]
    fn ranges_beyond_the_end_get_the_error_of_their_command() {
        for (kind, error) in [
            (command::WRITE, Errno::NoSpc),
            (command::WRITE_ZEROES, Errno::NoSpc),
            (command::READ, Errno::Inval),
            (command::TRIM, Errno::Inval),
            (command::CACHE, Errno::Inval),
            (command::BLOCK_STATUS, Errno::Inval),
        ] {
            assert_eq!(check(kind, 0, (1 << 20) - 512, 1024), Err(error), "command {kind}");
            assert_eq!(check(kind, 0, u64::MAX - 511, 512), Err(error), "command {kind}, overflow");
            assert!(check(kind, 0, (1 << 20) - 512, 512).is_ok(), "command {kind}, last sector");
        }
    }

    #[test]
    fn misaligned_unknown_and_oversized_requests_are_invalid() {
        assert_eq!(check(command::READ, 0, 1, 512), Err(Errno::Inval));
        assert_eq!(check(command::WRITE, 0, 0, 511), Err(Errno::Inval));
        assert_eq!(check(command::DISC, 0, 0, 0), Err(Errno::Inval));
        assert_eq!(check(99, 0, 0, 0), Err(Errno::Inval));
        assert_eq!(check(command::READ, 1 << 9, 0, 512), Err(Errno::Inval));
        assert_eq!(check(command::READ, flag::NO_HOLE, 0, 512), Err(Errno::Inval));
        assert_eq!(check(command::WRITE, flag::DF, 0, 512), Err(Errno::Inval));
        assert_eq!(check(command::FLUSH, 0, 0, 512), Err(Errno::Inval));
        let large = Limits { bytes: 1 << 40, ..LIMITS };
        assert_eq!(header(command::READ, 0, 0, MAX_PAYLOAD).check(&large), Ok(Asked::Command(Command::Read)));
        assert_eq!(header(command::READ, 0, 0, MAX_PAYLOAD + 512).check(&large), Err(Errno::Inval));
        assert_eq!(header(command::WRITE, 0, 0, MAX_PAYLOAD + 512).check(&large), Err(Errno::Inval));
    }

    #[test]
    fn fua_goes_with_every_command() {
        assert_eq!(check(command::READ, flag::FUA, 0, 512), Ok(Asked::Command(Command::Read)));
        assert_eq!(
            check(command::WRITE, flag::FUA, 0, 512),
            Ok(Asked::Command(Command::Write { fua: true, placement: 0 }))
        );
        assert_eq!(check(command::FLUSH, flag::FUA, 0, 0), Ok(Asked::Command(Command::Flush)));
        assert_eq!(check(command::TRIM, flag::FUA, 0, 512), Ok(Asked::Command(Command::Trim { fua: true })));
        assert_eq!(check(command::CACHE, flag::FUA, 0, 512), Ok(Asked::Cache));
        let zeroes = Asked::Command(Command::WriteZeroes { fua: true, allocate: true });
        assert_eq!(check(command::WRITE_ZEROES, flag::FUA | flag::NO_HOLE, 0, 512), Ok(zeroes));
        assert_eq!(check(command::BLOCK_STATUS, flag::FUA, 0, 512), Ok(Asked::BlockStatus { one: false }));
    }

    #[test]
    fn zeroing_is_fast_only_where_it_makes_holes() {
        let fast = Asked::Command(Command::WriteZeroes { fua: false, allocate: false });
        assert_eq!(check(command::WRITE_ZEROES, flag::FAST_ZERO, 0, 512), Ok(fast));
        assert_eq!(check(command::WRITE_ZEROES, flag::FAST_ZERO | flag::NO_HOLE, 0, 512), Err(Errno::NotSup));
    }

    #[test]
    fn a_read_only_export_refuses_what_changes_it() {
        let limits = Limits { read_only: true, ..LIMITS };
        for kind in [command::WRITE, command::WRITE_ZEROES, command::TRIM] {
            assert_eq!(header(kind, 0, 0, 512).check(&limits), Err(Errno::Perm));
        }
        for kind in [command::READ, command::CACHE, command::BLOCK_STATUS] {
            assert!(header(kind, 0, 0, 512).check(&limits).is_ok());
        }
        assert_eq!(header(command::FLUSH, 0, 0, 0).check(&limits), Ok(Asked::Command(Command::Flush)));
    }

    #[test]
    fn what_was_not_negotiated_is_invalid() {
        let limits = Limits { structured: false, has_contexts: false, ..LIMITS };
        assert_eq!(header(command::READ, flag::DF, 0, 512).check(&limits), Err(Errno::Inval));
        assert_eq!(header(command::BLOCK_STATUS, 0, 0, 512).check(&limits), Err(Errno::Inval));
    }

    #[test]
    fn length_zero_is_no_error_except_for_a_description() {
        for kind in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES, command::CACHE] {
            assert!(check(kind, 0, 512, 0).is_ok(), "command {kind}");
        }
        assert_eq!(check(command::BLOCK_STATUS, 0, 512, 0), Err(Errno::Inval));
    }
}
