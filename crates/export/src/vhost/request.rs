//! Requests of a guest: what their header asks for, and what is wrong with it.

use super::proto::{HEADER_BYTES, RANGE_BYTES, SECTOR_BYTES, Status, UNMAP, command};
use crate::request::Command;

/// Data that one request may carry, bytes, as over NBD.
pub const MAX_DATA: u64 = 32 << 20;

/// What requests are measured against.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of the device, bytes.
    pub bytes: u64,
    /// Sector size of the device, bytes; a power of two.
    pub sector_bytes: u32,
    /// Writes are refused.
    pub read_only: bool,
    /// Whatever changes the device must be durable when it is answered.
    pub write_through: bool,
}

/// A request that may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The device's part of it.
    Device {
        /// What is asked.
        command: Command,
        /// Bytes from the start of the device.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// The serial number.
    Id,
}

fn u32_at(bytes: &[u8; 16], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; 16], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Whether a request's data begin with a range.
pub fn has_range(header: &[u8; HEADER_BYTES]) -> bool {
    matches!(u32_at(header, 0), command::DISCARD | command::WRITE_ZEROES)
}

/// What is to be done, when so many bytes can be read behind the header, and written before the status. `range` is what stands
/// behind the header of a request that [has one](has_range).
///
/// # Errors
/// The status to answer.
pub fn check(
    header: &[u8; HEADER_BYTES],
    out: u64,
    into: u64,
    range: &[u8; RANGE_BYTES],
    limits: &Limits,
) -> Result<Asked, Status> {
    let fua = limits.write_through;
    let sector = u64_at(header, 8);
    let (command, sector, len) = match u32_at(header, 0) {
        command::IN => (Command::Read, sector, into),
        command::OUT => (Command::Write { fua, placement: 0 }, sector, out),
        command::FLUSH => return Ok(Asked::Device { command: Command::Flush, offset: 0, len: 0 }),
        command::GET_ID => return Ok(Asked::Id),
        kind @ (command::DISCARD | command::WRITE_ZEROES) => {
            // One range a request is what the device's configuration allows.
            if out != RANGE_BYTES as u64 {
                return Err(Status::IoErr);
            }
            let flags = u32_at(range, 12);
            let known = if kind == command::DISCARD { 0 } else { UNMAP };
            if flags & !known != 0 {
                return Err(Status::Unsupp);
            }
            let command = match kind {
                command::DISCARD => Command::Trim { fua },
                _ => Command::WriteZeroes { fua, allocate: flags & UNMAP == 0 },
            };
            (command, u64_at(range, 0), u64::from(u32_at(range, 8)) * SECTOR_BYTES)
        }
        _ => return Err(Status::Unsupp),
    };
    let offset = sector.checked_mul(SECTOR_BYTES).ok_or(Status::IoErr)?;
    let mask = u64::from(limits.sector_bytes) - 1;
    let inside = offset.checked_add(len).is_some_and(|end| end <= limits.bytes);
    let carries = matches!(command, Command::Read | Command::Write { .. });
    if !inside || (offset | len) & mask != 0 || (carries && len > MAX_DATA) || (command.changes() && limits.read_only) {
        return Err(Status::IoErr);
    }
    Ok(Asked::Device { command, offset, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bytes: 1 << 20, sector_bytes: 4096, read_only: false, write_through: false };

    fn header(kind: u32, sector: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[8..].copy_from_slice(&sector.to_le_bytes());
        bytes
    }

    fn range(sector: u64, count: u32, flags: u32) -> [u8; RANGE_BYTES] {
        let mut bytes = [0; RANGE_BYTES];
        bytes[..8].copy_from_slice(&sector.to_le_bytes());
        bytes[8..12].copy_from_slice(&count.to_le_bytes());
        bytes[12..].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    #[test]
    fn sectors_of_512_bytes_become_bytes() {
        let device = |command, offset, len| Ok(Asked::Device { command, offset, len });
        let none = [0; RANGE_BYTES];
        assert_eq!(check(&header(command::IN, 8), 0, 8192, &none, &LIMITS), device(Command::Read, 4096, 8192));
        let write = Command::Write { fua: false, placement: 0 };
        assert_eq!(check(&header(command::OUT, 16), 4096, 0, &none, &LIMITS), device(write, 8192, 4096));
        let through = Limits { write_through: true, ..LIMITS };
        let durable = Command::Write { fua: true, placement: 0 };
        assert_eq!(check(&header(command::OUT, 16), 4096, 0, &none, &through), device(durable, 8192, 4096));
        let trim = Command::Trim { fua: false };
        assert_eq!(check(&header(command::DISCARD, 0), 16, 0, &range(8, 16, 0), &LIMITS), device(trim, 4096, 8192));
        for (flags, allocate) in [(0, true), (UNMAP, false)] {
            let zeroes = Command::WriteZeroes { fua: false, allocate };
            let asked = check(&header(command::WRITE_ZEROES, 0), 16, 0, &range(8, 16, flags), &LIMITS);
            assert_eq!(asked, device(zeroes, 4096, 8192));
        }
        assert_eq!(check(&header(command::GET_ID, 0), 0, 20, &none, &LIMITS), Ok(Asked::Id));
    }

    #[test]
    fn what_cannot_be_is_answered_with_its_status() {
        let none = [0; RANGE_BYTES];
        let of = |kind, sector, out, into| check(&header(kind, sector), out, into, &none, &LIMITS);
        assert_eq!(of(command::IN, 1, 0, 4096), Err(Status::IoErr), "no sector of the device begins there");
        assert_eq!(of(command::IN, 0, 0, 512), Err(Status::IoErr));
        assert_eq!(of(command::IN, 2048, 0, 4096), Err(Status::IoErr), "beyond the end");
        assert_eq!(of(command::OUT, u64::MAX, 4096, 0), Err(Status::IoErr));
        assert_eq!(of(command::OUT, 1 << 55, 4096, 0), Err(Status::IoErr));
        assert_eq!(of(99, 0, 0, 0), Err(Status::Unsupp));
        let large = Limits { bytes: 1 << 40, ..LIMITS };
        assert_eq!(check(&header(command::IN, 0), 0, MAX_DATA + 4096, &none, &large), Err(Status::IoErr));
        let read_only = Limits { read_only: true, ..LIMITS };
        assert_eq!(check(&header(command::OUT, 0), 4096, 0, &none, &read_only), Err(Status::IoErr));
        let of = |kind, out, range| check(&header(kind, 0), out, 0, &range, &LIMITS);
        assert_eq!(of(command::DISCARD, 16, range(0, 8, UNMAP)), Err(Status::Unsupp));
        assert_eq!(of(command::WRITE_ZEROES, 16, range(0, 8, 2)), Err(Status::Unsupp));
        assert_eq!(of(command::DISCARD, 32, range(0, 8, 0)), Err(Status::IoErr), "two ranges");
        assert_eq!(of(command::DISCARD, 16, range(2048, 8, 0)), Err(Status::IoErr));
    }
}
