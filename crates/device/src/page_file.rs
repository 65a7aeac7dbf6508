//! Page-file support: a swap file may lie on the device, because serving a write takes no memory that would have to be paged out first.
//!
//! Two things make that true. All memory that grows with what is written is taken beforehand, for the worst case, and locked; and no page of this
//! process is paged out any more once it was used. The kernel is told besides that the device's thread serves I/O, where it lets itself be told.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::process::configure_io_flusher_behavior;

use crate::staging::Staging;
use crate::{Device, FormatError};

/// Devices of this process with page-file support.
static LOCKED: Mutex<u32> = Mutex::new(0);

/// What a device holds locked.
#[derive(Debug, Default)]
pub(crate) struct PageFile {
    /// It counts among those of the process.
    lock: Option<ProcessLock>,
    /// Why its memory could not be had at the attach.
    trouble: Option<String>,
}

impl PageFile {
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

/// No page of this process is paged out while there is one of these.
#[derive(Debug)]
struct ProcessLock;

impl ProcessLock {
    fn take() -> io::Result<ProcessLock> {
        let mut count = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
        if *count == 0 {
            // Only what is used: most of a device's tables is address space.
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?;
        }
        *count += 1;
        Ok(ProcessLock)
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        let mut count = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            // At worst it stays locked.
            let _ = munlockall();
        }
    }
}

impl Device {
    /// Takes the memory that page-file support asks for, where it is set. Where it cannot be had the device serves all the same, and says so.
    pub(crate) fn take_memory(&mut self) {
        if !self.core.superblock.page_file || self.is_read_only() {
            return;
        }
        if let Err(error) = self.set_page_file(true) {
            tracing::error!("{error}");
            self.page_file.trouble = Some(format!("without page-file support: {error}"));
        }
    }

    /// Takes the memory, or lets go of what is not in use.
    pub(crate) fn set_page_file(&mut self, on: bool) -> Result<(), FormatError> {
        if on == self.page_file.is_locked() {
            return Ok(());
        }
        self.page_file = PageFile::default();
        if !on {
            self.core.ftl.release_memory();
            return Ok(());
        }
        let bytes = self.core.ftl.worst_memory();
        let taken = enough_memory(bytes).and_then(|()| ProcessLock::take()).and_then(|lock| {
            self.core.ftl.preallocate()?;
            self.core.staging.as_ref().map_or(Ok(()), Staging::take_memory)?;
            Ok(lock)
        });
        let lock = taken.map_err(|error| FormatError::Invalid {
            name: "page file",
            value: format!("on, which takes {bytes} bytes of memory: {error}"),
            expected: "so much memory, and a process that may lock it: run it as root, or with LimitMEMLOCK=infinity"
                .into(),
        })?;
        // Of this thread, which is the device's own. Without the right to say so the rest holds all the same.
        if let Err(error) = configure_io_flusher_behavior(true) {
            tracing::info!(%error, "the kernel does not take the device's thread for one that serves I/O");
        }
        self.page_file.lock = Some(lock);
        Ok(())
    }
}

/// Memory that is asked for and cannot be had would end some process of the machine: it is looked for first.
fn enough_memory(bytes: u64) -> io::Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let available =
        text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse().ok());
    match available {
        Some(kilobytes) if bytes >= u64::saturating_mul(kilobytes, 1024) => {
            Err(io::Error::other(format!("{kilobytes} KiB are available")))
        }
        _ => Ok(()),
    }
}
