//! What there is to say of a device: as a namespace, of its health, and of its wear. Filled in by whoever has the device.

use crate::zoned::{COMMAND_SET, Zones};

/// Blocks of a namespace: the sizes that may be chosen, as powers of two, and what stands behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The device's identity.
    pub uuid: [u8; 16],
    /// Serial number, up to 20 ASCII characters.
    pub serial: String,
    /// Model number, up to 40 ASCII characters.
    pub model: String,
    /// Firmware revision, up to 8 ASCII characters.
    pub firmware: String,
    /// Bytes of a block, as a power of two.
    pub block_shift: u8,
    /// Bytes of one of the device's sectors, as a power of two: no block is smaller.
    pub sector_shift: u8,
    /// Bytes that a host sees.
    pub bytes: u64,
    /// Bytes that hold data.
    pub used_bytes: u64,
    /// The largest request, bytes: a power of two. A write up to it is never torn, whatever fails.
    pub max_request_bytes: u32,
    /// Writes are refused.
    pub read_only: bool,
    /// The number of the snapshot or clone that it shows; nothing for the device as it is.
    pub snapshot: Option<u64>,
    /// Written data may be lost when the power goes until they are flushed.
    pub volatile_cache: bool,
    /// Placements of what hosts write that are told apart; 1 where they cannot say.
    pub placements: u8,
    /// What is reclaimed at once, bytes: an erase block without its header.
    pub reclaim_unit_bytes: u64,
    /// Its zones, if it has some.
    pub zones: Option<Zones>,
}

impl Namespace {
    /// Its NGUID and UUID. Those of a snapshot are no other namespace's: the device's, with the snapshot's number in the last eight bytes,
    /// by exclusive or.
    pub fn identifier(&self) -> [u8; 16] {
        combine(self.uuid, self.snapshot)
    }

    /// Blocks.
    pub fn blocks(&self) -> u64 {
        self.bytes >> self.block_shift
    }

    /// Bytes that can be written.
    pub fn capacity_bytes(&self) -> u64 {
        self.zones.map_or(self.bytes, |zones| self.bytes / zones.size_bytes * zones.capacity_bytes)
    }

    /// The identifier of its command set.
    pub fn command_set(&self) -> u32 {
        if self.zones.is_some() { COMMAND_SET } else { 0 }
    }

    /// Blocks of the largest request.
    pub fn max_blocks(&self) -> u32 {
        self.max_request_bytes >> self.block_shift
    }
}

/// A device's identity and a snapshot's number make an identifier, and the identifier and the number the identity.
pub fn combine(uuid: [u8; 16], snapshot: Option<u64>) -> [u8; 16] {
    (u128::from_be_bytes(uuid) ^ u128::from(snapshot.unwrap_or(0))).to_be_bytes()
}

/// Critical warnings of the SMART log (Base Specification 2.0, figure 207).
pub mod warning {
    /// The spare is below its threshold.
    pub const SPARE: u8 = 1 << 0;
    /// A temperature is beyond a threshold.
    pub const TEMPERATURE: u8 = 1 << 1;
    /// The device is less reliable than it was.
    pub const DEGRADED: u8 = 1 << 2;
    /// The device takes no writes.
    pub const READ_ONLY: u8 = 1 << 3;
    /// What should survive a power cut would not.
    pub const BACKUP_FAILED: u8 = 1 << 4;
}

/// The health of a device. Where the device has no such figure, it is what a new one would say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// See [`warning`].
    pub warnings: u8,
    /// Kelvin; 0 where it has no sensor.
    pub kelvin: u16,
    /// Spare blocks left, per cent of those when it was new.
    pub spare_percent: u8,
    /// Below it the spare is critical, per cent.
    pub spare_threshold: u8,
    /// How much of its life is used up, per cent; up to 255.
    pub used_percent: u8,
    /// Bytes read by hosts.
    pub read_bytes: u64,
    /// Bytes written by hosts.
    pub written_bytes: u64,
    /// Bytes written to the media.
    pub media_written_bytes: u64,
    /// Reads of hosts.
    pub reads: u64,
    /// Writes of hosts.
    pub writes: u64,
    /// Times it was attached.
    pub power_cycles: u64,
    /// Hours since it was formatted.
    pub power_on_hours: u64,
    /// Times it was attached after it was not detached.
    pub unsafe_shutdowns: u64,
    /// Sectors that could not be read.
    pub media_errors: u64,
}

/// The layer's own figures, for the vendor's log page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// Everything appended over what hosts wrote; 0 while they wrote nothing.
    pub write_amplification: f64,
    /// Bytes that the groomer moved.
    pub groomed_bytes: u64,
    /// Bytes left empty so that flushes could be programmed.
    pub padding_bytes: u64,
    /// Bytes of headers, trim records and checkpoints.
    pub metadata_bytes: u64,
    /// Erase blocks erased, or given up for reuse.
    pub erased_blocks: u64,
    /// Erase blocks free.
    pub free_blocks: u64,
    /// Erase blocks in all.
    pub blocks: u64,
    /// Sectors that were rebuilt from parity.
    pub healed_sectors: u64,
}

/// Whoever knows the device.
pub trait Subject {
    /// The device as a namespace.
    fn namespace(&self) -> Namespace;
    /// How it is.
    fn health(&self) -> Health;
    /// What the layer did.
    fn wear(&self) -> Wear;
}
