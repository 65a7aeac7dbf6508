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
    /// Time of the thread that a driver has for each flash card, for a read, microseconds. It moves nothing else of that card's meanwhile.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub card_read_us: f64,
    /// What software RAID adds to each request of an array; any number wait at the same time, microseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub raid_us: f64,
    /// Requests that the host hands to the device at once; the others wait in the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<u32>,
    /// How it has a flash module hold its interrupts back; without it every answer interrupts the host at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<Interrupts>,
}

fn is_nothing(time: &f64) -> bool {
    *time == 0.0
}

/// Interrupt moderation: an interrupt is raised when so many answers wait for one, when the first of them has waited for so
/// long, or when no request is under way any more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupts {
    /// Answers that raise an interrupt.
    pub answers: u32,
    /// The longest that an answer waits for others, microseconds.
    pub wait_us: f64,
}
