//! The shape of a spinning disk in a data sheet.

use serde::{Deserialize, Serialize};

/// A spinning disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Capacity, bytes.
    pub bytes: u64,
    /// Sector, bytes.
    pub sector_bytes: u32,
    /// Turns a minute.
    pub rpm: f64,
    /// Cylinders: how many places the arm can stand.
    pub cylinders: u32,
    /// Seek to the next cylinder, milliseconds.
    pub track_to_track_ms: f64,
    /// Seek averaged over random places, milliseconds.
    pub average_seek_ms: f64,
    /// Seek from one end to the other, milliseconds.
    pub full_stroke_ms: f64,
    /// What a seek before a write takes longer, for the head must stand more exactly, milliseconds.
    pub write_settle_ms: f64,
    /// Rate of the outermost zone, bytes a second: gaps and head switches included.
    pub outer_bytes_per_s: u64,
    /// Rate of the innermost zone, bytes a second.
    pub inner_bytes_per_s: u64,
    /// Zones of equally many cylinders, from the outermost in; rates fall evenly from one to the next.
    pub zones: u32,
    /// Rate of the link to the host, bytes a second.
    pub link_bytes_per_s: u64,
    /// What a request takes in the drive's electronics and on the link beside its data, microseconds.
    pub request_us: f64,
    /// Requests that the drive chooses among, shortest positioning time first.
    pub queue_depth: u32,
    /// Memory for reading ahead and for writes, bytes.
    pub cache_bytes: u64,
    /// Whether writes are answered from that memory.
    pub write_cache: bool,
    /// Watts while spinning.
    pub idle_watts: f64,
    /// Watts while seeking and moving data.
    pub active_watts: f64,
}
