//! The host between threads and devices: what a driver makes the processor do, in nanoseconds.

use card::{Nanos, micros};
use profile::Driver;

/// What each request costs the host.
///
/// A thread has a processor of its own. It spends `submit` on a request, then waits for the lock that the threads of a device
/// share and holds it for `serial`; then the request is at the driver's queue, which hands at most `limit` at once to the device, in order.
/// An answer takes `latency` in the mean to come back, any number at the same time, and then `complete` of its thread's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Of the thread's processor, before the device sees the request.
    pub submit: Nanos,
    /// Of the thread's processor, after the device answered.
    pub complete: Nanos,
    /// Under the lock.
    pub serial: Nanos,
    /// Between the device's answer and the thread.
    pub latency: Nanos,
    /// Requests at the device at once.
    pub limit: u32,
}

impl Costs {
    /// Those of a driver; what is negative or no number counts as nothing.
    pub fn new(driver: &Driver) -> Costs {
        Costs {
            submit: micros(driver.submit_us),
            complete: micros(driver.complete_us),
            serial: micros(driver.serial_us),
            latency: micros(driver.latency_us),
            limit: driver.queue_limit.unwrap_or(u32::MAX).max(1),
        }
    }

    /// How long an answer takes to come back: three quarters of the mean are the least, and on top is what interrupt and scheduler need
    /// by chance, whose times are exponential. `varied` is drawn from that distribution, with a mean of 1.
    pub fn wake(&self, varied: f64) -> Nanos {
        let least = self.latency - self.latency / 4;
        least + (varied * (self.latency / 4) as f64) as Nanos
    }

    /// Processor time of one request, the lock included.
    pub fn cpu(&self) -> Nanos {
        self.submit + self.serial + self.complete
    }
}
