//! What a stream looks like. All numbers are little-endian.
//!
//! ```text
//! header   magic "OVSLBACK"  version u16  0 u16  length u32  JSON (length bytes)  tag (16 bytes)
//! frame    kind u8  flags u8  0 u16  stored u32  number u64  session u32  0 u32  body (stored bytes)  tag (16 bytes)
//! frame    ...
//! end      a frame of kind END
//! ```
//!
//! The **body** of a frame of [`DATA`] is the number of pieces (u64), the pieces (lba u64, sectors u64, kind u64 each), then the
//! bytes of all pieces of kind [`HELD`] in order. Pieces ascend and do not touch the ones before. With
//! the flag [`COMPRESSED`] the body is a Zstandard frame of that. The body of [`END`] is the number of frames before it, of pieces, and of
//! bytes of data, u64 each.
//!
//! **Tags** form a chain. That of the header is the first 16 bytes of SHA-256 of everything before it. That of a frame is the first 16 bytes of
//! SHA-256 of the tag before it, the 24 bytes of the frame's head and its stored body. Where the header has a `key`, the body is sealed with
//! AES-256-GCM instead: its nonce is session and number, its additional data are the tag before it and the head, and its tag is the frame's.
//! `session` is drawn for each run that writes to the stream, so that a frame that is written once more never meets its nonce again.
//!
//! The **JSON** has the fields of [`Header`]. Those of a stream that is of no snapshot have no `snapshot`; those of a whole one have no `since`.
//!
//! `key` is a random key of 32 bytes, wrapped as in a slot of an encrypted device's superblock (`docs/format.md`), with the stream's `id`
//! in the place of the device's, in hexadecimal digits.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a stream begins with.
pub const MAGIC: [u8; 8] = *b"OVSLBACK";
/// The format that is written, and the only one that is read.
pub const VERSION: u16 = 1;
/// A frame of pieces.
pub const DATA: u8 = 1;
/// The last frame.
pub const END: u8 = 2;
/// A flag: the body is compressed.
pub const COMPRESSED: u8 = 1;
/// A piece whose bytes follow.
pub const HELD: u64 = 1;
/// A piece that holds nothing any more: it was trimmed since the snapshot that the stream builds on.
pub const TRIMMED: u64 = 2;

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;
/// Bytes of a frame's head.
pub(crate) const HEAD: usize = 24;
/// Bytes of a piece in a body.
pub(crate) const PIECE: usize = 24;
/// Bytes of data in a frame, at most: what a reader keeps in memory.
pub(crate) const DATA_MAX: usize = 1 << 20;
/// Pieces of a frame, at most.
pub(crate) const PIECES_MAX: usize = 1 << 12;
/// Bytes of a body, at most.
pub(crate) const BODY_MAX: usize = 8 + PIECES_MAX * PIECE + DATA_MAX;
/// Bytes of the header's JSON, at most.
pub(crate) const HEADER_MAX: usize = 1 << 16;
/// The largest sector that there is, bytes.
pub(crate) const SECTOR_MAX: u32 = 1 << 16;

/// A snapshot of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Its number, which no other snapshot of the device has or will have.
    pub number: u64,
    /// What it was called, for people.
    pub name: String,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snapshot {} (number {:x})", self.name, self.number)
    }
}

/// What a stream says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The stream's own name.
    pub id: Uuid,
    /// The device's UUID.
    pub device: String,
    /// What it was called, for people.
    pub name: String,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Sectors of the device.
    pub sectors: u64,
    /// When it was begun, seconds since 1970.
    pub taken_at: u64,
    /// The snapshot that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Moment>,
    /// The snapshot of the same device that it builds on: what is not in the stream is as it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// The key, wrapped, where it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Header {
    /// Bytes of the device.
    pub fn bytes(&self) -> u64 {
        self.sectors * u64::from(self.sector_bytes)
    }

    /// What is wrong with the figures, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        let sector = self.sector_bytes;
        if !sector.is_power_of_two() || !(512..=SECTOR_MAX).contains(&sector) {
            return Some(format!("sectors of {sector} bytes"));
        }
        match self.sectors.checked_mul(sector.into()) {
            Some(bytes) if bytes <= i64::MAX as u64 => None,
            _ => Some(format!("{} sectors", self.sectors)),
        }
    }
}

/// A range of sectors in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Sectors that hold something.
    Held {
        /// The first.
        lba: u64,
        /// How many.
        sectors: u64,
    },
    /// Sectors that were trimmed since.
    Trimmed {
        /// The first.
        lba: u64,
        /// How many.
        sectors: u64,
    },
}

impl Piece {
    /// The first sector.
    pub fn lba(&self) -> u64 {
        match *self {
            Piece::Held { lba, .. } | Piece::Trimmed { lba, .. } => lba,
        }
    }

    /// The one behind the last.
    pub fn end(&self) -> u64 {
        match *self {
            Piece::Held { lba, sectors } | Piece::Trimmed { lba, sectors } => lba + sectors,
        }
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub kind: u8,
    pub flags: u8,
    pub stored: u32,
    pub number: u64,
    pub session: u32,
}

impl Head {
    pub fn encode(&self) -> [u8; HEAD] {
        let mut out = [0; HEAD];
        (out[0], out[1]) = (self.kind, self.flags);
        out[4..8].copy_from_slice(&self.stored.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..20].copy_from_slice(&self.session.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8; HEAD]) -> Head {
        let [kind, flags, _, _, a, b, c, d, n @ .., s, t, u, v, _, _, _, _] = *bytes;
        Head {
            kind,
            flags,
            stored: u32::from_le_bytes([a, b, c, d]),
            number: u64::from_le_bytes(n),
            session: u32::from_le_bytes([s, t, u, v]),
        }
    }
}
