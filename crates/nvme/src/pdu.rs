//! Protocol data units of NVMe over TCP.
//!
//! Source: NVMe over TCP Transport Specification 1.0, 3.6 (PDU formats), 3.3 (data transfer), 3.6.2.1 and 3.6.2.2 (initialization),
//! 3.5 (errors). A unit is a common header of 8 bytes, the rest of its header, a header digest where agreed, padding, data, and a
//! data digest where agreed.

use crate::bytes::{put, u16_at, u32_at};
use crate::command::{CQE_BYTES, Cqe, SQE_BYTES, Sqe};

/// Bytes of the common header.
pub const COMMON_BYTES: usize = 8;
/// Bytes of a digest: CRC-32C.
pub const DIGEST_BYTES: usize = 4;
/// Bytes of ICReq and ICResp.
pub const INIT_BYTES: usize = 128;
/// Bytes of a command capsule's header.
pub const COMMAND_BYTES: usize = COMMON_BYTES + SQE_BYTES;
/// Bytes of a response capsule's header.
pub const RESPONSE_BYTES: usize = COMMON_BYTES + CQE_BYTES;
/// Bytes of the header of data, of R2T, and of a termination.
pub const DATA_BYTES: usize = 24;
/// The most bytes of a unit's header that a termination gives back.
pub const TERMINATION_DATA: usize = 128;
/// Where in-capsule data of an I/O queue end at the latest, bytes. Writes up to this size need no R2T, whose way there and back
/// costs a write of 128 KiB a tenth of its time.
pub const IN_CAPSULE_BYTES: u32 = 128 << 10;
/// Where in-capsule data of an admin queue end at the latest, bytes (3.3.2: 8,192, whatever a controller announces).
pub const ADMIN_IN_CAPSULE_BYTES: u32 = 8 << 10;
/// The port of discovery services, as assigned by IANA.
pub const DISCOVERY_PORT: u16 = 8009;
/// The port of subsystems, as assigned by IANA.
pub const PORT: u16 = 4420;

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A host's wish for a connection.
    IcReq = 0x00,
    /// A controller's answer to it.
    IcResp = 0x01,
    /// The host ends the connection.
    H2CTermReq = 0x02,
    /// The controller ends the connection.
    C2HTermReq = 0x03,
    /// A command.
    CapsuleCmd = 0x04,
    /// A completion.
    CapsuleResp = 0x05,
    /// Data of a host.
    H2CData = 0x06,
    /// Data of a controller.
    C2HData = 0x07,
    /// The controller is ready for data.
    R2T = 0x09,
}

impl Kind {
    /// By its number.
    #[inline]
    pub fn of(number: u8) -> Option<Kind> {
        Some(match number {
            0x00 => Kind::IcReq,
            0x01 => Kind::IcResp,
            0x02 => Kind::H2CTermReq,
            0x03 => Kind::C2HTermReq,
            0x04 => Kind::CapsuleCmd,
            0x05 => Kind::CapsuleResp,
            0x06 => Kind::H2CData,
            0x07 => Kind::C2HData,
            0x09 => Kind::R2T,
            _ => return None,
        })
    }

    /// Bytes of its header, which the unit must say itself, too.
    #[inline]
    pub fn header_bytes(self) -> usize {
        match self {
            Kind::IcReq | Kind::IcResp => INIT_BYTES,
            Kind::CapsuleCmd => COMMAND_BYTES,
            Kind::CapsuleResp => RESPONSE_BYTES,
            Kind::H2CTermReq | Kind::C2HTermReq | Kind::H2CData | Kind::C2HData | Kind::R2T => DATA_BYTES,
        }
    }

    fn may_carry_data(self) -> bool {
        matches!(self, Kind::CapsuleCmd | Kind::H2CData | Kind::C2HData | Kind::H2CTermReq | Kind::C2HTermReq)
    }
}

/// Flags of the common header.
pub mod flag {
    /// A header digest follows the header.
    pub const HEADER_DIGEST: u8 = 1 << 0;
    /// A data digest follows the data.
    pub const DATA_DIGEST: u8 = 1 << 1;
    /// The last data of the command, or of the R2T.
    pub const LAST: u8 = 1 << 2;
    /// The command succeeded: no completion follows the data.
    pub const SUCCESS: u8 = 1 << 3;
}

