//! Write amplification of the layer's policies: the layer itself, over a medium that takes no time, under traffic of many kinds.
//!
//! The parameters are those of published comparisons: 262,144 sectors, segments of 256, the mean over the last 12 of 24 drive writes.

mod ahead;
mod cell;
mod files;
pub mod medium;
mod recorded;
pub mod theory;
mod workload;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::Serialize;

pub use cell::{Cell, Erases, Measured, Traffic};
pub use ftl::Policy;
pub use medium::Stuck;
pub use recorded::Recorded;
pub use workload::{Source, Workload};

/// What all cells have in common.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// Host sectors; a trace has its own.
    pub sectors: u64,
    /// Drive writes after the device was filled; the later half counts.
    pub drive_writes: u32,
    /// So often a trace is repeated; all of it counts.
    pub loops: u32,
    /// Policies of several streams have less space, as in the peers' simulators: a segment is kept free for each stream.
    pub as_published: bool,
    /// Where the medium must be erased: whether wear is levelled. `None`: it need not be erased, and nothing wears.
    pub wear: Option<bool>,
    /// Seed of the traffic.
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { sectors: 262_144, drive_writes: 24, loops: 20, as_published: false, wear: None, seed: 1 }
    }
}

/// All combinations, workload by workload.
pub fn cells(traffic: &[Traffic], over_provisioning: &[f64], policies: &[Policy]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for traffic in traffic {
        for over_provisioning in over_provisioning {
            for policy in policies {
                cells.push(Cell { traffic: traffic.clone(), over_provisioning: *over_provisioning, policy: *policy });
            }
        }
    }
    cells
}

/// Measures cells on so many threads, and gives those that were finished in their order. `done` hears of every one; `stop` ends it early.
///
/// # Errors
/// The layer did not take a request.
pub fn measure(
    setup: &Setup,
    cells: &[Cell],
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    done: &(dyn Fn(&Measured) + Sync),
) -> Result<Vec<Measured>, Stuck> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Mutex<Vec<(usize, Result<Measured, Stuck>)>> = Mutex::new(Vec::new());
    let halt = || failed.load(Ordering::Relaxed) || stop();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, cells.len().max(1)) {
            scope.spawn(|| {
                while let Some((number, cell)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    cells.get(number).map(|cell| (number, cell)).filter(|_| !halt())
                } {
                    let result = match cell.measure(setup, &halt) {
                        Ok(None) => return,
                        Ok(Some(measured)) => {
                            done(&measured);
                            Ok(measured)
                        }
                        Err(stuck) => {
                            failed.store(true, Ordering::Relaxed);
                            Err(stuck)
                        }
                    };
                    if let Ok(mut results) = results.lock() {
                        results.push((number, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
