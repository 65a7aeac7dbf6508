//! The shape of a bridge in a data sheet: what stands between the host and flash that is no PCIe device of its own.

use serde::{Deserialize, Serialize};

/// A SATA or SAS bridge, or a hardware RAID 0 controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// Rate of the link to the host, bytes a second.
    pub link_bytes_per_s: u64,
    /// Whether the link carries both directions at once (SAS, PCIe) or one at a time (SATA).
    pub full_duplex: bool,
    /// Time that every request takes on the bridge alone, one after the other, microseconds.
    pub request_us: f64,
    /// What a request waits on top; any number wait at the same time, microseconds.
    pub latency_us: f64,
    /// Requests that the bridge hands on at once; the others wait in it.
    pub queue_depth: u32,
    /// Consecutive bytes on one flash controller when there are several.
    pub stripe_bytes: u64,
}