/// Why a connection is ended (3.5.1, fatal error status).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u16)]
pub enum Fatal {
    /// A field of a header has an impossible value.
    #[error("a PDU's header holds an invalid field")]
    InvalidHeader = 0x01,
    /// A unit that does not belong here.
    #[error("a PDU that does not belong here")]
    Sequence = 0x02,
    /// A header digest is wrong: nothing in the unit can be believed.
    #[error("a header digest is wrong")]
    HeaderDigest = 0x03,
    /// Data for places that nobody asked for.
    #[error("data outside the range that was asked for")]
    DataOutOfRange = 0x04,
    /// More data than agreed.
    #[error("more data than agreed")]
    DataLimit = 0x05,
    /// A parameter that is not supported.
    #[error("an unsupported parameter")]
    Unsupported = 0x06,
}

/// Which digests a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Of headers.
    pub header: bool,
    /// Of data.
    pub data: bool,
}

impl Digests {
    fn bits(self) -> u8 {
        u8::from(self.header) | u8::from(self.data) << 1
    }

    fn of(bits: u8) -> Digests {
        Digests { header: bits & 1 != 0, data: bits & 2 != 0 }
    }

    /// Bytes of a header digest.
    fn header_len(self) -> usize {
        if self.header { DIGEST_BYTES } else { 0 }
    }
}

/// CRC-32C, as digests are computed.
pub fn digest(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    (crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32).to_le_bytes()
}

/// A digest of bytes that come in several pieces.
pub struct Summing(crc_fast::Digest);

impl Default for Summing {
    fn default() -> Summing {
        Summing(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi))
    }
}

impl Summing {
    /// The next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all of them.
    pub fn finish(&self) -> [u8; DIGEST_BYTES] {
        (self.0.finalize() as u32).to_le_bytes()
    }
}

/// A unit's common header, checked as far as it can be without the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// What it is.
    pub kind: Kind,
    /// See [`flag`].
    pub flags: u8,
    /// Where its data begin, bytes from its start; where there are none, where it ends.
    pub data_at: usize,
    /// Bytes of its data.
    pub data_len: usize,
    /// Bytes of all of it.
    pub len: usize,
}

impl Common {
    /// Takes the first 8 bytes of a unit apart, on a connection with these digests. Data take at most `max_data` bytes.
    ///
    /// # Errors
    /// A field is impossible, and the offset of that field.
    #[inline]
    pub fn decode(bytes: &[u8; COMMON_BYTES], digests: Digests, max_data: usize) -> Result<Common, (Fatal, u32)> {
        let kind = Kind::of(bytes[0]).ok_or((Fatal::InvalidHeader, 0))?;
        let (flags, header, offset, len) = (bytes[1], usize::from(bytes[2]), usize::from(bytes[3]), u32_at(bytes, 4));
        if header != kind.header_bytes() {
            return Err((Fatal::InvalidHeader, 2));
        }
        let handshake = matches!(kind, Kind::IcReq | Kind::IcResp | Kind::H2CTermReq | Kind::C2HTermReq);
        let digests = if handshake { Digests::default() } else { digests };
        if (flags & flag::HEADER_DIGEST != 0) != digests.header {
            return Err((Fatal::InvalidHeader, 1));
        }
        let len = usize::try_from(len).map_err(|_| (Fatal::InvalidHeader, 4))?;
        let head = header + digests.header_len();
        if len < head {
            return Err((Fatal::InvalidHeader, 4));
        }
        if len == head || matches!(kind, Kind::H2CTermReq | Kind::C2HTermReq) {
            let bounded = len <= head + TERMINATION_DATA;
            let common = Common { kind, flags, data_at: head, data_len: len - head, len };
            return if bounded { Ok(common) } else { Err((Fatal::InvalidHeader, 4)) };
        }
        if !kind.may_carry_data() {
            return Err((Fatal::InvalidHeader, 4));
        }
        let has_digest = flags & flag::DATA_DIGEST != 0;
        if has_digest != digests.data {
            return Err((Fatal::InvalidHeader, 1));
        }
        let tail = if has_digest { DIGEST_BYTES } else { 0 };
        if offset < head || !offset.is_multiple_of(4) || offset + tail > len {
            return Err((Fatal::InvalidHeader, 3));
        }
        let data_len = len - tail - offset;
        if data_len > max_data {
            return Err((Fatal::DataLimit, 4));
        }
        Ok(Common { kind, flags, data_at: offset, data_len, len })
    }

