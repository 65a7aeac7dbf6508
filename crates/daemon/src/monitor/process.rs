//! What the service itself takes.

use std::collections::BTreeMap;
use std::time::Instant;

/// The service's process, since it was last looked at.
pub struct Process {
    at: Instant,
    cpu_ns: u64,
}

impl Process {
    /// From now on.
    pub fn new() -> Process {
        Process { at: Instant::now(), cpu_ns: cpu_ns() }
    }

    /// Processor time since the last look, per cent of one processor; and memory.
    pub fn look(&mut self) -> BTreeMap<&'static str, f64> {
        let (now, cpu) = (Instant::now(), cpu_ns());
        let seconds = now.duration_since(self.at).as_secs_f64().max(1e-3);
        let percent = cpu.saturating_sub(self.cpu_ns) as f64 / 1e7 / seconds;
        *self = Process { at: now, cpu_ns: cpu };
        let mut values = BTreeMap::from([("cpu_percent", percent)]);
        values.extend(resident().map(|bytes| ("memory_bytes", bytes as f64)));
        values
    }
}

fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Memory that is resident, bytes.
pub fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_size_and_takes_time() {
        let mut process = Process::new();
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 20 {
            std::hint::spin_loop();
        }
        let values = process.look();
        assert!(values["cpu_percent"] > 1.0, "{values:?}");
        assert!(values["memory_bytes"] > 1e6, "{values:?}");
    }
}
