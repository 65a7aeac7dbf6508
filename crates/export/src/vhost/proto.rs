//! Numbers of the virtio block device and of its rings, from the VIRTIO specification 1.3, sections 2.7, 5.2 and 6.

/// Requests (5.2.6).
pub mod command {
    /// Read.
    pub const IN: u32 = 0;
    /// Write.
    pub const OUT: u32 = 1;
    /// Make durable what was answered.
    pub const FLUSH: u32 = 4;
    /// The device's serial number.
    pub const GET_ID: u32 = 8;
    /// Forget.
    pub const DISCARD: u32 = 11;
    /// Zero.
    pub const WRITE_ZEROES: u32 = 13;
}

/// How a request ended (5.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Failed.
    IoErr = 1,
    /// Not known, or not with these flags.
    Unsupp = 2,
}

/// Feature bits (5.2.3, 6).
pub mod feature {
    /// `size_max` counts.
    pub const SIZE_MAX: u64 = 1 << 1;
    /// `seg_max` counts.
    pub const SEG_MAX: u64 = 1 << 2;
    /// Writes are refused.
    pub const RO: u64 = 1 << 5;
    /// `blk_size` counts.
    pub const BLK_SIZE: u64 = 1 << 6;
    /// Flushes are taken.
    pub const FLUSH: u64 = 1 << 9;
    /// The driver may switch between write-back and write-through.
    pub const CONFIG_WCE: u64 = 1 << 11;
    /// More queues than one.
    pub const MQ: u64 = 1 << 12;
    /// Discards are taken.
    pub const DISCARD: u64 = 1 << 13;
    /// Zeroings are taken.
    pub const WRITE_ZEROES: u64 = 1 << 14;
    /// Chains may end in a table of their own.
    pub const INDIRECT_DESC: u64 = 1 << 28;
    /// Both sides say from which index on they want to be woken.
    pub const EVENT_IDX: u64 = 1 << 29;
    /// vhost-user's own: the back end has protocol features.
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    /// No legacy device.
    pub const VERSION_1: u64 = 1 << 32;
}

/// Bytes of a request's header: type, a reserved word, sector.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a range to discard or to zero: sector, how many, flags.
pub const RANGE_BYTES: usize = 16;
/// Bytes of a serial number.
pub const ID_BYTES: usize = 20;
/// The unit of every sector number, bytes, whatever the device's sectors are.
pub const SECTOR_BYTES: u64 = 512;
/// In a range to zero: its space may be given back.
pub const UNMAP: u32 = 1;
/// In `avail.flags`: the driver wants no interrupts.
pub const NO_INTERRUPT: u16 = 1;