    /// Bytes that must be there before the unit can be judged: its header and the digest of that.
    #[inline]
    pub fn head(&self, digests: Digests) -> usize {
        let header = self.kind.header_bytes();
        header + if self.flags & flag::HEADER_DIGEST != 0 { digests.header_len() } else { 0 }
    }

    /// Whether the header's digest is right, if there is one. `unit` holds at least [`Common::head`] bytes.
    #[inline]
    pub fn header_is_sound(&self, unit: &[u8]) -> bool {
        let header = self.kind.header_bytes();
        self.flags & flag::HEADER_DIGEST == 0
            || unit.get(header..header + DIGEST_BYTES) == Some(digest(&unit[..header]).as_slice())
    }

    /// The data of a whole unit.
    #[inline]
    pub fn data<'a>(&self, unit: &'a [u8]) -> &'a [u8] {
        &unit[self.data_at..self.data_at + self.data_len]
    }

    /// Whether the data's digest is right, if there is one. More units may stand behind this one.
    #[inline]
    pub fn data_are_sound(&self, unit: &[u8]) -> bool {
        self.data_len == 0
            || self.flags & flag::DATA_DIGEST == 0
            || unit.get(self.data_at + self.data_len..self.len) == Some(digest(self.data(unit)).as_slice())
    }
}

/// The longest header: ICReq, or one whose data begin at a multiple of the largest alignment.
const HEAD_BYTES: usize = 128;

/// A header on its way out: up to a whole header, its digest, and padding before data.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; HEAD_BYTES],
    len: usize,
}

impl Head {
    /// The bytes to send.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// `rest` is the header behind the common one. Data of `data` bytes follow at a multiple of `align` bytes, a digest behind them.
    #[inline]
    fn new(kind: Kind, mut flags: u8, rest: &[u8], data: usize, digests: Digests, align: usize) -> Head {
        let header = COMMON_BYTES + rest.len();
        let mut head = header + digests.header_len();
        let (mut offset, mut tail) = (0, 0);
        if data > 0 {
            head = head.next_multiple_of(align.max(1));
            offset = head;
            if digests.data {
                tail = DIGEST_BYTES;
                flags |= flag::DATA_DIGEST;
            }
        }
        if digests.header {
            flags |= flag::HEADER_DIGEST;
        }
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&[kind as u8, flags, header as u8, offset as u8]);
        put(&mut bytes, 4, &((head + data + tail) as u32).to_le_bytes());
        put(&mut bytes, COMMON_BYTES, rest);
        if digests.header {
            let sum = digest(&bytes[..header]);
            put(&mut bytes, header, &sum);
        }
        Head { bytes, len: head }
    }
}

/// ICReq and ICResp: what a connection is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init {
    /// Alignment that this side wants of data sent to it, bytes: a multiple of 4 up to 128.
    pub align: usize,
    /// Digests wanted, or agreed.
    pub digests: Digests,
    /// From a host: R2Ts of one command at a time, at most. From a controller: data in one H2CData, bytes at most.
    pub limit: u32,
}

/// The version of the units' format that there is (PFV).
const FORMAT: u16 = 0;

impl Init {
    fn encode(&self, kind: Kind, limit: u32) -> Head {
        let mut rest = [0; INIT_BYTES - COMMON_BYTES];
        put(&mut rest, 0, &FORMAT.to_le_bytes());
        rest[2] = (self.align / 4).saturating_sub(1) as u8;
        rest[3] = self.digests.bits();
        put(&mut rest, 4, &limit.to_le_bytes());
        Head::new(kind, 0, &rest, 0, Digests::default(), 1)
    }

    /// A host's wish.
    pub fn request(&self) -> Head {
        self.encode(Kind::IcReq, self.limit.saturating_sub(1))
    }

    /// A controller's answer.
    pub fn response(&self) -> Head {
        self.encode(Kind::IcResp, self.limit)
    }

    /// Takes a whole ICReq or ICResp apart.
    ///
    /// # Errors
    /// It is not that unit, or of a version that there is not.
    pub fn decode(kind: Kind, unit: &[u8; INIT_BYTES]) -> Result<Init, (Fatal, u32)> {
        let mut common = [0; COMMON_BYTES];
        common.copy_from_slice(&unit[..COMMON_BYTES]);
        let found = Common::decode(&common, Digests::default(), 0)?;
        if found.kind != kind {
            return Err((Fatal::Sequence, 0));
        }
        if u16_at(unit, 8) != FORMAT {
            return Err((Fatal::Unsupported, 8));
        }
        if unit[10] > 31 {
            return Err((Fatal::InvalidHeader, 10));
        }
        let limit = u32_at(unit, 12);
        let limit = if kind == Kind::IcReq { limit.saturating_add(1) } else { limit };
        Ok(Init { align: 4 * (usize::from(unit[10]) + 1), digests: Digests::of(unit[11]), limit })
    }
}

