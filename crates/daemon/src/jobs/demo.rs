//! A moderate mixed load, for a first look at a device that lives. It comes in as any client's does: over NBD.

use std::path::Path;
use std::time::{Duration, Instant};

use export::nbd::client::{Address, Ask, Client};

use super::Task;
use crate::Failure;

/// How often a batch of requests begins.
const TICK: Duration = Duration::from_millis(20);
/// Requests of a batch at the height of the load, and at its lowest.
const MOST: u64 = 48;
const LEAST: u64 = 6;
/// How long from height to height.
const WAVE: Duration = Duration::from_secs(90);
/// Part of the device that is used, so that a device in memory takes little of it, bytes.
const USED: u64 = 192 << 20;
/// Bytes of a request: most are small.
const SIZES: [u32; 8] = [4096, 4096, 4096, 8192, 4096, 16_384, 4096, 65_536];
/// Of a hundred requests, so many are reads.
const READS: u64 = 70;

/// Loads an export until somebody cancels it, or its device goes.
///
/// # Errors
/// The export cannot be reached.
pub fn load(socket: &Path, export: &str, task: &Task) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("the demo load on {export}: {error}"));
    let client = Client::connect(&Address::unix(socket, export)).map_err(failed)?;
    let used = client.export().bytes.min(USED);
    // Most requests go to a fifth of it, which must hold the largest.
    if used / 5 < u64::from(SIZES[7]) {
        return Err(Failure::invalid(format!("{export}: {used} bytes are too few for a load")));
    }
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let began = Instant::now();
    let mut next = began;
    let mut batches = 0u64;
    let mut pending = Vec::new();
    let mut data = vec![0; SIZES[7] as usize];
    while !task.is_cancelled() {
        let turn = began.elapsed().as_secs_f64() / WAVE.as_secs_f64();
        let height = 0.5 - 0.5 * (turn * std::f64::consts::TAU).cos();
        let count = LEAST + (height * (MOST - LEAST) as f64) as u64;
        for _ in 0..count {
            let size = SIZES[random.below(SIZES.len() as u64) as usize];
            // Four of five requests go to a fifth of the device.
            let within = if random.below(5) < 4 { used / 5 } else { used };
            let offset = random.below((within - u64::from(size)) / 4096 + 1) * 4096;
            let ask = if random.below(100) < READS {
                Ask::Read(size)
            } else {
                random.fill(&mut data[..size as usize]);
                Ask::Write(&data[..size as usize])
            };
            pending.push(client.begin(ask, offset, 0).map_err(failed)?);
        }
        batches += 1;
        if batches.is_multiple_of(50) {
            pending.push(client.begin(Ask::Flush, 0, 0).map_err(failed)?);
        }
        for one in pending.drain(..) {
            one.wait().map_err(failed)?;
        }
        task.at(0.0, &format!("{count} requests each {} ms", TICK.as_millis()));
        next += TICK;
        // One that cannot keep up is not asked for more at once later on.
        next = next.max(Instant::now() - TICK);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Numbers without any use but to differ (Steele, Lea and Flood, 2014: SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }
}
