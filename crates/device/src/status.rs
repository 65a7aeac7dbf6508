//! What a device tells about itself. Every figure is measured or counted here; field names are the API's.

use serde::{Deserialize, Serialize};

/// What a module is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not attached.
    Detached,
    /// Serving requests.
    Attached,
    /// Waiting for outstanding requests before it goes.
    Detaching,
    /// Replaying its log.
    Scanning,
    /// Being formatted or erased.
    Formatting,
    /// Failed: see `health`.
    Error,
}

/// Every figure of an attached device. Bytes, sectors and counts are exact; rates are left to the reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// What it is doing.
    pub state: State,
    /// `healthy`, `read-only`, or what is wrong, in words.
    pub health: String,
    /// Requests answered since attach.
    pub reads: u64,
    /// Write requests answered since attach.
    pub writes: u64,
    /// Flush requests answered since attach.
    pub flushes: u64,
    /// Trim and write-zeroes requests answered since attach.
    pub trims: u64,
    /// Bytes read by the host, over the format's life.
    pub host_read_bytes: u64,
    /// Bytes written by the host, over the format's life.
    pub host_written_bytes: u64,
    /// Bytes programmed on media, over the format's life.
    pub media_written_bytes: u64,
    /// Sectors that hold data.
    pub mapped_sectors: u64,
    /// Memory of the forward map, bytes.
    pub map_memory_bytes: u64,
    /// Memory of the whole layer, buffers included, bytes.
    pub memory_bytes: u64,
    /// Erase blocks free.
    pub free_lebs: u64,
    /// Erase blocks in all.
    pub lebs: u64,
    /// Bytes the backing store uses now, where known.
    pub allocated_bytes: Option<u64>,
}