/// A command with so many bytes of data behind it, at a multiple of `align` bytes.
#[inline]
pub fn command(entry: &Sqe, data: usize, digests: Digests, align: usize) -> Head {
    Head::new(Kind::CapsuleCmd, 0, &entry.0, data, digests, align)
}

/// The entry of a command.
#[inline]
pub fn entry(unit: &[u8]) -> Sqe {
    let mut entry = [0; SQE_BYTES];
    entry.copy_from_slice(&unit[COMMON_BYTES..COMMAND_BYTES]);
    Sqe(entry)
}

/// A completion.
#[inline]
pub fn response(entry: &Cqe, digests: Digests) -> Head {
    Head::new(Kind::CapsuleResp, 0, &entry.encode(), 0, digests, 1)
}

/// The entry of a completion.
#[inline]
pub fn completion(unit: &[u8]) -> Cqe {
    let mut entry = [0; CQE_BYTES];
    entry.copy_from_slice(&unit[COMMON_BYTES..RESPONSE_BYTES]);
    Cqe::decode(&entry)
}

/// What data, or readiness for data, are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The command.
    pub cid: u16,
    /// The controller's name for the transfer; 0 where it sends data itself.
    pub tag: u16,
    /// Bytes from the start of the command's data.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

impl Transfer {
    fn rest(&self) -> [u8; DATA_BYTES - COMMON_BYTES] {
        let mut rest = [0; DATA_BYTES - COMMON_BYTES];
        put(&mut rest, 0, &self.cid.to_le_bytes());
        put(&mut rest, 2, &self.tag.to_le_bytes());
        put(&mut rest, 4, &self.offset.to_le_bytes());
        put(&mut rest, 8, &self.len.to_le_bytes());
        rest
    }

    /// Of H2CData, C2HData or R2T.
    #[inline]
    pub fn decode(unit: &[u8]) -> Transfer {
        Transfer { cid: u16_at(unit, 8), tag: u16_at(unit, 10), offset: u32_at(unit, 12), len: u32_at(unit, 16) }
    }

    /// Data of a host.
    #[inline]
    pub fn from_host(&self, last: bool, digests: Digests, align: usize) -> Head {
        let flags = if last { flag::LAST } else { 0 };
        Head::new(Kind::H2CData, flags, &self.rest(), self.len as usize, digests, align)
    }

    /// The last data of a controller for a command; with `success` no completion follows.
    #[inline]
    pub fn from_controller(&self, success: bool, digests: Digests, align: usize) -> Head {
        let flags = flag::LAST | if success { flag::SUCCESS } else { 0 };
        Head::new(Kind::C2HData, flags, &self.rest(), self.len as usize, digests, align)
    }

    /// The controller is ready for data.
    pub fn ready(&self, digests: Digests) -> Head {
        Head::new(Kind::R2T, 0, &self.rest(), 0, digests, 1)
    }
}

