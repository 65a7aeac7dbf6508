//! Submission and completion queue entries.
//!
//! Source: NVM Express Base Specification 2.0, 3.3.3.1 (submission queue entry), 3.3.3.2 (completion queue entry), figure 87 and
//! following; data pointers: NVMe over TCP Transport Specification 1.0, 3.3.2.

use crate::Status;
use crate::bytes::{put, u16_at, u32_at, u64_at};

/// Opcodes of the admin command set (Base Specification 2.0, figure 138).
pub mod admin {
    /// Get Log Page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0c;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Directive Receive.
    pub const DIRECTIVE_RECEIVE: u8 = 0x1a;
    /// Fabrics commands: the function stands in byte 4.
    pub const FABRICS: u8 = 0x7f;
}

/// Opcodes of the NVM command set (NVM Command Set Specification 1.0, figure 21).
pub mod nvm {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Compare.
    pub const COMPARE: u8 = 0x05;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Verify.
    pub const VERIFY: u8 = 0x0c;
    /// I/O Management Receive.
    pub const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
    /// Copy.
    pub const COPY: u8 = 0x19;
    /// I/O Management Send.
    pub const IO_MANAGEMENT_SEND: u8 = 0x1d;
}

/// Opcodes that the zoned namespace command set adds (Zoned Namespace Command Set Specification 1.1, figure 25).
pub mod zone {
    /// Zone Management Send.
    pub const MANAGEMENT_SEND: u8 = 0x79;
    /// Zone Management Receive.
    pub const MANAGEMENT_RECEIVE: u8 = 0x7a;
    /// Zone Append.
    pub const APPEND: u8 = 0x7d;
}

/// Functions of fabrics commands (NVMe over Fabrics; Base Specification 2.0, figure 380).
pub mod fabrics {
    /// Property Set.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Connect.
    pub const CONNECT: u8 = 0x01;
    /// Property Get.
    pub const PROPERTY_GET: u8 = 0x04;
    /// Authentication Send.
    pub const AUTHENTICATION_SEND: u8 = 0x05;
    /// Authentication Receive.
    pub const AUTHENTICATION_RECEIVE: u8 = 0x06;
    /// Disconnect.
    pub const DISCONNECT: u8 = 0x08;
}

/// Bytes of a submission queue entry.
pub const SQE_BYTES: usize = 64;
/// Bytes of a completion queue entry.
pub const CQE_BYTES: usize = 16;
/// The namespace that stands for all.
pub const ALL_NAMESPACES: u32 = u32::MAX;

/// Byte 1 of an entry: data are described by a scatter gather list, as fabrics demand (PSDT, bits 7:6).
const PSDT_SGL: u8 = 0x40;
/// Byte 1, bits 1:0: the first, and the second, of two fused commands.
const FUSE_MASK: u8 = 0x03;
/// A data block at an offset in the capsule: type 0h, sub type 1h.
const SGL_IN_CAPSULE: u8 = 0x01;
/// A data block that the transport moves: type 5h, sub type Ah.
const SGL_TRANSPORT: u8 = 0x5a;

/// Whether a command belongs together with its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fuse {
    /// It stands alone.
    None,
    /// It is the first of two.
    First,
    /// It is the second of two.
    Second,
}

/// How a command's data travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// In the command's own capsule, so many bytes.
    InCapsule(u32),
    /// Moved by the transport, so many bytes: to us after we are ready for them, or from us.
    Transport(u32),
}

