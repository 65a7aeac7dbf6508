//! What a device can do, by number.

use openvsl::Capabilities;

/// The capability is known.
pub const NVM_CAP_SUCCESS: i32 = 0;
/// There is no such capability.
pub const NVM_CAP_UNKNOWN: i32 = -1;

/// A feature's value: the device could do it.
pub const NVM_CAP_FEATURE_SUPPORTED: u64 = 1;
/// A feature's value: the device does it.
pub const NVM_CAP_FEATURE_ENABLED: u64 = 2;

/// Feature: every sector may be used, and takes space when it is written.
pub const NVM_CAP_FEATURE_SPARSE_ADDRESSING_ID: u32 = 1;
/// Feature: writes and batches are atomic.
pub const NVM_CAP_FEATURE_ATOMIC_WRITE_ID: u32 = 2;
/// Feature: trimmed sectors stay trimmed, and read as zeros.
pub const NVM_CAP_FEATURE_PTRIM_ID: u32 = 3;
/// Feature: trims may be part of a batch.
pub const NVM_CAP_FEATURE_ATOMIC_TRIM_ID: u32 = 4;
/// Operations of a batch at most.
pub const NVM_CAP_ATOMIC_MAX_IOV_ID: u32 = 5;
/// Writes are multiples of so many bytes.
pub const NVM_CAP_ATOMIC_WRITE_MULTIPLICITY_ID: u32 = 6;
/// The largest write of one operation, in that unit.
pub const NVM_CAP_ATOMIC_WRITE_MAX_VECTOR_SIZE_ID: u32 = 7;
/// Data lie at addresses that are multiples of so many bytes.
pub const NVM_CAP_ATOMIC_WRITE_START_ALIGN_ID: u32 = 8;
/// The largest trim of one operation, in the unit of writes.
pub const NVM_CAP_ATOMIC_TRIM_MAX_VECTOR_SIZE_ID: u32 = 9;
/// Ranges that one call of an iterator gives at most.
pub const NVM_CAP_LOGICAL_ITER_MAX_NUM_RANGES_ID: u32 = 10;
/// Bytes of a sector.
pub const NVM_CAP_SECTOR_SIZE_ID: u32 = 11;
/// Bytes of all writes of a batch at most.
pub const NVM_CAP_ATOMIC_WRITE_MAX_TOTAL_SIZE_ID: u32 = 12;
/// How many capabilities there are.
pub const NVM_CAP_MAX: u32 = 12;

/// A trim of one operation stays below this, bytes, so that 32 bits hold it.
const TRIM_BYTES: u64 = 1 << 30;
/// Ranges of one call of an iterator.
const RANGES: u64 = 4096;

/// The value of a capability; nothing where there is no such.
pub(crate) fn value(id: u32, device: &Capabilities) -> Option<u64> {
    let sector = u64::from(device.sector_bytes);
    let write_sectors = u64::from(device.max_write_bytes) / sector;
    let on = NVM_CAP_FEATURE_SUPPORTED | NVM_CAP_FEATURE_ENABLED;
    Some(match id {
        NVM_CAP_FEATURE_SPARSE_ADDRESSING_ID
        | NVM_CAP_FEATURE_ATOMIC_WRITE_ID
        | NVM_CAP_FEATURE_PTRIM_ID
        | NVM_CAP_FEATURE_ATOMIC_TRIM_ID => on,
        NVM_CAP_ATOMIC_MAX_IOV_ID | NVM_CAP_ATOMIC_WRITE_MAX_VECTOR_SIZE_ID => write_sectors,
        NVM_CAP_ATOMIC_WRITE_MULTIPLICITY_ID | NVM_CAP_SECTOR_SIZE_ID => sector,
        NVM_CAP_ATOMIC_WRITE_START_ALIGN_ID => 1,
        NVM_CAP_ATOMIC_TRIM_MAX_VECTOR_SIZE_ID => device.sectors.min(TRIM_BYTES / sector),
        NVM_CAP_LOGICAL_ITER_MAX_NUM_RANGES_ID => RANGES,
        NVM_CAP_ATOMIC_WRITE_MAX_TOTAL_SIZE_ID => write_sectors * sector,
        _ => return None,
    })
}
