//! What the cache device says of a volume, byte for byte; `docs/cache-format.md` specifies it. Numbers are little-endian; a CRC-32C over
//! the whole, with the checksum's own bytes zero, says whether it is what was written.

use uuid::Uuid;

use crate::layout::Layout;

/// What a header begins with.
const MAGIC: [u8; 8] = *b"OpenVSLc";
/// Version of this format.
const VERSION: u32 = 1;
/// Where the checksum stands.
const CRC_AT: usize = 8;
/// Bytes of a name at most.
const NAME_BYTES: usize = 64;
/// Bytes of a header; the rest of its sector is zero.
const HEADER_BYTES: usize = 8 + 4 + 4 + 16 + 4 + 4 + 8 * 4 + 32 + 1 + NAME_BYTES;

/// What becomes of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They go to the store behind, and out of the cache.
    Around,
    /// They go to the store behind and into the cache.
    Through,
    /// They are answered when the cache has them, and go to the store behind later.
    Back,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Around, Mode::Through, Mode::Back];

    /// As commands and the API have it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Around => "write-around",
            Mode::Through => "write-through",
            Mode::Back => "write-back",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// A volume, as its header has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its identity.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// What becomes of writes.
    pub mode: Mode,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Where it stands.
    pub layout: Layout,
    /// What the store behind looked like when the volume was stopped in good order; nothing while it is in use, or where it was not.
    pub witness: Option<[u8; 32]>,
}

/// Why a sector is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Of a newer program.
    #[error("a cached volume of format {0}; this program knows up to {VERSION}")]
    Version(u32),
    /// Not what was written.
    #[error("the header of a cached volume is damaged")]
    Damaged,
}

/// Reads numbers one behind the other.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], HeaderError> {
        let (head, rest) = self.0.split_at_checked(N).ok_or(HeaderError::Damaged)?;
        self.0 = rest;
        head.try_into().map_err(|_| HeaderError::Damaged)
    }

    fn u32(&mut self) -> Result<u32, HeaderError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, HeaderError> {
        self.array().map(u64::from_le_bytes)
    }
}

impl Header {
    /// As it stands in a sector.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.sector_bytes as usize);
        out.extend(MAGIC);
        out.extend([0; 4]);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.uuid.as_bytes());
        out.extend(self.sector_bytes.to_le_bytes());
        out.extend([self.mode as u8, self.layout.region_shift as u8, 0, 0]);
        for number in [self.layout.half, self.layout.base, self.layout.sectors, u64::from(self.witness.is_some())] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.witness.unwrap_or_default());
        let name = &self.name.as_bytes()[..self.name.len().min(NAME_BYTES)];
        out.push(name.len() as u8);
        out.extend(name);
        out.resize(self.sector_bytes as usize, 0);
        let sum = crc_fast::crc32_iscsi(&out);
        out[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// What a sector says; nothing where there is no volume.
    ///
    /// # Errors
    /// It is damaged, or of a newer program.
    pub fn decode(sector: &[u8]) -> Result<Option<Header>, HeaderError> {
        if sector.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if sector.len() < HEADER_BYTES || !sector.starts_with(&MAGIC) {
            return Err(HeaderError::Damaged);
        }
        let mut plain = sector.to_vec();
        plain[CRC_AT..CRC_AT + 4].fill(0);
        if crc_fast::crc32_iscsi(&plain).to_le_bytes() != sector[CRC_AT..CRC_AT + 4] {
            return Err(HeaderError::Damaged);
        }
        let mut reader = Reader(&sector[CRC_AT + 4..]);
        let version = reader.u32()?;
        if version > VERSION {
            return Err(HeaderError::Version(version));
        }
        let uuid = Uuid::from_bytes(reader.array()?);
        let sector_bytes = reader.u32()?;
        let [mode, region_shift, _, _] = reader.array()?;
        let mode = Mode::ALL.into_iter().find(|known| *known as u8 == mode).ok_or(HeaderError::Damaged)?;
        let [half, base, sectors, has_witness] = [reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?];
        let witness: [u8; 32] = reader.array()?;
        let [length] = reader.array()?;
        let name = reader.0.get(..usize::from(length)).ok_or(HeaderError::Damaged)?;
        let name = String::from_utf8(name.to_vec()).map_err(|_| HeaderError::Damaged)?;
        let layout = Layout { half, base, sectors, region_shift: u32::from(region_shift) };
        let fits = region_shift < 64
            && sectors > 0
            && half.checked_mul(2).is_some()
            && sectors.checked_mul(2).and_then(|span| base.checked_add(span)).is_some()
            && base + layout.span() <= half;
        if !fits || sector_bytes as usize != sector.len() {
            return Err(HeaderError::Damaged);
        }
        Ok(Some(Header { uuid, name, mode, sector_bytes, layout, witness: (has_witness != 0).then_some(witness) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let layout = Layout { half: 1 << 30, base: 4096, sectors: 12_345, region_shift: 10 };
        for (mode, witness) in [(Mode::Around, None), (Mode::Through, Some([7; 32])), (Mode::Back, None)] {
            let header =
                Header { uuid: Uuid::from_u128(5), name: "disk".into(), mode, sector_bytes: 512, layout, witness };
            let mut sector = header.encode();
            assert_eq!(Header::decode(&sector), Ok(Some(header)));
            sector[100] ^= 1;
            assert_eq!(Header::decode(&sector), Err(HeaderError::Damaged));
        }
        assert_eq!(Header::decode(&[0; 512]), Ok(None));
        assert_eq!(Header::decode(&[1; 512]), Err(HeaderError::Damaged));
        assert_eq!(Header::decode(b"OpenVSLc"), Err(HeaderError::Damaged));
    }
}