/// The end of a connection: why, which field of the header is wrong, and the start of the unit that was.
pub fn terminate(kind: Kind, why: Fatal, field: u32, unit: &[u8]) -> Vec<u8> {
    let mut rest = [0; DATA_BYTES - COMMON_BYTES];
    put(&mut rest, 0, &(why as u16).to_le_bytes());
    put(&mut rest, 2, &field.to_le_bytes());
    let data = &unit[..unit.len().min(TERMINATION_DATA)];
    let head = Head::new(kind, 0, &rest, data.len(), Digests::default(), 1);
    [head.as_bytes(), data].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::nvm;
    use crate::{Data, Status};

    const BOTH: Digests = Digests { header: true, data: true };

    fn common(unit: &[u8], digests: Digests) -> Result<Common, (Fatal, u32)> {
        Common::decode(unit.first_chunk().expect("a common header"), digests, 1 << 20)
    }

    #[test]
    fn the_digest_is_crc32c() {
        // The check value of CRC-32C (RFC 3720, B.4, has more).
        assert_eq!(digest(b"123456789"), 0xe306_9283_u32.to_le_bytes());
    }

    #[test]
    fn a_connection_is_asked_for_and_granted() {
        let init = Init { align: 8, digests: BOTH, limit: 16 };
        let request = init.request();
        assert_eq!(request.as_bytes()[..16], [0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 1, 3, 15, 0, 0, 0]);
        let unit = request.as_bytes().first_chunk().expect("128 bytes");
        assert_eq!(Init::decode(Kind::IcReq, unit), Ok(init));
        assert_eq!(Init::decode(Kind::IcResp, unit), Err((Fatal::Sequence, 0)));
        let mut wrong = *unit;
        wrong[8] = 1;
        assert_eq!(Init::decode(Kind::IcReq, &wrong), Err((Fatal::Unsupported, 8)));
        let response = init.response();
        assert_eq!(response.as_bytes()[12..16], [16, 0, 0, 0]);
    }

    #[test]
    fn a_command_with_data_comes_out_as_it_went_in() {
        let sent = Sqe::new(nvm::WRITE, 9, 1).with_data(Data::InCapsule(5));
        for digests in [Digests::default(), BOTH, Digests { header: true, data: false }] {
            let mut unit = command(&sent, 5, digests, 4).as_bytes().to_vec();
            unit.extend(b"hello");
            if digests.data {
                unit.extend(digest(b"hello"));
            }
            let found = common(&unit, digests).expect("sound");
            assert_eq!((found.kind, found.len, found.data(&unit)), (Kind::CapsuleCmd, unit.len(), &b"hello"[..]));
            assert!(found.header_is_sound(&unit) && found.data_are_sound(&unit));
            assert_eq!(entry(&unit), sent);
            let followed = [&unit[..], b"next"].concat();
            assert!(found.header_is_sound(&followed) && found.data_are_sound(&followed), "units in a row");
            if digests == BOTH {
                unit[found.data_at] ^= 1;
                assert!(!found.data_are_sound(&unit));
                unit[20] ^= 1;
                assert!(!found.header_is_sound(&unit));
                assert_eq!(common(&unit, Digests::default()), Err((Fatal::InvalidHeader, 1)));
            }
        }
    }

    #[test]
    fn lengths_that_lie_are_found() {
        let sound = command(&Sqe::new(nvm::WRITE, 9, 1), 512, Digests::default(), 4);
        let with = |at: usize, byte: u8| {
            let mut unit = sound.as_bytes().to_vec();
            unit[at] = byte;
            common(&unit, Digests::default())
        };
        assert!(with(0, 4).is_ok());
        assert_eq!(with(0, 8), Err((Fatal::InvalidHeader, 0)));
        assert_eq!(with(2, 71), Err((Fatal::InvalidHeader, 2)));
        assert_eq!(with(3, 68), Err((Fatal::InvalidHeader, 3)), "data within the header");
        assert_eq!(with(3, 73), Err((Fatal::InvalidHeader, 3)), "data at an odd place");
        assert_eq!(with(5, 0).map(|common| common.data_len), Ok(0));
        assert_eq!(with(4, 0x47).map(|common| common.data_len), Ok(511));
        assert_eq!(with(7, 1), Err((Fatal::DataLimit, 4)), "16 MiB");
        assert_eq!(with(0, 9), Err((Fatal::InvalidHeader, 2)));
    }

    #[test]
    fn data_say_which_part_they_are() {
        let transfer = Transfer { cid: 3, tag: 7, offset: 4096, len: 512 };
        for head in [transfer.from_host(true, BOTH, 4), transfer.from_controller(true, BOTH, 64), transfer.ready(BOTH)]
        {
            assert_eq!(Transfer::decode(head.as_bytes()), transfer);
        }
        let head = transfer.from_controller(true, BOTH, 64);
        assert_eq!((head.as_bytes().len(), head.as_bytes()[1], head.as_bytes()[3]), (64, 0x0f, 64));
        let done = Cqe::new(3, Status::READ_ERROR);
        assert_eq!(completion(response(&done, BOTH).as_bytes()), done);
    }

    #[test]
    fn a_termination_gives_back_what_was_wrong() {
        let unit = terminate(Kind::C2HTermReq, Fatal::DataOutOfRange, 12, &[9; 300]);
        assert_eq!(unit.len(), DATA_BYTES + TERMINATION_DATA);
        assert_eq!(unit[8..14], [4, 0, 12, 0, 0, 0]);
        let found = common(&unit, BOTH).expect("no digests");
        assert_eq!((found.kind, found.data_len), (Kind::C2HTermReq, TERMINATION_DATA));
    }
}