impl Data {
    /// Bytes.
    pub fn len(self) -> u32 {
        match self {
            Data::InCapsule(len) | Data::Transport(len) => len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A submission queue entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sqe(pub [u8; SQE_BYTES]);

impl std::fmt::Debug for Sqe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sqe(opcode {:#04x}, cid {}, nsid {}, dwords", self.opcode(), self.cid(), self.nsid())?;
        (10..16).try_for_each(|number| write!(f, " {:#x}", self.dword(number)))?;
        f.write_str(")")
    }
}

impl Sqe {
    /// An entry with nothing but an opcode, an identifier and a namespace.
    pub fn new(opcode: u8, cid: u16, nsid: u32) -> Sqe {
        let mut entry = Sqe([0; SQE_BYTES]);
        entry.0[0] = opcode;
        entry.0[1] = PSDT_SGL;
        put(&mut entry.0, 2, &cid.to_le_bytes());
        put(&mut entry.0, 4, &nsid.to_le_bytes());
        entry.with_data(Data::Transport(0))
    }

    /// A fabrics command.
    pub fn fabrics(function: u8, cid: u16) -> Sqe {
        let mut entry = Sqe::new(admin::FABRICS, cid, 0);
        entry.0[4] = function;
        entry
    }

    /// The same with a command dword, 10 to 15.
    #[must_use]
    #[inline]
    pub fn with(mut self, dword: usize, value: u32) -> Sqe {
        put(&mut self.0, 4 * dword, &value.to_le_bytes());
        self
    }

    /// The same with another identifier.
    #[must_use]
    #[inline]
    pub fn with_cid(mut self, cid: u16) -> Sqe {
        put(&mut self.0, 2, &cid.to_le_bytes());
        self
    }

    /// The same with a description of its data.
    #[must_use]
    #[inline]
    pub fn with_data(mut self, data: Data) -> Sqe {
        let kind = match data {
            Data::InCapsule(_) => SGL_IN_CAPSULE,
            Data::Transport(_) => SGL_TRANSPORT,
        };
        put(&mut self.0, 24, &0u64.to_le_bytes());
        put(&mut self.0, 32, &data.len().to_le_bytes());
        put(&mut self.0, 36, &[0, 0, 0, kind]);
        self
    }

    /// The same as one of two fused commands.
    #[must_use]
    pub fn with_fuse(mut self, fuse: Fuse) -> Sqe {
        self.0[1] = (self.0[1] & !FUSE_MASK) | fuse as u8;
        self
    }

    /// The opcode.
    #[inline]
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// The command identifier, which comes back with the completion.
    #[inline]
    pub fn cid(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    /// The namespace.
    #[inline]
    pub fn nsid(&self) -> u32 {
        u32_at(&self.0, 4)
    }

    /// The function of a fabrics command.
    pub fn function(&self) -> u8 {
        self.0[4]
    }

    /// A command dword, 10 to 15.
    #[inline]
    pub fn dword(&self, number: usize) -> u32 {
        u32_at(&self.0, 4 * number)
    }

    /// Two command dwords as one number.
    #[inline]
    pub fn dwords(&self, first: usize) -> u64 {
        u64_at(&self.0, 4 * first)
    }

    /// Whether it is fused with a neighbour.
    ///
    /// # Errors
    /// Both bits are set.
    #[inline]
    pub fn fuse(&self) -> Result<Fuse, Status> {
        match self.0[1] & FUSE_MASK {
            0 => Ok(Fuse::None),
            1 => Ok(Fuse::First),
            2 => Ok(Fuse::Second),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// How its data travel.
    ///
    /// # Errors
    /// They are described in a way that NVMe over TCP does not know.
    #[inline]
    pub fn data(&self) -> Result<Data, Status> {
        let len = u32_at(&self.0, 32);
        match self.0[39] {
            SGL_IN_CAPSULE if u64_at(&self.0, 24) == 0 => Ok(Data::InCapsule(len)),
            SGL_IN_CAPSULE => Err(Status::SGL_OFFSET_INVALID),
            SGL_TRANSPORT => Ok(Data::Transport(len)),
            _ => Err(Status::SGL_TYPE_INVALID),
        }
    }
}

/// A completion queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqe {
    /// What the command gives back, dwords 0 and 1.
    pub result: u64,
    /// How far the submission queue's entries are taken.
    pub sq_head: u16,
    /// The command that it completes.
    pub cid: u16,
    /// How that ended.
    pub status: Status,
}

impl Cqe {
    /// A completion without a result; the queue fills its head in.
    pub fn new(cid: u16, status: Status) -> Cqe {
        Cqe { result: 0, sq_head: 0, cid, status }
    }

    /// As it travels.
    #[inline]
    pub fn encode(&self) -> [u8; CQE_BYTES] {
        let mut bytes = [0; CQE_BYTES];
        put(&mut bytes, 0, &self.result.to_le_bytes());
        put(&mut bytes, 8, &self.sq_head.to_le_bytes());
        put(&mut bytes, 12, &self.cid.to_le_bytes());
        put(&mut bytes, 14, &(self.status.0 << 1).to_le_bytes());
        bytes
    }

    /// Takes it apart.
    #[inline]
    pub fn decode(bytes: &[u8; CQE_BYTES]) -> Cqe {
        Cqe {
            result: u64_at(bytes, 0),
            sq_head: u16_at(bytes, 8),
            cid: u16_at(bytes, 12),
            status: Status(u16_at(bytes, 14) >> 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_as_the_specification_draws_it() {
        let entry = Sqe::new(nvm::WRITE, 0x1234, 1).with(10, 0xdead_beef).with(12, 7).with_data(Data::InCapsule(4096));
        assert_eq!(entry.0[..8], [0x01, 0x40, 0x34, 0x12, 1, 0, 0, 0]);
        assert_eq!(entry.0[24..40], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0x01]);
        assert_eq!(entry.0[40..44], [0xef, 0xbe, 0xad, 0xde]);
        assert_eq!((entry.data(), entry.fuse()), (Ok(Data::InCapsule(4096)), Ok(Fuse::None)));
        assert_eq!(entry.with_fuse(Fuse::Second).fuse(), Ok(Fuse::Second));
        assert_eq!(entry.with_data(Data::Transport(1)).0[39], 0x5a);
    }

    #[test]
    fn data_that_are_described_in_another_way_are_refused() {
        let mut entry = Sqe::new(nvm::WRITE, 0, 1);
        for kind in 0..=255 {
            entry.0[39] = kind;
            assert_eq!(entry.data().is_ok(), kind == SGL_IN_CAPSULE || kind == SGL_TRANSPORT, "{kind:#x}");
        }
        let mut entry = entry.with_data(Data::InCapsule(512));
        entry.0[24] = 1;
        assert_eq!(entry.data(), Err(Status::SGL_OFFSET_INVALID));
        entry.0[1] |= FUSE_MASK;
        assert_eq!(entry.fuse(), Err(Status::INVALID_FIELD));
    }

    #[test]
    fn a_completion_as_the_specification_draws_it() {
        let entry = Cqe { result: 0x0102_0304, sq_head: 5, cid: 0x0607, status: Status::LBA_RANGE };
        let bytes = entry.encode();
        assert_eq!(bytes, [4, 3, 2, 1, 0, 0, 0, 0, 5, 0, 0, 0, 7, 6, 0x00, 0x81]);
        assert_eq!(Cqe::decode(&bytes), entry);
    }
}
