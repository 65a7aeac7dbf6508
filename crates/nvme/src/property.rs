//! A controller's properties: what it can do, how it is configured, and how it stands.
//!
//! Source: NVM Express Base Specification 2.0, 3.1.3 (properties), figures 36 (CAP), 37 (VS), 46 (CC), 47 (CSTS).

/// Offset of Controller Capabilities, 8 bytes.
pub const CAP: u32 = 0x00;
/// Offset of Version, 4 bytes.
pub const VS: u32 = 0x08;
/// Offset of Controller Configuration, 4 bytes.
pub const CC: u32 = 0x14;
/// Offset of Controller Status, 4 bytes.
pub const CSTS: u32 = 0x1c;

/// The version that we announce: 2.0.
pub const VERSION: u32 = 2 << 16;
/// Entries of a queue at most; the field is one less (CAP.MQES).
pub const QUEUE_ENTRIES: u16 = 256;
/// Entries of an admin queue at the least (NVMe over Fabrics, figure 392: Connect).
pub const ADMIN_QUEUE_ENTRIES: u16 = 32;
/// Half seconds within which a controller becomes ready, or not (CAP.TO).
const READY_WITHIN: u64 = 30;

/// Controller Capabilities: queue sizes, contiguous queues, time to be ready, the NVM command set (CSS bit 0) or with it `others` (bit 6), pages of
/// 4 KiB.
pub fn capabilities(others: bool) -> u64 {
    u64::from(QUEUE_ENTRIES - 1) | 1 << 16 | READY_WITHIN << 24 | 1 << 37 | u64::from(others) << 43
}

/// Controller Configuration, the bits that we look at.
pub mod configuration {
    /// Enable.
    pub const ENABLE: u32 = 1 << 0;
    /// Shutdown notification: normal, in bits 15:14.
    pub const SHUTDOWN_NORMAL: u32 = 1 << 14;
    /// Both bits of the shutdown notification.
    pub const SHUTDOWN_MASK: u32 = 3 << 14;
    /// I/O command set selected, bits 6:4: 0 is the NVM command set.
    pub const COMMAND_SET_MASK: u32 = 7 << 4;
    /// All command sets that the controller has.
    pub const ALL_COMMAND_SETS: u32 = 6 << 4;
    /// Memory page size, bits 10:7: 0 is 4 KiB.
    pub const PAGE_SIZE_MASK: u32 = 15 << 7;
    /// Entry sizes that the NVM command set has: 64 bytes (2^6) in bits 19:16, 16 bytes (2^4) in bits 23:20.
    pub const ENTRY_SIZES: u32 = 6 << 16 | 4 << 20;
}

/// Controller Status.
pub mod status {
    /// Ready.
    pub const READY: u32 = 1 << 0;
    /// Fatal.
    pub const FATAL: u32 = 1 << 1;
    /// Shutdown is under way, in bits 3:2.
    pub const SHUTDOWN_OCCURS: u32 = 1 << 2;
    /// Shutdown is done.
    pub const SHUTDOWN_DONE: u32 = 2 << 2;
    /// Both bits of the shutdown's state.
    pub const SHUTDOWN_MASK: u32 = 3 << 2;
}
