//! The host's side of a request in a data sheet: what a driver makes the processor do.

use serde::{Deserialize, Serialize};

/// What the host does for each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// Processor time of the submitting thread before the device sees the request, microseconds.
    pub submit_us: f64,
    /// Processor time of the same thread after the device answered, microseconds.
    pub complete_us: f64,
    /// Processor time under a lock that all threads share, microseconds.
    pub serial_us: f64,
    /// What a request waits on top, such as for an interrupt; any number wait at the same time, microseconds.
    pub latency_us: f64,
    /// Requests that the host hands to the device at once; the others wait in the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<u32>,
}
