//! The machine that a run is made on.

use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine that a run is made on. What cannot be found out is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this program.
    pub vsl: String,
    /// Kernel's name and release.
    pub kernel: String,
    /// Processor's name.
    pub cpu: String,
    /// Processors that may be used.
    pub processors: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// fio's version, where it makes the requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<String>,
}

impl Environment {
    /// This one; `fio` is the version of fio where it makes the requests.
    pub fn here(fio: Option<String>) -> Environment {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib = memory.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
        Environment {
            vsl: env!("CARGO_PKG_VERSION").into(),
            kernel: format!("{} {}", read("/proc/sys/kernel/ostype").trim(), read("/proc/sys/kernel/osrelease").trim()),
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
            memory_bytes: kib.unwrap_or(0) * 1024,
            fio,
        }
    }
}

/// The version that a program says it has.
///
/// # Errors
/// It cannot be started, or says nothing.
pub fn version_of(program: &str) -> Result<String, String> {
    let output = Command::new(program).arg("--version").output().map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() && !line.trim().is_empty() => Ok(line.trim().to_string()),
        _ => Err(format!("{program} --version: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
