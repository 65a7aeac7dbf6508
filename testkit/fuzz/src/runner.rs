//! Feeds a target, watches it, and keeps the input that it stumbled over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use random::SplitMix64;

use crate::{Target, memory, mutate};

/// What the memory of the process may grow by in a run: what is beyond it is a leak, or hostage to the client.
pub const GROWTH_LIMIT: u64 = 64 << 20;
/// Executions before the memory counts: buffers and pools are at their size then.
const WARM_UP: u64 = 1000;
/// An execution that takes so long does not end by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a run did.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Executions.
    pub executions: u64,
    /// How long they took.
    pub took: Duration,
    /// What the process grew by.
    pub grown_bytes: u64,
    /// What the inputs were made of, where the target counts it: how many, and of what.
    pub units: (u64, &'static str),
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.executions as f64 / self.took.as_secs_f64().max(1e-9);
        let grown = self.grown_bytes as f64 / f64::from(1 << 20);
        write!(f, "{} executions, {rate:.0} a second, 0 aborts, memory grew by {grown:.1} MiB", self.executions)?;
        match self.units {
            (0, _) => Ok(()),
            (count, name) => write!(f, ", {count} {name}"),
        }
    }
}

/// What a target stumbled over.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}\nreplay with: vsl-fuzz {target} --replay {}", input.display())]
pub struct Finding {
    /// The target.
    pub target: &'static str,
    /// What went wrong, and where.
    pub what: String,
    /// The file that holds the input.
    pub input: PathBuf,
}

/// What is being executed, for whoever must say so when it goes wrong.
struct Current {
    target: &'static str,
    input: Vec<u8>,
    panic: Option<String>,
}

static CURRENT: Mutex<Current> = Mutex::new(Current { target: "", input: Vec::new(), panic: None });
static DONE: AtomicU64 = AtomicU64::new(0);
static UNITS: Mutex<(u64, &str)> = Mutex::new((0, ""));

/// Counts what an input is made of, such as the PDUs that it sends.
pub(crate) fn count(units: u64, name: &'static str) {
    let mut counted = UNITS.lock().unwrap_or_else(PoisonError::into_inner);
    *counted = (counted.0 + units, name);
}

fn current() -> MutexGuard<'static, Current> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a panic on any thread is a finding, and so is an execution that does not end.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        memory::watch();
        std::panic::set_hook(Box::new(|info| {
            let thread = std::thread::current();
            let message = format!("thread '{}' {info}", thread.name().unwrap_or("without a name"));
            let trace = std::backtrace::Backtrace::capture();
            current().panic.get_or_insert(format!("{message}\n{trace}"));
        }));
        std::thread::spawn(|| {
            let mut last = (DONE.load(Relaxed), Instant::now());
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let done = DONE.load(Relaxed);
                if done != last.0 || current().target.is_empty() {
                    last = (done, Instant::now());
                } else if last.1.elapsed() > PATIENCE {
                    give_up(&format!("no end after {} s", PATIENCE.as_secs()));
                }
            }
        });
    });
}

fn save(target: &str, input: &[u8]) -> PathBuf {
    let sum = crc_fast::crc32_iscsi(input);
    let path = std::env::temp_dir().join(format!("vsl-fuzz-{target}-{sum:08x}"));
    if let Err(error) = std::fs::write(&path, input) {
        eprintln!("{}: not written: {error}", path.display());
    }
    path
}

/// Ends the process with a finding that no thread can be brought back from.
pub(crate) fn give_up(what: &str) -> ! {
    let trace = std::backtrace::Backtrace::force_capture();
    let (target, path) = {
        let current = current();
        (current.target, save(current.target, &current.input))
    };
    eprintln!("{target}: {what}\n{trace}\nreplay with: vsl-fuzz {target} --replay {}", path.display());
    std::process::exit(1)
}

/// Gives a target one input.
///
/// # Errors
/// Something panicked, here or on a thread that serves the target.
pub fn execute(target: &Target, input: &[u8]) -> Result<(), Finding> {
    watch();
    {
        let mut current = current();
        current.target = target.name;
        current.input.clear();
        current.input.extend(input);
        current.panic = None;
    }
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    DONE.fetch_add(1, Relaxed);
    let panic = {
        let mut current = current();
        current.target = "";
        current.panic.take()
    };
    match (result, panic) {
        (Ok(()), None) => Ok(()),
        (_, panic) => {
            let what = panic.unwrap_or_else(|| "a panic that did not say why".into());
            Err(Finding { target: target.name, what, input: save(target.name, input) })
        }
    }
}

/// Gives a target `executions` inputs that follow from `seed`.
///
/// # Errors
/// The first input that it stumbled over, or memory that grew beyond [`GROWTH_LIMIT`].
pub fn run(target: &'static Target, executions: u64, seed: u64) -> Result<Report, Finding> {
    let corpus = (target.corpus)();
    let mut random = SplitMix64::new(seed);
    for input in &corpus {
        execute(target, input)?;
    }
    for _ in 0..WARM_UP.min(executions) {
        execute(target, &mutate::input(target, &corpus, &mut random))?;
    }
    memory::arm();
    let (before, began) = (memory::resident_bytes(), Instant::now());
    *UNITS.lock().unwrap_or_else(PoisonError::into_inner) = (0, "");
    let mut last = Vec::new();
    for _ in 0..executions {
        last = mutate::input(target, &corpus, &mut random);
        execute(target, &last)?;
    }
    let took = began.elapsed();
    let grown_bytes = memory::resident_bytes().saturating_sub(before);
    if grown_bytes > GROWTH_LIMIT {
        let what = format!("memory grew by {grown_bytes} bytes in {executions} executions (seed {seed})");
        return Err(Finding { target: target.name, what, input: save(target.name, &last) });
    }
    let units = *UNITS.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Report { executions, took, grown_bytes, units })
}
