//! Where things lie on the device, and what a record looks like.
//!
//! The device's sectors are cut into equal ranges, one for each file. The first range holds no file but the head (sector 0) and a
//! record for each file (sector `number`): one sector each, so that a record is never torn and each change of names is one atomic
//! batch. A record holds the file's name and parent itself. There are no directory blocks, hence no journal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::FilesError;

const MAGIC: &[u8; 8] = b"vslfiles";
const VERSION: u32 = 1;
const RECORD: &[u8; 8] = b"vslfile1";
/// Bytes of a record before its name.
const HEAD: usize = 96;
/// The longest name, and the longest target of a symbolic link where sectors are short.
pub(crate) const NAME_MAX: usize = 255;
/// File type bits of a mode.
pub(crate) const TYPE: u32 = 0o170_000;
pub(crate) const DIRECTORY: u32 = 0o040_000;
pub(crate) const LINK: u32 = 0o120_000;

/// How the device is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub sector_bytes: u32,
    /// Sectors of each file's range.
    pub stride: u64,
    /// Files at most; their numbers begin with 1.
    pub files: u64,
}

impl Layout {
    pub(crate) fn new(sector_bytes: u32, sectors: u64, files: u64) -> Result<Layout, FilesError> {
        let stride = sectors / files.saturating_add(1).max(1);
        if files < 2 || stride <= files {
            // The first range has a sector for each file.
            let most = (sectors as f64).sqrt() as u64;
            let expected = format!("2 to about {} on this device", most.saturating_sub(2));
            return Err(FilesError::Invalid { name: "files", value: files, expected });
        }
        Ok(Layout { sector_bytes, stride, files })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut sector = vec![0; self.sector_bytes as usize];
        sector[..8].copy_from_slice(MAGIC);
        sector[8..12].copy_from_slice(&VERSION.to_le_bytes());
        sector[16..24].copy_from_slice(&self.stride.to_le_bytes());
        sector[24..32].copy_from_slice(&self.files.to_le_bytes());
        sector
    }

    pub(crate) fn decode(sector: &[u8], sectors: u64) -> Result<Layout, FilesError> {
        let wrong = |why: &str| FilesError::NoFiles { why: why.into() };
        if sector.get(..8) != Some(MAGIC) {
            return Err(wrong("its first sector is not that of files"));
        }
        if u32_at(sector, 8) != VERSION {
            return Err(wrong(&format!("version {} is newer than this program", u32_at(sector, 8))));
        }
        let layout =
            Layout { sector_bytes: sector.len() as u32, stride: u64_at(sector, 16), files: u64_at(sector, 24) };
        let end = layout.files.checked_add(1).and_then(|ranges| ranges.checked_mul(layout.stride));
        match end {
            Some(end) if end <= sectors && layout.stride > layout.files => Ok(layout),
            _ => Err(wrong("they were made on a larger device")),
        }
    }

    /// The first sector of a file's data.
    pub(crate) fn data(&self, file: u64) -> u64 {
        file * self.stride
    }

    /// Where a file ends at most, bytes.
    pub(crate) fn max_bytes(&self) -> u64 {
        (self.stride.saturating_mul(self.sector_bytes.into())).min(i64::MAX as u64)
    }

    /// Sectors that so many bytes lie on.
    pub(crate) fn sectors(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.sector_bytes.into())
    }
}

/// What a record says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Which of two records of one name is the newer.
    pub change: u64,
    /// 0 for a file that has no name any more.
    pub parent: u64,
    pub name: Vec<u8>,
    /// With the type's bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub modified: SystemTime,
    pub changed: SystemTime,
    /// Of a symbolic link.
    pub target: Vec<u8>,
}

impl Record {
    /// How long the target of a symbolic link may be.
    pub(crate) fn max_target(sector_bytes: u32) -> usize {
        sector_bytes as usize - HEAD - NAME_MAX
    }

    pub(crate) fn encode(&self, sector_bytes: u32) -> Vec<u8> {
        let mut sector = vec![0; sector_bytes as usize];
        sector[..8].copy_from_slice(RECORD);
        let fields = [self.change, self.parent, self.size, nanoseconds(self.modified), nanoseconds(self.changed)];
        for (n, field) in fields.into_iter().enumerate() {
            sector[8 + 8 * n..16 + 8 * n].copy_from_slice(&field.to_le_bytes());
        }
        for (n, field) in [self.mode, self.uid, self.gid].into_iter().enumerate() {
            sector[48 + 4 * n..52 + 4 * n].copy_from_slice(&field.to_le_bytes());
        }
        sector[60..62].copy_from_slice(&(self.name.len() as u16).to_le_bytes());
        sector[62..64].copy_from_slice(&(self.target.len() as u16).to_le_bytes());
        let (name, end) = (HEAD + self.name.len(), HEAD + self.name.len() + self.target.len());
        sector[HEAD..name].copy_from_slice(&self.name);
        sector[name..end].copy_from_slice(&self.target);
        sector
    }

    /// Nothing where the sector holds no record.
    pub(crate) fn decode(sector: &[u8]) -> Option<Record> {
        if sector.get(..8) != Some(RECORD) || sector.len() < HEAD {
            return None;
        }
        let length = |at: usize| u16::from_le_bytes([sector[at], sector[at + 1]]) as usize;
        let name = HEAD + length(60);
        Some(Record {
            change: u64_at(sector, 8),
            parent: u64_at(sector, 16),
            size: u64_at(sector, 24),
            modified: time(u64_at(sector, 32)),
            changed: time(u64_at(sector, 40)),
            mode: u32_at(sector, 48),
            uid: u32_at(sector, 52),
            gid: u32_at(sector, 56),
            name: sector.get(HEAD..name)?.to_vec(),
            target: sector.get(name..name + length(62))?.to_vec(),
        })
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn time(nanoseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is_one() {
        let record = Record {
            change: 7,
            parent: 1,
            name: vec![b'n'; NAME_MAX],
            mode: LINK | 0o777,
            uid: 5,
            gid: 6,
            size: 1 << 40,
            modified: time(1_700_000_000_123_456_789),
            changed: time(5),
            target: vec![b't'; Record::max_target(512)],
        };
        let mut sector = record.encode(512);
        assert_eq!(Record::decode(&sector), Some(record));
        sector[60] = 0xff;
        sector[61] = 0xff;
        assert_eq!(Record::decode(&sector), None, "a name beyond the sector");
        assert_eq!(Record::decode(&[0; 512]), None);
    }

    #[test]
    fn a_device_that_is_too_small_is_refused() {
        assert!(Layout::new(4096, 100, 20).is_err());
        assert!(Layout::new(4096, 1000, 1).is_err());
        let layout = Layout::new(4096, 16384, 100).expect("a layout");
        assert_eq!(Layout::decode(&layout.encode(), 16384), Ok(layout));
        assert!(Layout::decode(&layout.encode(), 16000).is_err());
        assert!(Layout::decode(&[0; 4096], 16384).is_err());
    }
}
