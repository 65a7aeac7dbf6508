//! What a guest is told of its disk: feature bits and the configuration space (VIRTIO 1.3, 5.2.3 and 5.2.4).

use super::proto::{ID_BYTES, SECTOR_BYTES, feature};
use super::request::Limits;

/// Queues that a guest may have: one for each of its processors, as a rule.
pub const MAX_QUEUES: u16 = 64;
/// Descriptors that a queue may have.
pub const MAX_QUEUE_SIZE: u16 = 1024;
/// Segments of data that one request may have: what a queue of 128 descriptors, QEMU's, holds beside header and status.
const SEGMENTS: u32 = 126;
/// Bytes of one of them.
const SEGMENT_BYTES: u32 = 1 << 20;
/// Units of 512 bytes that one request may discard or zero: 2 GiB.
const RANGE_SECTORS: u32 = 1 << 22;
/// Bytes of the configuration space, of which the rest is zero.
pub const CONFIG_BYTES: usize = 60;
/// Where in it the driver switches the write cache.
pub const WRITE_BACK_AT: u32 = 32;

/// What does not change while a device is attached.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Size and kind.
    pub limits: Limits,
    /// The serial number.
    pub id: [u8; ID_BYTES],
}

impl Facts {
    /// The features that are offered.
    pub fn features(&self) -> u64 {
        use feature as of;
        let read_only = if self.limits.read_only { of::RO } else { of::DISCARD | of::WRITE_ZEROES };
        of::SIZE_MAX
            | of::SEG_MAX
            | of::BLK_SIZE
            | of::FLUSH
            | of::CONFIG_WCE
            | of::MQ
            | of::INDIRECT_DESC
            | of::EVENT_IDX
            | of::PROTOCOL_FEATURES
            | of::VERSION_1
            | read_only
    }

    /// The configuration space.
    pub fn config(&self, write_back: bool) -> [u8; CONFIG_BYTES] {
        let mut bytes = [0; CONFIG_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let alignment = self.limits.sector_bytes / SECTOR_BYTES as u32;
        put(0, &(self.limits.bytes / SECTOR_BYTES).to_le_bytes());
        put(8, &SEGMENT_BYTES.to_le_bytes());
        put(12, &SEGMENTS.to_le_bytes());
        put(20, &self.limits.sector_bytes.to_le_bytes());
        put(WRITE_BACK_AT as usize, &[u8::from(write_back)]);
        put(34, &MAX_QUEUES.to_le_bytes());
        if !self.limits.read_only {
            put(36, &RANGE_SECTORS.to_le_bytes());
            put(40, &1u32.to_le_bytes());
            put(44, &alignment.to_le_bytes());
            put(48, &RANGE_SECTORS.to_le_bytes());
            put(52, &1u32.to_le_bytes());
            put(56, &[1]);
        }
        bytes
    }
}

/// The serial number of a format: the first 20 digits of its identity, so that `/dev/disk/by-id` in a guest stays the same.
pub fn id(uuid: &str) -> [u8; ID_BYTES] {
    let mut id = [0; ID_BYTES];
    id.iter_mut().zip(uuid.bytes().filter(|byte| *byte != b'-')).for_each(|(to, from)| *to = from);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_learns_sizes_and_limits() {
        let limits = Limits { bytes: 1 << 30, sector_bytes: 4096, read_only: false, write_through: false };
        let facts = Facts { limits, id: id("01234567-89ab-cdef-0123-456789abcdef") };
        let config = facts.config(true);
        let word = |at: usize| u32::from_le_bytes([config[at], config[at + 1], config[at + 2], config[at + 3]]);
        assert_eq!((word(0), word(4), word(20), config[32]), (1 << 21, 0, 4096, 1));
        assert_eq!((word(40), word(44), word(52), config[56]), (1, 8, 1, 1));
        assert_eq!(&facts.id, b"0123456789abcdef0123");
        assert_eq!(facts.features() & (feature::RO | feature::DISCARD), feature::DISCARD);
        let facts = Facts { limits: Limits { read_only: true, ..limits }, ..facts };
        assert_eq!(facts.features() & (feature::RO | feature::DISCARD | feature::WRITE_ZEROES), feature::RO);
        assert_eq!(facts.config(false)[32..60].iter().filter(|byte| **byte != 0).count(), 1, "the number of queues");
    }
}
